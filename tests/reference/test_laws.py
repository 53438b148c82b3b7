"""The laws, and brute force under each of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosstok.reference import (
    CONTROL,
    DEAD_END,
    EOS,
    UNDECODABLE,
    BruteForce,
    CanonicalLaw,
    DeadEnd,
    GivenTable,
    RawLaw,
    SmallBpe,
    SubsetModel,
    TableLM,
    given_ids_probability,
    is_viable,
    native_endings,
    probability_over_texts,
)
from tests.reference.cases import (
    CLOSE,
    COUNTS,
    SEEDS,
    byte_vocabulary,
    canonical_table,
    examples,
    ordered_vocabulary,
    shuffled_vocabulary,
)


class TestThreeNumbersForOneText:
    """V = {a, b, ab}, P(a) = P(ab) = ½, P(b | a) = .4, the text `ab`."""

    vocabulary = SmallBpe("ab", [("a", "b")])
    model = GivenTable(vocabulary, {(): {"a": 0.5, "ab": 0.5}, ("a",): {"b": 0.4, EOS: 0.6}})

    def test_canonical(self):
        truth = BruteForce(CanonicalLaw(self.model), self.vocabulary)
        assert truth.probability(("ab",)) == pytest.approx(0.5, abs=CLOSE)

    def test_raw(self):
        truth = BruteForce(RawLaw(self.model), self.vocabulary)
        assert truth.probability(("ab",)) == pytest.approx(0.7, abs=CLOSE)

    def test_global_renormalisation(self):
        """What this library does not offer: the canonical sequences' share of all sequences."""
        whole = [*native_endings(RawLaw(self.model))]
        kept = {tokens: p for tokens, _, p in whole if self.vocabulary.is_canonical(tokens)}
        assert kept["ab",] / math.fsum(kept.values()) == pytest.approx(0.625, abs=CLOSE)

    def test_given_ids(self):
        assert given_ids_probability(self.model, ("a", "b")) == pytest.approx(0.2, abs=CLOSE)
        assert given_ids_probability(self.model, ("ab", "b")) == 0

    def test_the_leak(self):
        assert CanonicalLaw(self.model).leak(("a",)) == pytest.approx((0.4, 0.0))


def leaking(seed: int, *, limit: int = 3, leak: float = 0.4) -> TableLM:
    """Byte atoms, half characters, a control token, and mass on everything."""
    vocabulary = SmallBpe(
        ["a", "b", "<0xC3>", "<0xA9>"],
        [("a", "b"), ("<0xC3>", "<0xA9>"), ("b", "a")][: 1 + seed % 3],
        controls=["<tool>"],
    )
    return TableLM(vocabulary, seed, limit=limit, leak=leak)


TARGET = SmallBpe(["a", "b", "<0xC3>", "<0xA9>"], [("b", "a"), ("a", "a")])


@examples(30)
@given(st.integers(0, 1000), st.booleans())
def test_conservation(seed, raw):
    model = leaking(seed)
    truth = BruteForce(RawLaw(model) if raw else CanonicalLaw(model), TARGET)
    classes = {CONTROL, UNDECODABLE, DEAD_END}
    assert truth.probability(()) == pytest.approx(1, abs=CLOSE)
    for e in truth.prefixes():
        if e[-1:] and e[-1] in {EOS, *classes}:
            continue
        assert math.fsum(truth.row(e).values()) == pytest.approx(1, abs=CLOSE)
    outcomes = {e[-1] for e in truth.prefixes() if e}
    assert (classes & outcomes == {CONTROL, UNDECODABLE}) if raw else not classes & outcomes


@examples(40)
@given(COUNTS, COUNTS, SEEDS, st.sampled_from([0.0, 0.3]))
def test_sequences_and_texts_are_enumerated_alike(count, other, seed, leak):
    law = canonical_table(shuffled_vocabulary("ab", count, seed), seed, limit=3, leak=leak)
    target = shuffled_vocabulary("ab", other, seed + 1)
    truth = BruteForce(law, target)
    for e in truth.prefixes()[:20]:
        over_texts = probability_over_texts(law, target, e, 5)
        assert over_texts == pytest.approx(truth.probability(e), abs=CLOSE)


@examples(30)
@given(COUNTS, SEEDS)
def test_without_a_leak_the_laws_agree(count, seed):
    native = ordered_vocabulary("ab", count, seed)
    model = TableLM(native, seed, limit=3)
    target = ordered_vocabulary("ab", count, seed + 1)
    canonical, raw = BruteForce(CanonicalLaw(model), target), BruteForce(RawLaw(model), target)
    assert canonical.prefixes() == raw.prefixes()
    for e in canonical.prefixes():
        assert canonical.probability(e) == pytest.approx(raw.probability(e), abs=CLOSE)


class TestRawClasses:
    def test_a_control_token_cuts_off_what_was_settled(self):
        """After `a` nothing is settled (ab may come), so the control token is the first outcome."""
        native = SmallBpe("ab", [], controls=["<tool>"])
        table = {(): {"a": 1.0}, ("a",): {"a": 0.5, "<tool>": 0.5}}
        truth = BruteForce(RawLaw(GivenTable(native, table)), SmallBpe("ab", [("a", "b")]))
        assert truth.row(()) == {"a": 0.5, CONTROL: 0.5}
        assert truth.row(("a",)) == {"a": 1.0}

    def test_a_control_token_behind_a_settled_one(self):
        native = SmallBpe("ab", [], controls=["<tool>"])
        table = {(): {"b": 1.0}, ("b",): {EOS: 0.25, "<tool>": 0.75}}
        truth = BruteForce(RawLaw(GivenTable(native, table)), SmallBpe("ab", [("a", "b")]))
        assert truth.row(()) == {"b": 1.0}
        assert truth.row(("b",)) == {EOS: 0.25, CONTROL: 0.75}

    def test_half_a_character_may_neither_end_nor_go_on(self):
        native = SmallBpe(["a", "<0xC3>", "<0xA8>", "<0xA9>"], [])
        half = {"<0xA9>": 0.5, "a": 0.25, EOS: 0.25}
        truth = BruteForce(
            RawLaw(GivenTable(native, {(): {"<0xC3>": 1.0}, ("<0xC3>",): half})), native
        )
        assert truth.row(()) == {"<0xC3>": 1.0}
        assert truth.row(("<0xC3>",)) == {"<0xA9>": 0.5, UNDECODABLE: 0.5}

    def test_under_canonical_control_is_leak(self):
        native = SmallBpe("ab", [("a", "b")], controls=["<tool>"])
        table = {(): {"a": 1.0}, ("a",): {"b": 0.25, "<tool>": 0.25, EOS: 0.5}}
        law = CanonicalLaw(GivenTable(native, table))
        assert law.leak(("a",)) == (0.5, 0.25)
        assert law.row(("a",)) == {EOS: 1.0}
        assert law.smallest_viable_mass == 0.5


class TestDeadEnds:
    native = SmallBpe("ab", [("a", "b")])
    model = GivenTable(native, {(): {"a": 0.25, "b": 0.75}, ("a",): {"b": 1.0}})

    def test_an_error_on_the_path_asked_about(self):
        with pytest.raises(DeadEnd, match="after"):
            CanonicalLaw(self.model).probability(("a", "a"))

    def test_elsewhere_a_class_that_stops_nothing(self):
        truth = BruteForce(CanonicalLaw(self.model), self.native)
        assert truth.row(()) == {"b": 0.75, DEAD_END: 0.25}
        assert truth.row(("b",)) == {EOS: 1.0}


class TestTables:
    @pytest.mark.parametrize("seed", range(5))
    def test_texts_end_where_they_may(self, seed):
        model = TableLM(byte_vocabulary(3, seed), seed, limit=3)
        assert {how for _, how, _ in native_endings(RawLaw(model))} == {EOS}
        for tokens, _, p in native_endings(RawLaw(model)):
            assert model.vocabulary.is_canonical(tokens)
            assert p > 0

    def test_a_seed_is_a_model(self):
        vocabulary = ordered_vocabulary("ab", 3, 1)
        rows = [TableLM(vocabulary, seed).row(("a",)) for seed in (1, 1, 2)]
        assert rows[0] == rows[1] != rows[2]

    def test_context_bounds_what_a_row_sees(self):
        flat = SmallBpe("ab", [])
        bounded = TableLM(flat, 4, context=1, limit=9)
        unbounded = TableLM(flat, 4, limit=9)
        assert bounded.row(("a", "b")) == bounded.row(("b", "b"))
        assert unbounded.row(("a", "b")) != unbounded.row(("b", "b"))

    def test_a_leak_reaches_everything(self):
        row = leaking(1).row(("a",))
        assert set(row) == {*leaking(1).vocabulary.tokens, EOS, "<tool>"}
        assert not is_viable(leaking(1).vocabulary, ("a", "b"))


class TestIntroduction:
    """111+11=12: a tokenizer with 12 and 122 never says 2 after 12, the text does."""

    native = SmallBpe("12+=", [("1", "2"), ("12", "2"), ("1", "1"), ("11", "1")])
    prompt = ("111", "+", "11", "=", "12")

    def law(self):
        after = {"1": 0.5, EOS: 0.25, "2": 0.25}
        table = {self.prompt[:i]: {token: 1.0} for i, token in enumerate(self.prompt)}
        table[self.prompt[:-1]] = {"12": 0.75, "122": 0.25}
        return CanonicalLaw(GivenTable(self.native, {**table, self.prompt: after}))

    def test_natively_impossible(self):
        assert self.native.encode("111+11=12") == self.prompt
        assert not is_viable(self.native, (*self.prompt, "2"))
        assert self.law().row(self.prompt) == pytest.approx({"1": 2 / 3, EOS: 1 / 3})

    def test_over_bytes_it_is_not(self):
        row = SubsetModel(self.law(), 0).row(tuple("111+11=12"))
        assert row == pytest.approx({"2": 0.25, "1": 0.5, EOS: 0.25})
        truth = BruteForce(self.law(), self.native.truncate(0))
        assert row == pytest.approx(truth.row(tuple("111+11=12")))
