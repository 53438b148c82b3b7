"""Tokens that read the same to the splitter from each of its states are of one kind."""

import codecs
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crosstok.bpe import I32, I64, NONE, U8, Bool
from crosstok.covers import DEAD, character_range, falls_back
from crosstok.jit import njit
from crosstok.masks.lexers import TokenKind, chain_of, possible_chains
from crosstok.masks.states import BEFORE, FRESH, INSIDE, UNKNOWN, Lexer
from crosstok.masks.tokens import Tokens
from crosstok.splitting import Splitter
from crosstok.unicode import nfc, nfc_boundary_before
from crosstok.vocabulary import Kind, Vocabulary


class Entries(NamedTuple):
    """For each kind, the lexers whose piece a token of the kind may end or stand in."""

    at: I32
    lexer: I32
    state: I32


class Table(NamedTuple):
    """The tokens of an alphabet as the compiled pass needs them."""

    ids: I32
    kind: I32
    cut: I32  # bytes of the character that the token leaves cut
    fits: Bool  # whether the encoder makes the token of its bytes, whatever stands before it
    alone: I32  # the token that its bytes are as a whole piece (ignore_merges)
    row: I32  # of `known`, for the tokens that leave a cut character
    known: U8  # [tokens, states]: whether some token can complete that character, once asked


class Alphabet:
    """The tokens that may follow the bytes of a cut character (or none), sorted into kinds."""

    def __init__(self, tokens: Tokens, begun: bytes) -> None:
        self._tokens = tokens
        self.begun = begun
        candidates: Iterable[int] = tokens.continuing if begun else range(tokens.v.size)
        self._read(candidates)
        self._entries: dict[tuple[tuple[int, bool, bool], ...], Entries] = {}
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

    def _table(self, ids: list[int], texts: list[str], cuts: list[bytes]) -> Table:
        v = self._tokens.v
        cut = np.array([len(cut) for cut in cuts], np.int32)
        fits = [self._fits(*of) for of in zip(ids, texts, cuts, strict=True)]
        alone = np.full(v.size, NONE, np.int32)
        if v.ignore_merges:
            alone[v.whole.sorted] = v.whole.sorted
        chosen = np.array(ids, np.int32)
        known = np.full((int((cut > 0).sum()), len(v.splitter.nxt)), UNKNOWN, np.uint8)
        return Table(
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
        kinds: dict[TokenKind, int] = {}
        rows = _behaviours(splitter, [string for string, _ in numbers])
        renumber = [
            kinds.setdefault(TokenKind(*row, mask, string != b""), len(kinds))
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

    def entries(self, lexers: tuple[Lexer, ...]) -> Entries:
        """What the splitter lets the tokens of each kind do behind these lexers."""
        key = tuple((lexer.state, lexer.open, lexer.closed) for lexer in lexers)
        found = self._entries.get(key)
        if found is None:
            splitter = self._tokens.v.splitter
            rows = [tuple(dict.fromkeys(_places(splitter, kind, lexers))) for kind in self.kinds]
            flat = [place for row in rows for place in row]
            found = Entries(
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
    splitter: Splitter, kind: TokenKind, lexers: tuple[Lexer, ...]
) -> Iterator[tuple[int, int]]:
    """The lexers (or FRESH) whose last piece may hold the whole token, and their states behind it.

    Only those are given that the ids before the token agree with.
    """
    if not lexers and not kind.advances:
        yield FRESH, 0
        return
    chain = list(chain_of(kind, lexers))
    first, end = kind.classes, kind.classes is None
    possible = possible_chains(splitter, tuple(state for _, _, state in chain), first, end)
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
