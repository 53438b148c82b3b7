"""Rank prefixes: sizes, ids, relative coding."""

import json
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from crosstok import assets, bpe
from crosstok.errors import BadInput
from crosstok.loading import load
from crosstok.truncation import derivations, truncate
from crosstok.vocabulary import Kind
from tests.conversion.toys import random_merges, spelled, toy, words

WORDS = list(words("abc", 6))
LLAMA, GEMMA = "llama3", "gemma2"


def merge_by_hand(merges, word):
    """Lowest rank first, leftmost first, on a list of strings."""
    rank = {pair: k for k, pair in enumerate(merges)}
    symbols = list(word)
    while True:
        found = [(rank[pair], k) for k, pair in enumerate(pairwise(symbols)) if pair in rank]
        if not found:
            return symbols
        _, k = min(found)
        symbols[k : k + 2] = [symbols[k] + symbols[k + 1]]


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_a_truncation_encodes_as_the_first_merges_do(seed):
    dice = random.Random(seed)
    merges = random_merges(dice, count=dice.randint(2, 9))
    cut = truncate(toy(merges), merges=dice.randint(0, len(merges)), use_cache=False)
    for word in dice.sample(WORDS, 200):
        expected = merge_by_hand(merges[: cut.merges], word)
        assert spelled(cut.vocabulary, cut.vocabulary.encode(word)) == expected


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_births_say_which_prefix_makes_a_token(seed):
    dice = random.Random(seed)
    merges = random_merges(dice, count=8)
    native = toy(merges)
    birth = derivations(native).birth
    for token in derivations(native).tokens.tolist():
        text = native.token_bytes[token].decode()
        made = [merge_by_hand(merges[:n], text) == [text] for n in range(len(merges) + 1)]
        assert made.index(True) == birth[token] + 1
        assert all(made[birth[token] + 1 :])


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_only_merges_that_fire_are_written(seed):
    dice = random.Random(seed)
    merges = random_merges(dice, count=9)
    cut = truncate(toy(merges), merges=dice.randint(0, 9), use_cache=False)
    written = json.loads(cut.vocabulary.source)["model"]["merges"]
    results = ["".join(pair) for pair in written]
    assert len(results) == len(set(results))
    assert [tuple(pair) for pair in written] == [pair for pair in merges if list(pair) in written]
    assert cut.tokens == len(results) + 257


def test_relative_coding_of_a_token_and_back():
    native = toy("a·b, ab·c, c·c, abc·a", ignore_merges=True)
    cut = truncate(native, merges=1, use_cache=False)
    (whole,) = native.encode("abca")
    assert spelled(cut.vocabulary, cut.decode_relative(whole)) == ["ab", "c", "a"]
    assert cut.encode_relative(cut.decode_relative(whole)) == (whole,)
    assert cut.encode_relative(()) == ()
    with pytest.raises(BadInput, match="expected ids of toy"):
        cut.decode_relative(9999)
    with pytest.raises(BadInput, match="expected ids of toy-"):
        cut.encode_relative([9999])


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_relative_encoding_finishes_the_merges(seed):
    dice = random.Random(seed)
    merges = random_merges(dice, count=8)
    native = toy(merges)
    cut = truncate(native, merges=dice.randint(0, 8), use_cache=False)
    for word in dice.sample(WORDS, 100):
        assert list(cut.encode_relative(cut.vocabulary.encode(word))) == native.encode(word)


def test_ids_are_dense_and_in_the_old_order():
    native = toy("a·b, b·c, ab·c", added=["<x>"])
    cut = truncate(native, merges=1, use_cache=False)
    assert cut.kept.tolist() == sorted(cut.kept.tolist())
    assert cut.new_ids[cut.kept].tolist() == list(range(cut.tokens))
    assert cut.vocabulary.size == cut.tokens == 256 + 1 + 2
    texts = [native.token_bytes[k] for k in cut.kept]
    assert list(cut.vocabulary.token_bytes) == texts
    assert set(cut.vocabulary.added.text) == {b"<x>"}


def test_the_two_sizes():
    native = toy("ab·c, a·b, b·c, c·c")
    assert truncate(native, merges=1, use_cache=False).tokens == 257
    # ab·c can fire only from the second line on: two tokens come at once.
    assert truncate(native, merges=2, use_cache=False).tokens == 259
    cut = truncate(native, tokens=258, use_cache=False)
    assert (cut.tokens, cut.merges) == (257, 1)
    cut = truncate(native, tokens=260, use_cache=False)
    assert (cut.tokens, cut.merges) == (260, 3)
    assert truncate(native, tokens=10_000, use_cache=False).merges == 4
    assert "260 tokens, from the first 3 of 4 merges, which make 3 of them" in str(cut)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({}, "one of tokens= and merges=, found neither"),
        ({"tokens": 300, "merges": 1}, "one of tokens= and merges=, found both"),
        ({"merges": 5}, "merges= from 0 to 2, found 5"),
        ({"merges": -1}, "merges= from 0 to 2, found -1"),
        ({"tokens": 256}, "tokens= of at least 257, the base and added tokens, found 256"),
    ],
)
def test_sizes_that_mean_nothing_are_refused(sizes, message):
    with pytest.raises(BadInput, match=message):
        truncate(toy("a·b, b·c"), **sizes)


# -- real vocabularies -----------------------------------------------------------------------------


def results_and_reachable(name, lines):
    native = load(assets.path(name), name=name)
    merges = json.loads(native.source)["model"]["merges"][:lines]
    results = {"".join(rule if isinstance(rule, list) else rule.split(" ")) for rule in merges}
    made = derivations(native)
    return len(results), int(np.sum(made.birth[made.tokens] < lines))


@pytest.mark.assets
def test_merges_and_tokens_are_different_numbers():
    """In both lists one result can be reached by no merge of the prefix."""
    assert results_and_reachable(LLAMA, 32_000) == (11_718, 11_717)
    assert results_and_reachable(GEMMA, 32_000) == (10_711, 10_710)


@pytest.mark.assets
def test_tokens_that_only_ignore_merges_reaches_are_dropped():
    native = load(assets.path(LLAMA), name=LLAMA)
    cut = truncate(native, tokens=native.size)
    assert native.size - cut.tokens == 588
    assert not cut.vocabulary.ignore_merges
    dropped = np.setdiff1d(np.arange(native.size), cut.kept)
    assert not native.reachable[dropped].any()
    assert b" jeho" in {native.token_bytes[k] for k in dropped}


@pytest.mark.assets
@pytest.mark.parametrize("size", [22_000, 100_000])
def test_gemma_keeps_what_is_not_merged(size):
    native = load(assets.path(GEMMA), name=GEMMA)
    cut = truncate(native, tokens=size)
    assert cut.tokens == size
    # 255 bytes: a tab is a character of its own, and Gemma 2 has no <0x09>.
    assert np.sum(cut.vocabulary.kinds == Kind.BYTE) == 255
    assert cut.vocabulary.added.text.keys() == native.added.text.keys()
    assert np.sum(cut.vocabulary.kinds == Kind.CONTROL) == np.sum(native.kinds == Kind.CONTROL)
    for text, token in native.added.text.items():
        assert cut.vocabulary.added.text[text] == cut.new_ids[token]
    assert np.all(cut.new_ids[list(native.bos)] != bpe.NONE)
    assert cut.vocabulary.bos == tuple(cut.new_ids[list(native.bos)])


@pytest.mark.assets
def test_runs_of_spaces_are_merged_though_added_tokens_are_written_alike():
    """Three spaces are no added token ▁▁▁: that one matches a literal ▁▁▁ alone."""
    native = load(assets.path(GEMMA), name=GEMMA)
    cut = truncate(native, merges=0)
    run = native.encode("   ")
    assert len(run) == 1
    assert run[0] in native.added.text.values()
    assert len(cut.decode_relative(run[0])) == 3
    assert list(cut.decode_relative(run[0])) == cut.vocabulary.encode("   ")
    assert cut.vocabulary.encode("▁▁▁") == [cut.new_ids[run[0]]]
    (newlines,) = native.encode("\n\n\n")
    assert cut.decode_relative(newlines) == (cut.new_ids[newlines],)


@pytest.mark.assets
def test_a_template_names_the_new_ids():
    native = load(assets.path("llama3_1"), name="llama3_1")
    cut = truncate(native, merges=1_000)
    oracle = Tokenizer.from_str(cut.vocabulary.source.decode())
    ids = oracle.encode("Hello").ids
    assert ids[0] == cut.vocabulary.bos[0] == oracle.token_to_id("<|begin_of_text|>")
    assert cut.vocabulary.names[ids[0]] == "<|begin_of_text|>"
