"""Readings of spelled text: how it may be cut into pieces, and how its last piece is covered."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from crosstok import bpe
from crosstok.bpe import NONE
from crosstok.covers import (
    character_range,
    covers_below,
    cutter_of,
    falls_back,
    find_node,
    open_piece,
)
from crosstok.quick import AT_START, Inside, encode_from, quick_of
from crosstok.settling.offsets import RawOffsets
from crosstok.splitting import Splitter
from crosstok.vocabulary import Vocabulary

FEW = 2  # how many next tokens are enough to know that there are several


@dataclass(frozen=True, slots=True)
class Reading:
    """One way in which an open text may be encoded.

    ``tokens`` end at ``stops`` (bytes of the raw text).  ``following`` holds some of the tokens
    that may come next, all of them if they are fewer than FEW; it is empty where anything may come.
    ``boundary``: the next token begins at the text's end; else it reaches past it.
    """

    tokens: tuple[int, ...]
    stops: tuple[int, ...]
    boundary: bool = True
    following: tuple[int, ...] = ()


def open_pieces(
    v: Vocabulary, spelled: str, begun: bytes, to_raw: RawOffsets, inside: Inside = AT_START
) -> Iterator[Reading]:
    """Readings of spelled text, for each way in which it may be cut into pieces.

    An incomplete character belongs to the last piece or begins the next one.
    """
    data = np.frombuffer(spelled.encode() + begun, np.uint8)
    points = np.frombuffer(spelled.encode("utf-32-le"), np.int32)
    ends = np.cumsum(lengths(points))
    size = len(data) - len(begun)
    classes = _classes_of(v.splitter, begun) if begun else None
    for starts, state in _segmentations(v, points, classes, inside.classes):
        cuts = [int(ends[start - 1]) if start else 0 for start in starts] or [0]
        joined = not begun or not starts or v.splitter.may_go_on(state, classes)
        if joined:
            closed = _encode_pieces(v, data, cuts, to_raw, inside.token)
            first = inside.token if len(cuts) == 1 else NONE
            yield from _open_piece(v, data, cuts[-1], begun, state, first, closed, to_raw)
        if begun and starts and v.splitter.may_end(state, classes, end=False):
            closed = _encode_pieces(v, data, [*cuts, size], to_raw, inside.token)
            yield from _open_piece(v, data, size, begun, 0, NONE, closed, to_raw)


@lru_cache(maxsize=4096)
def _classes_of(splitter: Splitter, begun: bytes) -> int:
    """Bit mask of the classes of all characters that begin with these bytes."""
    first, last = character_range(np.frombuffer(begun, np.uint8))
    return sum(1 << k for k in set(splitter.class_of[first : last + 1].tolist()))


def _encode_pieces(
    v: Vocabulary, data: bpe.U8, cuts: Sequence[int], to_raw: RawOffsets, first: int
) -> "Closed":
    ids, stops = encode_spelled(v, data[: cuts[-1]], np.array(cuts[1:], np.int64), first)
    return tuple(ids.tolist()), tuple(to_raw(stop) for stop in stops.tolist())


def encode_spelled(
    v: Vocabulary, data: bpe.U8, ends: bpe.I64, first: int
) -> tuple[bpe.I32, bpe.I64]:
    """`Vocabulary.encode_spelled` behind the token ``first`` of the same piece."""
    if first == NONE or not len(ends):
        return v.encode_spelled(data.tobytes(), ends)
    ids, stops = np.empty(len(data), np.int32), np.empty(len(data), np.int64)
    count = encode_from(data, ends, first, v.merger, v.whole, v.ignore_merges, ids, stops)
    if count < 0:
        raise v.no_symbol(data.tobytes())
    return ids[:count], stops[:count]


def lengths(points: bpe.I32) -> bpe.I64:
    """Bytes of each character in UTF-8."""
    return 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)


def _segmentations(
    v: Vocabulary, points: bpe.I32, first: int | None, lead: bytes
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Piece starts (in characters) and the splitter's state in the last piece.

    ``first``: the classes of the character that has begun, if any.
    """
    if v.splits_by_cuts:
        yield cut_starts(v, points), int(v.splitter.nxt[0, 0]) if len(points) else 0
        return
    classes = lead + v.splitter.class_of[points].tobytes()
    for starts in v.splitter.segmentations(classes, first, end=first is None):
        last = starts[-1] if starts else 0
        own = tuple(max(start - len(lead), 0) for start in starts)
        yield own, v.splitter.state_after(classes[last:])


def cut_starts(v: Vocabulary, points: bpe.I32) -> tuple[int, ...]:
    """Where the runs between cuts begin, in characters (THEORY, Cuts)."""
    out = np.empty(len(points), np.int64)
    places = np.arange(1, len(points) + 1)
    count = bpe.cut_ends(points, places, len(points), v.glued, out)
    return (0, *out[: max(count - 1, 0)].tolist())


Closed = tuple[tuple[int, ...], tuple[int, ...]]


def _open_piece(
    v: Vocabulary, data: bpe.U8, start: int, begun: bytes, state: int, first: int,
    closed: Closed, to_raw: RawOffsets,
) -> Iterator[Reading]:  # fmt: skip
    """Readings for each live cover of the last piece, which begins at ``start``."""
    tree = _Tree(v, data[start:], begun, state, first)
    for path, boundary, following in tree.readings():
        tokens = closed[0] + tuple(token for token, _ in path)
        stops = closed[1] + tuple(to_raw(start + stop) for _, stop in path)
        yield Reading(tokens, stops, boundary, following)


Path = list[tuple[int, int]]


class _Tree:
    """The prefix tree of an open piece with its live covers."""

    def __init__(self, v: Vocabulary, piece: bpe.U8, begun: bytes, state: int, first: int) -> None:
        self._v = v
        self._first = first  # the token before, if the piece began earlier
        self._piece = piece
        self._begun = np.frombuffer(begun, np.uint8)
        self._state = state
        self._cutter = cutter_of(v.splitter)
        size = len(piece)
        self._last = np.empty(size + 1, np.int32)
        self._starts = np.empty(size + 1, np.int32)
        self._nodes = np.empty(size + 1, np.int32)
        self._live = open_piece(
            piece, len(begun), first, state, v.merger, self._cutter, quick_of(v).memo,
            self._last, self._starts, self._nodes,
        )  # fmt: skip
        if first == NONE and size > len(begun) and not self._has_path(size - len(begun)):
            raise v.no_symbol(piece.tobytes())

    def _has_path(self, at: int) -> bool:
        return at == 0 or int(self._last[at]) != NONE

    def path(self, at: int) -> Path:
        """Tokens of merge(piece[:at]) with their ends."""
        found: Path = []
        offsets = self._v.merger.at
        while at > 0:
            token = int(self._last[at])
            found.append((token, at))
            at -= int(offsets[token + 1] - offsets[token])
        return found[::-1]

    def readings(self) -> Iterator[tuple[Path, bool, tuple[int, ...]]]:
        """(tokens, whether a boundary falls on the text's end, some tokens that may follow)."""
        yield from self._covers()
        if len(self._begun) == 0:
            yield from self._boundaries()
        elif self._v.merger.atoms.characters:
            yield from self._fallback()
        else:
            yield from self._boundary_in_character()
        if self._v.ignore_merges and len(self._piece) and self._first == NONE:
            yield from self._whole_covers()

    def _covers(self) -> Iterator[tuple[Path, bool, tuple[int, ...]]]:
        """Live starts, each with up to FEW of the tokens that may begin there."""
        for k in range(self._live):
            at = int(self._starts[k])
            following = self._below(self._v.merger.trie, int(self._nodes[k]), int(self._last[at]))
            yield self.path(at), False, following

    def _below(
        self, trie: bpe.Trie, node: int, previous: int, end: bool = False
    ) -> tuple[int, ...]:
        out = np.empty(FEW, np.int32)
        count = covers_below(
            trie, node, previous, self._begun, self._state, self._v.merger, self._cutter, end, out
        )
        return tuple(out[:count].tolist())

    def _boundaries(self) -> Iterator[tuple[Path, bool, tuple[int, ...]]]:
        """The piece ends with the text, or a token of it begins there."""
        v, size = self._v, len(self._piece)
        if not self._has_path(size):
            return  # behind the token before, no encoding ends here
        takes_whole = v.ignore_merges and size > 0 and self._first == NONE
        whole = bpe.whole_token(self._piece, v.whole) if takes_whole else NONE
        may_end = size == 0 or bool(self._cutter.may_end[self._state])
        if whole != NONE and may_end:
            yield [(whole, size)], True, ()
        if may_end and whole == NONE:
            yield self.path(size), True, ()
        elif following := self._next_in_piece():
            yield self.path(size), True, following

    def _next_in_piece(self) -> tuple[int, ...]:
        """Some tokens that may begin at the text's end inside the same piece."""
        return self._below(self._v.merger.trie, bpe.ROOT, int(self._last[len(self._piece)]))

    def _boundary_in_character(self) -> Iterator[tuple[Path, bool, tuple[int, ...]]]:
        size = len(self._piece)
        if self._has_path(size) and (following := self._next_in_piece()):
            yield self.path(size), True, following

    def _fallback(self) -> Iterator[tuple[Path, bool, tuple[int, ...]]]:
        """The incomplete character is one that the vocabulary lacks: its bytes are tokens."""
        m = self._v.merger
        complete = len(self._piece) - len(self._begun)
        if self._has_path(complete) and falls_back(self._begun, m):
            tokens = m.atoms.of_byte[self._begun].tolist()
            path = self.path(complete)
            path += [(token, complete + k + 1) for k, token in enumerate(tokens)]
            yield path, True, ()

    def _whole_covers(self) -> Iterator[tuple[Path, bool, tuple[int, ...]]]:
        """The whole piece may turn out to be one longer token (ignore_merges)."""
        node = find_node(self._piece, self._v.whole)
        if node != NONE and (following := self._below(self._v.whole, node, NONE, True)):
            yield [], False, following
