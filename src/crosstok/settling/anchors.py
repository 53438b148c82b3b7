"""The anchor: the last boundary that no continuation moves; and what is settled behind it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crosstok import bpe
from crosstok.quick import AT_START, Inside, quick_tail
from crosstok.settling.offsets import Same, last_chunk, raw_offsets
from crosstok.settling.pieces import Reading, cut_starts, encode_spelled, lengths, open_pieces
from crosstok.settling.readings import Script, branches, closed_tokens, script_of, split_character
from crosstok.splitting import follow
from crosstok.unicode import nfc
from crosstok.vocabulary import Vocabulary


class Tail(NamedTuple):
    """An open text seen from its anchor."""

    ids: tuple[int, ...]  # tokens before the anchor
    anchor: int  # raw byte offset
    fresh: bool  # whether a segment begins at the anchor
    settled: tuple[int, ...]  # tokens behind the anchor that no continuation changes
    offset: int  # where the open rest begins


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
    s = script_of(v, False)
    ids, anchor, fresh = to_anchor(s, text, fresh, inside)
    if anchor:
        inside = AT_START
    rest = text[anchor:]
    found = _as_it_stands(s, rest, inside) if s.normalises else []
    if not found:
        found = list(branches(s, rest, fresh, inside))
    if not found:
        raise v.no_symbol(rest)
    shared = common_prefix(found)
    offset = anchor + (found[0].stops[shared - 1] if shared else 0)
    return Tail(ids, anchor, fresh, found[0].tokens[:shared], offset)


def _as_it_stands(s: Script, text: bytes, inside: Inside) -> list[Reading]:
    """The readings without any composition of the last characters, where these decide.

    What is settled lies between what is settled before the last characters, whatever they become,
    and what is settled if they stay as they are.  Where the two agree nothing else need be asked.
    """
    if s.added.may_occur(text):
        return []
    complete, begun = split_character(text)
    at = last_chunk(complete)
    fixed, last = nfc(complete[:at]), nfc(complete[at:])
    if last != complete[at:]:
        return []
    as_is = list(open_pieces(s.v, fixed + last, begun, Same(0), inside))
    without = list(open_pieces(s.v, fixed, b"", Same(0), inside))
    if not as_is or not without or fixed != complete[:at]:
        return []
    if common_prefix(as_is) != common_prefix(without):
        return []
    return as_is


def to_anchor(
    s: Script, text: bytes, fresh: bool, inside: Inside = AT_START
) -> tuple[tuple[int, ...], int, bool]:
    """Tokens before the anchor, the anchor, and whether a segment begins there."""
    tokens: tuple[int, ...] = ()
    at, end = 0, len(text)
    if inside is AT_START and s.added.may_occur(text):
        matches, halves = s.added.halves(text)
        end = min([half.start for half in halves], default=end)
        tokens, _, at = closed_tokens(s, text, [m for m in matches if m.stop <= end], fresh)
        fresh = fresh or at > 0
    more, anchor = _pieces_to_anchor(s, text[at:end], fresh, inside)
    return tokens + more, at + anchor, fresh and anchor == 0


def _pieces_to_anchor(
    s: Script, segment: bytes, fresh: bool, inside: Inside
) -> tuple[tuple[int, ...], int]:
    complete, _ = split_character(segment)
    if s.normalises:
        complete = complete[: last_chunk(complete)]
    spelled = s.spell(complete, fresh)
    points = np.frombuffer(spelled.encode("utf-32-le"), np.int32)
    starts = _sure_starts(s.v, points, inside.classes)
    ends = np.cumsum(lengths(points))[np.array(starts[1:], np.int64) - 1]
    to_raw = raw_offsets(s.v, complete, spelled, 0)
    while len(ends) and not to_raw.is_exact(int(ends[-1])):
        ends = ends[:-1]
    if not len(ends):
        return (), 0
    data = np.frombuffer(spelled.encode(), np.uint8)
    ids, _ = encode_spelled(s.v, data[: ends[-1]], ends, inside.token)
    return tuple(ids.tolist()), to_raw(int(ends[-1]))


def _sure_starts(v: Vocabulary, points: bpe.I32, lead: bytes) -> list[int]:
    """Starts (in characters) of the pieces that the characters there are decide."""
    if v.splits_by_cuts:
        return list(cut_starts(v, points))
    out = np.empty(len(lead) + len(points) + 1, np.int64)
    classes = np.concatenate([np.frombuffer(lead, np.uint8), v.splitter.class_of[points]])
    count, _, _ = follow(classes, 0, v.splitter.nxt, v.splitter.rec, out)
    return [0, *(out[1:count] - len(lead)).tolist()]
