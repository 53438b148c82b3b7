"""Token-local conversions on small vocabularies: the theorem, the pair check, what breaks both."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosstok import bpe
from crosstok.conversion import Conversion, ConversionKind, TokenMap
from crosstok.conversion.compare import match_tokens
from crosstok.conversion.pairs import _meets, check_pairs
from crosstok.truncation import derivations, relative_decoding, truncate
from tests.conversion.toys import differences, random_merges, spelled, toy, words

KEPT_WHOLE = "a·a, a·aa, aa·a"
WORDS = list(words("abc", 6))
seeds = st.integers(0, 10**6)


def fixed(examples):
    return settings(max_examples=examples, deadline=None, derandomize=True)


def violating_pair(native, target, tokens):
    """By brute force: a canonical native pair whose pieces are no canonical target pair."""
    usable = [t for t in np.flatnonzero(native.reachable) if native.token_bytes[t].isalpha()]
    usable = [t for t in usable if set(native.token_bytes[t]) <= set(b"abcd")]
    a, b = native.merger, target.merger
    for t in usable:
        for u in usable:
            if bpe.pair_is_canonical(t, u, a.spines, a.merges) and not bpe.pair_is_canonical(
                tokens.of(t)[-1], tokens.of(u)[0], b.spines, b.merges
            ):
                return t, u
    return None


# -- rank prefixes ---------------------------------------------------------------------------------


@given(seeds)
@fixed(40)
def test_every_rank_prefix_is_token_local(seed):
    dice = random.Random(seed)
    merges = random_merges(dice, count=dice.randint(3, 9))
    native = toy(merges, ignore_merges=dice.random() < 0.5)
    cut = truncate(native, merges=dice.randint(0, len(merges)), use_cache=False)
    found = Conversion(native, cut.vocabulary)
    assert found.kind != ConversionKind.GENERAL, found
    texts = dice.sample(WORDS, 300)
    assert not differences(native, cut.vocabulary, found.map.at, found.map.ids, texts)
    assert all(found.convert(native.encode(text)) == cut.vocabulary.encode(text) for text in texts)


@given(seeds)
@fixed(20)
def test_a_prefix_written_by_hand_is_recognised(seed):
    """Recognition works from the two vocabularies alone, with other ids and useless merges kept."""
    dice = random.Random(seed)
    merges = random_merges(dice, count=8)
    kept = merges[: dice.randint(1, 7)]
    native = toy(merges)
    target = toy(kept, shift=dice.randrange(200))
    found = Conversion(native, target)
    assert found.kind in {ConversionKind.SUBSET, ConversionKind.BYTES}
    if found.kind == ConversionKind.SUBSET:
        assert "rank prefix theorem" in found.why


def test_parts_may_come_later_than_their_use():
    native = toy("ab·c, a·b, abc·d, c·d")
    cut = truncate(native, merges=2, use_cache=False)
    found = Conversion(native, cut.vocabulary)
    assert found.kind == ConversionKind.SUBSET
    assert spelled(cut.vocabulary, cut.vocabulary.encode("abcd")) == ["abc", "d"]
    assert spelled(cut.vocabulary, found.convert(native.encode("abcd"))) == ["abc", "d"]


# -- the check of pairs ----------------------------------------------------------------------------


@given(seeds)
@fixed(60)
def test_the_pair_check_finds_exactly_what_brute_force_finds(seed):
    dice = random.Random(seed)
    letters = dice.choice(["ab", "abc", "abcd"])
    merges = random_merges(dice, count=dice.randint(3, 10), letters=letters)
    native, target = toy(merges), toy(_changed(merges, dice), shift=3)
    tokens = TokenMap(*relative_decoding(native, target))
    match = match_tokens(native, target)
    report = check_pairs(native, target, tokens.at, tokens.ids, match, set())
    brute = violating_pair(native, target, tokens)
    assert bool(report.violations) == (brute is not None)
    for t, u in report.violations:
        assert bpe.pair_is_canonical(t, u, native.merger.spines, native.merger.merges)
        last, first = tokens.of(t)[-1], tokens.of(u)[0]
        m = target.merger
        assert not bpe.pair_is_canonical(last, first, m.spines, m.merges)
    if brute is None:
        texts = list(words(letters, 5))
        assert not differences(native, target, tokens.at, tokens.ids, texts)


def crossed(vocabulary, first, second):
    """Whether some merge crosses between two tokens, by the condition on lives."""
    made, run = derivations(vocabulary), vocabulary.merger.spines
    birth = made.birth.tolist()
    rights = range(run.right_at[first], run.right_at[first + 1])
    lefts = range(run.left_at[second], run.left_at[second + 1])
    lives = {int(run.right_id[i]): int(run.right_seg[i]) for i in rights}
    others = {int(run.left_id[j]): int(run.left_seg[j]) for j in lefts}
    for z in made.tokens.tolist():
        x, y, rank = int(vocabulary.left[z]), int(vocabulary.right[z]), int(made.rank[z])
        if (
            x in lives
            and y in others
            and _meets(True, rank, lives[x], birth[x], birth[y])
            and _meets(False, rank, others[y], birth[y], birth[x])
        ):
            return True
    return False


@given(seeds)
@fixed(60)
def test_lives_decide_which_pairs_are_canonical(seed):
    dice = random.Random(seed)
    vocabulary = toy(random_merges(dice, count=7, letters="ab", longest=6))
    m = vocabulary.merger
    tokens = [vocabulary.encode("a")[0], *derivations(vocabulary).tokens.tolist()]
    for t in tokens:
        for u in tokens:
            canonical = bpe.pair_is_canonical(t, u, m.spines, m.merges)
            assert canonical != crossed(vocabulary, t, u)


def _changed(merges, dice):
    """A list that need not be a prefix: some merges dropped, or two exchanged."""
    if dice.random() < 0.6:
        return [merge for merge in merges if dice.random() < 0.75]
    changed = list(merges)
    i, j = dice.randrange(len(merges)), dice.randrange(len(merges))
    changed[i], changed[j] = changed[j], changed[i]
    return changed


def test_a_pair_check_can_prove_what_is_no_prefix():
    native = toy("a·b, c·d, b·a")
    found = Conversion(native, toy("a·b, b·a"))
    assert found.kind == ConversionKind.SUBSET
    assert "pair check" in found.why
    exchanged = Conversion(native, toy("c·d, a·b, b·a"))
    assert exchanged.kind == ConversionKind.SUBSET
    assert "comes before" in exchanged.why


def test_a_check_that_is_too_large_says_so():
    native, target = toy("a·b, c·d, b·c"), toy("c·d, a·b, b·c")
    tokens, match = TokenMap(*relative_decoding(native, target)), match_tokens(native, target)
    full = check_pairs(native, target, tokens.at, tokens.ids, match, set())
    assert (full.violations, full.complete) == ([], True)
    native, target = toy("a·b, b·c"), toy("b·c")
    tokens, match = TokenMap(*relative_decoding(native, target)), match_tokens(native, target)
    assert not check_pairs(native, target, tokens.at, tokens.ids, match, set(), work=0).complete


# -- what is not token-local -----------------------------------------------------------------------

# (native merges, target merges, a text on which they part, its native tokens)
BROKEN = {
    "an early merge dropped": ("a·b, b·c", "b·c", "abc", ["ab", "c"]),
    "results kept, not a prefix": (
        "b·c, a·b, ab·c, bc·d, a·bc", "b·c, a·b, ab·c, a·bc", "abcd", ["a", "bcd"]),
    "as in urdoch": ("r·d, u·r, o·ch, c·h, d·och, ur·doch", "c·h, o·ch, d·och, u·r",
                     "urdoch", ["u", "rd", "och"]),
    "the same merge on both sides, leftmost first": (
        "b·a, a·a, ba·a", "a·a", "baaa", ["ba", "aa"]),
    "another order": ("a·b, b·c", "b·c, a·b", "abc", ["ab", "c"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_other_truncations_break_and_are_general(case):
    before, after, text, tokens = BROKEN[case]
    native, target = toy(before, name="native"), toy(after, name="target")
    assert spelled(native, native.encode(text)) == tokens
    parts = relative_decoding(native, target)
    assert differences(native, target, *parts, [text])
    found = Conversion(native, target)
    assert found.kind == ConversionKind.GENERAL
    assert "is encoded as" in found.why
    assert not found.is_local


def test_dropping_ab_breaks_abc_though_each_token_alone_is_fine():
    native, target = toy("a·b, b·c"), toy("b·c")
    at, ids = relative_decoding(native, target)
    assert not differences(native, target, at, ids, ["a", "b", "c", "ab", "bc"])
    assert differences(native, target, at, ids, ["abc"]) == ["abc"]
    why = Conversion(native, target).why
    assert 'the tokens of "abc" stand for a·b·c, but it is encoded as a·bc' in why


def test_a_prefix_with_ignore_merges_kept_breaks():
    native = toy(KEPT_WHOLE, ignore_merges=True)
    kept = toy("a·a, a·aa", ignore_merges=True)
    assert spelled(native, native.encode("aaab")) == ["aaa", "b"]
    assert spelled(kept, kept.encode("aaab")) == ["aa", "a", "b"]
    assert spelled(kept, kept.encode("aaa")) == ["aaa"]
    found = Conversion(native, kept)
    assert found.kind == ConversionKind.GENERAL
    assert "ignore_merges" in found.why
    cut = truncate(native, merges=2, use_cache=False)
    assert not cut.vocabulary.ignore_merges
    assert Conversion(native, cut.vocabulary).kind == ConversionKind.SUBSET
    assert spelled(cut.vocabulary, cut.vocabulary.encode("aaa")) == ["aa", "a"]
    assert b"aaa" not in cut.vocabulary.token_bytes


def test_whole_tokens_that_merges_make_do_no_harm():
    native = toy("a·b, ab·c", ignore_merges=True)
    found = Conversion(native, toy("a·b", ignore_merges=True))
    assert found.kind == ConversionKind.SUBSET
