"""The automaton's inner loops, callable from other numba code.  Classes are uint8 arrays."""

from __future__ import annotations

from crosstok.jit import njit


@njit(cache=True)
def lex(classes, nxt, rec, rec_end, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write where each piece ends into `out` (as long as `classes` is enough); return how many."""
    n = len(classes)
    count = start = 0
    while start < n:
        state, match, at = 0, 0, start
        while at < n:
            k = classes[at]
            if rec[state, k]:
                match = at
            state = nxt[state, k]
            if state < 0:
                break
            at += 1
        if at == n and rec_end[state]:
            match = n
        start = match
        out[count] = start
        count += 1
    return count


@njit(cache=True)
def follow(classes, start, nxt, rec, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Lex an unfinished text from a piece's start, for as long as its characters decide.

    Writes the starts of the pieces into `out`.  Returns how many there are, the state of the last
    one, whose end is not known, and its last recorded match (-1: none yet).
    """
    n = len(classes)
    count, state, match, at = 1, 0, -1, start
    out[0] = start
    while at < n:
        k = classes[at]
        if rec[state, k]:
            match = at
        state = nxt[state, k]
        at += 1
        if state < 0:
            out[count] = at = match
            count += 1
            state, match = 0, -1
    return count, state, match


@njit(cache=True)
def state_behind(classes, nxt):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """The state behind all the classes, from a piece's start; -1 if the piece ends earlier."""
    state = 0
    for k in classes:
        state = nxt[state, k]
        if state < 0:
            return -1
    return state
