"""The common case of `settling.tail` in one compiled call.

Most open texts have no half-typed added token, no cut character, no normalisation in sight, and one
way to be cut into pieces.  Then the readings differ only in the live covers of the last piece, and
what they share is the common ancestor of their boundaries in the prefix tree.  Anything else is
answered NOT_QUICK, and the readable path (`crosstok.settling`) decides; a property test holds the
two together.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from crosstok import bpe
from crosstok.bpe import I32, I64, NONE, ROOT, U8, Bool, Merger, Trie
from crosstok.covers import (
    Cutter,
    Memo,
    can_cover,
    covers_below,
    cutter_of,
    find_node,
    new_memo,
    open_piece,
)
from crosstok.jit import njit
from crosstok.splitting import follow
from crosstok.unicode import nfc_active, nfc_composites, nfc_plain
from crosstok.vocabulary import Vocabulary

NOT_QUICK = -1
LOW_LINE = np.frombuffer("▁".encode(), np.uint8)
SPACE = 0x20


class Quick(NamedTuple):
    """What the kernel needs of a vocabulary."""

    merger: Merger
    cutter: Cutter
    memo: Memo
    rec: Bool
    sure: Bool
    whole: Trie
    use_whole: bool
    cuts: bool
    glued: bpe.Glue
    added: Trie  # contents of the text-added tokens
    low_line: bool
    dummy_prefix: bool
    nfc: bool
    plain: Bool  # characters that normalisation leaves alone wherever they stand
    active: Bool  # characters that something appended may change
    composed_at: I32  # [129] where the composites of each ASCII character begin
    composed: I32


class Found(NamedTuple):
    """`settling.Tail` in numbers: the first ``before`` ids end at the anchor."""

    ids: I32
    before: int
    anchor: int
    offset: int


@lru_cache(maxsize=64)
def quick_of(v: Vocabulary) -> Quick:
    """The kernel's view of a vocabulary."""
    none = np.zeros(1, np.bool_)
    composites = [nfc_composites(cp) if v.spelling.nfc else () for cp in range(128)]
    composed_at = np.cumsum([0, *map(len, composites)], dtype=np.int32)
    composed = np.array([cp for row in composites for cp in row], np.int32)
    return Quick(
        v.merger, cutter_of(v.splitter), new_memo(), v.splitter.rec, v.splitter.sure, v.whole,
        v.ignore_merges, v.splits_by_cuts, v.glued, _added_trie(v), v.spelling.low_line,
        v.spelling.dummy_prefix, v.spelling.nfc,
        nfc_plain() if v.spelling.nfc else none, nfc_active() if v.spelling.nfc else none,
        composed_at, composed,
    )  # fmt: skip


def _added_trie(v: Vocabulary) -> Trie:
    contents = sorted(v.added.text)
    blob = np.frombuffer(b"".join(contents), np.uint8)
    at = np.cumsum([0, *map(len, contents)], dtype=np.int64)
    order = np.arange(len(contents), dtype=np.int32)
    child, label, token, low, high = bpe.build_trie(blob, at, order)
    return Trie(child, label, token, low, high, order)


class Inside(NamedTuple):
    """An anchor inside a piece: what the rest of the piece must know of its beginning."""

    token: int = NONE  # the settled token that ends at the anchor; NONE at a piece's start
    classes: bytes = b""  # characters by which the splitter comes to its state at the anchor


AT_START = Inside()


def quick_tail(v: Vocabulary, text: bytes, fresh: bool, inside: Inside = AT_START) -> Found | None:
    """The tail of a text if it is one of the common case."""
    data = np.frombuffer(text, np.uint8)
    ids = np.empty(len(data) + 4, np.int32)
    numbers = np.empty(4, np.int64)
    lead = np.frombuffer(inside.classes, np.uint8)
    if _tail(data, fresh, inside.token, lead, quick_of(v), ids, numbers) == NOT_QUICK:
        return None
    count, before, anchor, offset = numbers.tolist()
    return Found(ids[:count], before, anchor, offset)


@njit(cache=True)
def _tail(text: U8, fresh: bool, first: int, lead: U8, q: Quick, ids: I32, numbers: I64) -> int:
    """Fill ``numbers`` with (ids, ids before the anchor, anchor, offset).

    ``first`` and ``lead`` are the two parts of an `Inside`.
    """
    if _added_may_begin(text, q.added):
        return NOT_QUICK
    size = len(text) + 4  # a composite may be longer than what it is made of
    if q.low_line:
        size = 3 * size
    spelled = np.empty(size, np.uint8)
    raw = np.empty(size + 1, np.int64)  # raw offset of every spelled one
    length = _spell(text, fresh, q, spelled, raw)
    points = np.empty(length, np.int32)
    ends = np.empty(length, np.int64)
    count = _characters(spelled[:length], points, ends)
    if count == NOT_QUICK:
        return NOT_QUICK
    found = np.empty(4, np.int64)
    if q.nfc:
        if not _settle_normalised(spelled, points, ends, count, first, lead, q, ids, found):
            return NOT_QUICK
    elif not _settle(spelled, points, ends, count, first, lead, q, ids, found):
        return NOT_QUICK
    numbers[0], numbers[1] = found[0], found[1]
    numbers[2], numbers[3] = raw[found[2]], raw[found[3]]
    if numbers[2] == 0:
        numbers[1] = 0  # the dummy prefix alone has no place in the raw text
    return 0


@njit(cache=True)
def _added_may_begin(text: U8, added: Trie) -> bool:
    """Whether an added token stands in the text or may be half typed at its end."""
    if len(added.sorted) == 0:
        return False
    for start in range(len(text)):
        node = bpe.step(added, ROOT, text[start])
        at = start + 1
        while node != NONE:
            if added.token[node] != NONE or at == len(text):
                return True
            node = bpe.step(added, node, text[at])
            at += 1
    return False


@njit(cache=True)
def _settle_normalised(  # noqa: PLR0911
    spelled: U8, points: I32, ends: I64, count: int, first: int, lead: U8, q: Quick, ids: I32,
    found: I64,
) -> bool:  # fmt: skip
    """`_settle` where the last character may still be composed with what follows.

    What is settled lies between what is settled without that character and what is settled with it
    as it stands; where these differ every composite is asked.
    """
    for k in range(count):
        if not q.plain[points[k]]:
            return False
    if not _settle(spelled, points, ends, count, first, lead, q, ids, found):
        return False
    if count == 0 or not q.active[points[count - 1]]:
        return True
    shared, most = found[0], ids[: found[0]].copy()
    if not _settle(spelled, points, ends, count - 1, first, lead, q, ids, found):
        return False
    least = found[0]
    before, anchor = found[1], found[2]
    point = points[count - 1]
    if point >= 128 and shared != least:
        return False
    k = 0
    while shared > least and k < q.composed_at[point + 1] - q.composed_at[point]:
        _replace_last(spelled, points, ends, count, q.composed[q.composed_at[point] + k])
        if not _settle(spelled, points, ends, count, first, lead, q, ids, found):
            return False
        shared = min(shared, found[0])
        while shared > 0 and not np.array_equal(ids[:shared], most[:shared]):
            shared -= 1
        k += 1
    ids[:shared] = most[:shared]
    offset = 0
    for j in range(shared):
        offset += bpe.token_length(q.merger, ids[j])
    found[0], found[1], found[2], found[3] = shared, before, anchor, offset
    return True


@njit(cache=True)
def _replace_last(spelled: U8, points: I32, ends: I64, count: int, point: int) -> None:
    """Write another last character, of two or three bytes as all composites are."""
    at = np.int64(0) if count == 1 else ends[count - 2]
    if point < 0x800:
        spelled[at] = 0xC0 | (point >> 6)
        spelled[at + 1] = 0x80 | (point & 0x3F)
        ends[count - 1] = at + 2
    else:
        spelled[at] = 0xE0 | (point >> 12)
        spelled[at + 1] = 0x80 | ((point >> 6) & 0x3F)
        spelled[at + 2] = 0x80 | (point & 0x3F)
        ends[count - 1] = at + 3
    points[count - 1] = point


@njit(cache=True)
def _spell(text: U8, fresh: bool, q: Quick, spelled: U8, raw: I64) -> int:
    at = 0
    raw[0] = 0
    if q.dummy_prefix and fresh and len(text):
        for k in range(3):
            spelled[at] = LOW_LINE[k]
            at += 1
            raw[at] = 0
    for place in range(len(text)):
        if q.low_line and text[place] == SPACE:
            for k in range(3):
                spelled[at] = LOW_LINE[k]
                raw[at] = place
                at += 1
        else:
            spelled[at] = text[place]
            raw[at] = place
            at += 1
    raw[at] = len(text)
    if q.dummy_prefix and fresh and len(text):
        raw[1] = raw[2] = 0
    return at


@njit(cache=True)
def _characters(text: U8, points: I32, ends: I64) -> int:
    """Code points and byte ends; NOT_QUICK unless the text is whole and surely valid."""
    count = 0
    at = 0
    while at < len(text):
        size = bpe.char_length(text[at])
        if size > 1:
            if at + size > len(text) or text[at] > 0xF4:
                return NOT_QUICK
            for k in range(1, size):
                if text[at + k] & 0xC0 != 0x80:
                    return NOT_QUICK
        elif text[at] >= 0x80:
            return NOT_QUICK
        point = bpe.code_point(text, at, size)
        if (size == 3 and (point < 0x800 or 0xD800 <= point < 0xE000)) or (
            size == 4 and not 0x10000 <= point < 0x110000
        ):
            return NOT_QUICK
        points[count] = point
        at += size
        ends[count] = at
        count += 1
    return count


@njit(cache=True)
def _settle(
    spelled: U8, points: I32, ends: I64, count: int, first: int, lead: U8, q: Quick, ids: I32,
    found: I64,
) -> bool:  # fmt: skip
    """What is settled of the first ``count`` characters; False if the case is not quick.

    ``found``: (ids, ids before the anchor, anchor, offset), in spelled bytes.
    """
    length = 0 if count == 0 else ends[count - 1]
    cuts = np.empty(count + len(lead) + 1, np.int64)
    pieces, state = _sure_cuts(points, ends, count, lead, q, cuts)
    if pieces == NOT_QUICK:
        return False
    anchor = np.int64(0)
    before = 0
    if pieces > 0:
        anchor = cuts[pieces - 1]
        stops = np.empty(anchor, np.int64)
        before = encode_from(
            spelled[:anchor], cuts[:pieces], first, q.merger, q.whole, q.use_whole, ids, stops
        )
        first = NONE
        if before < 0:
            return False
    settled = anchor
    total = before
    if length > anchor:
        total, settled = _settle_piece(spelled[anchor:length], anchor, state, first, q, ids, before)
        if total == NOT_QUICK:
            return False
    found[0], found[1], found[2], found[3] = total, before, anchor, settled
    return True


@njit(cache=True)
def _sure_cuts(
    points: I32, ends: I64, count: int, lead: U8, q: Quick, cuts: I64
) -> tuple[int, int]:
    """Byte ends of the pieces that are closed for ever, and the state of the open one."""
    if q.cuts:
        pieces = bpe.cut_ends(points, ends, count, q.glued, cuts)
        return max(pieces - 1, 0), int(q.cutter.nxt[0, 0])
    led = len(lead)
    classes = np.empty(led + count, np.uint8)
    classes[:led] = lead
    for k in range(count):
        classes[led + k] = q.cutter.class_of[points[k]]
    starts, state, _ = follow(classes, 0, q.cutter.nxt, q.rec, cuts)
    if count > 0 and not q.sure[state]:
        return NOT_QUICK, 0
    for k in range(1, starts):
        cuts[k - 1] = ends[cuts[k] - led - 1]
    return starts - 1, int(state)


@njit(cache=True)
def _settle_piece(
    piece: U8, anchor: int, state: int, first: int, q: Quick, ids: I32, before: int
) -> tuple[int, int]:
    """Settled tokens of the open piece, appended to ``ids``; (number of ids, offset)."""
    m = q.merger
    size = len(piece)
    last = np.empty(size + 1, np.int32)
    starts = np.empty(size + 1, np.int32)
    nodes = np.empty(size + 1, np.int32)
    scratch = np.empty(1, np.int32)
    live = open_piece(piece, 0, first, state, m, q.cutter, q.memo, last, starts, nodes)
    if last[size] == NONE and first == NONE:
        return NOT_QUICK, 0
    may_end = q.cutter.may_end[state]
    boundary = may_end and last[size] != NONE
    if q.use_whole and first == NONE:
        node = find_node(piece, q.whole)
        if node != NONE:
            token = q.whole.token[node]
            nothing = np.empty(0, np.uint8)
            if covers_below(q.whole, node, NONE, nothing, state, m, q.cutter, True, scratch):
                return before, anchor  # the whole piece may become one longer token
            if token != NONE and may_end and token != last[size]:
                return before, anchor  # the piece as it stands is a token of its own
    nothing = np.empty(0, np.uint8)
    if not boundary and last[size] != NONE:
        boundary = can_cover(ROOT, last[size], nothing, state, m, q.cutter, q.memo)
    end = NONE
    if boundary:
        end = size
    for k in range(live):
        end = starts[k] if end == NONE else _common(end, starts[k], last, m)
    if end == NONE:
        return NOT_QUICK, 0
    stops = np.empty(before + size, np.int64)
    added = bpe.walk_back(end, anchor, m, last, ids, stops, before)
    return before + added, anchor + end


@njit(cache=True)
def encode_from(
    text: U8, ends: I64, first: int, m: Merger, whole: Trie, use_whole: bool, ids: I32, stops: I64
) -> int:
    """`bpe.encode_pieces` of a text whose first piece goes on behind the token ``first``."""
    if first == NONE:
        return bpe.encode_pieces(text, ends, m, whole, use_whole, ids, stops)
    size = ends[0]
    last = np.empty(size + 1, np.int32)
    starts = np.empty(size + 1, np.int32)
    nodes = np.empty(size + 1, np.int32)
    bpe.grow_tree(text[:size], first, m, last, starts, nodes)
    count = bpe.walk_back(size, 0, m, last, ids, stops, 0)
    if count < 0:
        return NONE
    more = bpe.encode_pieces(
        text[size:], ends[1:] - size, m, whole, use_whole, ids[count:], stops[count:]
    )
    if more < 0:
        return NONE
    stops[count : count + more] += size
    return count + more


@njit(cache=True)
def _common(one: int, other: int, last: I32, m: Merger) -> int:
    """The last boundary that two places of the prefix tree share."""
    while one != other:
        if one > other:
            one -= m.at[last[one] + 1] - m.at[last[one]]
        else:
            other -= m.at[last[other] + 1] - m.at[last[other]]
    return one
