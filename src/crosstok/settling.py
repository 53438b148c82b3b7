"""What is certain about the encoding of a text that is not finished.

A **reading** of an open text is one way in which its encoding may turn out: the tokens up to the
last boundary inside the text, and what may come after them.  The text's readings together are
exact: the encoding of every continuation begins with the tokens of one of them, and every reading
has a continuation (`readings`).  Everything else is a question about readings:

* `settle`: the tokens that all readings begin with;
* `outcomes`: given a target prefix e, the one token that must follow it, a rejection, or several;
* `viable`: whether some continuation's encoding begins with the given native ids, which is so
  exactly when a reading with a boundary at the text's end has these ids.

Readings multiply at four places: an added token that is half typed (`_branches`), a last character
that normalisation may still change (`_normal_forms`), pieces that a continuation may cut otherwise
(`Splitter.segmentations`), and the covers of the open piece (`crosstok.covers`).

All work starts at the **anchor**, the last piece boundary that no continuation moves.
"""

import codecs
import re
import unicodedata
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, cached_property, lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from crosstok import bpe
from crosstok.added import AddedTokens, Half, Match
from crosstok.bpe import NONE
from crosstok.covers import (
    character_range,
    covers_below,
    cutter_of,
    falls_back,
    find_node,
    open_piece,
)
from crosstok.errors import BadInput
from crosstok.quick import AT_START, Inside, encode_from, quick_of, quick_tail
from crosstok.splitting import Splitter, follow
from crosstok.unicode import nfc, nfc_active, nfc_boundary_before, nfc_composites, nfc_plain
from crosstok.vocabulary import LOW_LINE, SPACE, Kind, Vocabulary, as_text

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


class Tail(NamedTuple):
    """An open text seen from its anchor."""

    ids: tuple[int, ...]  # tokens before the anchor
    anchor: int  # raw byte offset
    fresh: bool  # whether a segment begins at the anchor
    settled: tuple[int, ...]  # tokens behind the anchor that no continuation changes
    offset: int  # where the open rest begins


class Verdict(Enum):
    """What a hypothesis says about the token after a target prefix."""

    TOKEN = "token"  # noqa: S105
    REJECT = "reject"
    SEVERAL = "several"


class Outcome(NamedTuple):
    """One next token, a rejection, or several possibilities."""

    verdict: Verdict
    token: int | None = None


REJECT = Outcome(Verdict.REJECT)
SEVERAL = Outcome(Verdict.SEVERAL)


@dataclass(frozen=True, slots=True)
class Settled:
    """The settled tokens of a text, and the raw byte offset where its open rest begins.

    ``witness``, if asked for, is two continuations whose encodings differ at the first token that
    is not settled; None where nothing is open or no such pair was found.
    """

    ids: list[int]
    offset: int
    open: bytes
    witness: tuple[bytes, bytes] | None = None


# -- readings -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Script:
    """In what script a text is given: raw, or already spelled as native ids spell it.

    Spelled text is in normal form and stays so; it holds the dummy prefix, and its spaces are ▁.
    """

    v: Vocabulary
    added: AddedTokens
    spelled: bool

    def spell(self, text: str, fresh: bool) -> str:
        """`Spelling.spell`; only a segment's start gets the dummy prefix."""
        if self.spelled:
            return text
        if self.v.spelling.dummy_prefix and not fresh:
            return text.replace(" ", LOW_LINE)
        return self.v.spelling.spell(text)

    @property
    def normalises(self) -> bool:
        """Whether what follows may change the characters that are there."""
        return self.v.spelling.nfc and not self.spelled


@lru_cache(maxsize=256)
def _script(v: Vocabulary, spelled: bool) -> _Script:
    if not spelled or not v.spelling.low_line:
        return _Script(v, v.added, spelled)
    low_line = LOW_LINE.encode()
    text = {
        content.replace(b" ", low_line): token
        for content, token in v.added.text.items()
        if low_line not in content  # matches a literal ▁ of raw text, which no ids stand for
    }
    return _Script(v, AddedTokens(text, v.added.control), spelled)


def split_character(text: bytes) -> tuple[str, bytes]:
    """The complete characters of a text and the bytes of a last, incomplete one."""
    try:
        complete, used = codecs.utf_8_decode(text, "strict", False)
    except UnicodeDecodeError as error:
        raise BadInput(
            f"expected text in valid UTF-8 (a cut last character is fine), found {error.reason} "
            f"at offset {error.start}"
        ) from error
    begun = text[used:]
    if begun[:1] == b"\xed" and begun[1:2] >= b"\xa0":  # the codec waits for the third byte
        raise BadInput(
            "expected text in valid UTF-8 (a cut last character is fine), found the beginning of a "
            f"surrogate at offset {used}"
        )
    return complete, begun


def readings(vocabulary: Vocabulary, text: bytes, *, fresh: bool = True) -> list[Reading]:
    """All readings of an open text that begins at an anchor.

    ``fresh``: the text begins a segment (the start of the whole text, or behind an added token).
    """
    return list(_branches(_script(vocabulary, False), text, fresh))


def _branches(s: _Script, text: bytes, fresh: bool, inside: Inside = AT_START) -> Iterator[Reading]:
    """The readings for each way in which half-typed added tokens may turn out."""
    if inside is not AT_START or not s.added.may_occur(text):
        yield from _open_segment(s, text, 0, fresh, inside)
        return
    matches, halves = s.added.halves(text)
    tokens, stops, at = _closed(s, text, matches, fresh)
    for reading in _open_segment(s, text[at:], at, fresh or at > 0):
        yield replace(reading, tokens=tokens + reading.tokens, stops=stops + reading.stops)
    for half in halves:
        yield _completed(s, text, matches, half, fresh)


def _completed(
    s: _Script, text: bytes, matches: Sequence[Match], half: Half, fresh: bool
) -> Reading:
    """The reading in which a half-typed added token is completed: its segment ends before it."""
    before = [match for match in matches if match.stop <= half.start]
    tokens, stops, at = _closed(s, text, before, fresh)
    if at < half.start:
        more, ends = _encode_closed(s, text[at : half.start], at, fresh or at > 0)
        tokens, stops = tokens + more, stops + ends
    return Reading(tokens, stops, boundary=False, following=half.tokens)


def _closed(
    s: _Script, text: bytes, matches: Iterable[Match], fresh: bool
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Tokens of the segments and added tokens up to the end of the last match."""
    tokens: list[int] = []
    stops: list[int] = []
    at = 0
    for match in matches:
        if match.start > at:
            more, ends = _encode_closed(s, text[at : match.start], at, fresh or at > 0)
            tokens += more
            stops += ends
        tokens.append(match.token)
        stops.append(match.stop)
        at = match.stop
    return tuple(tokens), tuple(stops), at


def _encode_closed(
    s: _Script, segment: bytes, base: int, fresh: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tokens and raw stops of a segment that has ended."""
    text = segment.decode()
    spelled = s.spell(text, fresh)
    ids, ends = s.v.encode_spelled(spelled.encode(), s.v.piece_ends(spelled))
    to_raw = _raw_offsets(s.v, text, spelled, base)
    return tuple(ids.tolist()), tuple(to_raw(end) for end in ends.tolist())


class _Same:
    """Raw offsets where spelling changes nothing."""

    def __init__(self, base: int) -> None:
        self._base = base

    def __call__(self, end: int) -> int:
        return self._base + end

    def is_exact(self, end: int) -> bool:  # noqa: ARG002
        """Whether this place of the spelled text is one of the raw text too."""
        return True


class _Table:
    """Raw offsets by table; a place that has none gets the largest one surely before it."""

    def __init__(self, table: list[int], vague: frozenset[int] = frozenset()) -> None:
        self._table = table
        self._vague = vague

    def __call__(self, end: int) -> int:
        beyond = max(end - len(self._table) + 1, 0)  # bytes of an incomplete last character
        return self._table[end - beyond] + beyond

    def is_exact(self, end: int) -> bool:
        """Whether this place of the spelled text is one of the raw text too."""
        return end not in self._vague


RawOffsets: TypeAlias = _Same | _Table


def _raw_offsets(v: Vocabulary, raw: str, spelled: str, base: int) -> RawOffsets:
    if raw == spelled:
        return _Same(base)
    return _low_line_offsets(raw, spelled, base) if v.spelling.low_line else _nfc_offsets(raw, base)


def _low_line_offsets(raw: str, spelled: str, base: int) -> _Table:
    table, vague = [base], frozenset[int]()
    if len(spelled) > len(raw):  # the dummy prefix stands for nothing
        table, vague = [base] * 4, frozenset({1, 2, 3})
    for character in raw:
        at = table[-1]
        if character == " ":
            table += [at, at, at + 1]
        else:
            table += range(at + 1, at + 1 + len(character.encode()))
    return _Table(table, vague)


def _nfc_offsets(raw: str, base: int) -> _Table:
    table: list[int] = [base]
    vague: list[int] = []
    for chunk in normal_chunks(raw):
        written, at = nfc(chunk), table[-1]
        size = len(written.encode())
        if written == chunk:
            table += range(at + 1, at + 1 + size)
        else:
            vague += range(len(table), len(table) + size - 1)
            table += _places_in_chunk(chunk, written, at)
    return _Table(table, frozenset(vague))


LONG_CHUNK = 64  # characters of a chunk from which on a place in it gets the chunk's start


def _places_in_chunk(chunk: str, written: str, base: int) -> list[int]:
    """Raw offsets behind each byte of a chunk that normalisation changed.

    Inside it those places have one up to which the raw text's own normal form is what is written.
    """
    ends = {len(written.encode()): len(chunk.encode())}
    if len(chunk) <= LONG_CHUNK:
        for k in range(1, len(chunk)):
            begins = nfc(chunk[:k])
            if written.startswith(begins):
                ends[len(begins.encode())] = len(chunk[:k].encode())
    found = [base]
    for place in range(1, max(ends) + 1):
        found.append(max(found[-1], base + ends.get(place, 0)))
    return found[1:]


def normal_chunks(text: str) -> Iterator[str]:
    """The text cut before every character at which normalisation starts afresh."""
    start = 0
    for at in range(1, len(text)):
        if nfc_boundary_before(ord(text[at])):
            yield text[start:at]
            start = at
    if start < len(text):
        yield text[start:]


def _last_chunk(text: str) -> int:
    """Where the last of `normal_chunks` begins."""
    for at in range(len(text) - 1, 0, -1):
        if nfc_boundary_before(ord(text[at])):
            return at
    return 0


def _open_segment(
    s: _Script, segment: bytes, base: int, fresh: bool, inside: Inside = AT_START
) -> Iterator[Reading]:
    """Readings of the last segment, which goes on."""
    v = s.v
    complete, begun = split_character(segment)
    if not s.normalises:
        spelled = s.spell(complete, fresh)
        if begun and not complete and fresh and not s.spelled and v.spelling.dummy_prefix:
            spelled = LOW_LINE
        yield from _open_pieces(v, spelled, begun, _raw_offsets(v, complete, spelled, base), inside)
        return
    missing = v.missing_bytes
    for k, (text, cut) in enumerate(_normal_forms(complete, begun)):
        if k and missing and not set(missing).isdisjoint(text.encode()):
            continue  # no text with this composite can be encoded
        yield from _open_pieces(v, text, cut, _raw_offsets(v, complete, text, base), inside)


def _normal_forms(complete: str, begun: bytes) -> Iterator[tuple[str, bytes]]:
    """What the normalised text may begin with, and the bytes that a next character begins with.

    Only the last chunk can still change, in its first character and behind it, and a cut character.
    """
    at = _last_chunk(complete)
    fixed, last = nfc(complete[:at]), complete[at:]
    written = nfc(last)
    yield fixed + written, begun
    joins = True
    if begun:
        joins, others = _cut_forms(begun)
        for other in others:
            if other < b"\x80":
                yield fixed + written + other.decode(), b""
            else:
                yield fixed + written, other
    if joins:
        yield from _joined_forms(fixed, last, written)


def _joined_forms(fixed: str, last: str, written: str) -> Iterator[tuple[str, bytes]]:
    """The forms in which what follows has changed the last chunk."""
    if last and not nfc_boundary_before(ord(last[0])):
        yield fixed, b""  # a mark without a letter: another may be put before it
    if len(last) > 1 and not written[:1] == last[:1] == written:
        # Marks may still be put between those that are there: the first character is sure, and
        # that a mark comes next.
        for lead in sorted(_mark_leads()):
            yield fixed + written[:1], lead
    for first in {last[:1], written[:1]} - {""}:
        for composite in nfc_composites(ord(first)):
            if len(written) == 1 or _takes_marks(first, composite):
                yield fixed + chr(composite), b""


@lru_cache(maxsize=4096)
def _takes_marks(first: str, composite: int) -> bool:
    """Whether a character becomes this composite by marks alone, which may jump over others."""
    has = unicodedata.normalize("NFD", first)
    wants = unicodedata.normalize("NFD", chr(composite))
    return all(unicodedata.combining(mark) for mark in wants if mark not in has)


@lru_cache(maxsize=4096)
def _cut_forms(begun: bytes) -> tuple[bool, tuple[bytes, ...]]:
    """What normalisation may make of a character that begins with these bytes.

    Whether it may change the characters before it; and what may stand in its place instead: an
    ASCII character, or the first byte of any other.
    """
    first, last = character_range(np.frombuffer(begun, np.uint8))
    changing = ~nfc_plain()[first : last + 1] | nfc_active()[first : last + 1]
    joins, others = False, set[bytes]()
    for point in (np.flatnonzero(changing) + first).tolist():
        if not nfc_boundary_before(point):
            joins = True
            continue
        written = ord(nfc(chr(point))[0])
        for other in (written, *nfc_composites(written)):
            others.add(chr(other).encode())
    leads = {other[:1] for other in others if not other.startswith(begun)}
    return joins, tuple(sorted(leads | _mark_leads() if joins else leads))


@cache
def _mark_leads() -> frozenset[bytes]:
    """The first bytes of all characters that may be put before a mark."""
    points = np.flatnonzero(~nfc_plain()).tolist()
    return frozenset(chr(cp).encode()[:1] for cp in points if not nfc_boundary_before(cp))


def _open_pieces(
    v: Vocabulary, spelled: str, begun: bytes, to_raw: RawOffsets, inside: Inside = AT_START
) -> Iterator[Reading]:
    """Readings of spelled text, for each way in which it may be cut into pieces.

    An incomplete character belongs to the last piece or begins the next one.
    """
    data = np.frombuffer(spelled.encode() + begun, np.uint8)
    points = np.frombuffer(spelled.encode("utf-32-le"), np.int32)
    ends = np.cumsum(_lengths(points))
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
    ids, stops = _encode_spelled(v, data[: cuts[-1]], np.array(cuts[1:], np.int64), first)
    return tuple(ids.tolist()), tuple(to_raw(stop) for stop in stops.tolist())


def _encode_spelled(
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


def _lengths(points: bpe.I32) -> bpe.I64:
    return 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)


def _segmentations(
    v: Vocabulary, points: bpe.I32, first: int | None, lead: bytes
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Piece starts (in characters) and the splitter's state in the last piece.

    ``first``: the classes of the character that has begun, if any.
    """
    if v.splits_by_cuts:
        yield _cut_starts(v, points), int(v.splitter.nxt[0, 0]) if len(points) else 0
        return
    classes = lead + v.splitter.class_of[points].tobytes()
    for starts in v.splitter.segmentations(classes, first, end=first is None):
        last = starts[-1] if starts else 0
        own = tuple(max(start - len(lead), 0) for start in starts)
        yield own, v.splitter.state_after(classes[last:])


def _cut_starts(v: Vocabulary, points: bpe.I32) -> tuple[int, ...]:
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


# -- anchors --------------------------------------------------------------------------------------


def common_prefix(found: Sequence[Reading]) -> int:
    """How many tokens all readings begin with."""
    first = found[0].tokens
    shared = len(first)
    for reading in found[1:]:
        shared = min(shared, len(reading.tokens))
        while reading.tokens[:shared] != first[:shared]:
            shared -= 1
    return shared


def tail(v: Vocabulary, text: bytes, *, fresh: bool = True, inside: Inside = AT_START) -> Tail:
    """Find the anchor of a text, its tokens up to there, and what is settled behind it.

    Text that begins ``inside`` a piece must not hold the beginning of an added token.
    """
    found = quick_tail(v, text, fresh, inside)
    if found is None:
        return careful_tail(v, text, fresh=fresh, inside=inside)
    ids = tuple(found.ids.tolist())
    before = found.before
    return Tail(ids[:before], found.anchor, fresh and found.anchor == 0, ids[before:], found.offset)


def careful_tail(
    v: Vocabulary, text: bytes, *, fresh: bool = True, inside: Inside = AT_START
) -> Tail:
    """`tail` from the readings, whatever the text."""
    s = _script(v, False)
    ids, anchor, fresh = _to_anchor(s, text, fresh, inside)
    if anchor:
        inside = AT_START
    rest = text[anchor:]
    found = _as_it_stands(s, rest, inside) if s.normalises else []
    if not found:
        found = list(_branches(s, rest, fresh, inside))
    if not found:
        raise v.no_symbol(rest)
    shared = common_prefix(found)
    offset = anchor + (found[0].stops[shared - 1] if shared else 0)
    return Tail(ids, anchor, fresh, found[0].tokens[:shared], offset)


def _as_it_stands(s: _Script, text: bytes, inside: Inside) -> list[Reading]:
    """The readings without any composition of the last characters, where these decide.

    What is settled lies between what is settled before the last characters, whatever they become,
    and what is settled if they stay as they are.  Where the two agree nothing else need be asked.
    """
    if s.added.may_occur(text):
        return []
    complete, begun = split_character(text)
    at = _last_chunk(complete)
    fixed, last = nfc(complete[:at]), nfc(complete[at:])
    if last != complete[at:]:
        return []
    as_is = list(_open_pieces(s.v, fixed + last, begun, _Same(0), inside))
    without = list(_open_pieces(s.v, fixed, b"", _Same(0), inside))
    if not as_is or not without or fixed != complete[:at]:
        return []
    if common_prefix(as_is) != common_prefix(without):
        return []
    return as_is


def _to_anchor(
    s: _Script, text: bytes, fresh: bool, inside: Inside = AT_START
) -> tuple[tuple[int, ...], int, bool]:
    """Tokens before the anchor, the anchor, and whether a segment begins there."""
    tokens: tuple[int, ...] = ()
    at, end = 0, len(text)
    if inside is AT_START and s.added.may_occur(text):
        matches, halves = s.added.halves(text)
        end = min([half.start for half in halves], default=end)
        tokens, _, at = _closed(s, text, [m for m in matches if m.stop <= end], fresh)
        fresh = fresh or at > 0
    more, anchor = _pieces_to_anchor(s, text[at:end], fresh, inside)
    return tokens + more, at + anchor, fresh and anchor == 0


def _pieces_to_anchor(
    s: _Script, segment: bytes, fresh: bool, inside: Inside
) -> tuple[tuple[int, ...], int]:
    complete, _ = split_character(segment)
    if s.normalises:
        complete = complete[: _last_chunk(complete)]
    spelled = s.spell(complete, fresh)
    points = np.frombuffer(spelled.encode("utf-32-le"), np.int32)
    starts = _sure_starts(s.v, points, inside.classes)
    ends = np.cumsum(_lengths(points))[np.array(starts[1:], np.int64) - 1]
    to_raw = _raw_offsets(s.v, complete, spelled, 0)
    while len(ends) and not to_raw.is_exact(int(ends[-1])):
        ends = ends[:-1]
    if not len(ends):
        return (), 0
    data = np.frombuffer(spelled.encode(), np.uint8)
    ids, _ = _encode_spelled(s.v, data[: ends[-1]], ends, inside.token)
    return tuple(ids.tolist()), to_raw(int(ends[-1]))


def _sure_starts(v: Vocabulary, points: bpe.I32, lead: bytes) -> list[int]:
    """Starts (in characters) of the pieces that the characters there are decide."""
    if v.splits_by_cuts:
        return list(_cut_starts(v, points))
    out = np.empty(len(lead) + len(points) + 1, np.int64)
    classes = np.concatenate([np.frombuffer(lead, np.uint8), v.splitter.class_of[points]])
    count, _, _ = follow(classes, 0, v.splitter.nxt, v.splitter.rec, out)
    return [0, *(out[1:count] - len(lead)).tolist()]


# -- the questions --------------------------------------------------------------------------------


def settle(v: Vocabulary, text: str | bytes, *, witness: bool = False) -> Settled:
    """The tokens of a text that no continuation changes, and the raw offset of the open rest."""
    data = text.encode() if isinstance(text, str) else text
    found = tail(v, data)
    ids = [*found.ids, *found.settled]
    pair = _witness(v, data, found) if witness else None
    return Settled(ids, found.offset, data[found.offset :], pair)


def outcomes(v: Vocabulary, text: str | bytes, prefix: Sequence[int]) -> Outcome:
    """What the continuations of a text say about the token that follows a target prefix.

    One token if the encodings of all continuations begin with ``prefix`` and that token; a
    rejection if none begins with ``prefix``; otherwise several.
    """
    data = text.encode() if isinstance(text, str) else text
    v.check_ids(prefix)
    ids, anchor, fresh = _to_anchor(_script(v, False), data, True)
    shared = min(len(ids), len(prefix))
    if tuple(prefix[:shared]) != ids[:shared]:
        return REJECT
    if len(ids) > len(prefix):
        return Outcome(Verdict.TOKEN, ids[len(prefix)])
    return open_outcomes(v, data[anchor:], tuple(prefix[shared:]), fresh=fresh)


def open_outcomes(
    v: Vocabulary, text: bytes, prefix: tuple[int, ...], *, fresh: bool = True
) -> Outcome:
    """`outcomes` for a text and a prefix that begin at an anchor."""
    verdict: Outcome | None = None
    beyond = _Beyond(v, text, prefix, fresh)
    for reading in _branches(_script(v, False), text, fresh):
        found = _outcome(reading, prefix, beyond)
        if verdict is None:
            verdict = found
        if found is SEVERAL or found != verdict:
            return SEVERAL
    assert verdict is not None, "every text has a reading"
    return verdict


def _outcome(reading: Reading, prefix: tuple[int, ...], beyond: "_Beyond") -> Outcome:
    tokens = reading.tokens
    shared = min(len(tokens), len(prefix))
    if tokens[:shared] != prefix[:shared]:
        return REJECT
    if len(tokens) > len(prefix):
        return Outcome(Verdict.TOKEN, tokens[len(prefix)])
    if len(tokens) < len(prefix):
        return SEVERAL if beyond.possible else REJECT
    if len(reading.following) == 1:
        return Outcome(Verdict.TOKEN, reading.following[0])
    return SEVERAL


class _Beyond:
    """Whether a target prefix that says more than the open text can still come true.

    It can exactly if it is viable itself and its text begins with the open text.
    """

    def __init__(self, v: Vocabulary, text: bytes, prefix: tuple[int, ...], fresh: bool) -> None:
        self._asked = v, text, prefix, fresh

    @cached_property
    def possible(self) -> bool:
        v, text, prefix, fresh = self._asked
        state = Viability(v, fresh=fresh)
        if not all(state.push(token) for token in prefix):
            return False
        spelled = b"".join(v.token_bytes[token] for token in prefix)
        if v.spelling.dummy_prefix and fresh:
            spelled = spelled[1:]
        return v.spelling.nfc or spelled.startswith(text)


def viable(v: Vocabulary, ids: Sequence[int]) -> bool:
    """Whether the encoding of some text that `decode` can produce begins with these ids."""
    state = Viability(v)
    return all(state.push(token) for token in ids)


class Viability:
    """`viable`, one id at a time."""

    def __init__(self, v: Vocabulary, *, fresh: bool = True) -> None:
        self._v = v
        self._ids: list[int] = []  # behind the anchor
        self._text = b""
        self._fresh = fresh
        self._dead = False
        self._dummy = v.spelling.dummy_prefix and fresh
        self._inner = NO_INNER
        self._advance_at = LONG

    def push(self, token: int) -> bool:
        """Append an id; False once the sequence is not viable, and ever after."""
        self._v.check_ids((token,))
        if not self._dead:
            self._dead = not self._push(token)
        return not self._dead

    def _push(self, token: int) -> bool:
        v = self._v
        if v.kinds[token] == Kind.CONTROL:
            return False
        spelled = v.spelled(token)
        if v.spelling.low_line and SPACE in spelled:
            if token not in v.names:
                return False  # spelled text has no spaces: the byte 20 never falls back
            spelled = spelled.replace(SPACE, LOW_LINE.encode())
        if self._dummy and not spelled.startswith(LOW_LINE.encode()):
            return False
        self._dummy = False
        self._ids.append(token)
        self._text += spelled
        try:
            complete, _ = split_character(self._text)
            return (not v.spelling.nfc or nfc(complete) == complete) and self._check()
        except BadInput:  # not UTF-8, or a byte without a symbol
            return False

    def _check(self) -> bool:
        s = _script(self._v, True)
        inner = self._inner
        if inner.at and _added_byte(s.added).search(self._text, inner.at):
            inner = NO_INNER
        text, own = self._text[inner.at :], tuple(self._ids[inner.count :])
        fresh, inside = self._fresh and not inner.at, inner.inside
        ids, anchor, fresh = _to_anchor(s, text, fresh, inside)
        if own[: len(ids)] != ids:
            return False
        rest = own[len(ids) :]
        found = list(_branches(s, text[anchor:], fresh, AT_START if anchor else inside))
        if not any(reading.boundary and reading.tokens == rest for reading in found):
            return False
        if anchor:
            self._ids, self._text, self._fresh = list(rest), text[anchor:], fresh
            self._inner, self._advance_at = NO_INNER, LONG
        else:
            self._inner = inner
            if len(text) >= self._advance_at:
                self._advance(s, text, found)
        return True

    def _advance(self, s: _Script, text: bytes, found: Sequence[Reading]) -> None:
        """Move the anchor into the open piece, or try again when it has grown by half."""
        if not _added_byte(s.added).search(text):
            settled = found[0].tokens[: common_prefix(found)]
            contents = [self._v.spelled(token) for token in settled]
            self._inner = _advanced(s, text, settled, contents, self._inner, self._fresh)
        self._advance_at = max(LONG, (len(self._text) - self._inner.at) * 3 // 2)


@dataclass(frozen=True, slots=True)
class _Inner:
    """An anchor inside the open piece: ``count`` settled tokens lead from its start to ``at``."""

    at: int = 0
    count: int = 0
    inside: Inside = AT_START


NO_INNER = _Inner()
LONG = 64  # bytes of an open piece that are read again and again without a thought


class Settler:
    """`settle` for a text that arrives bit by bit."""

    def __init__(self, v: Vocabulary, *, remember: int = 1 << 16) -> None:
        self.vocabulary = v
        self._fresh = True
        self._text = b""  # behind the anchor
        self._given = 0  # settled tokens behind the anchor that were handed out already
        self._offset = 0  # where the open rest begins in _text
        self._memory: OrderedDict[tuple[bytes, bool, Inside], Tail] = OrderedDict()
        self._remember = remember
        self._inner = NO_INNER
        self._advance_at = LONG  # open bytes from which on an anchor inside the piece is sought
        self._added_byte = _added_byte(v.added)

    @property
    def open(self) -> bytes:
        """The text that is not settled."""
        return self._text[self._offset :]

    def feed(self, data: bytes) -> list[int]:
        """Take more text; returns the tokens that it settles."""
        text = self._text + data
        inner = self._inner
        if inner.at and self._added_byte.search(text, inner.at):
            inner = NO_INNER
        rest = text[inner.at :]
        found = self._tail(rest, inner)
        new = [*found.ids, *found.settled][self._given - inner.count :]
        if found.anchor:
            self._given += len(new) - inner.count - len(found.ids)
            self._text = rest[found.anchor :]
            self._offset = found.offset - found.anchor
            self._fresh = found.fresh
            self._inner, self._advance_at = NO_INNER, LONG
        else:
            self._given += len(new)
            self._text = text
            self._offset = inner.at + found.offset
            self._inner = inner
            if len(rest) >= self._advance_at:
                self._advance(rest, found)
        return new

    def _advance(self, rest: bytes, found: Tail) -> None:
        """Move the anchor into the open piece, or try again when it has grown by half."""
        v = self.vocabulary
        if not self._added_byte.search(rest):
            contents = [v.token_bytes[token] for token in found.settled]
            if contents and v.spelling.dummy_prefix and self._fresh and self._inner.at == 0:
                contents[0] = contents[0][1:]
            s = _script(v, False)
            self._inner = _advanced(s, rest, found.settled, contents, self._inner, self._fresh)
        self._advance_at = max(LONG, (len(self._text) - self._inner.at) * 3 // 2)

    def finish(self) -> list[int]:
        """The text ends here: the rest of its tokens."""
        complete = as_text(self._text)
        return list(_encode_from(self.vocabulary, complete.encode(), self._fresh)[self._given :])

    def _tail(self, text: bytes, inner: _Inner) -> Tail:
        fresh = self._fresh and inner.at == 0
        key = (text, fresh, inner.inside)
        found = self._memory.get(key)
        if found is None:
            found = tail(self.vocabulary, text, fresh=fresh, inside=inner.inside)
            if len(text) <= 4 * LONG:
                self._memory[key] = found
                if len(self._memory) > self._remember:
                    self._memory.popitem(last=False)
        return found


# -- anchors inside a piece -----------------------------------------------------------------------


def _advanced(
    s: _Script, text: bytes, settled: Sequence[int], contents: Sequence[bytes], inner: _Inner,
    fresh: bool,
) -> _Inner:  # fmt: skip
    """The last place inside the open piece from which it can be read on.

    ``text`` begins at the place known so far, ``contents`` are the settled tokens' parts of it.

    All readings begin with the settled tokens, and so does the encoding of every continuation.
    Let t be one that ends at A, inside the text and at a character.  What follows t inside the
    piece is then a path of the prefix tree through A, which is the tree grown from A behind t
    (locality); and the splitter goes on from its state at A, provided that the piece surely ends
    behind A: it has a match there, or surely gets one.  Normalisation must start afresh at A.
    """
    v = s.v
    complete, _ = split_character(text)
    if fresh and not inner.at and v.spelling.dummy_prefix and not (s.spelled or v.splits_by_cuts):
        return inner  # the splitter sees a prefix that the raw text lacks
    limit, classes = _surely_inside(v, complete, inner.inside.classes)
    ends = {len(complete[:k].encode()): k for k in range(1, limit + 1)}
    at, best = 0, (0, 0, 0)
    for count, content in enumerate(contents, 1):
        if not text.startswith(content, at):
            break  # not spelled as the raw text is
        at += len(content)
        k = ends.get(at)
        if k is not None and (not v.spelling.nfc or nfc_boundary_before(ord(complete[k]))):
            best = count, at, k
    count, at, k = best
    if count == 0:
        return inner
    state = v.splitter.state_after(classes[: len(classes) - len(complete) + k])
    inside = Inside(settled[count - 1], _way_to(v.splitter)[state])
    return _Inner(inner.at + at, inner.count + count, inside)


def _surely_inside(v: Vocabulary, complete: str, lead: bytes) -> tuple[int, bytes]:
    """How many characters lie in the open piece and before its end, whatever follows."""
    points = np.frombuffer(complete.encode("utf-32-le"), np.int32)
    classes = lead + v.splitter.class_of[points].tobytes()
    most = _last_chunk(complete) if v.spelling.nfc else len(complete)
    if v.splits_by_cuts:
        return most - 1, classes
    out = np.empty(len(classes) + 1, np.int64)
    count, state, match = follow(
        np.frombuffer(classes, np.uint8), 0, v.splitter.nxt, v.splitter.rec, out
    )
    if count > 1:
        return 0, classes
    end = len(classes) if v.splitter.sure[state] else match
    return min(end - len(lead), most) - 1, classes


@lru_cache(maxsize=64)
def _added_byte(added: AddedTokens) -> re.Pattern[bytes]:
    """Finds any first byte of an added token; a control token may hide others that begin in it."""
    contents = (*added.text, *added.control) if added.text else ()
    begins = sorted({content[:1] for content in contents})
    return re.compile(b"[" + b"".join(map(re.escape, begins)) + b"]" if begins else b"(?!)")


@cache
def _way_to(splitter: Splitter) -> dict[int, bytes]:
    """For each of the splitter's states the fewest characters that lead to it inside a piece."""
    ways = {0: b""}
    waiting = [0]
    for state in waiting:
        for k, after in enumerate(splitter.nxt[state].tolist()):
            if after >= 0 and after not in ways:
                ways[after] = ways[state] + bytes([k])
                waiting.append(after)
    return ways


# -- witnesses ------------------------------------------------------------------------------------

ENDINGS = ("", " ", "a", "s", "1", ".", "\n", "\u00a0", "'", "\u4f60", "(", "  a", "\u0338")


def _witness(v: Vocabulary, text: bytes, found: Tail) -> tuple[bytes, bytes] | None:
    """Two continuations, built from the live covers, that disagree at the first open token."""
    if found.offset == len(text):
        return None
    place = len(found.settled)
    rest = text[found.anchor :]
    seen: dict[int, bytes] = {}
    for more in continuations(v, rest, fresh=found.fresh):
        try:
            tokens = _encode_from(v, rest + more, found.fresh)
        except BadInput:  # a byte without a symbol
            continue
        if place < len(tokens):
            seen.setdefault(tokens[place], more)
        if len(seen) == 2:
            first, second = seen.values()
            return first, second
    return None


def _encode_from(v: Vocabulary, text: bytes, fresh: bool) -> tuple[int, ...]:
    """The encoding of a whole text that begins at an anchor."""
    s = _script(v, False)
    tokens, _, at = _closed(s, text, v.added.matches(text), fresh)
    if at < len(text):
        tokens += _encode_closed(s, text[at:], at, fresh or at > 0)[0]
    return tokens


def continuations(v: Vocabulary, text: bytes, *, fresh: bool = True) -> Iterator[bytes]:
    """Continuations under which the readings of an open text are likely to come true.

    Each reading asks for one of its covers and then for something that ends the piece or goes on
    with it: a character of any class of the splitter.
    """
    covers = dict.fromkeys([b"", *_cover_rests(v, text, fresh), *_composing(v, text)])
    ways = [(cover, _completions(v, begun)) for cover, begun in _continuing(text, covers)]
    for endings in (ENDINGS, _class_endings(v.splitter), _class_pairs(v.splitter)):
        for cover, completions in ways:
            for completion in completions:
                for ending in endings:
                    yield cover + completion + ending.encode()


def _cover_rests(v: Vocabulary, text: bytes, fresh: bool) -> Iterator[bytes]:
    """What the covers of the readings add to the text."""
    for reading in _branches(_script(v, False), text, fresh):
        start = reading.stops[-1] if reading.stops else 0
        for token in reading.following:
            content = v.names[token].encode() if token in v.names else v.token_bytes[token]
            if not reading.stops and fresh and v.spelling.dummy_prefix and token not in v.names:
                content = content[1:]
            yield content[len(text) - start :]


def _composing(v: Vocabulary, text: bytes) -> Iterator[bytes]:
    """Marks that normalisation makes one with the last character."""
    last = split_character(text)[0][-1:]
    if v.spelling.nfc and last:
        for composite in nfc_composites(ord(last)):
            yield unicodedata.normalize("NFD", chr(composite))[1:].encode()


def _continuing(text: bytes, covers: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Those of the covers that continue the text, with the incomplete character at their end.

    What a cover adds to a text that normalisation changed may be none of its raw bytes.
    """
    for cover in covers:
        try:
            yield cover, split_character(text + cover)[1]
        except BadInput:
            continue


@lru_cache(maxsize=4096)
def _completions(v: Vocabulary, begun: bytes) -> tuple[bytes, ...]:
    """Endings of a cut character: of each class, in the vocabulary and not in it."""
    if not begun:
        return (b"",)
    first, last = character_range(np.frombuffer(begun, np.uint8))
    points = np.arange(first, last + 1)
    points = points[(points < 0xD800) | (points >= 0xE000)]
    kinds = v.splitter.class_of[points].astype(np.int64) * 4
    if v.merger.atoms.characters:
        kinds += v.merger.atoms.of_char[points] == NONE
    if v.spelling.nfc:
        kinds += 2 * ~nfc_plain()[points]
    firsts = np.unique(kinds, return_index=True)[1].tolist()
    chosen = dict.fromkeys([*firsts, len(points) // 2, len(points) - 1])
    return tuple(chr(points[k]).encode()[len(begun) :] for k in chosen)


@lru_cache(maxsize=64)
def _class_endings(splitter: Splitter) -> tuple[str, ...]:
    """One character of each class that has any beside surrogates."""
    points = np.delete(np.arange(len(splitter.class_of)), range(0xD800, 0xE000))
    firsts = np.unique(splitter.class_of[points], return_index=True)[1]
    return tuple(map(chr, points[firsts].tolist()))


@lru_cache(maxsize=64)
def _class_pairs(splitter: Splitter) -> tuple[str, ...]:
    """Two characters of each pair of classes: a contraction takes two letters."""
    endings = _class_endings(splitter)
    return tuple(one + other for one in endings for other in endings)
