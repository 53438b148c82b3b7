"""The splitter's lexers of an open text, followed through a token's characters."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from crosstok.covers import DEAD
from crosstok.masks.states import BEFORE, FRESH, INSIDE, Lexer
from crosstok.splitting import Splitter


class TokenKind(NamedTuple):
    """What a token does to every lexer: from each state, the one behind it and the last match."""

    behind: tuple[int, ...]
    match: tuple[int, ...]
    classes: int | None  # of the character that the token leaves cut; None if it leaves none
    advances: bool  # whether some character ends in the token


def chain_of(kind: TokenKind, lexers: tuple[Lexer, ...]) -> Iterator[tuple[int, Lexer | None, int]]:
    """The lexers that are alive behind the token, in the order in which they get their say.

    Each with the lexer whose piece ended before the token, if it is FRESH, and its state.  One
    whose piece ends inside the token is the last: the pieces behind it begin there.
    """
    which = 0 if lexers else FRESH
    closed_by: Lexer | None = None
    while True:
        start = lexers[which].state if which != FRESH else 0
        behind, match = kind.behind[start], kind.match[start]
        if behind != DEAD:
            yield which, closed_by, behind
        if which == FRESH or match == INSIDE:
            return
        if match == BEFORE:
            which, closed_by = FRESH, lexers[which]
        elif which + 1 < len(lexers):
            which += 1
        else:
            return


@lru_cache(maxsize=1 << 16)
def possible_chains(
    splitter: Splitter, states: tuple[int, ...], first: int | None, end: bool
) -> tuple[bool, ...]:
    """Which lexers some continuation makes the first to match at the text's end or later.

    `Splitter.segmentations` for lexers that are given; those that may come behind are left out.
    """
    every = (1 << splitter.n_classes) - 1
    start = tuple(enumerate(states))
    found = _stopped(splitter, start) if end else set()
    waiting = list(dict.fromkeys(_steps(splitter, start, every if first is None else first)))
    seen = set(waiting)
    for alive in waiting:
        found |= _stopped(splitter, alive)
        if alive and alive[0][1] != MATCHED:
            new = [after for after in _steps(splitter, alive, every) if after not in seen]
            seen.update(new)
            waiting += dict.fromkeys(new)
    return tuple(i in found for i in range(len(states)))


Alive = tuple[tuple[int, int], ...]


MATCHED = -2  # state of a lexer that has matched at the text's end or later


def _stopped(splitter: Splitter, alive: Alive) -> set[int]:
    """The lexer that has its way if the text ends here."""
    ways = [i for i, state in alive if state == MATCHED or splitter.rec_end[state]]
    return set(ways[:1])


def _steps(splitter: Splitter, alive: Alive, classes: int) -> Iterator[Alive]:
    """The lexers behind one character more, of each of these classes."""
    for k in range(splitter.n_classes):
        if classes >> k & 1:
            after: list[tuple[int, int]] = []
            for i, state in alive:
                if state == MATCHED or splitter.rec[state, k]:
                    after.append((i, MATCHED))
                    break  # those behind it are never asked
                if splitter.nxt[state, k] != DEAD:
                    after.append((i, int(splitter.nxt[state, k])))
            yield tuple(after)
