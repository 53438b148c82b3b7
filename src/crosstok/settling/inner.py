"""Anchors inside a long piece, so that it need not be read again from its start."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from crosstok.added import AddedTokens
from crosstok.quick import AT_START, Inside
from crosstok.settling.offsets import last_chunk
from crosstok.settling.readings import Script, split_character
from crosstok.splitting import Splitter, follow
from crosstok.unicode import nfc_boundary_before
from crosstok.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Inner:
    """An anchor inside the open piece: ``count`` settled tokens lead from its start to ``at``."""

    at: int = 0
    count: int = 0
    inside: Inside = AT_START


NO_INNER = Inner()


LONG = 64  # bytes of an open piece that are read again and again without a thought


def advanced(
    s: Script, text: bytes, settled: Sequence[int], contents: Sequence[bytes], inner: Inner,
    fresh: bool,
) -> Inner:  # fmt: skip
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
    return Inner(inner.at + at, inner.count + count, inside)


def _surely_inside(v: Vocabulary, complete: str, lead: bytes) -> tuple[int, bytes]:
    """How many characters lie in the open piece and before its end, whatever follows."""
    points = np.frombuffer(complete.encode("utf-32-le"), np.int32)
    classes = lead + v.splitter.class_of[points].tobytes()
    most = last_chunk(complete) if v.spelling.nfc else len(complete)
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
def added_byte(added: AddedTokens) -> re.Pattern[bytes]:
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
