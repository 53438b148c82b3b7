"""Merge, demerge, encoding orders, validity, and agreement with the `tokenizers` library."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from crosstok.reference import (
    LatePart,
    LocalSplitter,
    NotLocal,
    ReferenceRefusal,
    SmallBpe,
    UndecodableBytes,
    UnknownCharacter,
    demerge,
    is_viable,
    is_viable_by_search,
    merge,
    relative_decode,
    relative_encode,
    settled,
)
from crosstok.reference.viability import split_utf8
from tests.reference.cases import (
    COUNTS,
    SEEDS,
    SPLITTERS,
    byte_vocabulary,
    examples,
    fallback_vocabulary,
    ordered_vocabulary,
    shuffled_vocabulary,
)

TEXTS = st.text("ab ", max_size=8)


def all_texts(characters, longest):
    return ("".join(t) for n in range(longest + 1) for t in itertools.product(characters, repeat=n))


def printed_merge(tokens, pair):
    """Figure 2 to the letter, indices from 0."""
    whole, merged, i = pair[0] + pair[1], [], 0
    while i < len(tokens) - 1:
        if tokens[i] + tokens[i + 1] == whole:
            merged.append(whole)
            i += 2
        else:
            merged.append(tokens[i])
            i += 1
    return tuple(merged)


class TestErratumOfFigure2:
    def test_the_printed_loop_drops_the_last_token(self):
        assert printed_merge(("a", "b", "a"), ("a", "b")) == ("ab",)
        assert merge(("a", "b", "a"), ("a", "b")) == ("ab", "a")

    def test_strings_are_not_pairs(self):
        """Merges ba, ab, ab·a: `aba` stays [a, ba], as the last merge joins ab and a only."""
        vocabulary = SmallBpe("ab", [("b", "a"), ("a", "b"), ("ab", "a")])
        assert printed_merge(("a", "ba", "b"), ("ab", "a")) == ("aba",)
        assert vocabulary.encode_rule_by_rule("aba") == ("a", "ba")
        assert vocabulary.encode("aba") == ("a", "ba")


@examples(200)
@given(COUNTS, SEEDS, SPLITTERS, TEXTS)
def test_rule_by_rule_is_lowest_rank_first(count, seed, splitter, text):
    vocabulary = ordered_vocabulary("ab ", count, seed, splitter)
    assert vocabulary.encode_rule_by_rule(text) == vocabulary.encode(text)


@examples(200)
@given(COUNTS, SEEDS, TEXTS)
def test_demerge_undoes_merge(count, seed, text):
    vocabulary = ordered_vocabulary("ab ", count, seed)
    for stop, pair in enumerate(vocabulary.merges):
        before = vocabulary.truncate(stop).encode(text)
        if vocabulary.making_rank("".join(pair)) == stop:
            assert demerge(merge(before, pair), pair) == before


@examples(200)
@given(COUNTS, SEEDS, SPLITTERS, TEXTS, st.integers(0, 5))
def test_relative_encode_and_decode_agree_with_texts(count, seed, splitter, text, cut):
    vocabulary = ordered_vocabulary("ab ", count, seed, splitter)
    start = min(cut, len(vocabulary.merges))
    small, full = vocabulary.truncate(start).encode(text), vocabulary.encode(text)
    assert relative_encode(vocabulary, small, start) == full
    assert relative_decode(vocabulary, full, start) == small


def tokenizers_twin(vocabulary: SmallBpe, *, byte_fallback: bool) -> Tokenizer:
    ids = {token: i for i, token in enumerate(vocabulary.tokens)}
    merges = list(vocabulary.merges)
    model = models.BPE(
        ids, merges, byte_fallback=byte_fallback, ignore_merges=vocabulary.ignore_merges
    )
    return Tokenizer(model)


@examples(200)
@given(COUNTS, SEEDS, st.booleans(), TEXTS)
def test_encode_is_that_of_tokenizers(count, seed, ignore_merges, text):
    vocabulary = shuffled_vocabulary("ab ", count, seed, ignore_merges=ignore_merges)
    twin = tokenizers_twin(vocabulary, byte_fallback=False)
    assert vocabulary.encode(text) == tuple(twin.encode(text).tokens)


@examples(100)
@given(COUNTS, SEEDS, st.text("aéè", max_size=5))
def test_byte_fallback_is_that_of_tokenizers(count, seed, text):
    vocabulary = fallback_vocabulary(count, seed)
    twin = tokenizers_twin(vocabulary, byte_fallback=True)
    assert vocabulary.encode(text) == tuple(twin.encode(text).tokens)


class TestRefusals:
    def test_parts_that_come_late(self):
        late = SmallBpe("abc", [("ab", "c"), ("a", "b")])
        assert late.encode("abc") == ("abc",)
        with pytest.raises(LatePart, match="'ab' is made by merge 1"):
            late.encode_rule_by_rule("abc")
        with pytest.raises(LatePart):
            late.require_local()

    def test_late_is_judged_by_the_merge_that_makes_the_part(self):
        """ab·c stands before abc·d but never acts, since b·c comes first: a·bc is too late."""
        merges = [("b", "c"), ("a", "b"), ("ab", "c"), ("abc", "d"), ("a", "bc")]
        hidden = SmallBpe("abcd", merges)
        assert hidden.encode("abcd") == ("abcd",)
        assert hidden.apply_merges(tuple("abcd"), 0, 5) == ("abc", "d")
        with pytest.raises(LatePart, match="'abc' is made by merge 4"):
            hidden.encode_rule_by_rule("abcd")

    def test_truncation_drops_merges_that_can_never_act(self):
        late = SmallBpe("abc", [("ab", "c"), ("a", "b")])
        assert late.truncate(1).merges == ()
        assert late.truncate(2).merges == late.merges

    def test_what_the_paper_does_not_know(self):
        with pytest.raises(NotLocal):
            SmallBpe("ab", [], ignore_merges=True).encode_rule_by_rule("ab")
        with pytest.raises(NotLocal):
            SmallBpe("ab", [], r"a+|b+").require_local()

    def test_texts_without_an_encoding(self):
        with pytest.raises(UnknownCharacter):
            SmallBpe("ab", []).encode("c")
        with pytest.raises(UndecodableBytes):
            SmallBpe("ab", []).encode(b"\xff")

    def test_a_part_that_nothing_makes(self):
        with pytest.raises(ReferenceRefusal, match="no merge makes a part"):
            SmallBpe("ab", [("ab", "c")])

    def test_one_name_for_two_spellings(self):
        byte_and_text = ["<", "0", "x", "C", "3", ">", "<0xC3>"]
        with pytest.raises(ReferenceRefusal, match="two different"):
            SmallBpe(byte_and_text, [], whole=["<0xC3>"])


class TestOneMergeMakesAToken:
    """Several merges with one result (Lemma D): at most one of them ever acts."""

    def test_which_one(self):
        several = SmallBpe("abc", [("b", "c"), ("a", "b"), ("ab", "c"), ("a", "bc")])
        assert several.making_rank("abc") == 3
        assert relative_decode(several, ("abc",), 2) == several.truncate(2).encode("abc")

    def test_demerging_the_first_would_spell_what_no_text_has(self):
        several = SmallBpe("abc", [("b", "c"), ("a", "b"), ("ab", "c"), ("a", "bc")])
        wrong = demerge(("abc",), ("ab", "c"))
        assert not several.truncate(2).is_canonical(wrong)

    def test_a_token_that_nothing_makes(self):
        """Merges bc, ab, ab·c: demerging by rule and encoding its bytes differ for abc."""
        dead = SmallBpe("abc", [("b", "c"), ("a", "b"), ("ab", "c")])
        assert dead.making_rank("abc") is None
        assert relative_decode(dead, ("abc",), 2) == ("ab", "c")
        assert dead.truncate(2).encode("abc") == ("a", "bc")

    @examples(200)
    @given(COUNTS, SEEDS, TEXTS)
    def test_a_token_comes_about_in_every_text_as_alone(self, count, seed, text):
        vocabulary = shuffled_vocabulary("ab ", count, seed)
        for token in vocabulary.encode(text):
            assert vocabulary.making_rank(token) is not None
            assert vocabulary.encode(vocabulary.bytes_of(token)) == (token,)

    @examples(200)
    @given(COUNTS, SEEDS, TEXTS)
    def test_relative_decoding_is_encoding_the_bytes(self, count, seed, text):
        vocabulary = ordered_vocabulary("ab ", count, seed)
        for start, token in itertools.product(range(count + 1), vocabulary.encode(text)):
            by_bytes = vocabulary.truncate(start).encode(vocabulary.bytes_of(token))
            assert relative_decode(vocabulary, (token,), start) == by_bytes


class TestCanonicalSequences:
    """Lemmas B and C, with merges in any order."""

    @examples(200)
    @given(COUNTS, SEEDS, TEXTS)
    def test_prefixes_are_canonical(self, count, seed, text):
        vocabulary = shuffled_vocabulary("ab ", count, seed)
        encoded = vocabulary.encode(text)
        assert all(vocabulary.is_canonical(encoded[:i]) for i in range(len(encoded) + 1))

    @examples(200)
    @given(COUNTS, SEEDS, st.integers(0, 2**30))
    def test_adjacent_pairs_decide(self, count, seed, choice):
        vocabulary = shuffled_vocabulary("ab", count, seed)
        dice = random.Random(choice)
        for _ in range(30):
            tokens = tuple(dice.choice(vocabulary.tokens) for _ in range(dice.randint(1, 4)))
            alone = all(vocabulary.making_rank(token) is not None for token in tokens)
            pairs = all(vocabulary.is_canonical_pair(*p) for p in itertools.pairwise(tokens))
            assert vocabulary.is_canonical(tokens) == (alone and pairs)

    @pytest.mark.parametrize("seed", range(6))
    def test_viable_by_pairs_is_viable_by_search(self, seed):
        splitter = LocalSplitter(before="b") if seed % 2 else None
        for vocabulary in (
            ordered_vocabulary("ab", 3, seed, splitter),
            fallback_vocabulary(2, seed),
            byte_vocabulary(3, seed),
        ):
            for length in (1, 2, 3):
                for tokens in itertools.product(vocabulary.tokens, repeat=length):
                    searched = is_viable_by_search(vocabulary, tokens, 2)
                    assert is_viable(vocabulary, tokens) == searched


class TestBytesAndCharacters:
    def test_different_tokens_with_the_same_bytes(self):
        twice = SmallBpe(["a", "<0x61>"], [])
        assert twice.bytes_of("a") == twice.bytes_of("<0x61>") == b"a"
        assert twice.encode("a") == ("a",)
        assert not is_viable(twice, ("<0x61>",))

    def test_bytes_of_a_character_in_the_vocabulary_are_never_it(self):
        """E4 BD A0 must be 你; E4 BD may still become another character, A1's here."""
        chinese = SmallBpe(["你", "<0xE4>", "<0xBD>", "<0xA0>", "<0xA1>"], [])
        run = ("<0xE4>", "<0xBD>", "<0xA0>")
        assert not is_viable(chinese, run)
        assert is_viable(chinese, run[:2])
        assert is_viable(chinese, ("<0xE4>", "<0xBD>", "<0xA1>"))
        assert chinese.encode("你") == ("你",)

    def test_a_run_that_only_known_characters_complete(self):
        narrow = SmallBpe(["é", "<0xC3>", "<0xA9>"], [])
        assert not is_viable(narrow, ("<0xC3>",))

    def test_merging_knows_no_utf8_but_texts_do(self):
        """A token AB 98 would keep a quotation mark (C2 AB) open; no character begins with 98."""
        odd = SmallBpe(["<0xC2>", "<0xAB>", "<0x98>"], [("<0xAB>", "<0x98>")])
        cover = ("<0xC2>", "<0xAB><0x98>")
        assert odd.is_valid(cover)
        assert not is_viable(odd, cover)
        assert settled(odd, "«".encode()) == ("<0xC2>", "<0xAB>")

    def test_surrogates_are_no_text(self):
        surrogate = SmallBpe(["<0xED>", "<0xA0>", "<0x9F>"], [])
        assert split_utf8(b"a\xed\xa0") is None
        assert split_utf8(b"a\xed\x9f") == ("a", b"\xed\x9f")
        assert not is_viable(surrogate, ("<0xED>", "<0xA0>"))
        assert is_viable(surrogate, ("<0xED>", "<0x9F>"))
