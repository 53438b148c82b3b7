"""From a pattern to a deterministic automaton that finds the same matches.

**Classes.**  Characters that belong to the same sets of a pattern are alike to it; `classify`
numbers these classes of code points in the order of their first members.

**Threads.**  A pattern becomes a program (`Program`) of four instructions.  A backtracking engine
tries its ways through the program one after the other; we advance them all together, a *thread*
each, in order of preference.  Two threads at one instruction have the same future, so only the
preferred one is kept.  When a thread reaches the end of the program while the next character is
still unread, a match that ends here is *recorded*: every thread after it is less preferred and is
cut, every thread before it may still replace the match by its own.  So the match is what was
recorded last when no thread is left or the text ends.

**States.**  The tuple of threads that wait for the next character is a state.  What they do depends
on that character's class alone, look-ahead included, because a state's threads are followed up only
when the class (or the text's end) is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crosstok.splitting.pattern import Alt, CharSet, NotAhead, One, Pattern, Repeat, Seq, char_sets
from crosstok.unicode import N_CODE_POINTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

DEAD = -1
BoolArray = NDArray[np.bool_]
StateArray = NDArray[np.int16]
Threads = tuple[int, ...]


def classify(pattern: Pattern) -> tuple[NDArray[np.uint8], dict[CharSet, frozenset[int]]]:
    """The class of every code point, and the classes that make up each set of the pattern."""
    sets = list(dict.fromkeys(char_sets(pattern)))
    bits = np.packbits(np.array([s.mask for s in sets]), axis=0)
    starts = np.flatnonzero((bits[:, 1:] != bits[:, :-1]).any(axis=0)) + 1
    starts = np.concatenate([[0], starts])
    kinds = dict.fromkeys(bits[:, start].tobytes() for start in starts)
    number = {kind: k for k, kind in enumerate(kinds)}
    of_run = np.array([number[bits[:, start].tobytes()] for start in starts], np.uint8)
    class_of = np.repeat(of_run, np.diff(starts, append=N_CODE_POINTS))
    return class_of, {s: frozenset(of_run[s.mask[starts]].tolist()) for s in sets}


@dataclass(frozen=True, slots=True)
class Read:
    """Read one character of these classes and go on with the next instruction."""

    classes: frozenset[int]


@dataclass(frozen=True, slots=True)
class Unless:
    """Go on with the next instruction unless a character of these classes comes next."""

    classes: frozenset[int]


@dataclass(frozen=True, slots=True)
class Fork:
    """Go on at each of these instructions, preferring the earlier ones."""

    to: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """The match ends here."""


Instruction = Read | Unless | Fork | Match


class Program:
    """A pattern's instructions, and what a tuple of threads does at the next character."""

    def __init__(self, pattern: Pattern, classes: dict[CharSet, frozenset[int]]) -> None:
        self._classes = classes
        self.code: list[Instruction] = []
        self._emit(pattern)
        self.code.append(Match())

    def _emit(self, pattern: Pattern) -> None:
        match pattern:
            case One(of):
                self.code.append(Read(self._classes[of]))
            case NotAhead(of):
                self.code.append(Unless(self._classes[of]))
            case Seq(parts):
                for part in parts:
                    self._emit(part)
            case Alt(options):
                self._emit_options([partial(self._emit, option) for option in options])
            case Repeat(body, least, most):
                self._emit_rounds(body, least, most)

    def _emit_options(self, emitters: Sequence[Callable[[], None]]) -> None:
        """A fork, then each option followed by a jump behind the last one."""
        fork = self._reserve()
        starts, exits = [], []
        for emit in emitters:
            starts.append(len(self.code))
            emit()
            exits.append(self._reserve())
        self.code[fork] = Fork(tuple(starts))
        for exit_ in exits:
            self.code[exit_] = Fork((len(self.code),))

    def _emit_rounds(self, body: Pattern, least: int, most: int | None) -> None:
        for _ in range(least):
            self._emit(body)
        if most is None:
            fork = self._reserve()
            self._emit(body)
            self.code.append(Fork((fork,)))
            self.code[fork] = Fork((fork + 1, len(self.code)))
        elif most > least:
            rest = Repeat(body, 0, most - least - 1)
            self._emit_options(
                [partial(self._emit, Seq((body, rest))), partial(self._emit, Seq(()))]
            )

    def _reserve(self) -> int:
        """The place of an instruction that is filled in later."""
        self.code.append(Fork(()))
        return len(self.code) - 1

    def advance(self, threads: Threads, k: int | None) -> tuple[bool, Threads]:
        """Whether a match is recorded before the next character, and the threads behind it.

        `k` is the character's class, None the end of the text.
        """
        after: dict[int, None] = {}
        for pc in self._ready(threads, k):
            instruction = self.code[pc]
            if isinstance(instruction, Match):
                return True, tuple(after)
            assert isinstance(instruction, Read)
            if k in instruction.classes:
                after[pc + 1] = None
        return False, tuple(after)

    def _ready(self, threads: Threads, k: int | None) -> Iterator[int]:
        """The `Read` and `Match` instructions that the threads reach, each once, in order."""
        seen: set[int] = set()
        stack = list(reversed(threads))
        while stack:
            pc = stack.pop()
            if pc in seen:
                continue
            seen.add(pc)
            instruction = self.code[pc]
            if isinstance(instruction, Fork):
                stack.extend(reversed(instruction.to))
            elif isinstance(instruction, Unless):
                stack.extend([] if k in instruction.classes else [pc + 1])
            else:
                yield pc


@dataclass(frozen=True, eq=False, slots=True)
class Automaton:
    """State 0 is a piece's start.  At a character of class k in state s, in this order:

    `rec[s, k]`: a match that ends before it is recorded;  `nxt[s, k]`: the state behind it, or
    `DEAD`.  `rec_end[s]`: a match that ends at the end of the text is recorded.
    """

    nxt: StateArray
    rec: BoolArray
    rec_end: BoolArray

    @property
    def can(self) -> BoolArray:
        """Whether some continuation, or the text's end, leads to a record from here on."""

        def leads_on(can: BoolArray) -> BoolArray:
            return _some(_follow(self.nxt, can))

        return _least(_some(self.rec) | self.rec_end, leads_on)

    @property
    def quiet(self) -> BoolArray:
        """Whether with some continuation nothing is recorded from here on."""

        def goes_quiet(quiet: BoolArray) -> BoolArray:
            dies = self.nxt == DEAD
            return _some(~self.rec & (dies | _follow(self.nxt, quiet)))

        return _least(~self.rec_end, goes_quiet)

    @property
    def closing(self) -> BoolArray:
        """[s, k]: a match recorded before this character may remain the last one."""
        behind: BoolArray = (self.nxt == DEAD) | _follow(self.nxt, self.quiet)
        return self.rec & behind


def _some(table: BoolArray) -> BoolArray:
    """[s]: for some class."""
    held: BoolArray = np.logical_or.reduce(table, axis=1)
    return held


def _follow(nxt: StateArray, holds: BoolArray) -> BoolArray:
    """[s, k]: the next state is alive and `holds` there."""
    followed: BoolArray = (nxt != DEAD) & holds[nxt]
    return followed


def _least(seed: BoolArray, grow: Callable[[BoolArray], BoolArray]) -> BoolArray:
    """The least set of states that contains `seed` and is closed under `grow`."""
    holds = np.array(seed)
    while True:
        new = grow(holds) & ~holds
        if not new.any():
            return holds
        holds |= new


def compile_pattern(pattern: Pattern) -> tuple[NDArray[np.uint8], Automaton]:
    """The classes of a total pattern and its smallest automaton."""
    class_of, classes = classify(pattern)
    automaton = _determinize(Program(pattern, classes), int(class_of.max()) + 1)
    automaton = _minimize(_prune(automaton))
    _check_total(automaton)
    return class_of, automaton


def _determinize(program: Program, n_classes: int) -> Automaton:
    """All states that can be reached from the start."""
    start: Threads = (0,)
    states = {start: 0}
    waiting, rows = [start], []
    for threads in waiting:
        steps = [program.advance(threads, k) for k in range(n_classes)]
        for _, after in steps:
            if after and after not in states:
                states[after] = len(states)
                waiting.append(after)
        rows.append((steps, program.advance(threads, None)[0]))
    nxt = [[states[after] if after else DEAD for _, after in steps] for steps, _ in rows]
    rec = [[recorded for recorded, _ in steps] for steps, _ in rows]
    return Automaton(np.array(nxt, np.int16), np.array(rec), np.array([end for _, end in rows]))


def _prune(automaton: Automaton) -> Automaton:
    """Let states that can record nothing any more be dead at once."""
    nxt = np.where(_follow(automaton.nxt, automaton.can), automaton.nxt, DEAD).astype(np.int16)
    return Automaton(nxt, automaton.rec, automaton.rec_end)


def _minimize(automaton: Automaton) -> Automaton:
    """States with the same records for all continuations are made one (Moore's refinement)."""
    block = np.zeros(len(automaton.nxt), np.int64)
    while True:
        behind = np.where(automaton.nxt == DEAD, DEAD, block[automaton.nxt])
        view = np.column_stack([block, automaton.rec_end, automaton.rec, behind])
        finer = np.unique(view, axis=0, return_inverse=True)[1].ravel()
        if finer.max() == block.max():
            return _quotient(automaton, block)
        block = finer


def _quotient(automaton: Automaton, block: NDArray[np.int64]) -> Automaton:
    """One state a block, numbered in the order in which they are reached from the start."""
    member = {int(block[s]): s for s in reversed(range(len(block)))}
    order = {int(block[0]): 0}
    waiting = [int(block[0])]
    for b in waiting:
        for s in automaton.nxt[member[b]]:
            if s != DEAD and int(block[s]) not in order:
                order[int(block[s])] = len(order)
                waiting.append(int(block[s]))
    members = [member[b] for b in waiting]
    renumber = np.array([order.get(int(b), DEAD) for b in block], np.int16)
    old = automaton.nxt[members]
    nxt = np.where(old == DEAD, DEAD, renumber[old]).astype(np.int16)
    return Automaton(nxt, automaton.rec[members], automaton.rec_end[members])


def _check_total(automaton: Automaton) -> None:
    """Every non-empty text has a match at its start, and no match is empty."""
    assert not automaton.rec[0].any(), "the pattern matches nothing at all"
    assert not automaton.rec_end[0], "the pattern matches nothing at all"
    waiting = [int(s) for s in set(automaton.nxt[0].tolist())]
    seen = set(waiting)
    for s in waiting:
        assert s != DEAD, "some piece start has no match"
        assert automaton.rec_end[s], "some text has no match"
        new = set(automaton.nxt[s][~automaton.rec[s]].tolist()) - seen
        seen |= new
        waiting += new
