"""What the printed algorithms get wrong: each printed version, run on an example."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pytest

from crosstok.reference import (
    EOS,
    BruteForce,
    ByteView,
    CanonicalLaw,
    GivenTable,
    LocalSplitter,
    SmallBpe,
    SubsetModel,
    TableLM,
    beam_probability,
    convert_probability,
    cover_construction,
    draw_text,
    first_subtoken,
    relative_cover_search,
    relative_decode,
    relative_encode,
    sample_next_token,
    subset_probability,
    subtoken_mass,
)
from tests.reference.cases import CLOSE, canonical_table

ABA = SmallBpe("ab", [("a", "b"), ("ab", "a")])  # the V₂ of the paper's examples


# ---- Algorithm 1 --------------------------------------------------------------------------------


def printed_convert(vocabulary, encoding, merges, probability):
    """ConvertProb as printed: no question of validity."""
    if merges == 0:
        return probability(encoding)
    left, right = vocabulary.merges[merges - 1]
    decoded = relative_decode(vocabulary, encoding, merges - 1, merges)
    stays = printed_convert(vocabulary, decoded, merges - 1, probability)
    if encoding[-1] != left:
        return stays
    return stays - printed_convert(vocabulary, (*decoded, right), merges - 1, probability)


class TestAlgorithm1:
    def test_invalid_alternatives_are_not_subtracted(self):
        """Merges ab, bc, a·bc: the texts of the alternative [a, bc] encode as [ab, c]."""
        target = SmallBpe("abc", [("a", "b"), ("b", "c"), ("a", "bc")])
        assert target.encode("abc") == ("ab", "c")
        law = canonical_table(target.truncate(0), 1)
        true = BruteForce(law, target).probability(("a",))
        printed = printed_convert(target, ("a",), 3, law.probability)
        assert printed == pytest.approx(true - law.probability(tuple("abc")), abs=CLOSE)
        assert printed < true - 0.01
        converted = convert_probability(target, ("a",), law.probability)
        assert converted == pytest.approx(true, abs=CLOSE)

    def test_an_invalid_encoding_has_probability_0(self):
        """The paper's Example 1: [b, a, b] never appears where a·b is a merge."""
        target = SmallBpe("ab", [("a", "b")])
        law = canonical_table(target.truncate(0), 1)
        assert printed_convert(target, ("b", "a", "b"), 1, law.probability) > 0
        assert convert_probability(target, ("b", "a", "b"), law.probability) == 0

    def test_the_last_example_forgets_that_texts_end(self):
        """P([a, ab]) = P(aab) − P(aaba) + P(aabab); printed as P(aab) − P(aabaa)."""
        law = canonical_table(ABA.truncate(0), 2, limit=6)
        p = law.probability
        true = BruteForce(law, ABA).probability(("a", "ab"))
        longhand = p(tuple("aab")) - p(tuple("aaba")) + p(tuple("aabab"))
        assert true == pytest.approx(longhand, abs=CLOSE)
        assert convert_probability(ABA, ("a", "ab"), p) == pytest.approx(longhand, abs=CLOSE)
        printed = p(tuple("aab")) - p(tuple("aabaa"))
        ending = p((*"aaba", EOS))
        assert ending > 1e-3
        assert printed == pytest.approx(true + ending, abs=CLOSE)

    def test_the_leaves_of_the_last_example(self):
        leaves = []
        convert_probability(ABA, ("a", "ab"), lambda e: leaves.append("".join(e)) or 0.0)
        assert leaves == ["aab", "aaba", "aabab"]


# ---- Algorithm 2 --------------------------------------------------------------------------------


def search_as_the_prose_says(vocabulary, encoding, start):
    """Appendix A.1's words: candidates are tokens that are a prefix of s[i:]."""
    text = vocabulary.decode(encoding).decode()
    found = set()
    for i in range(len(text)):
        left = vocabulary.encode(text[:i])
        for token in vocabulary.tokens:
            cover = (*left, token)
            small = vocabulary.truncate(start).encode(vocabulary.decode(cover))
            if text[i:].startswith(token) and vocabulary.is_valid(cover):
                found |= {cover} if small[: len(encoding)] == encoding else set()
    return found


class TestAlgorithm2:
    def test_the_papers_example(self):
        assert set(relative_cover_search(ABA, ("a", "ab"), 1)) == {("a", "ab"), ("a", "aba")}

    def test_an_invalid_encoding_has_no_covers(self):
        """[a, b, b] is not valid over V₁, although [ab, b] spells it and decodes from b on."""
        assert relative_cover_search(ABA, ("a", "b", "b"), 1) == ()
        assert subset_probability(canonical_table(ABA, 3), ("a", "b", "b"), 1) == 0

    def test_the_prose_inverts_the_prefix_test(self):
        assert search_as_the_prose_says(ABA, ("a", "ab"), 1) == {("a", "ab")}

    def test_the_papers_sum(self):
        law = canonical_table(ABA, 3)
        p = law.probability
        expected = p(("a", "ab")) + p(("a", "aba"))
        assert subset_probability(law, ("a", "ab"), 1) == pytest.approx(expected, abs=CLOSE)
        assert BruteForce(law, ABA.truncate(1)).probability(("a", "ab")) == pytest.approx(expected)


# ---- Algorithm 3 --------------------------------------------------------------------------------


def printed_cover_construction(vocabulary, encoding, start, covers, row):
    """Keeps a cover if its last token *begins* with e[-1]."""
    kept = {
        cover: p
        for cover, p in covers.items()
        if cover and first_subtoken(vocabulary, cover[-1], start) == encoding[-1]
    }
    before = relative_encode(vocabulary, encoding[:-1], start)
    for token, p in row.items():
        begins = first_subtoken(vocabulary, token, start) == encoding[-1]
        if begins and vocabulary.is_valid((*before, token)):
            kept[(*before, token)] = p * covers[before]
    return kept


def printed_step_2(vocabulary, encoding, start, covers):
    """The printed loop over covers."""
    joint = defaultdict(float)
    for cover, p in covers.items():
        behind = relative_decode(vocabulary, cover, start)[len(encoding) :]
        joint[behind[0]] += p
    return joint


def printed_q(vocabulary, row, start):
    """Q with "t' is a prefix of t"."""
    subset = vocabulary.truncate(start)
    mass = defaultdict(float)
    for token, p in row.items():
        for subtoken in (*subset.tokens, subset.eos):
            mass[subtoken] += p * token.startswith(subtoken)
    return mass


class TestAlgorithm3:
    law = canonical_table(ABA, 4)

    def test_cover_construction_looks_at_the_place_of_the_new_subtoken(self):
        subset = SubsetModel(self.law, 0)
        covers, row = subset.covers(("a",)), self.law.row(())
        assert set(covers) == {("a",), ("ab",), ("aba",)}
        new = cover_construction(ABA, ("a", "b"), 0, covers, self.law.row(("a",)))
        assert set(new) == {("ab",), ("aba",)}
        assert sum(new.values()) == pytest.approx(row["ab"] + row["aba"], abs=CLOSE)
        printed = printed_cover_construction(ABA, ("a", "b"), 0, covers, self.law.row(("a",)))
        assert printed == {}

    def test_the_encoding_itself_has_no_next_subtoken(self):
        covers = SubsetModel(self.law, 0).covers(("a",))
        with pytest.raises(IndexError):
            printed_step_2(ABA, ("a",), 0, covers)
        truth = BruteForce(self.law, ABA.truncate(0))
        assert SubsetModel(self.law, 0).row(("a",)) == pytest.approx(truth.row(("a",)))

    def test_q_is_about_first_subtokens(self):
        """V₁ → V₂: ab and a are both prefixes of aba, which begins with the sub-token ab."""
        assert sum(printed_q(ABA, {"aba": 1.0}, 1).values()) == 2
        assert subtoken_mass(ABA, {"aba": 1.0}, 1) == {"ab": 1.0}
        row = self.law.row(())
        assert sum(subtoken_mass(ABA, row, 1).values()) == pytest.approx(1, abs=CLOSE)
        truth = BruteForce(self.law, ABA.truncate(1)).row(())
        printed = printed_q(ABA, row, 1)
        total = sum(printed.values())
        assert total > 1.01
        assert abs(printed["a"] / total - truth["a"]) > 0.01

    def test_validity_matters_to_q_as_well(self):
        """P(b | a) = .4 leaks: the printed Q·P gives b .7 behind the byte a, the truth is .5."""
        small = SmallBpe("ab", [("a", "b")])
        leaky = GivenTable(small, {(): {"a": 0.5, "ab": 0.5}, ("a",): {"b": 0.4, EOS: 0.6}})
        printed = subtoken_mass(small, leaky.row(("a",)), 0)["b"] * 0.5 + 0.5
        assert printed == pytest.approx(0.7)
        truth = BruteForce(CanonicalLaw(leaky), small.truncate(0)).row(("a",))
        assert truth == {"b": 0.5, EOS: 0.5}
        assert SubsetModel(leaky, 0).row(("a",)) == truth

    def test_the_algorithm_makes_a_leaking_model_canonical_by_itself(self):
        model = TableLM(ABA, 6, limit=4, leak=0.4)
        truth = BruteForce(CanonicalLaw(model), ABA.truncate(1))
        subset = SubsetModel(model, 1)
        for e in truth.prefixes():
            assert subset.probability(e) == pytest.approx(truth.probability(e), abs=CLOSE)
            if e[-1:] != (EOS,):
                assert subset.row(e) == pytest.approx(truth.row(e), abs=1e-10)


# ---- Appendix C.1 -------------------------------------------------------------------------------


class TestBeam:
    def test_without_a_splitter_even_all_beams_are_wrong(self):
        """Merges ␣·b, a·␣: `a ` is [a␣], but `a b` is [a, ␣b] and was subtracted from [a]."""
        target = SmallBpe("ab ", [(" ", "b"), ("a", " ")])
        law = canonical_table(target.truncate(0), 0)
        true = BruteForce(law, target).probability(("a",))
        lost = law.probability(("a", " ", "b"))
        beam = beam_probability(ByteView(law), target, ("a",))
        assert lost > 0.02
        assert beam == pytest.approx(true - lost, abs=CLOSE)
        assert convert_probability(target, ("a",), law.probability) == pytest.approx(true)

    def test_white_space_that_usually_starts_tokens_is_not_enough(self):
        """Of `a␣␣b` the first space is a token, of `a␣␣` both are one: [a, ␣] loses mass."""
        merges = [(" ", " "), (" ", "b")]
        target = SmallBpe("ab ", merges, r" ?[^ ]+| +(?!\S)| +")
        assert target.encode("a  b") == ("a", " ", " b")
        assert target.encode("a  ") == ("a", "  ")
        law = canonical_table(SmallBpe("ab ", []), 9)
        true = BruteForce(law, target).probability(("a", " "))
        assert beam_probability(ByteView(law), target, ("a", " ")) < true - 0.005

    def test_a_splitter_mends_it(self):
        target = SmallBpe("ab ", [(" ", "b"), ("a", " ")], LocalSplitter(before=" "))
        law = canonical_table(target.truncate(0), 0)
        true = BruteForce(law, target).probability(("a",))
        assert beam_probability(ByteView(law), target, ("a",)) == pytest.approx(true, abs=CLOSE)


def chi_square(counts: Counter, expected: dict, draws: int) -> tuple[float, float]:
    """The statistic and its 99.9 % point (Wilson and Hilferty's approximation)."""
    statistic = sum((counts[t] - draws * p) ** 2 / (draws * p) for t, p in expected.items())
    freedom = len(expected) - 1
    spread = 2 / (9 * freedom)
    return statistic, freedom * (1 - spread + 3.09 * spread**0.5) ** 3


def sample_as_printed(view, target, encoding, dice):
    """Stops at the first white space, wherever it stands."""
    start = target.decode(encoding)
    while True:
        data, value = start, b""
        while value is not None and value != b" ":
            row = view.row(data)
            value = dice.choices(list(row), weights=list(row.values()))[0]
            data += value or b""
        encoded = target.encode(data, end=value is None)
        if len(encoded) > len(encoding) and encoded[: len(encoding)] == encoding:
            return encoded[len(encoding)]


class TestSampling:
    target = SmallBpe(
        "ab ", [("a", "b"), (" ", "a"), (" ", "b"), ("a", "a")], LocalSplitter(before=" ")
    )
    law = canonical_table(target.truncate(0), 11)
    draws = 3000

    @pytest.mark.parametrize("encoding", [(), ("a",), ("ab",), ("a", " ")])
    def test_draws_follow_the_row(self, encoding):
        view, dice = ByteView(self.law), random.Random(5)
        expected = BruteForce(self.law, self.target).row(encoding)
        counts = Counter(
            sample_next_token(view, self.target, encoding, dice) for _ in range(self.draws)
        )
        statistic, limit = chi_square(counts, expected, self.draws)
        assert set(counts) <= set(expected)
        assert statistic < limit

    def test_stopping_at_white_space_that_begins_the_token_is_wrong(self):
        view, dice = ByteView(self.law), random.Random(5)
        expected = BruteForce(self.law, self.target).row(("a",))
        counts = Counter(
            sample_as_printed(view, self.target, ("a",), dice) for _ in range(self.draws)
        )
        statistic, limit = chi_square(counts, expected, self.draws)
        assert counts[" a"] == counts[" b"] == 0 < expected[" a"]
        assert statistic > limit

    def test_a_prefix_that_is_never_drawn(self, monkeypatch):
        monkeypatch.setattr("crosstok.reference.beam.ATTEMPTS", 300)
        with pytest.raises(ValueError, match="never began"):
            sample_next_token(ByteView(self.law), self.target, ("a", "b"), random.Random(1))

    def test_a_draw_ends_with_its_piece(self):
        view = ByteView(self.law)
        texts = {draw_text(view, b"a", random.Random(seed)) for seed in range(200)}
        assert all(ended or b" " not in text[2:-1] for text, ended in texts)
        assert {ended for _, ended in texts} == {True, False}
