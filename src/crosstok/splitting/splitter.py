"""`Splitter`: a compiled family, the pieces of texts, and what open texts may still become."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from crosstok.errors import BadInput
from crosstok.splitting.automaton import DEAD, compile_pattern
from crosstok.splitting.families import PATTERNS, family
from crosstok.splitting.kernels import follow, lex, state_behind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from crosstok.splitting.automaton import Automaton, BoolArray, StateArray

# State of a lexer in `_Open`: its piece is known to end at or after the end of the open text.
_ENDED = -2

Starts = tuple[int, ...]
Configuration = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Splitter:
    """A pre-tokenizer as an automaton over classes of characters.  There is one object a name.

    `class_of[cp]` is the class of a code point.  For the meaning of `nxt`, `rec` and `rec_end` see
    `Automaton`.  `can[s]`: some continuation, or the text's end, leads to a match that ends here or
    later.  `sure[s]`: every continuation does.
    """

    name: str
    n_classes: int
    class_of: NDArray[np.uint8]
    nxt: StateArray
    rec: BoolArray
    rec_end: BoolArray
    can: BoolArray
    sure: BoolArray
    digest: str
    # One bit mask a state: the classes before which the piece may end, and those it can take in.
    _closers: tuple[int, ...]
    _continuers: tuple[int, ...]

    @staticmethod
    def by_name(name: str) -> Splitter:
        """The splitter of one of the families in `PATTERNS`."""
        if name not in PATTERNS:
            raise BadInput.explain(f"one of {', '.join(PATTERNS)}", repr(name), "name a family")
        return _compiled(name)

    def __reduce__(self) -> tuple[object, ...]:
        return Splitter.by_name, (self.name,)

    def classes(self, text: str) -> bytes:
        """The class of every character."""
        return self._class_array(text).tobytes()

    def _class_array(self, text: str) -> NDArray[np.uint8]:
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
        classes: NDArray[np.uint8] = self.class_of[points]
        return classes

    def pieces(self, text: str) -> list[int]:
        """Where the pieces of a whole text end, in characters.

        >>> Splitter.by_name("cl100k").pieces("12345 days")
        [3, 5, 10]
        """
        classes = self._class_array(text)
        out = np.empty(len(classes), np.int64)
        count = lex(classes, self.nxt, self.rec, self.rec_end, out)
        ends: list[int] = out[:count].tolist()
        return ends

    def state_after(self, classes: bytes) -> int:
        """The state behind these classes, from a piece's start; -1 if the piece ends earlier."""
        return int(state_behind(np.frombuffer(classes, np.uint8), self.nxt))

    def may_end(self, state: int, first: int | None = None, end: bool = True) -> bool:
        """Whether a piece in this state may end exactly here.

        `first` is a bit mask of the classes that the next character may have (None: all of them),
        `end` says whether the text may end here.
        """
        closers = self._closers[state]
        return bool(closers if first is None else closers & first) or bool(
            end and self.rec_end[state]
        )

    def may_go_on(self, state: int, first: int | None = None) -> int:
        """The classes within `first` of which one character more may belong to the same piece."""
        continuers = self._continuers[state]
        return continuers if first is None else continuers & first

    def segmentations(
        self, classes: bytes, first: int | None = None, end: bool = True
    ) -> tuple[Starts, ...]:
        """All ways in which some continuation cuts an open text that begins at a piece's start.

        Each is the starts of its pieces, 0 first; where the last piece ends, at the text's end or
        after it, is left open (`may_end`, `may_go_on`).  They are in the order of the starts.
        `first` and `end` are those of `may_end`.  An empty text has one segmentation, no pieces.

        >>> s = Splitter.by_name("qwen2")
        >>> s.segmentations(s.classes("it'"))  # 's may follow, but this ' is its first character
        ((0, 2),)
        """
        starts = np.empty(len(classes) + 1, np.int64)
        count, state, _ = follow(np.frombuffer(classes, np.uint8), 0, self.nxt, self.rec, starts)
        if self.sure[state]:
            return (tuple(starts[:count].tolist()),) if end or first != 0 else ()
        return _segmentations(self, classes, first, end)

    def settled_cut(self, classes: bytes) -> int:
        """The last piece start that all segmentations of an open text share."""
        shared = set.intersection(*map(set, self.segmentations(classes)))
        return max(shared, default=0)


@lru_cache(maxsize=1 << 16)
def _segmentations(
    splitter: Splitter, classes: bytes, first: int | None, end: bool
) -> tuple[Starts, ...]:
    if not classes:
        return ((),) if end or first != 0 else ()
    return tuple(sorted(_Open(splitter, classes).outcomes(first, end)))


class _Open:
    """An open text and everything that its continuations can make of it.

    Let the text be lexed as far as its characters decide.  If its last piece has no match yet, its
    end lies at or after the text's end whatever comes.  Otherwise that piece ends there or, if it
    dies first, at its last recorded match m; then the lexer starts again at m and reads the same
    characters once more.  We run that second lexer beside the first, a third one behind it and so
    on, in the order in which they get their say.  A configuration is the tuple of the lexers that
    are alive, each with its number and state.
    """

    def __init__(self, splitter: Splitter, classes: bytes) -> None:
        self._nxt, self._rec = splitter.nxt.tolist(), splitter.rec.tolist()
        self._rec_end = splitter.rec_end.tolist()
        self._any = (1 << splitter.n_classes) - 1
        self._starts, states = _lexers(splitter, classes)
        self._initial = tuple(enumerate(states))

    def outcomes(self, first: int | None, end: bool) -> set[Starts]:
        """The segmentations, by a search over all configurations that can be reached."""
        next_classes = self._any if first is None else first
        found: set[Starts] = {self._at_end(self._initial)} if end else set()
        waiting = list(dict.fromkeys(self._steps(self._initial, next_classes)))
        seen = set(waiting)
        for alive in waiting:
            leader, state = alive[0]
            if state == _ENDED:
                found.add(self._starts[leader])
                continue
            found.add(self._at_end(alive))
            new = set(self._steps(alive, self._any)) - seen
            seen |= new
            waiting += new
        return found

    def _at_end(self, alive: Configuration) -> Starts:
        """The segmentation if the text ends here: that of the first lexer that has a match."""
        return next(
            self._starts[i] for i, state in alive if state == _ENDED or self._rec_end[state]
        )

    def _steps(self, alive: Configuration, classes: int) -> Iterator[Configuration]:
        for k in range(classes.bit_length()):
            if classes >> k & 1:
                yield self._step(alive, k)

    def _step(self, alive: Configuration, k: int) -> Configuration:
        """The configuration behind one character more.

        A lexer whose piece has ended at or after the text's end makes those behind it needless.
        """
        after: list[tuple[int, int]] = []
        for i, state in alive:
            if state == _ENDED or self._rec[state][k]:
                after.append((i, _ENDED))
                break
            if self._nxt[state][k] != DEAD:
                after.append((i, self._nxt[state][k]))
        return tuple(after)


def _lexers(splitter: Splitter, classes: bytes) -> tuple[list[Starts], list[int]]:
    """For each lexer of an open text: the starts of all pieces up to its own, and its state."""
    array = np.frombuffer(classes, np.uint8)
    out = np.empty(len(classes) + 1, np.int64)
    all_starts: list[Starts] = []
    states: list[int] = []
    before: Starts = ()
    match = 0
    while match >= 0:
        count, state, match = follow(array, match, splitter.nxt, splitter.rec, out)
        before = before + tuple(out[:count].tolist())
        all_starts.append(before)
        states.append(state)
    return all_starts, states


@cache
def _compiled(name: str) -> Splitter:
    class_of, automaton = compile_pattern(PATTERNS[name]())
    can, sure = automaton.can, ~automaton.quiet
    arrays = (class_of, automaton.nxt, automaton.rec, automaton.rec_end, can, sure)
    for array in arrays:
        array.setflags(write=False)
    return Splitter(
        name=name,
        n_classes=automaton.nxt.shape[1],
        class_of=class_of,
        nxt=automaton.nxt,
        rec=automaton.rec,
        rec_end=automaton.rec_end,
        can=can,
        sure=sure,
        digest=_digest(class_of, automaton),
        _closers=_bits(automaton.closing),
        _continuers=_bits(automaton.nxt != DEAD),
    )


def _bits(table: BoolArray) -> tuple[int, ...]:
    """Every row as a bit mask."""
    return tuple(sum(1 << k for k in np.flatnonzero(row).tolist()) for row in table)


def _digest(class_of: NDArray[np.uint8], automaton: Automaton) -> str:
    """A fingerprint of everything that decides about pieces."""
    hashed = hashlib.sha256()
    for array in (class_of, automaton.nxt, automaton.rec, automaton.rec_end):
        hashed.update(repr((array.shape, array.dtype.str)).encode())
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()


def recognise(pre_tokenizer: object, normalizer: object) -> Splitter:
    """The splitter for these two parts of a tokenizer.json; UnsupportedTokenizer names the step.

    >>> recognise(None, None).name
    'none'
    """
    return Splitter.by_name(family(pre_tokenizer, normalizer))
