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
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from crosstok import bpe
from crosstok.added import Half, Match
from crosstok.bpe import NONE
from crosstok.covers import (
    covers_below,
    cutter_of,
    falls_back,
    find_node,
    next_in_piece,
    open_piece,
)
from crosstok.errors import BadInput
from crosstok.quick import quick_of, quick_tail
from crosstok.splitting import follow
from crosstok.unicode import nfc, nfc_boundary_before, nfc_composites
from crosstok.vocabulary import Kind, Vocabulary, as_text

FEW = 2  # how many next tokens are enough to know that there are several


class Cover(NamedTuple):
    """The next token of a reading begins at ``start`` of the open text and reaches past its end."""

    start: int
    tokens: tuple[int, ...]  # some of the tokens it may be; all of them if fewer than FEW


@dataclass(frozen=True, slots=True)
class Reading:
    """One way in which an open text may be encoded.

    ``tokens`` end at ``stops`` (bytes of the raw text).  Without a cover there is a token boundary
    at the text's end, and anything may follow.
    """

    tokens: tuple[int, ...]
    stops: tuple[int, ...]
    cover: Cover | None = None


class Tail(NamedTuple):
    """An open text seen from its anchor."""

    ids: tuple[int, ...]  # tokens before the anchor
    anchor: int  # raw byte offset
    fresh: bool  # whether a segment begins at the anchor
    settled: tuple[int, ...]  # tokens behind the anchor that no continuation changes
    offset: int  # where the open rest begins


class Verdict(Enum):
    """What a hypothesis says about the token after a target prefix."""

    TOKEN = "token"
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


def split_character(text: bytes) -> tuple[str, bytes]:
    """The complete characters of a text and the bytes of a last, incomplete one."""
    try:
        complete, used = codecs.utf_8_decode(text, "strict", False)
    except UnicodeDecodeError as error:
        raise BadInput(
            f"expected text in valid UTF-8 (a cut last character is fine), found {error.reason} "
            f"at offset {error.start}"
        ) from error
    return complete, text[used:]


def readings(vocabulary: Vocabulary, text: bytes, *, fresh: bool = True) -> list[Reading]:
    """All readings of an open text that begins at an anchor.

    ``fresh``: the text begins a segment (the start of the whole text, or behind an added token).
    """
    return list(_branches(vocabulary, text, fresh, normal=False))


def _branches(v: Vocabulary, text: bytes, fresh: bool, normal: bool) -> Iterator[Reading]:
    """The readings for each way in which half-typed added tokens may turn out."""
    if not v.added.may_occur(text):
        yield from _open_segment(v, text, 0, fresh, normal)
        return
    matches, halves = v.added.halves(text)
    tokens, stops, at = _closed(v, text, matches, len(text), fresh)
    for reading in _open_segment(v, text[at:], at, fresh or at > 0, normal):
        yield Reading(tokens + reading.tokens, stops + reading.stops, reading.cover)
    for half in halves:
        yield _completed(v, text, matches, half, fresh)


def _completed(
    v: Vocabulary, text: bytes, matches: Sequence[Match], half: Half, fresh: bool
) -> Reading:
    """The reading in which a half-typed added token is completed: its segment ends before it."""
    before = [match for match in matches if match.stop <= half.start]
    tokens, stops, at = _closed(v, text, before, half.start, fresh)
    if at < half.start:
        more, ends = _encode_closed(v, text[at : half.start], at, fresh or at > 0)
        tokens, stops = tokens + more, stops + ends
    return Reading(tokens, stops, Cover(half.start, half.tokens))


def _closed(
    v: Vocabulary, text: bytes, matches: Iterable[Match], end: int, fresh: bool
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Tokens of the segments and added tokens up to the last match before ``end``."""
    tokens: list[int] = []
    stops: list[int] = []
    at = 0
    for match in matches:
        if match.start > at:
            more, ends = _encode_closed(v, text[at : match.start], at, fresh or at > 0)
            tokens += more
            stops += ends
        tokens.append(match.token)
        stops.append(match.stop)
        at = match.stop
    return tuple(tokens), tuple(stops), at


def _encode_closed(
    v: Vocabulary, segment: bytes, base: int, fresh: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tokens and raw stops of a segment that has ended."""
    text = segment.decode()
    spelled = _spell(v, text, fresh)
    ids, ends = v.encode_spelled(spelled.encode(), v.piece_ends(spelled))
    to_raw = _raw_offsets(v, text, spelled, base)
    return tuple(ids.tolist()), tuple(to_raw(end) for end in ends.tolist())


def _spell(v: Vocabulary, text: str, fresh: bool) -> str:
    """`Spelling.spell`; only a segment's start gets the dummy prefix."""
    if v.spelling.dummy_prefix and not fresh:
        return text.replace(" ", "▁")
    return v.spelling.spell(text)


class _Same:
    """Raw offsets where spelling changes nothing."""

    def __init__(self, base: int) -> None:
        self._base = base

    def __call__(self, end: int) -> int:
        return self._base + end


class _Table:
    """Raw offsets by table; a place that has none gets the largest one surely before it."""

    def __init__(self, table: list[int]) -> None:
        self._table = table

    def __call__(self, end: int) -> int:
        return self._table[min(end, len(self._table) - 1)]


def _raw_offsets(v: Vocabulary, raw: str, spelled: str, base: int) -> "_Same | _Table":
    if raw == spelled:
        return _Same(base)
    table = [base]
    if v.spelling.low_line:
        if len(spelled) > len(raw):  # the dummy prefix stands for nothing
            table += [base] * 3
        for character in raw:
            size = len(character.encode())
            at = table[-1]
            if character == " ":
                table += [at, at, at + 1]
            else:
                table += [at + k for k in range(1, size + 1)]
        return _Table(table)
    for chunk in normal_chunks(raw):
        written = len(nfc(chunk).encode())
        at = table[-1]
        table += [at] * (written - 1) + [at + len(chunk.encode())]
    return _Table(table)


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
    v: Vocabulary, segment: bytes, base: int, fresh: bool, normal: bool
) -> Iterator[Reading]:
    """Readings of the last segment, which goes on. ``normal``: so that it stays normalised."""
    complete, begun = split_character(segment)
    if not v.spelling.nfc or normal:
        spelled = complete if normal else _spell(v, complete, fresh)
        if v.spelling.dummy_prefix and fresh and not complete and begun:
            spelled = "▁"
        yield from _open_pieces(v, spelled, begun, _raw_offsets(v, complete, spelled, base))
        return
    for text, cut in _normal_forms(complete, begun):
        yield from _open_pieces(v, text, cut, _raw_offsets(v, complete, text, base))


def _normal_forms(complete: str, begun: bytes) -> Iterator[tuple[str, bytes]]:
    """What the normalised text may begin with: as it stands, or with the last character composed.

    Only the last chunk can still change, and only in its first character and behind it.
    """
    at = _last_chunk(complete)
    fixed, last = nfc(complete[:at]), complete[at:]
    written = nfc(last)
    if len(last) <= 1 or written[:1] == last[:1] == written:
        yield fixed + written, begun
    else:
        # Marks may still be put between those that are there: only the first character is sure.
        yield fixed + written, begun
        yield fixed + written[:1], b""
    for first in {last[:1], written[:1]} - {""}:
        for composite in nfc_composites(ord(first)):
            yield fixed + chr(composite), b""


def _open_pieces(
    v: Vocabulary, spelled: str, begun: bytes, to_raw: "_Same | _Table"
) -> Iterator[Reading]:
    """Readings of spelled text, for each way in which it may be cut into pieces."""
    data = np.frombuffer(spelled.encode() + begun, np.uint8)
    points = np.frombuffer(spelled.encode("utf-32-le"), np.int32)
    ends = np.cumsum(_lengths(points))
    for starts, state in _segmentations(v, points):
        cuts = np.array([0 if start == 0 else ends[start - 1] for start in starts] or [0], np.int64)
        ids, stops = v.encode_spelled(data[: cuts[-1]].tobytes(), cuts[1:])
        closed = tuple(ids.tolist()), tuple(to_raw(stop) for stop in stops.tolist())
        yield from _open_piece(v, data, int(cuts[-1]), begun, state, closed, to_raw)


def _lengths(points: bpe.I32) -> bpe.I64:
    return 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)


def _segmentations(v: Vocabulary, points: bpe.I32) -> Iterator[tuple[tuple[int, ...], int]]:
    """Piece starts (in characters) and the splitter's state in the last piece."""
    if v.splits_by_cuts:
        yield _cut_starts(v, points), 0
        return
    classes = v.splitter.class_of[points].tobytes()
    for starts in v.splitter.segmentations(classes):
        last = starts[-1] if starts else 0
        yield starts, v.splitter.state_after(classes[last:])


def _cut_starts(v: Vocabulary, points: bpe.I32) -> tuple[int, ...]:
    out = np.empty(len(points), np.int64)
    places = np.arange(1, len(points) + 1)
    count = bpe.cut_ends(points, places, len(points), v.glued, out)
    return (0, *out[: max(count - 1, 0)].tolist())


Closed = tuple[tuple[int, ...], tuple[int, ...]]


def _open_piece(
    v: Vocabulary, data: bpe.U8, start: int, begun: bytes, state: int, closed: Closed,
    to_raw: "_Same | _Table",
) -> Iterator[Reading]:  # fmt: skip
    """Readings for each live cover of the last piece, which begins at ``start``."""
    piece = data[start:]
    size = len(piece)
    tree = _Tree(v, piece, begun, state)
    for at, tokens in tree.covers():
        yield _reading(closed, tree.path(at), start, to_raw, Cover(to_raw(start + at), tokens))
    for path in tree.boundaries():
        yield _reading(closed, path, start, to_raw, None)
    if v.ignore_merges and size:
        longer = tree.whole_covers()
        if longer:
            yield _reading(closed, [], start, to_raw, Cover(to_raw(start), longer))


def _reading(
    closed: Closed, path: list[tuple[int, int]], start: int, to_raw: "_Same | _Table",
    cover: Cover | None,
) -> Reading:  # fmt: skip
    tokens = closed[0] + tuple(token for token, _ in path)
    stops = closed[1] + tuple(to_raw(start + stop) for _, stop in path)
    return Reading(tokens, stops, cover)


class _Tree:
    """The prefix tree of an open piece with its live covers."""

    def __init__(self, v: Vocabulary, piece: bpe.U8, begun: bytes, state: int) -> None:
        self._v = v
        self._piece = piece
        self._begun = np.frombuffer(begun, np.uint8)
        self._state = state
        self._cutter = cutter_of(v.splitter)
        size = len(piece)
        self._last = np.empty(size + 1, np.int32)
        self._starts = np.empty(size + 1, np.int32)
        self._nodes = np.empty(size + 1, np.int32)
        self._live = open_piece(
            piece, len(begun), NONE, state, v.merger, self._cutter, quick_of(v).memo,
            self._last, self._starts, self._nodes,
        )  # fmt: skip
        if size > len(begun) and not self._has_path(size - len(begun)):
            raise v.no_symbol(piece.tobytes())

    def _has_path(self, at: int) -> bool:
        return at == 0 or int(self._last[at]) != NONE

    def path(self, at: int) -> list[tuple[int, int]]:
        """Tokens of merge(piece[:at]) with their ends."""
        found: list[tuple[int, int]] = []
        offsets = self._v.merger.at
        while at > 0:
            token = int(self._last[at])
            found.append((token, at))
            at -= int(offsets[token + 1] - offsets[token])
        return found[::-1]

    def covers(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Live starts, each with up to FEW of the tokens that may begin there."""
        out = np.empty(FEW, np.int32)
        m = self._v.merger
        for k in range(self._live):
            at = int(self._starts[k])
            count = covers_below(
                m.trie, self._nodes[k], self._last[at], self._begun, self._state, m,
                self._cutter, False, out,
            )  # fmt: skip
            yield at, tuple(out[:count].tolist())

    def boundaries(self) -> Iterator[list[tuple[int, int]]]:
        """Token sequences that may end exactly at the end of the open text."""
        v, size = self._v, len(self._piece)
        if len(self._begun):
            yield from self._boundaries_in_character()
            return
        whole = bpe.whole_token(self._piece, v.whole) if v.ignore_merges else NONE
        may_end = size == 0 or bool(self._cutter.may_end[self._state])
        if whole != NONE and may_end:
            yield [(whole, size)]
        if (may_end and whole == NONE) or size == 0 or self._goes_on(size):
            yield self.path(size)

    def _goes_on(self, size: int) -> bool:
        """Whether a token may begin at the text's end inside the same piece."""
        scratch = np.empty(1, np.int32)
        return bool(
            next_in_piece(
                self._last[size], self._begun, self._state, self._v.merger, self._cutter, scratch
            )
        )

    def _boundaries_in_character(self) -> Iterator[list[tuple[int, int]]]:
        m, size = self._v.merger, len(self._piece)
        if not m.atoms.characters:
            if self._has_path(size) and self._goes_on(size):
                yield self.path(size)
            return
        if falls_back(self._begun, m):
            complete = size - len(self._begun)
            path = self.path(complete)
            path += [
                (int(m.atoms.of_byte[byte]), complete + k + 1)
                for k, byte in enumerate(self._begun.tolist())
            ]
            yield path

    def whole_covers(self) -> tuple[int, ...]:
        """Longer tokens that the whole piece may turn out to be (ignore_merges)."""
        v = self._v
        node = find_node(self._piece, v.whole)
        if node == NONE:
            return ()
        out = np.empty(FEW, np.int32)
        count = covers_below(
            v.whole, node, NONE, self._begun, self._state, v.merger, self._cutter, True, out,
        )  # fmt: skip
        return tuple(out[:count].tolist())


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


def tail(v: Vocabulary, text: bytes, *, fresh: bool = True) -> Tail:
    """Find the anchor of a text, its tokens up to there, and what is settled behind it."""
    found = quick_tail(v, text, fresh)
    if found is None:
        return careful_tail(v, text, fresh=fresh)
    ids = tuple(found.ids.tolist())
    before = found.before
    return Tail(ids[:before], found.anchor, fresh and found.anchor == 0, ids[before:], found.offset)


def careful_tail(v: Vocabulary, text: bytes, *, fresh: bool = True, normal: bool = False) -> Tail:
    """`tail` from the readings, whatever the text."""
    ids, anchor, fresh = _to_anchor(v, text, fresh, normal)
    rest = text[anchor:]
    found = _as_it_stands(v, rest, fresh) if v.spelling.nfc and not normal else []
    if not found:
        found = list(_branches(v, rest, fresh, normal))
    shared = common_prefix(found)
    offset = anchor + (found[0].stops[shared - 1] if shared else 0)
    return Tail(ids, anchor, fresh, found[0].tokens[:shared], offset)


def _as_it_stands(v: Vocabulary, text: bytes, fresh: bool) -> list[Reading]:
    """The readings without any composition of the last characters, where these decide.

    What is settled lies between what is settled before the last characters, whatever they become,
    and what is settled if they stay as they are.  Where the two agree nothing else need be asked.
    """
    if v.added.may_occur(text):
        return []
    complete, begun = split_character(text)
    at = _last_chunk(complete)
    fixed, last = nfc(complete[:at]), nfc(complete[at:])
    if last != complete[at:]:
        return []
    as_is = list(_open_pieces(v, fixed + last, begun, _Same(0)))
    without = list(_open_pieces(v, fixed, b"", _Same(0)))
    if fixed != complete[:at] or common_prefix(as_is) != common_prefix(without):
        return []
    return as_is


def _to_anchor(
    v: Vocabulary, text: bytes, fresh: bool, normal: bool
) -> tuple[tuple[int, ...], int, bool]:
    """Tokens before the anchor, the anchor, and whether a segment begins there."""
    tokens: tuple[int, ...] = ()
    at, end = 0, len(text)
    if v.added.may_occur(text):
        matches, halves = v.added.halves(text)
        end = min([half.start for half in halves], default=end)
        sure = [match for match in matches if match.stop <= end]
        tokens, _, at = _closed(v, text, sure, end, fresh)
        fresh = fresh or at > 0
    more, anchor = _pieces_to_anchor(v, text[at:end], fresh, normal)
    return tokens + more, at + anchor, fresh and anchor == 0


def _pieces_to_anchor(
    v: Vocabulary, segment: bytes, fresh: bool, normal: bool
) -> tuple[tuple[int, ...], int]:
    complete, _ = split_character(segment)
    if v.spelling.nfc and not normal:
        complete = complete[: _last_chunk(complete)]
    spelled = complete if normal else _spell(v, complete, fresh)
    points = np.frombuffer(spelled.encode("utf-32-le"), np.int32)
    starts = _sure_starts(v, points)
    if starts[-1] == 0:
        return (), 0
    ends = np.cumsum(_lengths(points))[np.array(starts[1:]) - 1]
    anchor = _raw_offsets(v, complete, spelled, 0)(int(ends[-1]))
    data = spelled.encode()[: int(ends[-1])]
    ids, _ = v.encode_spelled(data, ends)
    return tuple(ids.tolist()), anchor


def _sure_starts(v: Vocabulary, points: bpe.I32) -> list[int]:
    """Starts (in characters) of the pieces that the characters there are decide."""
    if v.splits_by_cuts:
        return list(_cut_starts(v, points))
    out = np.empty(len(points) + 1, np.int64)
    classes = v.splitter.class_of[points]
    count, _, _ = follow(classes, 0, v.splitter.nxt, v.splitter.rec, out)
    return out[:count].tolist()


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
    ids, anchor, fresh = _to_anchor(v, data, True, False)
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
    for reading in _branches(v, text, fresh, normal=False):
        found = _outcome(v, reading, prefix)
        if verdict is None:
            verdict = found
        if found is SEVERAL or found != verdict:
            return SEVERAL
    assert verdict is not None, "every text has a reading"
    return verdict


def _outcome(v: Vocabulary, reading: Reading, prefix: tuple[int, ...]) -> Outcome:
    tokens = reading.tokens
    shared = min(len(tokens), len(prefix))
    if tokens[:shared] != prefix[:shared]:
        return REJECT
    if len(tokens) > len(prefix):
        return Outcome(Verdict.TOKEN, tokens[len(prefix)])
    if reading.cover is None:
        return SEVERAL
    if len(tokens) == len(prefix):
        only = reading.cover.tokens
        return Outcome(Verdict.TOKEN, only[0]) if len(only) == 1 else SEVERAL
    return SEVERAL


def viable(v: Vocabulary, ids: Sequence[int]) -> bool:
    """Whether the encoding of some text that `decode` can produce begins with these ids."""
    state = Viability(v)
    return all(state.push(token) for token in ids)


class Viability:
    """`viable`, one id at a time."""

    def __init__(self, v: Vocabulary) -> None:
        self._v = v
        self._ids: list[int] = []  # behind the anchor
        self._text = b""
        self._fresh = True
        self._dead = False
        self._dummy = v.spelling.dummy_prefix

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
        text = v.token_bytes[token]
        if self._dummy:
            if not text.startswith(b" "):
                return False
            text, self._dummy = text[1:], False
        self._ids.append(token)
        self._text += text
        try:
            complete, _ = split_character(self._text)
        except BadInput:
            return False
        if v.spelling.nfc and nfc(complete) != complete:
            return False
        return self._check()

    def _check(self) -> bool:
        v = self._v
        try:
            ids, anchor, fresh = _to_anchor(v, self._text, self._fresh, v.spelling.nfc)
        except BadInput:
            return False
        if tuple(self._ids[: len(ids)]) != ids:
            return False
        rest = tuple(self._ids[len(ids) :])
        found = _branches(v, self._text[anchor:], fresh, v.spelling.nfc)
        if not any(reading.cover is None and reading.tokens == rest for reading in found):
            return False
        self._ids, self._text, self._fresh = list(rest), self._text[anchor:], fresh
        return True


class Settler:
    """`settle` for a text that arrives bit by bit."""

    def __init__(self, v: Vocabulary, *, remember: int = 1 << 16) -> None:
        self.vocabulary = v
        self._fresh = True
        self._text = b""  # behind the anchor
        self._given = 0  # settled tokens behind the anchor that were handed out already
        self._offset = 0  # where the open rest begins in _text
        self._memory: OrderedDict[tuple[bytes, bool], Tail] = OrderedDict()
        self._remember = remember

    @property
    def open(self) -> bytes:
        """The text that is not settled."""
        return self._text[self._offset :]

    def feed(self, data: bytes) -> list[int]:
        """Take more text; returns the tokens that it settles."""
        text = self._text + data
        found = self._tail(text)
        new = [*found.ids, *found.settled][self._given :]
        self._given = self._given + len(new) - len(found.ids)
        self._text = text[found.anchor :]
        self._offset = found.offset - found.anchor
        self._fresh = found.fresh
        return new

    def finish(self) -> list[int]:
        """The text ends here: the rest of its tokens."""
        complete = as_text(self._text)
        tokens, _, at = _closed(
            self.vocabulary, self._text, self.vocabulary.added.matches(self._text), 0, self._fresh
        )
        if at < len(self._text):
            tokens += _encode_closed(
                self.vocabulary, complete.encode()[at:], at, self._fresh or at > 0
            )[0]
        return list(tokens[self._given :])

    def _tail(self, text: bytes) -> Tail:
        key = (text, self._fresh)
        found = self._memory.get(key)
        if found is None:
            found = tail(self.vocabulary, text, fresh=self._fresh)
            if len(text) <= 64:
                self._memory[key] = found
                if len(self._memory) > self._remember:
                    self._memory.popitem(last=False)
        return found


# -- witnesses ------------------------------------------------------------------------------------

ENDINGS = (b"", b" ", b"a", b"s", b"1", b".", b"\n", b"\xc2\xa0", b"'", b"\xe4\xbd\xa0", b"(")


def _witness(v: Vocabulary, text: bytes, found: Tail) -> tuple[bytes, bytes] | None:
    """Two continuations, built from the live covers, that disagree at the first open token."""
    if found.offset == len(text):
        return None
    place = len(found.settled)
    rest = text[found.anchor :]
    seen: dict[int, bytes] = {}
    for more in _continuations(v, rest, found.fresh, place):
        try:
            whole = as_text(rest + more)
        except BadInput:
            continue
        token = _token_at(v, whole, found.fresh, place)
        if token is not None:
            seen.setdefault(token, more)
        if len(seen) == 2:
            first, second = seen.values()
            return first, second
    return None


def _token_at(v: Vocabulary, text: str, fresh: bool, place: int) -> int | None:
    data = text.encode()
    tokens, _, at = _closed(v, data, v.added.matches(data), 0, fresh)
    if at < len(data):
        try:
            tokens += _encode_closed(v, data[at:], at, fresh or at > 0)[0]
        except BadInput:
            return None
    return tokens[place] if place < len(tokens) else None


def _continuations(v: Vocabulary, rest: bytes, fresh: bool, place: int) -> Iterator[bytes]:
    """Texts that may make a reading come true: what its cover adds, and an ending."""
    for ending in ENDINGS:
        yield ending
    for reading in _branches(v, rest, fresh, normal=False):
        if len(reading.tokens) > place + 1 and reading.cover is None:
            continue
        for added in _cover_rests(v, rest, reading):
            for ending in ENDINGS:
                yield added + ending


def _cover_rests(v: Vocabulary, rest: bytes, reading: Reading) -> Iterator[bytes]:
    if reading.cover is None:
        return
    there = len(rest) - reading.cover.start
    for token in reading.cover.tokens:
        text = v.names[token].encode() if token in v.names else v.token_bytes[token]
        yield text[there:]
