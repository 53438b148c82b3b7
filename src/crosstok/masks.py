"""All tokens that may come next, at once: the mask behind a native id sequence.

`settling.Viability` answers for one id.  A mask answers for the whole vocabulary, and two sequences
have the same mask if they are in the same **state** (`NativeState`): the splitter's lexers of the
open text, which of them the ids agree with, the last id where it stands inside an open piece, and
what is left of a cut character, of half-typed added tokens and of characters that normalisation
may change.  A `Walk` is a `Viability` that knows its state.

A mask is made in two steps.  Tokens that read the same to the splitter from each of its states are
of one **kind**; what becomes of the open text's pieces is asked once a kind, and remembered for all
states with the same lexers (`_Alphabet`).  Then one compiled pass over the tokens tests pairs by
their spines (`_fill`).  Proofs: docs/theory/masks.md.
"""

import codecs
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crosstok import bpe
from crosstok.added import AddedTokens
from crosstok.bpe import I32, I64, NEVER, NONE, ROOT, U8, Bool, Merger, Trie
from crosstok.covers import (
    DEAD,
    Cutter,
    Memo,
    can_cover,
    character_range,
    cutter_of,
    falls_back,
    find_node,
)
from crosstok.jit import njit
from crosstok.quick import quick_of
from crosstok.settling import Viability, split_character
from crosstok.splitting import Splitter, follow
from crosstok.unicode import nfc, nfc_boundary_before
from crosstok.vocabulary import LOW_LINE, SPACE, Kind, Vocabulary

UNKNOWN = 2  # of `_Table.known`
FRESH = -1  # stands for the lexer that begins a piece at the end of the text
# Where a lexer made its last match while it read a token: nowhere, before it, or inside it.
NOWHERE, BEFORE, INSIDE = 0, 1, 2
MEMORY = 64 << 20  # bytes of packed masks that a `Masks` keeps


class Lexer(NamedTuple):
    """One way to cut the open text: a lexer that is alive at its end.

    ``open``: the ids are what merging gives if the piece goes on.  ``closed``: they are the
    encoding if it ends here (before the cut character, if there is one).  ``node``: where the
    piece stands among the tokens that a piece may equal (ignore_merges).
    """

    state: int
    open: bool
    closed: bool
    node: int


@dataclass(frozen=True, slots=True)
class NativeState:
    """What of a native id sequence decides which tokens may come next."""

    lexers: tuple[Lexer, ...]  # empty where a piece begins
    previous: int  # the last id, where it and the next one may stand in one piece
    begun: bytes  # bytes of a cut character
    dummy: bool  # the next token must bring the dummy prefix
    closes: bool  # a segment may end here: a text-added token may follow
    pending: tuple[bytes, ...]  # what would complete an added token that has begun
    spoiled: tuple[int, ...]  # tokens that normalisation would change here
    asked: tuple[tuple[int, bool], ...]  # tokens that only `Viability` can judge
    ends: bool  # the text may end here

    @property
    def key(self) -> tuple[object, ...]:
        """What the mask depends on: everything but whether the text may end."""
        return (
            self.lexers, self.previous, self.begun, self.dummy, self.closes,
            self.pending, self.spoiled, self.asked,
        )  # fmt: skip


def may_end(state: NativeState) -> bool:
    """Whether the ids are the whole encoding of their text, so that EOS may follow."""
    return state.ends


# -- what a vocabulary's tokens are ----------------------------------------------------------------


class _Tokens:
    """The tokens of a vocabulary as texts that native ids spell."""

    def __init__(self, v: Vocabulary) -> None:
        self.v = v
        self.contents = _contents(v)
        self.at = np.cumsum([0, *map(len, self.contents)], dtype=np.int64)
        self.blob = np.frombuffer(b"".join(self.contents) + b"\0", np.uint8)
        self.mergeable = np.zeros(v.size, np.bool_)
        self.mergeable[v.merger.trie.sorted] = True
        self.added = _spelled_added(v)
        self.added_ids = np.array(sorted(self.added.text.values()), np.int64)
        self._sorted = sorted((content, k) for k, content in enumerate(self.contents) if content)
        self.never = self._holding(self.added.text)
        self.never[self.added_ids] = False
        hiding = self._holding(self.added.control) if self.added.text else np.zeros(0, np.bool_)
        self.hiding: list[int] = np.flatnonzero(hiding).tolist()
        self.control_starts = _control_starts(self.added)
        firsts = np.array([content[0] if content else 0 for content in self.contents])
        self.continuing: list[int] = np.flatnonzero((firsts >= 0x80) & (firsts < 0xC0)).tolist()
        low_line = LOW_LINE.encode()
        self.low_lined = np.array([content.startswith(low_line) for content in self.contents])

    def _holding(self, contents: Iterable[bytes]) -> Bool:
        """The tokens that hold one of these contents."""
        wanted = sorted(contents)
        blob = np.frombuffer(b"".join(wanted), np.uint8)
        ends = np.cumsum([0, *map(len, wanted)], dtype=np.int64)
        order = np.arange(len(wanted), dtype=np.int32)
        child, label, token, low, high = bpe.build_trie(blob, ends, order)
        trie = Trie(child, label, token, low, high, order)
        found: Bool = _holding(self.blob, self.at, trie)
        return found

    def beginning_with(self, start: bytes) -> Iterator[int]:
        """The tokens that begin with these bytes."""
        for place in range(bisect_left(self._sorted, (start, -1)), len(self._sorted)):
            content, token = self._sorted[place]
            if not content.startswith(start):
                return
            yield token


def _contents(v: Vocabulary) -> list[bytes]:
    """What each id adds to the spelled text; empty for ids that no text is encoded as."""
    low_line = LOW_LINE.encode()
    found = []
    for token, kind in enumerate(v.kinds.tolist()):
        spelled = v.spelled(token) if kind in (Kind.TEXT, Kind.BYTE) else b""
        if v.spelling.low_line and SPACE in spelled:
            # Spelled text has no spaces: the byte 20 never falls back.
            spelled = spelled.replace(SPACE, low_line) if token in v.names else b""
        found.append(spelled)
    return found


def _spelled_added(v: Vocabulary) -> AddedTokens:
    """The added tokens as native ids spell them; a literal ▁ of raw text is none of theirs."""
    if not v.spelling.low_line:
        return v.added
    low_line = LOW_LINE.encode()
    text = {
        content.replace(SPACE, low_line): token
        for content, token in v.added.text.items()
        if low_line not in content
    }
    return AddedTokens(text, v.added.control)


def _control_starts(added: AddedTokens) -> dict[bytes, tuple[bytes, ...]]:
    """For every beginning of a control content: the rests that complete one."""
    rests: dict[bytes, tuple[bytes, ...]] = {}
    for content in sorted(added.control) if added.text else ():
        for size in range(1, len(content)):
            rests[content[:size]] = (*rests.get(content[:size], ()), content[size:])
    return rests


@njit(cache=True)
def _holding(blob: U8, at: I64, trie: Trie) -> Bool:
    """Which tokens hold some content of the trie."""
    found = np.zeros(len(at) - 1, np.bool_)
    if len(trie.sorted) == 0:
        return found
    for token in range(len(found)):
        start = at[token]
        while start < at[token + 1] and not found[token]:
            node, place = ROOT, start
            while node != NONE and not found[token]:
                found[token] = trie.token[node] != NONE
                node = NONE if place == at[token + 1] else bpe.step(trie, node, blob[place])
                place += 1
            start += 1
    return found


# -- kinds of tokens -------------------------------------------------------------------------------


class _Kind(NamedTuple):
    """What a token does to every lexer: from each state, the one behind it and the last match."""

    behind: tuple[int, ...]
    match: tuple[int, ...]
    classes: int | None  # of the character that the token leaves cut; None if it leaves none
    advances: bool  # whether some character ends in the token


class _Entries(NamedTuple):
    """For each kind, the lexers whose piece a token of the kind may end or stand in."""

    at: I32
    lexer: I32
    state: I32


class _Table(NamedTuple):
    """The tokens of an alphabet as the compiled pass needs them."""

    ids: I32
    kind: I32
    cut: I32  # bytes of the character that the token leaves cut
    fits: Bool  # whether the encoder makes the token of its bytes, whatever stands before it
    alone: I32  # the token that its bytes are as a whole piece (ignore_merges)
    row: I32  # of `known`, for the tokens that leave a cut character
    known: U8  # [tokens, states]: whether some token can complete that character, once asked


class _Alphabet:
    """The tokens that may follow the bytes of a cut character (or none), sorted into kinds."""

    def __init__(self, tokens: _Tokens, begun: bytes) -> None:
        self._tokens = tokens
        self.begun = begun
        candidates: Iterable[int] = tokens.continuing if begun else range(tokens.v.size)
        self._read(candidates)
        self._entries: dict[tuple[tuple[int, bool, bool], ...], _Entries] = {}
        self._spoiled: dict[str, tuple[int, ...]] = {}

    def _read(self, candidates: Iterable[int]) -> None:
        """Read every candidate behind the cut character; what is no UTF-8 is left out."""
        nfc_too = self._tokens.v.spelling.nfc
        ids, texts, cuts = [], [], []
        for token in candidates:
            content = self._tokens.contents[token]
            try:
                text, used = codecs.utf_8_decode(self.begun + content, "strict", False)
            except UnicodeDecodeError:
                continue
            cut = (self.begun + content)[used:]
            if content and not _surrogate(cut) and not (nfc_too and nfc(text) != text):
                ids.append(token)
                texts.append(text)
                cuts.append(cut)
        self._joining = [
            (token, text)
            for token, text in zip(ids, texts, strict=True)
            if nfc_too and text and not nfc_boundary_before(ord(text[0]))
        ]
        self.table = self._table(ids, texts, cuts)

    def _table(self, ids: list[int], texts: list[str], cuts: list[bytes]) -> _Table:
        v = self._tokens.v
        cut = np.array([len(cut) for cut in cuts], np.int32)
        fits = [self._fits(*of) for of in zip(ids, texts, cuts, strict=True)]
        alone = np.full(v.size, NONE, np.int32)
        if v.ignore_merges:
            alone[v.whole.sorted] = v.whole.sorted
        chosen = np.array(ids, np.int32)
        known = np.full((int((cut > 0).sum()), len(v.splitter.nxt)), UNKNOWN, np.uint8)
        return _Table(
            chosen, self._sort(texts, cuts), cut, np.array(fits, np.bool_), alone[chosen],
            np.cumsum(cut > 0, dtype=np.int32) - 1, known,
        )  # fmt: skip

    def _fits(self, token: int, text: str, cut: bytes) -> bool:
        """Whether the encoder makes this token of its bytes, whatever stands before it."""
        v = self._tokens.v
        if v.kinds[token] != Kind.BYTE:
            return bool(self._tokens.mergeable[token])
        atoms = v.merger.atoms
        if cut:
            return _falls_back(v, cut)
        lacks = bool(atoms.of_char[ord(text)] == NONE)
        return lacks and int(atoms.of_byte[self._tokens.contents[token][0]]) == token

    def _sort(self, texts: list[str], cuts: list[bytes]) -> I32:
        """The kind of every token."""
        splitter = self._tokens.v.splitter
        numbers: dict[tuple[bytes, int | None], int] = {}
        strings = _class_strings(splitter, texts)
        masks = [_classes_of(splitter, cut) if cut else None for cut in cuts]
        of = [numbers.setdefault(pair, len(numbers)) for pair in zip(strings, masks, strict=True)]
        kinds: dict[_Kind, int] = {}
        rows = _behaviours(splitter, [string for string, _ in numbers])
        renumber = [
            kinds.setdefault(_Kind(*row, mask, string != b""), len(kinds))
            for row, (string, mask) in zip(rows, numbers, strict=True)
        ]
        self.kinds = list(kinds)
        kind: I32 = np.array(renumber, np.int32)[np.array(of, np.int64)]
        return kind

    def spoiled(self, tail: str) -> tuple[int, ...]:
        """The tokens that are not in normal form behind these last characters."""
        found = self._spoiled.get(tail)
        if found is None:
            found = tuple(t for t, text in self._joining if nfc(tail + text) != tail + text)
            if len(self._spoiled) >= 1 << 14:
                self._spoiled.clear()
            self._spoiled[tail] = found
        return found

    def entries(self, lexers: tuple[Lexer, ...]) -> _Entries:
        """What the splitter lets the tokens of each kind do behind these lexers."""
        key = tuple((lexer.state, lexer.open, lexer.closed) for lexer in lexers)
        found = self._entries.get(key)
        if found is None:
            splitter = self._tokens.v.splitter
            rows = [tuple(dict.fromkeys(_places(splitter, kind, lexers))) for kind in self.kinds]
            flat = [place for row in rows for place in row]
            found = _Entries(
                np.cumsum([0, *map(len, rows)], dtype=np.int32),
                np.array([lexer for lexer, _ in flat], np.int32),
                np.array([state for _, state in flat], np.int32),
            )
            if len(self._entries) >= 1 << 10:
                self._entries.clear()
            self._entries[key] = found
        return found


def _surrogate(cut: bytes) -> bool:
    """Whether these bytes begin a surrogate, which Python waits for and UTF-8 does not know."""
    return cut[:1] == b"\xed" and cut[1:2] >= b"\xa0"


@lru_cache(maxsize=4096)
def _falls_back(v: Vocabulary, cut: bytes) -> bool:
    return bool(falls_back(np.frombuffer(cut, np.uint8), v.merger))


@lru_cache(maxsize=4096)
def _classes_of(splitter: Splitter, cut: bytes) -> int:
    """Bit mask of the classes of all characters that begin with these bytes."""
    first, last = character_range(np.frombuffer(cut, np.uint8))
    return sum(1 << k for k in set(splitter.class_of[first : last + 1].tolist()))


def _class_strings(splitter: Splitter, texts: list[str]) -> list[bytes]:
    """The classes of the characters of each text."""
    points = np.frombuffer("".join(texts).encode("utf-32-le"), np.int32)
    classes = splitter.class_of[points].tobytes()
    ends = np.cumsum([0, *map(len, texts)]).tolist()
    return [classes[a:b] for a, b in pairwise(ends)]


def _behaviours(
    splitter: Splitter, strings: list[bytes]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """From every state, the state behind each class string and where the last match was made."""
    at = np.cumsum([0, *map(len, strings)], dtype=np.int64)
    classes = np.frombuffer(b"".join(strings), np.uint8)
    behind, match = _read_all(classes, at, splitter.nxt, splitter.rec)
    for row, matches in zip(behind.tolist(), match.tolist(), strict=True):
        yield tuple(row), tuple(matches)


@njit(cache=True)
def _read_all(classes: U8, at: I64, nxt: Any, rec: Any) -> tuple[I32, I32]:
    states = len(nxt)
    behind = np.empty((len(at) - 1, states), np.int32)
    match = np.zeros((len(at) - 1, states), np.int32)
    for k in range(len(at) - 1):
        for start in range(states):
            state = np.int64(start)
            for place in range(at[k], at[k + 1]):
                if rec[state, classes[place]]:
                    match[k, start] = BEFORE if place == at[k] else INSIDE
                state = np.int64(nxt[state, classes[place]])
                if state == DEAD:
                    break
            behind[k, start] = state
    return behind, match


def _places(
    splitter: Splitter, kind: _Kind, lexers: tuple[Lexer, ...]
) -> Iterator[tuple[int, int]]:
    """The lexers (or FRESH) whose last piece may hold the whole token, and their states behind it.

    Only those are given that the ids before the token agree with.
    """
    if not lexers and not kind.advances:
        yield FRESH, 0
        return
    chain = list(_chain(kind, lexers))
    first, end = kind.classes, kind.classes is None
    possible = _possible(splitter, tuple(state for _, _, state in chain), first, end)
    for (which, closed_by, state), may in zip(chain, possible, strict=True):
        if not may:
            continue
        agrees = lexers[which].open if which != FRESH else closed_by is None or closed_by.closed
        if agrees and (end or splitter.may_go_on(state, first)):
            yield which, state
        if end or kind.advances or which == FRESH:
            continue
        if lexers[which].closed and splitter.may_end(state, first, end=False):
            yield FRESH, 0  # the cut character, where the token lies, begins a piece


def _chain(kind: _Kind, lexers: tuple[Lexer, ...]) -> Iterator[tuple[int, Lexer | None, int]]:
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
def _possible(
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


# -- states ----------------------------------------------------------------------------------------


class Walk(Viability):
    """A `Viability` that knows its state."""

    def __init__(self, v: Vocabulary) -> None:
        super().__init__(v)
        self.vocabulary = v
        self._masks = masks_of(v)
        self._lone_dummy = False

    def push(self, token: int) -> bool:
        self._lone_dummy = self._dummy and self._v.spelled(token) == LOW_LINE.encode()
        return super().push(token)

    def branch(self) -> "Walk":
        """Another walk that has come as far."""
        other = copy(self)
        vars(other)["_ids"] = list(self._ids)  # the one thing that is changed in place
        return other

    @property
    def state(self) -> NativeState:
        """What decides about the next token; the ids so far must be viable."""
        assert not self._dead, "a sequence that is not viable has no next token"
        tokens = self._masks.tokens
        complete, begun = split_character(self._text)
        at, pending = _added_in(tokens.added, self._text)
        segment, ids = self._text[at:], self._ids_from(at)
        lexers = self._lexers(segment, ids, begun)
        closes = not begun and self._closes(segment, ids)
        inside = any(lexer.open for lexer in lexers) or bool(begun)
        return NativeState(
            lexers=lexers,
            previous=self._ids[-1] if inside else NONE,
            begun=begun,
            dummy=self._dummy,
            closes=closes and bool(tokens.added),
            pending=pending,
            spoiled=self._spoiled(complete, begun),
            asked=self._asked(tokens),
            ends=closes and not self._lone_dummy,
        )

    def _ids_from(self, at: int) -> list[int]:
        """The ids behind a place of the text."""
        contents, k, size = self._masks.tokens.contents, len(self._ids), len(self._text)
        while size > at:
            k -= 1
            size -= len(contents[self._ids[k]])
        return self._ids[k:]

    def _closes(self, segment: bytes, ids: list[int]) -> bool:
        spelled = segment.decode()
        found, _ = self._v.encode_spelled(segment, self._v.piece_ends(spelled))
        return bool(found.tolist() == ids)

    def _spoiled(self, complete: str, begun: bytes) -> tuple[int, ...]:
        complete = self._chunk + complete
        if not self._v.spelling.nfc or not complete:
            return ()
        at = len(complete) - 1
        while at > 0 and not nfc_boundary_before(ord(complete[at])):
            at -= 1
        return self._masks.alphabet(begun).spoiled(complete[at:])

    def _asked(self, tokens: _Tokens) -> tuple[tuple[int, bool], ...]:
        """Judge the tokens in which a control token's content would end, which hides others."""
        if not tokens.added:
            return ()
        rests = (
            rest
            for size in range(1, len(self._text) + 1)
            for rest in tokens.control_starts.get(self._text[-size:], ())
        )
        asked = {*tokens.hiding, *(t for rest in rests for t in tokens.beginning_with(rest))}
        return tuple(
            (token, self._v.kinds[token] != Kind.CONTROL and self.branch().push(token))
            for token in sorted(asked)
        )

    def _lexers(self, segment: bytes, ids: list[int], begun: bytes) -> tuple[Lexer, ...]:
        size = len(segment) - len(begun)
        complete = segment[:size].decode()
        if not complete:
            return ()
        v = self._v
        points = np.frombuffer(complete.encode("utf-32-le"), np.int32)
        ends = np.cumsum([len(character.encode()) for character in complete])
        ways = list(_ways(v.splitter, v.splitter.class_of[points]))
        if v.splits_by_cuts or (len(ways) == 1 and not begun and not v.ignore_merges):
            # The one way to cut the text is the one that the ids agree with.
            return tuple(Lexer(state, True, True, NONE) for _, state in ways)
        agreement = _Agreement(v, segment, ids, size)
        return tuple(
            agreement.lexer(state, [int(ends[start - 1]) if start else 0 for start in starts])
            for starts, state in ways
        )


def _ways(splitter: Splitter, classes: U8) -> Iterator[tuple[list[int], int]]:
    """For each lexer of an open text, in order: the starts of its pieces, and its state.

    Those behind one that is sure to match are never asked.
    """
    out = np.empty(len(classes) + 1, np.int64)
    before: list[int] = []
    match = 0
    while match >= 0:
        count, state, match = follow(classes, match, splitter.nxt, splitter.rec, out)
        before = before + out[:count].tolist()
        yield before, int(state)
        if splitter.sure[state]:
            return


def _added_in(added: AddedTokens, text: bytes) -> tuple[int, tuple[bytes, ...]]:
    """Where the last added token of a text ends, and the rests of those that have begun."""
    if not added.may_occur(text):
        return 0, ()
    matches, halves = added.halves(text)
    contents = {token: content for content, token in added.text.items()} if halves else {}
    rests = {contents[token][len(text) - half.start :] for half in halves for token in half.tokens}
    return (matches[-1].stop if matches else 0), _shortest(rests)


def _shortest(rests: Iterable[bytes]) -> tuple[bytes, ...]:
    """The rests that begin with no other one."""
    found: list[bytes] = []
    for rest in sorted(rests):
        if not found or not rest.startswith(found[-1]):
            found.append(rest)
    return tuple(found)


class _Agreement:
    """Which ways to cut an open segment its ids agree with."""

    def __init__(self, v: Vocabulary, segment: bytes, ids: list[int], size: int) -> None:
        self._v = v
        self._segment = segment
        self._size = size  # without the cut character
        self._ids = ids
        self._stops = np.cumsum([len(v.spelled(token)) for token in ids]).tolist()

    def lexer(self, state: int, starts: list[int]) -> Lexer:
        """Whether the ids are the closed pieces and what merging makes of the last one."""
        last, closed = starts[-1], False
        agrees = self._encoded(starts[1:]) == self._up_to(last)
        opened = agrees and self._merged(last) == self._from(last)
        if agrees:
            whole = self._encoded([*starts[1:], self._size]) == self._up_to(self._size)
            closed = whole and self._merged(self._size) == self._from(self._size)
        return Lexer(state, opened, closed, self._node(last) if opened else NONE)

    def _up_to(self, at: int) -> list[int] | None:
        if at == 0:
            return []
        return self._ids[: self._stops.index(at) + 1] if at in self._stops else None

    def _from(self, at: int) -> list[int] | None:
        before = self._up_to(at)
        return None if before is None else self._ids[len(before) :]

    def _encoded(self, ends: list[int]) -> list[int]:
        """The encoding of the pieces that end at these places."""
        if not ends:
            return []
        found: list[int] = self._v.encode_spelled(
            self._segment[: ends[-1]], np.array(ends, np.int64)
        )[0].tolist()
        return found

    def _merged(self, start: int) -> list[int]:
        """What merging alone makes of the text from here on."""
        data = np.frombuffer(self._segment, np.uint8)[start:]
        ids, stops = np.empty(len(data), np.int32), np.empty(len(data), np.int64)
        if len(data) == 0:
            return []
        ends = np.array([len(data)], np.int64)
        v = self._v
        count = bpe.encode_pieces(data, ends, v.merger, v.whole, False, ids, stops)
        found: list[int] = ids[: max(count, 0)].tolist()
        return found

    def _node(self, start: int) -> int:
        if not self._v.ignore_merges:
            return NONE
        return int(find_node(np.frombuffer(self._segment, np.uint8)[start:], self._v.whole))


# -- masks -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DocumentMasks:
    """The masks along a document: position k stands behind its first k ids.

    ``index[k]`` is the row of ``packed`` (bits, least significant first) that holds the mask, and
    ``ends[k]`` whether the text may end there.  ``stopped`` is the first position whose id is not
    viable; behind it nothing is (index -1).
    """

    size: int
    index: I32
    packed: U8
    ends: Bool
    stopped: int | None

    def mask(self, position: int) -> Bool:
        """The tokens that may come next at a position."""
        if self.index[position] < 0:
            return np.zeros(self.size, np.bool_)
        return _unpacked(self.packed[self.index[position]], self.size)


class Masks:
    """The masks of a vocabulary, of which the last ones used are kept.

    ``memory``: bytes that the kept masks may take, one bit a token.
    """

    def __init__(self, v: Vocabulary, *, memory: int = MEMORY) -> None:
        self.vocabulary = v
        self.tokens = _Tokens(v)
        self._row = (v.size + 7) // 8
        self._most = max(1, memory // self._row)
        self._kept: OrderedDict[tuple[object, ...], U8] = OrderedDict()
        self._alphabets: OrderedDict[bytes, _Alphabet] = OrderedDict()
        self._followers = _followers(v.merger)
        self._canonical = np.zeros(v.size, np.bool_)  # with the token asked about last
        self._free = v.kinds == Kind.BYTE
        self.made = 0  # how many masks were made so far

    @property
    def memory(self) -> int:
        """Bytes of the masks that are kept."""
        return self._row * len(self._kept)

    def alphabet(self, begun: bytes) -> _Alphabet:
        """The tokens that may follow the bytes of a cut character."""
        found = self._alphabets.get(begun)
        if found is None:
            found = self._alphabets[begun] = _Alphabet(self.tokens, begun)
            if len(self._alphabets) > 256:
                oldest = next(key for key in self._alphabets if key)  # never that of all tokens
                del self._alphabets[oldest]
        return found

    def next(self, state: NativeState) -> Bool:
        """The tokens that may come next, as a mask over all ids."""
        return _unpacked(self.packed(state), self.vocabulary.size)

    def packed(self, state: NativeState) -> U8:
        """`next` as bits, least significant first."""
        key = state.key
        found = self._kept.get(key)
        if found is None:
            found = np.packbits(self._make(state), bitorder="little")
            found.setflags(write=False)
            self.made += 1
            self._kept[key] = found
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return found

    def document(self, ids: Sequence[int]) -> DocumentMasks:
        """The masks at all positions of a document."""
        walk = Walk(self.vocabulary)
        rows: dict[tuple[object, ...], int] = {}
        index = np.full(len(ids) + 1, -1, np.int32)
        ends = np.zeros(len(ids) + 1, np.bool_)
        packed: list[U8] = []
        stopped = None
        for k in range(len(ids) + 1):
            state = walk.state
            if state.key not in rows:
                rows[state.key] = len(packed)
                packed.append(self.packed(state))
            index[k], ends[k] = rows[state.key], state.ends
            if k < len(ids) and not walk.push(ids[k]):
                stopped = k
                break
        return DocumentMasks(self.vocabulary.size, index, np.stack(packed), ends, stopped)

    def _make(self, state: NativeState) -> Bool:
        tokens = self.tokens
        mask = np.zeros(self.vocabulary.size, np.bool_)
        self._fill(state, mask)
        mask[tokens.never] = False
        if state.closes:
            mask[tokens.added_ids] = True
        else:
            mask[tokens.added_ids] = False
        for rest in state.pending:
            mask[list(tokens.beginning_with(rest))] = False
        mask[list(state.spoiled)] = False
        if state.dummy:
            mask &= tokens.low_lined
        for token, answer in state.asked:
            mask[token] = answer
        return mask

    def _fill(self, state: NativeState, mask: Bool) -> None:
        v, tokens = self.vocabulary, self.tokens
        alphabet = self.alphabet(state.begun)
        entries = alphabet.entries(state.lexers)
        begun = np.frombuffer(state.begun, np.uint8)
        nodes = [lexer.node for lexer in state.lexers]
        nodes.append(int(find_node(begun, v.whole)) if v.ignore_merges else NONE)
        previous = [state.previous] * len(state.lexers)
        previous.append(state.previous if state.begun else NONE)
        canonical = self._canonical
        if state.previous != NONE:
            _canonical(state.previous, v.merger.spines, self._followers, canonical)
        _fill(
            alphabet.table, entries, np.array(previous, np.int32), np.array(nodes, np.int32),
            canonical, _Text(tokens.blob, tokens.at, begun), self._free, v.whole,
            v.merger, cutter_of(v.splitter), quick_of(v).memo, mask,
        )  # fmt: skip


def _unpacked(packed: U8, size: int) -> Bool:
    return np.unpackbits(packed, count=size, bitorder="little").view(np.bool_)


@lru_cache(maxsize=16)
def masks_of(v: Vocabulary) -> Masks:
    """The masks of a vocabulary that all its users share."""
    return Masks(v)


def viable_next(v: Vocabulary, state: NativeState) -> Bool:
    """Every token that `Viability` would take in this state, as a mask over all ids."""
    return masks_of(v).next(state)


def masks_for(v: Vocabulary, ids: Sequence[int]) -> DocumentMasks:
    """The masks at all positions of a document."""
    return masks_of(v).document(ids)


# -- the pass over the tokens ----------------------------------------------------------------------


class _Text(NamedTuple):
    """What the tokens spell, and the bytes of the cut character before them."""

    blob: U8
    at: I64
    begun: U8


class _Followers(NamedTuple):
    """The merges by their left part, and the tokens in an order in which parts come first."""

    at: I32  # [ids + 1] where the merges of each left part begin
    right: I32
    rank: I32
    order: I32
    ranks: I32  # [longest spine, ids] scratch, full of NEVER between two uses
    place: I32  # [ids] scratch


def _followers(m: Merger) -> _Followers:
    size = len(m.at) - 1
    used = np.flatnonzero(m.merges.keys >= 0)
    used = used[np.argsort(m.merges.keys[used])]
    keys, slots = m.merges.keys[used], m.merges.slots[used]
    at = np.searchsorted(keys >> 32, np.arange(size + 1)).astype(np.int32)
    order = np.argsort(np.diff(m.spines.left_at), kind="stable").astype(np.int32)
    deepest = int(np.diff(m.spines.right_at).max(initial=1))
    ranks = np.full((deepest, size), NEVER, np.int32)
    right = (keys & 0xFFFFFFFF).astype(np.int32)
    return _Followers(at, right, m.merges.rank[slots], order, ranks, np.empty(size, np.int32))


@njit(cache=True)
def _canonical(previous: int, spines: bpe.Spines, f: _Followers, out: Bool) -> None:
    """`bpe.pair_is_canonical` of one token with every other.

    Tokens share the way up their left spines with their left parts, so each continues where its
    part came to: ``place`` is how far up the right spine of the previous token that was.
    """
    first, end = spines.right_at[previous], spines.right_at[previous + 1]
    _write_ranks(first, end, spines, f, True)
    for token in f.order:
        place = np.int64(0)
        top = spines.left_at[token + 1] - 1
        if top > spines.left_at[token]:
            part = spines.left_id[top - 1]
            place = np.int64(f.place[part])
            if place >= 0:
                place = _after(place, first, part, spines.left_seg[top - 1], spines, f)
        f.place[token] = place
        out[token] = place >= 0 and _after(place, first, token, NEVER, spines, f) >= 0
    _write_ranks(first, end, spines, f, False)


@njit(cache=True)
def _write_ranks(first: int, end: int, spines: bpe.Spines, f: _Followers, there: bool) -> None:
    """Spread the merges of each symbol of a right spine over all tokens, or take them off again."""
    for place in range(first, end):
        symbol = spines.right_id[place]
        for k in range(f.at[symbol], f.at[symbol + 1]):
            f.ranks[place - first, f.right[k]] = f.rank[k] if there else NEVER


@njit(cache=True)
def _after(
    place: int, first: int, symbol: int, dies: int, spines: bpe.Spines, f: _Followers
) -> int:
    """Where on the right spine the walk is when a left symbol dies, or NONE if they merge."""
    while True:
        left_dies = spines.right_seg[first + place]
        rank = f.ranks[place, symbol]
        if left_dies == NEVER and dies == NEVER:
            return place if rank == NEVER else NONE
        if left_dies <= dies:
            if rank < left_dies:
                return NONE
            place += 1
        else:
            return NONE if rank <= dies else place


@njit(cache=True)
def _fill(
    a: _Table,
    entries: _Entries,
    previous: I32,
    nodes: I32,
    canonical: Bool,
    text: _Text,
    free: Bool,
    whole: Trie,
    m: Merger,
    cutter: Cutter,
    memo: Memo,
    mask: Bool,
) -> None:
    """Set the tokens that some lexer lets stand behind the ids.

    ``previous`` and ``nodes`` are indexed by the lexer, FRESH being the last.  Tokens that are
    ``free`` are made of bytes that no merge touches.
    """  # fmt: skip
    for k in range(len(a.ids)):
        token = a.ids[k]
        for place in range(entries.at[a.kind[k]], entries.at[a.kind[k] + 1]):
            lexer, state = entries.lexer[place], entries.state[place]
            alone = previous[lexer] == NONE
            stands = a.fits[k] and (alone or free[token] or canonical[token])
            if not stands and not alone:
                continue
            if a.cut[k]:
                answer = stands and _goes_on(k, state, a, text, m, cutter, memo)
            else:
                piece = NONE
                if nodes[lexer] == ROOT:
                    piece = a.alone[k]
                elif nodes[lexer] != NONE:
                    piece = _piece(nodes[lexer], token, text, whole)
                answer = stands and piece == NONE and cutter.may_end[state]
                if piece == token and alone and cutter.may_end[state]:
                    answer = True
                elif not answer and stands:
                    answer = can_cover(ROOT, token, text.begun[:0], state, m, cutter, memo)
            if answer:
                mask[token] = True
                break


@njit(cache=True)
def _piece(node: int, token: int, text: _Text, whole: Trie) -> int:
    """The token that the whole piece equals if this token ends it, or NONE."""
    if node == NONE:
        return NONE
    for place in range(text.at[token], text.at[token + 1]):
        node = bpe.step(whole, node, text.blob[place])
        if node == NONE:
            return NONE
    return whole.token[node]


@njit(cache=True)
def _goes_on(
    k: int, state: int, a: _Table, text: _Text, m: Merger, cutter: Cutter, memo: Memo
) -> bool:
    """Whether some token can complete the character that this one leaves cut."""
    if m.atoms.characters:
        return True  # by bytes, which `fits` has asked
    known = a.known[a.row[k], state]
    if known == UNKNOWN:
        token, cut = a.ids[k], a.cut[k]
        begun = np.empty(cut, np.uint8)
        start, at = text.at[token], text.at[token + 1] - cut
        for j in range(cut):
            place = at + j - start
            begun[j] = text.blob[at + j] if place >= 0 else text.begun[len(text.begun) + place]
        known = np.uint8(can_cover(ROOT, token, begun, state, m, cutter, memo))
        a.known[a.row[k], state] = known
    return known == 1
