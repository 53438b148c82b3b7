"""Algorithms 1, 2, 3, their composition and brute force give the same numbers."""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosstok.reference import (
    BruteForce,
    ByteView,
    CanonicalLaw,
    LocalSplitter,
    NgramLM,
    SmallBpe,
    SubsetModel,
    TableLM,
    atom_probability,
    beam_probability,
    convert_probability,
    convert_through_bytes,
    covers,
    is_viable,
    relative_cover_search,
    relative_decode,
    subset_probability,
)
from tests.reference.cases import (
    CLOSE,
    COUNTS,
    SEEDS,
    SPLITTERS,
    byte_vocabulary,
    canonical_table,
    examples,
    fallback_vocabulary,
    ordered_vocabulary,
)

LEAKS = st.sampled_from([0.0, 0.3])


def asked(truth: BruteForce, most: int = 40):
    """Prefixes with a probability, and some without: their neighbours by one token."""
    found = truth.prefixes()[:most]
    others = [(*e[:-1], token) for e in found[1:20] for token in truth.target.tokens]
    return [*found, *(e for e in others if e not in set(found))]


@examples(50)
@given(COUNTS, SEEDS, SPLITTERS, st.integers(0, 4), LEAKS)
def test_full_to_subset(count, seed, splitter, cut, leak):
    native = ordered_vocabulary("ab", count, seed, splitter)
    start = min(cut, len(native.merges))
    law = canonical_table(native, seed, leak=leak)
    truth, subset = BruteForce(law, native.truncate(start)), SubsetModel(law, start)
    for e in asked(truth):
        assert subset_probability(law, e, start) == pytest.approx(truth.probability(e), abs=CLOSE)
        if truth.probability(e) > 0:
            assert subset.probability(e) == pytest.approx(truth.probability(e), abs=CLOSE)
        if truth.probability(e) > 0 and e[-1:] != (native.eos,):
            assert subset.row(e) == pytest.approx(truth.row(e), abs=1e-10)


@examples(50)
@given(COUNTS, SEEDS, SPLITTERS, st.integers(0, 4))
def test_subset_to_full(count, seed, splitter, cut):
    target = ordered_vocabulary("ab", count, seed, splitter)
    start = min(cut, len(target.merges))
    law = canonical_table(target.truncate(start), seed)
    truth = BruteForce(law, target)
    for e in asked(truth):
        converted = convert_probability(target, e, law.probability, start)
        assert converted == pytest.approx(truth.probability(e), abs=CLOSE)


@examples(50)
@given(COUNTS, COUNTS, SEEDS, SPLITTERS, LEAKS)
def test_any_to_any_over_bytes(count, other, seed, splitter, leak):
    native = ordered_vocabulary("ab", count, seed)
    target = ordered_vocabulary("ab", other, seed + 1, splitter)
    law = canonical_table(native, seed, leak=leak)
    truth = BruteForce(law, target)
    for e in asked(truth):
        assert convert_through_bytes(law, target, e) == pytest.approx(
            truth.probability(e), abs=CLOSE
        )


@examples(24)
@given(COUNTS, SEEDS, st.booleans(), st.booleans())
def test_any_to_any_with_bytes_on_either_side(count, seed, native_bytes, target_bytes):
    kinds = {True: byte_vocabulary, False: fallback_vocabulary}
    native = kinds[native_bytes](count, seed)
    target = kinds[target_bytes](count, seed + 1)
    law = canonical_table(native, seed, limit=3)
    truth = BruteForce(law, target)
    for e in asked(truth):
        assert convert_through_bytes(law, target, e) == pytest.approx(
            truth.probability(e), abs=CLOSE
        )


@examples(24)
@given(COUNTS, SEEDS, st.integers(0, 3))
def test_subsets_of_byte_level_and_fallback_vocabularies(count, seed, start):
    for native in (byte_vocabulary(count, seed), fallback_vocabulary(count, seed)):
        cut = min(start, len(native.merges))
        law = canonical_table(native, seed, limit=3)
        truth, subset = BruteForce(law, native.truncate(cut)), SubsetModel(law, cut)
        for e in asked(truth, 20):
            assert subset_probability(law, e, cut) == pytest.approx(truth.probability(e), abs=CLOSE)
            if truth.probability(e) > 0 and e[-1:] != (native.eos,):
                assert subset.row(e) == pytest.approx(truth.row(e), abs=1e-10)


@pytest.mark.parametrize(
    "merges",
    [
        [("b", "c"), ("a", "b"), ("ab", "c"), ("a", "bc"), ("abc", "a")],
        [("b", "c"), ("a", "bc"), ("a", "b"), ("ab", "c"), ("abc", "a")],
    ],
    ids=["dead before the one that acts", "dead behind it"],
)
def test_several_merges_for_one_token(merges):
    several = SmallBpe("abc", merges)
    law = canonical_table(several, 7)
    for start in range(6):
        truth, subset = BruteForce(law, several.truncate(start)), SubsetModel(law, start)
        for e in asked(truth, 60):
            expected = pytest.approx(truth.probability(e), abs=CLOSE)
            assert subset_probability(law, e, start) == expected
        assert subset.row(()) == pytest.approx(truth.row(()), abs=CLOSE)
        assert relative_decode(several, ("abc",), start) == several.truncate(start).encode("abc")
    flat = canonical_table(several.truncate(0), 8)
    truth = BruteForce(flat, several)
    for e in asked(truth, 60):
        converted = convert_probability(several, e, flat.probability)
        assert converted == pytest.approx(truth.probability(e), abs=CLOSE)


def test_ngram_models_convert_too():
    native = SmallBpe("ab ", [("a", "b"), (" ", "a"), (" a", "b")], LocalSplitter(before=" "))
    target = SmallBpe("ab ", [("b", "a"), (" ", "b")], LocalSplitter(before=" "))
    law = CanonicalLaw(NgramLM(native, ["ab ab", "ba ab", "a b"], limit=4))
    truth = BruteForce(law, target)
    assert law.leak(("a",))[0] > 0
    for e in asked(truth, 60):
        assert convert_through_bytes(law, target, e) == pytest.approx(
            truth.probability(e), abs=CLOSE
        )


# ---- Algorithm 2 by its definition, and its cost ----------------------------------------------


def covers_by_definition(vocabulary, encoding, start, longest):
    """Definition 4, condition by condition, over all sequences up to a length."""
    return {
        sequence
        for length in range(1, longest + 1)
        for sequence in itertools.product(vocabulary.tokens, repeat=length)
        if is_viable(vocabulary, sequence) and is_cover(vocabulary, sequence, encoding, start)
    }


def is_cover(vocabulary, sequence, encoding, start):
    before = relative_decode(vocabulary, sequence[:-1], start)
    last = relative_decode(vocabulary, sequence[-1:], start)
    rest = encoding[len(before) :]
    return bool(rest) and encoding[: len(before)] == before and last[: len(rest)] == rest


@examples(40)
@given(COUNTS, SEEDS, SPLITTERS, st.integers(0, 4), st.text("ab", min_size=1, max_size=3))
def test_cover_search_finds_the_covers(count, seed, splitter, cut, text):
    vocabulary = ordered_vocabulary("ab", count, seed, splitter)
    start = min(cut, len(vocabulary.merges))
    encoding = vocabulary.truncate(start).encode(text)
    found = relative_cover_search(vocabulary, encoding, start)
    assert len(set(found)) == len(found)
    assert set(found) == covers_by_definition(vocabulary, encoding, start, 3)


def test_cover_search_is_linear_in_the_text(monkeypatch):
    """Twice the text costs at most twice the calls, and the last places alone are searched."""
    vocabulary = SmallBpe("ab", [("a", "b"), ("ab", "a"), ("a", "a")])
    searched = []
    plain = covers._tokens_beginning_with
    monkeypatch.setattr(
        covers,
        "_tokens_beginning_with",
        lambda vocabulary, rest, start: searched.append(rest) or plain(vocabulary, rest, start),
    )
    costs = []
    for length in (40, 80, 160):
        calls = Counter()
        sys.setprofile(lambda frame, event, arg, calls=calls: calls.update([event]))
        found = relative_cover_search(vocabulary, tuple("aab" * length), 0)
        sys.setprofile(None)
        assert len(found) == 2
        costs.append(calls["call"])
    assert costs[1] <= 2.1 * costs[0]
    assert costs[2] <= 2.1 * costs[1]
    assert searched == 3 * [tuple("aab"), tuple("ab"), tuple("b")]


def test_one_native_row_a_step():
    """O(1) model evaluations a token: each step asks for the row of its own encoding only."""
    native = SmallBpe("ab", [("a", "b"), ("ab", "a"), ("a", "a")])

    class Counting(TableLM):
        asked: list

        def row(self, prefix):
            self.asked.append(prefix)
            return super().row(prefix)

    model = Counting(native, 3, limit=6)
    model.asked = []
    subset = SubsetModel(CanonicalLaw(model), 0)
    for step, token in enumerate("aab"):
        subset.row(tuple("aab"[:step]))
        assert len(model.asked) <= step + 1
        assert token in subset.row(tuple("aab"[:step]))


# ---- The byte view ----------------------------------------------------------------------------


@examples(30)
@given(COUNTS, SEEDS, st.booleans())
def test_bytes_by_covers(count, seed, fallback):
    native = fallback_vocabulary(count, seed) if fallback else byte_vocabulary(count, seed)
    law = canonical_table(native, seed, limit=3)
    view = ByteView(law)
    texts = {}
    for e in BruteForce(law, native).prefixes():
        if e[-1:] == (native.eos,):
            texts[native.decode(e)] = law.probability(e)
    for data in {text[:i] for text in texts for i in range(len(text) + 1)}:
        expected = math.fsum(p for text, p in texts.items() if text.startswith(data))
        assert view.probability(data) == pytest.approx(expected, abs=CLOSE)
        assert view.ending(data) == pytest.approx(texts.get(data, 0.0), abs=CLOSE)
        assert math.fsum(view.row(data).values()) == pytest.approx(1, abs=CLOSE)


def test_a_byte_atom_is_a_character_that_the_alphabet_lacks():
    native = byte_vocabulary(0, 0)
    view = ByteView(canonical_table(native, 5))
    target = SmallBpe(["a", "é", "<0xC3>", "<0xA8>", "<0xA9>"], [])
    unfinished = atom_probability(view, target, ("<0xC3>",))
    assert unfinished == pytest.approx(view.probability("è".encode()), abs=CLOSE)
    assert unfinished < view.probability(b"\xc3")
    assert atom_probability(view, target, ("<0xC3>", "<0xA9>")) == 0


# ---- The beam ---------------------------------------------------------------------------------


@examples(40)
@given(COUNTS, COUNTS, SEEDS, LEAKS)
def test_an_unlimited_beam_is_exact_under_a_splitter(count, other, seed, leak):
    native = ordered_vocabulary("ab ", count, seed)
    target = ordered_vocabulary("ab ", other, seed + 1, LocalSplitter(before=" "))
    law = canonical_table(native, seed, limit=3, leak=leak)
    truth, view = BruteForce(law, target), ByteView(law)
    for e in asked(truth, 30):
        if is_viable(target, e):
            assert beam_probability(view, target, e) == pytest.approx(
                truth.probability(e), abs=CLOSE
            )


@examples(25)
@given(SEEDS, st.integers(1, 4))
def test_fewer_beams_never_give_less_than_the_truth(seed, beams):
    target = ordered_vocabulary("ab ", 4, seed, LocalSplitter(before=" "))
    law = canonical_table(target.truncate(0), seed, limit=4)
    view = ByteView(law)
    for e in BruteForce(law, target).prefixes()[1:30]:
        exact = beam_probability(view, target, e)
        assert beam_probability(view, target, e, beams) >= exact - CLOSE


def test_fewer_beams_do_differ():
    target = SmallBpe("ab ", [("a", "b"), ("a", "a"), ("ab", "a")], LocalSplitter(before=" "))
    view = ByteView(canonical_table(target.truncate(0), 1))
    assert beam_probability(view, target, ("a",), 1) > beam_probability(view, target, ("a",)) + 0.01
