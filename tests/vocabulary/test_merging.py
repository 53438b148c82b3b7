"""The compiled merging against the merge run itself, on random small merge lists.

The lists have several merges a token, parts that come later than their use, and repeated lines.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosstok import bpe
from crosstok.compiling import assemble_merger, compile_arrays, read_atoms, spelling_order
from crosstok.vocabulary import Kind

from .toys import by_characters, byte_level, expected_ids, merged, read, tokenizer

LONGEST = 7
quick = settings(max_examples=150, deadline=None, derandomize=True)


@st.composite
def merge_lists(draw, alphabet="abc"):
    """Pairs of tokens in any order; the tokens are closed under taking a merge's parts."""
    tokens = list(alphabet)
    merges: list[tuple[str, str]] = []
    for _ in range(draw(st.integers(1, 14))):
        left, right = draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens))
        if len(left + right) <= LONGEST:
            merges.append((left, right))
            tokens.append(left + right)
    known = set(tokens)
    # Every further split of the tokens, or some: several merges a token.
    splits = [
        (token[:at], token[at:])
        for token in sorted(known)
        for at in range(1, len(token))
        if token[:at] in known and token[at:] in known
    ]
    if splits:
        merges += draw(st.lists(st.sampled_from(splits), max_size=6))
    return draw(st.permutations(merges)) if draw(st.booleans()) else merges


texts_over = lambda alphabet: st.text(st.sampled_from(alphabet), max_size=24)  # noqa: E731


def encoded(merges):
    return [(left.encode(), right.encode()) for left, right in merges]


@quick
@given(merge_lists(), st.lists(texts_over("abc"), min_size=1, max_size=8))
def test_bytes_encode_as_in_tokenizers(merges, found):
    data = byte_level(encoded(merges), symbols=b"abc")
    v, theirs = read(data), tokenizer(data)
    for text in found:
        assert v.encode(text) == expected_ids(theirs, text)
        assert v.encode(text) == merged(v.merger, text.encode())


@quick
@given(merge_lists(), st.lists(texts_over("abc"), min_size=1, max_size=8))
def test_pieces_found_whole_as_in_tokenizers(merges, found):
    data = byte_level(encoded(merges), symbols=b"abc", ignore_merges=True)
    v, theirs = read(data), tokenizer(data)
    for text in [*found, *(left + right for left, right in merges)]:
        assert v.encode(text) == expected_ids(theirs, text)


@quick
@given(merge_lists("▁aé"), st.lists(texts_over(" ▁aé你"), min_size=1, max_size=8), st.booleans())
def test_characters_encode_as_in_tokenizers(merges, found, prefixed):
    """Without a splitter: the cuts must not change anything."""
    data = by_characters(merges, characters="▁aé")
    if prefixed:
        prefix = {"type": "Prepend", "prepend": "▁"}
        data["normalizer"] = {"type": "Sequence", "normalizers": [prefix, data["normalizer"]]}
        data["decoder"]["decoders"].append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    v, theirs = read(data), tokenizer(data)
    for text in found:
        assert v.encode(text) == expected_ids(theirs, text)
        assert v.encode(text) == merged(v.merger, v.spelling.spell(text).encode())


@quick
@given(merge_lists(["a", "\xc3", "\xa9", "\xbd"]), st.lists(texts_over("aéý你"), max_size=8))
def test_bytes_without_a_splitter_encode_as_in_tokenizers(merges, found):
    """The cuts are between bytes here."""
    pairs = [(left.encode("latin-1"), right.encode("latin-1")) for left, right in merges]
    data = byte_level(pairs)
    data["pre_tokenizer"]["use_regex"] = False
    v, theirs = read(data), tokenizer(data)
    assert v.splits_by_cuts
    for text in found:
        assert v.encode(text) == expected_ids(theirs, text)


def small_merger(merges, *, tied):
    """Arrays of byte tokens; with ``tied`` all merges of one token have one rank."""
    v = read(byte_level(encoded(merges), symbols=b"abc"))
    size = v.size
    arrays = {"left": [], "right": [], "result": []}
    ids = {v.spelled(token): token for token in range(size)}
    for left, right in encoded(merges):
        arrays["left"].append(ids[left])
        arrays["right"].append(ids[right])
        arrays["result"].append(ids[left + right])
    left, right, result = (np.array(arrays[key], np.int32) for key in ("left", "right", "result"))
    rank = np.arange(len(left), dtype=np.int32)
    if tied:
        first = {token: k for k, token in reversed(list(enumerate(result.tolist())))}
        rank = np.array([first[token] for token in result.tolist()], np.int32)
    kinds = np.full(size, Kind.TEXT, np.uint8)
    merger = v.merger
    compiled = compile_arrays(
        merger.blob, merger.at, kinds, left, right, result, True, False, "toy", rank
    )
    return assemble_merger(compiled), np.flatnonzero(compiled["reachable"]).tolist()


def spelling(merger, token):
    return merger.blob[merger.at[token] : merger.at[token + 1]].tobytes()


@pytest.mark.parametrize("tied", [False, True])
def test_a_pair_is_canonical_when_the_run_says_so(tied):
    @quick
    @given(merge_lists())
    def check(merges):
        merger, tokens = small_merger(merges, tied=tied)
        for first in tokens:
            for second in tokens:
                by_run = merged(merger, spelling(merger, first) + spelling(merger, second))
                by_spines = bpe.pair_is_canonical(first, second, merger.spines, merger.merges)
                assert by_spines == (by_run == [first, second])

    check()


@pytest.mark.parametrize("tied", [False, True])
def test_the_prefix_tree_holds_every_prefix(tied):
    @quick
    @given(merge_lists(), texts_over("abc"))
    def check(merges, text):
        merger, _ = small_merger(merges, tied=tied)
        data = np.frombuffer(text.encode(), np.uint8)
        last, starts, nodes = (np.empty(len(data) + 1, np.int32) for _ in range(3))
        bpe.grow_tree(data, bpe.NONE, merger, last, starts, nodes)
        for end in range(1, len(data) + 1):
            assert last[end] == merged(merger, data[:end].tobytes())[-1]

    check()


@quick
@given(merge_lists(), st.lists(texts_over("abc"), max_size=5))
def test_pieces_are_merged_apart(merges, pieces):
    merger, _ = small_merger(merges, tied=False)
    data = np.frombuffer("".join(pieces).encode(), np.uint8)
    ends = np.cumsum([len(piece) for piece in pieces if piece], dtype=np.int64)
    ids, stops = np.empty(len(data) + 1, np.int32), np.empty(len(data) + 1, np.int64)
    count = bpe.encode_pieces(data, ends, merger, merger.trie, False, ids, stops)
    expected = [token for piece in pieces for token in merged(merger, piece.encode())]
    assert ids[:count].tolist() == expected
    assert (
        stops[:count].tolist() == np.cumsum([len(spelling(merger, t)) for t in expected]).tolist()
    )


@quick
@given(st.sets(st.binary(min_size=1, max_size=5), min_size=1, max_size=40), st.binary(max_size=6))
def test_the_trie_finds_exactly_its_tokens(contents, other):
    listed = sorted(contents, key=hash)
    blob = np.frombuffer(bytearray(b"".join(listed)), np.uint8)
    at = np.cumsum([0, *map(len, listed)], dtype=np.int64)
    order = spelling_order(blob, at, np.arange(len(listed)))
    trie = bpe.Trie(*bpe.build_trie(blob, at, order), order)
    for content in [*listed, other, *(content[:-1] for content in listed)]:
        found = bpe.whole_token(np.frombuffer(content, np.uint8), trie)
        assert found == (listed.index(content) if content in contents else bpe.NONE)
        node = bpe.ROOT
        for byte in content:
            node = bpe.step(trie, node, byte) if node != bpe.NONE else bpe.NONE
        below = {token for token, c in enumerate(listed) if c.startswith(content)}
        assert (node == bpe.NONE) == (not below)
        if below:
            assert set(trie.sorted[trie.low[node] : trie.high[node]].tolist()) == below


@quick
@given(merge_lists())
def test_a_later_line_replaces_an_equal_one(merges):
    """A repeated merge has the rank of its last line, as in `tokenizers`."""
    data = byte_level(encoded([*merges, merges[0]]), symbols=b"abc") if merges else None
    if data is None:
        return
    v, theirs = read(data), tokenizer(data)
    text = "".join(left + right for left, right in merges)
    assert v.encode(text) == expected_ids(theirs, text)


def test_atoms_are_bytes_or_characters():
    blob = np.frombuffer(bytearray("aé".encode()), np.uint8)
    at = np.array([0, 1, 3], np.int64)
    kinds = np.full(2, Kind.TEXT, np.uint8)
    by_byte = read_atoms(blob, at, kinds, True)
    assert by_byte.of_byte[ord("a")] == 0
    assert (by_byte.of_byte != bpe.NONE).sum() == 1
    by_character = read_atoms(blob, at, kinds, False)
    assert by_character.of_char[ord("é")] == 1
    assert (by_character.of_byte == bpe.NONE).all()
