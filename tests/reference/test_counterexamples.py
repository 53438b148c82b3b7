"""Small vocabularies that show why the library does not take the shorter way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosstok.reference import (
    EOS,
    REJECT,
    BruteForce,
    CanonicalLaw,
    GivenTable,
    RawLaw,
    SmallBpe,
    SubsetModel,
    TableLM,
    is_viable,
    is_viable_by_search,
    outcomes,
    settled,
)
from tests.reference.cases import (
    CLOSE,
    COUNTS,
    SEEDS,
    canonical_table,
    examples,
    shuffled_vocabulary,
)

GPT2_SPACES = r"\s+(?!\S)|\s+|[^\s]+"


def token_by_token(native: SmallBpe, target: SmallBpe, tokens) -> tuple:
    """Each native token's bytes encoded alone, one after the other."""
    return tuple(piece for token in tokens for piece in target.encode(native.bytes_of(token)))


class TestAcrossPreTokens:
    spaces = SmallBpe(" \n1", [(" ", " "), ("\n", "\n")], GPT2_SPACES)

    def test_a_prefix_need_not_be_canonical(self):
        assert self.spaces.encode("  1") == (" ", " ", "1")
        assert self.spaces.encode("  ") == ("  ",)
        assert not self.spaces.is_canonical((" ", " "))
        assert is_viable(self.spaces, (" ", " "))
        assert not is_viable(self.spaces, (" ", " ", EOS))

    def test_a_pair_need_not_be_canonical(self):
        assert self.spaces.encode("\n\n1") == ("\n", "\n", "1")
        assert not self.spaces.is_canonical_pair("\n", "\n")

    def test_nothing_is_settled_while_white_space_is_open(self):
        assert settled(self.spaces, b"  ") == ()
        assert settled(self.spaces, b"  1") == (" ", " ", "1")
        assert outcomes(self.spaces, b"  ", ()) == {" ", "  "}

    def test_dropping_hypotheses_by_pairs_drops_the_truth(self):
        law = CanonicalLaw(TableLM(self.spaces, 3, limit=3))
        truth = BruteForce(law, self.spaces.truncate(0))
        of_pairs = law.row((" ",))[" "] * law.row(())[" "]
        assert truth.probability((" ", " ", "1")) > 0.001
        assert of_pairs == pytest.approx(law.probability((" ", " ")))
        assert law.probability((" ", " ")) > 0.001


class TestOutcomes:
    def test_nothing_settles_and_everything_rejects(self):
        """Target text `.␣`, e = [., ␣], child `He`: no cover has the space for itself."""
        words = SmallBpe(
            ". Her", [(" ", "H"), (" H", "e"), (" He", "r")], r" ?[^ .]+|\.| +(?!\S)| +"
        )
        text, e = b". He", (".", " ")
        assert settled(words, text, 2) == (".",)
        assert outcomes(words, text, e, 2) == {REJECT}
        assert outcomes(words, b". ", e[:1], 2) == {" ", " H", " He"}

    def test_one_outcome_need_not_settle(self):
        small = SmallBpe("ab", [("a", "b")])
        assert outcomes(small, b"ab", ()) == {"ab"}
        assert outcomes(small, b"a", ("a",)) == {"a", EOS, REJECT}


class TestIgnoreMerges:
    words = SmallBpe(
        " việc",
        [(" ", "v"), (" v", "i"), ("c", "c")],
        r" ?\S+|\s+",
        ignore_merges=True,
        whole=[" việc"],
    )

    def test_a_word_taken_whole_settles_nothing_of_a_longer_one(self):
        assert self.words.encode(" việc") == (" việc",)
        assert self.words.encode(" việcc") == (" vi", "ệ", "cc")
        assert settled(self.words, " việc".encode(), 2) == ()
        assert outcomes(self.words, " việc".encode(), (), 2) == {" việc", " vi"}

    def test_such_a_token_is_reachable_in_no_other_way(self):
        assert self.words.making_rank(" việc") is None
        merged = self.words.truncate(3)
        assert " việc" not in merged.tokens
        assert merged.encode(" việc") == (" vi", "ệ", "c")

    def test_what_follows_must_begin_a_new_piece(self):
        assert is_viable(self.words, (" việc", " ")) is True
        assert is_viable(self.words, (" việc", "c")) is False


class TestTruncation:
    @examples(300)
    @given(COUNTS, SEEDS, st.booleans(), st.integers(0, 5), st.text("ab ", max_size=9))
    def test_every_rank_prefix_is_token_local(self, count, seed, ignore, kept, text):
        """In any order of merges, with parts behind their uses: the theorem of section 3."""
        native = shuffled_vocabulary(
            "ab ", count, seed, splitter=r" ?[ab]+| ", ignore_merges=ignore
        )
        target = native.truncate(kept)
        assert target.encode(text) == token_by_token(native, target, native.encode(text))

    def test_ignore_merges_kept_on_is_not(self):
        """Merges a·a, a·aa, aa·a cut to two: aaa is taken whole, but not inside aaab."""
        merges = [("a", "a"), ("a", "aa"), ("aa", "a")]
        native = SmallBpe("ab", merges, ignore_merges=True)
        kept_on = SmallBpe("ab", merges[:2], ignore_merges=True)
        assert native.encode("aaab") == ("aaa", "b")
        assert kept_on.encode("aaa") == ("aaa",)
        assert kept_on.encode("aaab") == ("aa", "a", "b")
        assert native.truncate(2).encode("aaa") == ("aa", "a")

    def test_dropping_the_first_of_two_merges_is_not(self):
        native = SmallBpe("abc", [("a", "b"), ("b", "c")])
        dropped = SmallBpe("abc", [("b", "c")])
        assert native.encode("abc") == ("ab", "c")
        assert dropped.encode("abc") == ("a", "bc")
        assert token_by_token(native, dropped, ("ab", "c")) == ("a", "b", "c")
        assert [dropped.encode(token) for token in native.tokens[:4]] == [
            ("a",),
            ("b",),
            ("c",),
            ("a", "b"),
        ]
        assert all(
            dropped.encode(t) == token_by_token(native, dropped, (t,)) for t in native.tokens
        )

    def test_keeping_the_first_results_is_not(self):
        """Merges bc, ab, ab·c, bc·d, a·bc: the first three results bring a·bc along, not bc·d."""
        merges = [("b", "c"), ("a", "b"), ("ab", "c"), ("b" + "c", "d"), ("a", "bc")]
        native = SmallBpe("abcd", merges)
        kept = SmallBpe("abcd", [m for m in merges if "".join(m) in {"bc", "ab", "abc"}])
        assert native.encode("abcd") == ("a", "bcd")
        assert kept.encode("abcd") == ("abc", "d")
        assert token_by_token(native, kept, ("a", "bcd")) == ("a", "bc", "d")


class TestTokenLocalRows:
    def test_not_under_raw(self):
        """Merges b·a (and a·a), cut after one: ids [b, a, a] are [ba, a] in the target."""
        native = SmallBpe("ab", [("b", "a"), ("a", "a")])
        target = native.truncate(1)
        ids = ("b", "a", "a")
        assert token_by_token(native, target, ids) == ("b", "a", "a")
        assert target.encode("baa") == ("ba", "a")
        table = {ids[:i]: {token: 1.0} for i, token in enumerate(ids)}
        truth = BruteForce(RawLaw(GivenTable(native, table)), target)
        assert truth.probability(("b",)) == 0
        assert truth.probability(("ba", "a", EOS)) == 1

    def test_the_row_inside_a_native_token_is_off_the_path(self):
        """Merge a·b, bytes, text `ab`: behind `a` the row of [a] counts, and the path is [ab]."""
        native = SmallBpe("ab", [("a", "b")])
        law = canonical_table(native, 9)
        true = BruteForce(law, native.truncate(0)).row(("a",))
        asked = []

        class Watched:
            vocabulary = native

            def row(self, prefix):
                asked.append(prefix)
                return law.row(prefix)

        subset = SubsetModel(Watched(), 0)
        subset.covers(("a",))
        asked.clear()
        assert subset.row(("a",)) == pytest.approx(true, abs=CLOSE)
        assert asked == [("a",)]
        assert native.encode("ab") == ("ab",)


class TestUnfinishedCharacters:
    def test_pairs_do_not_decide_inside_a_character(self):
        """Merges C3·A8, C3·A9, no other byte: C3 begins both characters and no encoding."""
        closed = SmallBpe(
            ["<0xC3>", "<0xA8>", "<0xA9>"], [("<0xC3>", "<0xA8>"), ("<0xC3>", "<0xA9>")]
        )
        assert closed.is_valid(("<0xC3>",))
        assert not is_viable(closed, ("<0xC3>",))
        assert settled(closed, b"\xc3") == ()
        assert outcomes(closed, b"\xc3", ("<0xC3>",)) == {REJECT}

    def test_it_takes_the_whole_character(self):
        """Merges BD·BD, E4·BDBD: E4 may be followed by BD, but then by nothing more."""
        bound = SmallBpe(["<0xE4>", "<0xBD>"], [("<0xBD>",) * 2, ("<0xE4>", "<0xBD><0xBD>")])
        assert bound.is_canonical_pair("<0xE4>", "<0xBD>")
        assert not is_viable(bound, ("<0xE4>",))
        assert not is_viable_by_search(bound, ("<0xE4>",))
        assert is_viable(bound, ("<0xE4><0xBD><0xBD>", "<0xE4><0xBD><0xBD>"))

    def test_a_later_merge_can_save_it(self):
        saved = SmallBpe(["a", "<0xC3>", "<0xA8>"], [("<0xA8>", "a"), ("<0xC3>", "<0xA8>")])
        assert saved.encode("èa") == ("<0xC3>", "<0xA8>a")
        assert is_viable(saved, ("<0xC3>",))


class TestOpenPieces:
    """Section 3's rules for what a continuation can change, merges only and in any order."""

    @examples(100)
    @given(COUNTS, SEEDS, st.text("ab", min_size=1, max_size=5), st.text("ab", max_size=5))
    def test_every_continuation_begins_with_a_live_cover(self, count, seed, w, more):
        vocabulary = shuffled_vocabulary("ab", count, seed)
        longer = vocabulary.encode(w + more)
        inside = [k for k in range(len(longer) + 1) if len("".join(longer[:k])) <= len(w)]
        i = len("".join(longer[: max(inside)]))
        assert longer[: max(inside)] == vocabulary.encode(w[:i])
        assert i in live_places(vocabulary, w)

    @examples(100)
    @given(COUNTS, SEEDS, st.text("ab ", max_size=8))
    def test_no_token_with_xy_inside_is_a_cut_between_x_and_y(self, count, seed, text):
        vocabulary = shuffled_vocabulary("ab ", count, seed)
        encoded = vocabulary.encode(text)
        ends = {len("".join(encoded[:k])) for k in range(len(encoded) + 1)}
        for i in range(1, len(text)):
            if not any(text[i - 1 : i + 1] in token for token in vocabulary.tokens):
                assert i in ends


def live_places(vocabulary: SmallBpe, w: str) -> set[int]:
    """|w|, and each i for which a token goes on from w[i:] past the end and fits there."""
    live = {len(w)}
    for i in range(len(w)):
        left = vocabulary.encode(w[:i])
        for token in vocabulary.tokens:
            reaches = token.startswith(w[i:]) and len(token) > len(w) - i
            if reaches and vocabulary.is_canonical((*left[-1:], token)):
                live.add(i)
    return live
