"""The arrays of a vocabulary, compiled from its spellings and merges, and put together again."""

from typing import Any

import numpy as np

from crosstok import bpe
from crosstok.errors import UnsupportedTokenizer
from crosstok.unicode import nfc
from crosstok.vocabulary import Kind

CODE_POINTS = 0x110000
TRIE_KEYS = ("child", "label", "token", "low", "high", "sorted")


def refuse(name: str, what: str) -> UnsupportedTokenizer:
    """The error for a tokenizer that cannot be reproduced exactly."""
    return UnsupportedTokenizer(
        f"{name}: {what}; crosstok refuses what it cannot reproduce exactly, "
        "see docs/THEORY.md for what is supported"
    )


def compile_arrays(
    blob: bpe.U8,
    at: bpe.I64,
    kinds: bpe.U8,
    left: bpe.I32,
    right: bpe.I32,
    result: bpe.I32,
    byte_level: bool,
    normalised: bool,
    name: str,
    rank: bpe.I32 | None = None,
) -> dict[str, Any]:
    """Derivations, spines, tries and cuts from spellings and merges."""
    if np.any(kinds[np.concatenate([left, right, result])] == Kind.BYTE):
        raise refuse(name, "merges of byte-fallback tokens")
    rank = np.arange(len(left), dtype=np.int32) if rank is None else rank
    keys, slots = bpe.hash_pairs(left, right)
    merges = bpe.MergeTable(keys, slots, rank, result)
    atoms = read_atoms(blob, at, kinds, byte_level)
    parts = bpe.derive(blob, at, kinds == Kind.TEXT, atoms, merges)
    part_left, part_right, left_seg, right_seg, reachable = parts
    reachable = _producible(reachable, blob, at, normalised)
    spines = bpe.build_spines(part_left, part_right, left_seg, right_seg)
    order = spelling_order(blob, at, np.flatnonzero(reachable))
    arrays: dict[str, Any] = {
        "blob": blob, "at": at, "kinds": kinds, "reachable": reachable,
        "merge_left": left, "merge_right": right, "rank": rank, "result": result,
        "left": part_left, "right": part_right,
        "of_byte": atoms.of_byte, "characters": np.array([not byte_level]),
    }  # fmt: skip
    arrays.update({f"spine_{k}": array for k, array in enumerate(spines)})
    arrays.update(zip(TRIE_KEYS, (*bpe.build_trie(blob, at, order), order), strict=True))
    arrays["glued"] = bpe.glued_pairs(blob, at, order, byte_level)
    return arrays


def read_atoms(blob: bpe.U8, at: bpe.I64, kinds: bpe.U8, byte_level: bool) -> bpe.Atoms:
    """The first symbol of every byte, and of every character where characters are the atoms."""
    lengths = np.diff(at)
    of_byte = np.full(256, bpe.NONE, np.int32)
    single = np.flatnonzero((lengths == 1) & (kinds == (Kind.TEXT if byte_level else Kind.BYTE)))
    of_byte[blob[at[single]]] = single
    if byte_level:
        return bpe.Atoms(False, of_byte, np.full(1, bpe.NONE, np.int32))
    of_char = np.full(CODE_POINTS, bpe.NONE, np.int32)
    for token in np.flatnonzero((lengths > 0) & (lengths <= 4) & (kinds == Kind.TEXT)).tolist():
        spelled = blob[at[token] : at[token + 1]].tobytes().decode("utf-8")
        if len(spelled) == 1:
            of_char[ord(spelled)] = token
    return bpe.Atoms(True, of_byte, of_char)


def _producible(reachable: bpe.Bool, blob: bpe.U8, at: bpe.I64, normalised: bool) -> bpe.Bool:
    """Where text is normalised first, a token whose own text is not normal never occurs."""
    if not normalised:
        return reachable
    data, offsets = blob.tobytes(), at.tolist()
    reachable = reachable.copy()
    for token in np.flatnonzero(reachable).tolist():
        spelled = data[offsets[token] : offsets[token + 1]]
        if not spelled.isascii() and not _is_normal(spelled):
            reachable[token] = False
    return reachable


def _is_normal(spelled: bytes) -> bool:
    text = spelled.decode("utf-8", errors="ignore")
    return nfc(text) == text


def spelling_order(blob: bpe.U8, at: bpe.I64, tokens: np.ndarray[Any, Any]) -> bpe.I32:
    """Tokens in the order of their spellings, one for each spelling (the lowest id)."""
    data, offsets = blob.tobytes(), at.tolist()
    spelled = {}
    for token in reversed(tokens.tolist()):
        spelled[data[offsets[token] : offsets[token + 1]]] = token
    return np.array([spelled[key] for key in sorted(spelled)], np.int32)


def assemble_merger(arrays: dict[str, Any]) -> bpe.Merger:
    """The kernels' view of the arrays; the hash table and character table are made anew."""
    keys, slots = bpe.hash_pairs(arrays["merge_left"], arrays["merge_right"])
    merges = bpe.MergeTable(keys, slots, arrays["rank"], arrays["result"])
    byte_level = not bool(arrays["characters"][0])
    atoms = read_atoms(arrays["blob"], arrays["at"], arrays["kinds"], byte_level)
    spines = bpe.Spines(*(arrays[f"spine_{k}"] for k in range(6)))
    trie = bpe.Trie(*(arrays[key] for key in TRIE_KEYS))
    longest = int(np.diff(arrays["at"]).max(initial=1))
    return bpe.Merger(merges, atoms, spines, trie, arrays["blob"], arrays["at"], longest)


def whole_trie(arrays: dict[str, Any]) -> bpe.Trie:
    """The trie of the tokens that a piece may equal (ignore_merges)."""
    order = arrays["whole_order"]
    child, label, token, low, high = bpe.build_trie(arrays["blob"], arrays["at"], order)
    return bpe.Trie(child, label, token, low, high, order)


def _empty_trie() -> bpe.Trie:
    zero, byte = np.zeros(1, np.int32), np.zeros(1, np.uint8)
    return bpe.Trie(np.ones(2, np.int32), byte, zero - 1, zero, zero, np.empty(0, np.int32))


EMPTY_TRIE = _empty_trie()
