"""The check of pairs: does every canonical native pair meet in a canonical target pair?

Let t and u be native tokens that may stand side by side.  In the target's tokens they meet in
a = the last piece of t and b = the first piece of u.  [a, b] is not canonical exactly if some
target merge x·y → z crosses the boundary, x on the right spine of a and y on the left spine of b.
When that happens is a condition on x's life in a, and one on y's life in b (`_meets`;
proof: docs/theory/conversion.md).  So for each z the pairs that it spoils are a
product of two sets, and those of them that a native merge of the same x and y forbids are a product
too.  Only what is left over is tested pair by pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crosstok import bpe
from crosstok.jit import njit
from crosstok.truncation import derivations
from crosstok.vocabulary import Kind

if TYPE_CHECKING:
    from crosstok.vocabulary import Vocabulary

WORK = 100_000_000  # pairs tested one by one before the check gives up: some ten seconds
EXAMPLES = 64  # violations collected, one for a target merge, in search of one that a text shows
ABSENT = -2  # the life of a symbol that is on no spine
NO_MERGE = 2**40  # the rank of a merge that there is not: after every life


class Report(NamedTuple):
    """What the check found: pairs of native tokens that break the map, if any."""

    violations: list[tuple[int, int]]
    tested: int
    complete: bool


class Run(NamedTuple):
    """The merges of one side: spines, hash table, and when each symbol is born."""

    spines: bpe.Spines
    merges: bpe.MergeTable
    birth: bpe.I32


class Lives(NamedTuple):
    """For every target symbol, the native tokens at whose edge it appears, and until when.

    ``until`` is the highest rank of the target's events before the symbol dies, ``native_until``
    that of the native's (ABSENT where the native run of the token has no such symbol there).
    """

    at: bpe.I64
    token: bpe.I32
    until: bpe.I32
    native_until: bpe.I32


def check_pairs(
    native: Vocabulary, target: Vocabulary, at: bpe.I64, ids: bpe.I32, match: bpe.I32,
    alone: set[int], work: int = WORK,
) -> Report:  # fmt: skip
    """Look for a canonical native pair whose pieces do not meet canonically in the target.

    ``at`` and ``ids`` are the target tokens of each native token, ``match`` the native counterpart
    of each target token, ``alone`` the native tokens that no merging touches.
    """
    usable = native.reachable & (native.kinds == Kind.TEXT) & (np.diff(at) > 0)
    usable[list(alone)] = False
    tokens = np.flatnonzero(usable).astype(np.int32)
    source, goal = _run(native), _run(target)
    s, g = source.spines, goal.spines
    last, first = ids[at[tokens + 1] - 1], ids[at[tokens]]
    size = target.size
    lefts = _lives(tokens, last, g.right_at, g.right_id, g.right_seg,
                   s.right_at, s.right_id, s.right_seg, match, size)  # fmt: skip
    rights = _lives(tokens, first, g.left_at, g.left_id, g.left_seg,
                    s.left_at, s.left_id, s.left_seg, match, size)  # fmt: skip
    made = derivations(target).tokens
    found = np.empty((EXAMPLES, 2), np.int32)
    number, tested, complete = _search(
        made, target.left, target.right, goal, source, match, lefts, rights, found, work
    )
    return Report([(int(t), int(u)) for t, u in found[:number]], tested, complete)


def _run(vocabulary: Vocabulary) -> Run:
    merger = vocabulary.merger
    return Run(merger.spines, merger.merges, derivations(vocabulary).birth)


@njit(cache=True)
def _lives(
    tokens: bpe.I32, edge: bpe.I32, at: bpe.I32, spine: bpe.I32, until: bpe.I32,
    native_at: bpe.I32, native_spine: bpe.I32, native_until: bpe.I32, match: bpe.I32, size: int,
) -> Lives:  # fmt: skip
    """Collect the lives of the symbols on the spines of ``edge``, the pieces at the edges."""
    starts = np.zeros(size + 1, np.int64)
    for k in range(len(tokens)):
        for i in range(at[edge[k]], at[edge[k] + 1]):
            starts[spine[i] + 1] += 1
    starts = np.cumsum(starts)
    fill = starts[:-1].copy()
    token = np.empty(starts[-1], np.int32)
    ends = np.empty(starts[-1], np.int32)
    native_ends = np.full(starts[-1], ABSENT, np.int32)
    for k in range(len(tokens)):
        t = tokens[k]
        for i in range(at[edge[k]], at[edge[k] + 1]):
            slot = fill[spine[i]]
            fill[spine[i]] += 1
            token[slot] = t
            ends[slot] = until[i]
            for j in range(native_at[t], native_at[t + 1]):
                if native_spine[j] == match[spine[i]]:
                    native_ends[slot] = native_until[j]
    return Lives(starts, token, ends, native_ends)


@njit(cache=True)
def _meets(is_left: bool, rank: int, until: int, born: int, other_born: int) -> bool:
    """Whether a symbol lives long enough for the merge: past its rank, and until the other symbol
    is born.  On equal ranks the left token's event goes first.
    """
    if is_left:
        return rank < until and other_born < max(born, until)
    return rank <= until and other_born <= max(born, until)


@njit(cache=True)
def _search(
    made: bpe.I32, left: bpe.I32, right: bpe.I32, goal: Run, source: Run, match: bpe.I32,
    lefts: Lives, rights: Lives, found: bpe.I32, work: int,
) -> tuple[int, int, bool]:  # fmt: skip
    """Violations of all target merges: (how many, pairs tested, whether all were tested)."""
    number, tested = 0, 0
    for z in made:
        x, y = left[z], right[z]
        a, a_open = _side(True, x, y, goal, source, match, lefts)
        b, b_open = _side(False, x, y, goal, source, match, rights)
        if a_open + b_open == 0:
            continue
        t, u, tests = _first_canonical(a, a_open, b, b_open, source, work - tested)
        tested += tests
        if t != bpe.NONE:
            found[number] = t, u
            number += 1
        if number == len(found) or tested >= work:
            return number, tested, False
    return number, tested, True


@njit(cache=True)
def _side(
    is_left: bool, x: int, y: int, goal: Run, source: Run, match: bpe.I32, lives: Lives
) -> tuple[bpe.I32, int]:
    """The tokens at whose edge the merge x·y may happen; first those, so many, at whose edge the
    native merge of x and y may not happen.
    """
    symbol, other = (x, y) if is_left else (y, x)
    rank = goal.merges.rank[bpe.find_merge(goal.merges, x, y)]
    native_rank, n_born, n_other_born = _native_merge(x, y, is_left, source, match)
    start, stop = lives.at[symbol], lives.at[symbol + 1]
    tokens = np.empty(stop - start, np.int32)
    front, back = 0, stop - start
    for k in range(start, stop):
        if not _meets(is_left, rank, lives.until[k], goal.birth[symbol], goal.birth[other]):
            continue
        until = lives.native_until[k]
        if until != ABSENT and _meets(is_left, native_rank, until, n_born, n_other_born):
            back -= 1
            tokens[back] = lives.token[k]
        else:
            tokens[front] = lives.token[k]
            front += 1
    return np.concatenate((tokens[:front], tokens[back:])), front


@njit(cache=True)
def _native_merge(
    x: int, y: int, is_left: bool, source: Run, match: bpe.I32
) -> tuple[int, int, int]:
    """The rank of the native merge of x and y (later than any life if there is none), and when the
    symbol on this side and the other one are born.
    """
    n_x, n_y = match[x], match[y]
    if bpe.NONE in (n_x, n_y):
        return NO_MERGE, bpe.NONE, bpe.NONE
    merge = bpe.find_merge(source.merges, n_x, n_y)
    rank = NO_MERGE if merge == bpe.NONE else int(source.merges.rank[merge])
    births = int(source.birth[n_x]), int(source.birth[n_y])
    return (rank, births[0], births[1]) if is_left else (rank, births[1], births[0])


@njit(cache=True)
def _first_canonical(
    a: bpe.I32, a_open: int, b: bpe.I32, b_open: int, source: Run, work: int
) -> tuple[int, int, int]:
    """The first canonical pair of a × b, leaving out those that a native merge forbids."""
    tests = 0
    for i in range(len(a)):
        for j in range(len(b) if i < a_open else b_open):
            tests += 1
            if bpe.pair_is_canonical(a[i], b[j], source.spines, source.merges):
                return a[i], b[j], tests
            if tests >= work:
                return bpe.NONE, bpe.NONE, tests
    return bpe.NONE, bpe.NONE, tests
