r"""Patterns: the part of regular-expression syntax that pre-tokenizers use, as a tree.

A pattern matches from a given place on and prefers, like every backtracking engine: of the options
of an `Alt` the earlier one, of the rounds of a `Repeat` one more.  Its match is the first that this
order tries with success.  There is no look-behind and the only look-ahead is `NotAhead`: the next
character is not in a set, or there is none.

`matches` is that sentence as code: slow, recursive, and the oracle that tests compare with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crosstok import unicode

if TYPE_CHECKING:
    from collections.abc import Iterator


class CharSet:
    """A set of code points, with the set operations."""

    __slots__ = ("mask",)

    def __init__(self, mask: unicode.Mask) -> None:
        self.mask = mask

    def __or__(self, other: CharSet) -> CharSet:
        return CharSet(self.mask | other.mask)

    def __and__(self, other: CharSet) -> CharSet:
        return CharSet(self.mask & other.mask)

    def __sub__(self, other: CharSet) -> CharSet:
        return CharSet(self.mask & ~other.mask)

    def __invert__(self) -> CharSet:
        return CharSet(~self.mask)


def chars(*ranges: str) -> CharSet:
    """The characters of all `ranges`: `chars("a-z", "_")`, where `x-y` is a range."""
    mask = np.zeros(unicode.N_CODE_POINTS, np.bool_)
    for span in ranges:
        mask[ord(span[0]) : ord(span[-1]) + 1] = True
    return CharSet(mask)


def any_of(characters: str) -> CharSet:
    """Exactly these characters."""
    return chars(*characters)


@dataclass(frozen=True, eq=False, slots=True)
class One:
    """One character of a set."""

    of: CharSet


@dataclass(frozen=True, eq=False, slots=True)
class NotAhead:
    """Nothing, provided that no character of the set comes next; the text's end passes."""

    of: CharSet


@dataclass(frozen=True, eq=False, slots=True)
class Seq:
    """One part after the other."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Alt:
    """The first option that leads to a match."""

    options: tuple[Pattern, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Repeat:
    """As many rounds as lead to a match, at least `least`, at most `most` (None: no limit)."""

    body: Pattern
    least: int
    most: int | None


Pattern = One | NotAhead | Seq | Alt | Repeat


def seq(*parts: Pattern | CharSet) -> Pattern:
    """`Seq`, where a bare set stands for one of its characters."""
    return Seq(tuple(map(_pattern, parts)))


def alt(*options: Pattern | CharSet) -> Pattern:
    """`Alt`, where a bare set stands for one of its characters."""
    return Alt(tuple(map(_pattern, options)))


def some(body: Pattern | CharSet) -> Pattern:
    """One round or more: `body+`."""
    return Repeat(_pattern(body), 1, None)


def many(body: Pattern | CharSet) -> Pattern:
    """Any number of rounds: `body*`."""
    return Repeat(_pattern(body), 0, None)


def maybe(body: Pattern | CharSet) -> Pattern:
    """One round or none: `body?`."""
    return Repeat(_pattern(body), 0, 1)


def up_to(most: int, body: Pattern | CharSet) -> Pattern:
    """From one round to `most`: `body{1,most}`."""
    return Repeat(_pattern(body), 1, most)


def _pattern(part: Pattern | CharSet) -> Pattern:
    return One(part) if isinstance(part, CharSet) else part


def char_sets(pattern: Pattern) -> Iterator[CharSet]:
    """Every set that the pattern asks about, with repetitions."""
    match pattern:
        case One(of) | NotAhead(of):
            yield of
        case Seq(parts) | Alt(parts):
            for part in parts:
                yield from char_sets(part)
        case Repeat(body):
            yield from char_sets(body)


def matches(pattern: Pattern, text: str, at: int) -> Iterator[int]:
    """Where the pattern's matches from `at` on end, in the order in which backtracking finds them.

    >>> list(matches(seq(many(any_of("ab")), any_of("b")), "abba", 0))
    [3, 2]
    """
    match pattern:
        case One(of):
            if at < len(text) and of.mask[ord(text[at])]:
                yield at + 1
        case NotAhead(of):
            if at == len(text) or not of.mask[ord(text[at])]:
                yield at
        case Alt(options):
            for option in options:
                yield from matches(option, text, at)
        case Seq(parts):
            yield from _matches_all(parts, text, at)
        case Repeat(body, least, most):
            yield from _rounds(body, least, most, text, at)


def _matches_all(parts: tuple[Pattern, ...], text: str, at: int) -> Iterator[int]:
    if not parts:
        yield at
        return
    for end in matches(parts[0], text, at):
        yield from _matches_all(parts[1:], text, end)


def _rounds(body: Pattern, least: int, most: int | None, text: str, at: int) -> Iterator[int]:
    if most != 0:
        fewer = None if most is None else most - 1
        for end in matches(body, text, at):
            yield from _rounds(body, max(least - 1, 0), fewer, text, end)
    if least == 0:
        yield at


def pieces_by_backtracking(pattern: Pattern, text: str) -> list[int]:
    """Where the pieces of `text` end: the reference for `Splitter.pieces`."""
    ends = [0]
    while ends[-1] < len(text):
        ends.append(next(matches(pattern, text, ends[-1])))
    return ends[1:]
