"""How the kind of a conversion is found: obstacles, then theorems, then the check of pairs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crosstok import bpe
from crosstok.conversion.pairs import check_pairs
from crosstok.errors import BadInput
from crosstok.truncation import base_tokens, derivations, relative_decoding, untouched
from crosstok.vocabulary import SPACE, Kind, Spelling

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crosstok.vocabulary import Vocabulary


class ConversionKind(StrEnum):
    """What a native token stands for in the target's tokens."""

    SAME = "same"
    PADDED = "padded"
    BYTES = "bytes"
    SUBSET = "subset"
    GENERAL = "general"


@dataclass(frozen=True, eq=False)
class TokenMap:
    """The target tokens of each native token: ``ids[at[t] : at[t + 1]]``, none for control."""

    at: bpe.I64
    ids: bpe.I32

    def of(self, token: int) -> tuple[int, ...]:
        """The target tokens of one native token."""
        return tuple(self.ids[self.at[token] : self.at[token + 1]].tolist())

    @cached_property
    def first(self) -> bpe.I32:
        """The first target token of each native token, -1 where it has none."""
        out = np.full(len(self.at) - 1, bpe.NONE, np.int32)
        some = np.diff(self.at) > 0
        out[some] = self.ids[self.at[:-1][some]]
        return out

    def convert(self, tokens: bpe.I64) -> bpe.I32:
        """The target tokens of a row of native tokens."""
        starts, counts = self.at[tokens], np.diff(self.at)[tokens]
        shift = np.repeat(starts - (np.cumsum(counts) - counts), counts)
        return self.ids[shift + np.arange(len(shift))]


class Verdict(NamedTuple):
    """The kind, the reason, and the maps of a token-local conversion.

    ``start`` holds for the first token of a text, ``map`` for all others.
    """

    kind: ConversionKind
    why: str
    map: TokenMap | None = None
    start: TokenMap | None = None


def compare(native: Vocabulary, target: Vocabulary) -> Verdict:
    """The strongest kind that can be proved."""
    if is_bytes(target):
        return _bytes(native, target)
    obstacle = find_obstacle(native, target)
    if obstacle:
        return Verdict(ConversionKind.GENERAL, obstacle)
    found = relative_decoding(native, target)
    if found is None:
        return Verdict(ConversionKind.GENERAL, f"{target.name} lacks the symbol of a native token")
    return _by_merges(native, target, TokenMap(*found))


def _by_merges(native: Vocabulary, target: Vocabulary, tokens: TokenMap) -> Verdict:
    """Both read a text alike; what is left to compare is the merges."""
    match = match_tokens(native, target)
    merging = _Merging(native, target, match)
    if merging.gap is None and merging.complete and merging.same_whole:
        return _same(merging, tokens)
    odd = _whole_only(target)
    if odd:
        return Verdict(ConversionKind.GENERAL, _odd_whole(target, odd))
    if merging.gap is None:
        return Verdict(ConversionKind.SUBSET, merging.prefix_reason, *_both(tokens))
    return _by_pairs(native, target, tokens, match, merging.gap)


def _both(tokens: TokenMap) -> tuple[TokenMap, TokenMap]:
    """A map that holds at a text's start too: both sides put the same dummy prefix there."""
    return tokens, tokens


# -- bytes ----------------------------------------------------------------------------------------


def is_bytes(vocabulary: Vocabulary) -> bool:
    """Whether the tokens are exactly the 256 bytes (and control tokens)."""
    atoms = vocabulary.merger.atoms
    return (
        not atoms.characters
        and bpe.NONE not in atoms.of_byte
        and vocabulary.spelling == Spelling()
        and not vocabulary.added.text
        and int(np.sum(vocabulary.kinds == Kind.TEXT)) == 256
    )


def _bytes(native: Vocabulary, target: Vocabulary) -> Verdict:
    inside = list(native.token_bytes)
    first = (
        [text.removeprefix(SPACE) for text in inside] if native.spelling.dummy_prefix else inside
    )
    why = f"the tokens of {target.name} are the 256 bytes: every token stands for its own bytes"
    if native.spelling.dummy_prefix:
        why += ", at a text's start without the space that decoding takes off"
    of_byte = target.merger.atoms.of_byte
    tokens = _byte_map(inside, of_byte)
    start = tokens if first is inside else _byte_map(first, of_byte)
    return Verdict(ConversionKind.BYTES, why, tokens, start)


def _byte_map(texts: list[bytes], of_byte: bpe.I32) -> TokenMap:
    at = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=at[1:])
    return TokenMap(at, of_byte[np.frombuffer(b"".join(texts), np.uint8)])


# -- obstacles ------------------------------------------------------------------------------------


def find_obstacle(native: Vocabulary, target: Vocabulary) -> str | None:
    """What keeps the two from even reading a text alike; None if nothing does."""
    if native.merger.atoms.characters != target.merger.atoms.characters:
        return "one vocabulary merges bytes, the other characters"
    if native.spelling != target.spelling:
        return f"texts are spelled differently: {_spelling(native)} here, {_spelling(target)} there"
    if native.splitter.digest != target.splitter.digest:
        return f"texts are split differently: {native.splitter.name} and {target.splitter.name}"
    return _added_obstacle(native, target) or _atom_obstacle(native, target)


def _spelling(vocabulary: Vocabulary) -> str:
    s = vocabulary.spelling
    parts = [word for on, word in ((s.nfc, "NFC"), (s.low_line, "▁ for a space"),
                                   (s.dummy_prefix, "a dummy prefix")) if on]  # fmt: skip
    return " with ".join(parts) or "as they are"


def _added_obstacle(native: Vocabulary, target: Vocabulary) -> str | None:
    """Added tokens that only one side has, or that a special token can hide from the search."""
    ours, theirs = native.added, target.added
    lone = sorted(set(ours.text) ^ set(theirs.text))
    if lone:
        owner = native if lone[0] in ours.text else target
        return f"only {owner.name} has the added token {_show(lone[0])} ({len(lone)} in all)"
    for content, token in ours.text.items():
        hiding = [c for c in ours.control | theirs.control if _overlaps(c, content)]
        for control in hiding:
            if control not in ours.control or control not in theirs.control:
                return (
                    f"special token {_show(control)} hides a part of {_show(content)} in one only"
                )
            if native.reachable[token]:
                return f"{_show(content)} is both matched and, after {_show(control)}, merged"
    return None


def _overlaps(control: bytes, content: bytes) -> bool:
    return any(content.startswith(control[k:]) for k in range(1, len(control)))


def _atom_obstacle(native: Vocabulary, target: Vocabulary) -> str | None:
    if not target.merger.atoms.characters:
        return None
    ours, theirs = native.merger.atoms.of_char, target.merger.atoms.of_char
    extra = np.flatnonzero((theirs != bpe.NONE) & (ours == bpe.NONE))
    if not len(extra):
        return None
    return f"{target.name} has a symbol for {chr(extra[0])!r}, which {native.name} spells in bytes"


def _show(text: bytes) -> str:
    return json.dumps(text.decode("utf-8", "replace"), ensure_ascii=False)


# -- merges ---------------------------------------------------------------------------------------


def match_tokens(native: Vocabulary, target: Vocabulary) -> bpe.I32:
    """The native token that is spelled like each base or merged target token, NONE if none is."""
    ours = {native.spelled(token): token for token in _producible(native)}
    match = np.full(target.size, bpe.NONE, np.int32)
    for token in _producible(target):
        match[token] = ours.get(target.spelled(token), bpe.NONE)
    mine, theirs = native.merger.atoms.of_byte, target.merger.atoms.of_byte
    both = (mine != bpe.NONE) & (theirs != bpe.NONE)
    match[theirs[both]] = mine[both]
    return match


def _producible(vocabulary: Vocabulary) -> list[int]:
    """Atoms that are text, and everything that merges make."""
    base = base_tokens(vocabulary)
    base = base[vocabulary.kinds[base] == Kind.TEXT]
    return [*base.tolist(), *derivations(vocabulary).tokens.tolist()]


def _whole_only(vocabulary: Vocabulary) -> dict[bytes, int]:
    """The tokens that only `ignore_merges` reaches, by spelling."""
    if not vocabulary.ignore_merges:
        return {}
    lengths = np.diff(vocabulary.merger.at)
    text = np.flatnonzero((vocabulary.kinds == Kind.TEXT) & (lengths > 0)).tolist()
    others = {*_producible(vocabulary), *vocabulary.added.text.values()}
    return {vocabulary.spelled(token): token for token in text if token not in others}


def _odd_whole(target: Vocabulary, odd: dict[bytes, int]) -> str:
    text, token = min(odd.items(), key=lambda item: len(item[0]))
    return (
        f"{target.name} takes {len(odd)} tokens whole (ignore_merges) that its merges do not make, "
        f"such as {token}, {_show(text)}"
    )


class _Merging:
    """Whether the target's merges that fire are the first of the native's that do."""

    def __init__(self, native: Vocabulary, target: Vocabulary, match: bpe.I32) -> None:
        self.native, self.target, self.match = native, target, match
        self.ours, self.theirs = derivations(native), derivations(target)
        self.gap = self._gap()

    @property
    def complete(self) -> bool:
        """All native merges that fire are there."""
        return len(self.ours.tokens) == len(self.theirs.tokens)

    @property
    def same_whole(self) -> bool:
        """Both take the same tokens whole that merges do not make."""
        return _whole_only(self.native).keys() == _whole_only(self.target).keys()

    @property
    def prefix_reason(self) -> str:
        """The theorem in the user's words."""
        some, every = len(self.theirs.tokens), len(self.ours.tokens)
        if self.complete:
            return "the same merges in the same order, with other ids (rank prefix theorem)"
        return (
            f"the {some:,} merges that fire in {self.target.name} are the first of the {every:,} "
            f"of {self.native.name} (rank prefix theorem)"
        )

    def _gap(self) -> str | None:
        """Why the target is no rank prefix; None if it is."""
        native, target, match = self.native, self.target, self.match
        made = self.theirs.tokens
        found = match[made]
        if target.merger.atoms.characters and not self._same_characters():
            return f"{target.name} lacks characters of {native.name}"
        if bpe.NONE in found or np.any(self.ours.rank[found] == bpe.NONE):
            token = int(made[np.argmax((found == bpe.NONE) | (self.ours.rank[found] == bpe.NONE))])
            return f"{_show(target.spelled(token))} is no merged token of {native.name}"
        return self._order_gap(found)

    def _order_gap(self, found: bpe.I32) -> str | None:
        back = np.flatnonzero(np.diff(self.ours.rank[found]) < 0)
        if len(back):
            early, late = (_show(self.native.spelled(int(found[back[0] + k]))) for k in (0, 1))
            return f"{early} comes before {late}, in {self.native.name} after it"
        missing = np.setdiff1d(self.ours.tokens, found)
        if not len(missing) or not len(found):
            return None
        first = int(missing[np.argmin(self.ours.birth[missing])])
        if self.ours.birth[found].max() < self.ours.birth[first]:
            return None
        return f"{_show(self.native.spelled(first))} is left out, but not all that comes after it"

    def _same_characters(self) -> bool:
        ours, theirs = self.native.merger.atoms.of_char, self.target.merger.atoms.of_char
        return bool(np.array_equal(ours == bpe.NONE, theirs == bpe.NONE))


# -- same and padded ------------------------------------------------------------------------------


def _same(merging: _Merging, tokens: TokenMap) -> Verdict:
    """Equal tokenization; what is left to compare is the ids."""
    native, target = merging.native, merging.target
    whole, theirs = _whole_only(native), _whole_only(target)
    tokens = _renamed(tokens, {whole[text]: theirs[text] for text in whole})
    produced = [*_producible(native), *whole.values(), *native.added.text.values(),
                *np.flatnonzero(native.kinds == Kind.BYTE).tolist()]  # fmt: skip
    if any(tokens.of(token) != (token,) for token in produced):
        return Verdict(ConversionKind.SUBSET, merging.prefix_reason, *_both(tokens))
    if _equal_ids(native, target):
        why = "the same merges, splitter, spelling and added tokens, and the same ids"
        return Verdict(ConversionKind.SAME, why, *_both(tokens))
    return Verdict(ConversionKind.PADDED, _padding(native, target), *_both(tokens))


def _renamed(tokens: TokenMap, whole: dict[int, int]) -> TokenMap:
    """The map with whole-piece tokens mapped to their namesakes instead of to their merges."""
    if not whole:
        return tokens
    rows = [[whole[t]] if t in whole else tokens.of(t) for t in range(len(tokens.at) - 1)]
    at = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=at[1:])
    return TokenMap(at, np.array([token for row in rows for token in row], np.int32))


def _equal_ids(native: Vocabulary, target: Vocabulary) -> bool:
    return (
        native.names == target.names
        and native.token_bytes == target.token_bytes
        and np.array_equal(native.kinds, target.kinds)
    )


def _padding(native: Vocabulary, target: Vocabulary) -> str:
    size = max(native.size, target.size)
    kinds = [np.pad(v.kinds, (0, size - v.size)) for v in (native, target)]
    differ = int(np.sum(kinds[0] != kinds[1]))
    renamed = sum(
        native.names.get(t) != target.names.get(t) for t in {**native.names, **target.names}
    )
    return (
        f"every text gets the same ids; {native.name} has {native.size:,} ids and {target.name} "
        f"{target.size:,}, of which {max(differ, renamed):,}, that no text is encoded to, differ"
    )


# -- pairs ----------------------------------------------------------------------------------------


def _by_pairs(
    native: Vocabulary, target: Vocabulary, tokens: TokenMap, match: bpe.I32, gap: str
) -> Verdict:
    alone = set(untouched(native, target))
    report = check_pairs(native, target, tokens.at, tokens.ids, match, alone)
    if report.violations:
        example = _example(native, target, tokens, report.violations)
        return Verdict(ConversionKind.GENERAL, f"no rank prefix ({gap}), and {example}")
    if not report.complete:
        why = f"no rank prefix ({gap}), and the check of pairs is too large ({report.tested:,})"
        return Verdict(ConversionKind.GENERAL, why)
    why = f"no two native tokens meet in target tokens that would merge (pair check; {gap})"
    return Verdict(ConversionKind.SUBSET, why, *_both(tokens))


def _example(
    native: Vocabulary, target: Vocabulary, tokens: TokenMap, violations: Iterable[tuple[int, int]]
) -> str:
    """A text that shows the violation, or else the pair of tokens."""
    pairs = list(violations)
    for t, u in sorted(pairs, key=lambda pair: sum(len(native.token_bytes[k]) for k in pair)):
        try:
            text = native.decode((t, u)).decode()
            ids, expected = native.encode_array(text), target.encode(text)
        except (UnicodeDecodeError, BadInput):
            continue
        found = tokens.convert(ids.astype(np.int64)).tolist()
        if found != expected:
            return (
                f"the tokens of {_show(text.encode())} stand for {_pieces(target, found)}, "
                f"but it is encoded as {_pieces(target, expected)}"
            )
    t, u = pairs[0]
    return (
        f"{_pieces(native, [t, u])} may stand side by side, but the pieces "
        f"{_pieces(target, [tokens.of(t)[-1], tokens.of(u)[0]])} would merge"
    )


def _pieces(vocabulary: Vocabulary, ids: list[int]) -> str:
    return "·".join(vocabulary.token_bytes[t].decode("utf-8", "backslashreplace") for t in ids)
