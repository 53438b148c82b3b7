"""Walks that know their state, and the bounded store of masks behind them."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from crosstok import bpe
from crosstok.added import AddedTokens
from crosstok.bpe import I32, NONE, U8, Bool
from crosstok.covers import cutter_of, find_node
from crosstok.masks.filling import TokenText, fill_mask, followers_of, mark_canonical
from crosstok.masks.kinds import Alphabet
from crosstok.masks.states import Lexer, NativeState
from crosstok.masks.tokens import Tokens
from crosstok.quick import quick_of
from crosstok.settling import Viability, split_character
from crosstok.splitting import Splitter, follow
from crosstok.unicode import nfc_boundary_before
from crosstok.vocabulary import LOW_LINE, Kind, Vocabulary

MEMORY = 64 << 20  # bytes of packed masks that a `Masks` keeps


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

    def _asked(self, tokens: Tokens) -> tuple[tuple[int, bool], ...]:
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
        self.tokens = Tokens(v)
        self._row = (v.size + 7) // 8
        self._most = max(1, memory // self._row)
        self._kept: OrderedDict[tuple[object, ...], U8] = OrderedDict()
        self._alphabets: OrderedDict[bytes, Alphabet] = OrderedDict()
        self._followers = followers_of(v.merger)
        self._canonical = np.zeros(v.size, np.bool_)  # with the token asked about last
        self._free = v.kinds == Kind.BYTE
        self.made = 0  # how many masks were made so far

    @property
    def memory(self) -> int:
        """Bytes of the masks that are kept."""
        return self._row * len(self._kept)

    def alphabet(self, begun: bytes) -> Alphabet:
        """The tokens that may follow the bytes of a cut character."""
        found = self._alphabets.get(begun)
        if found is None:
            found = self._alphabets[begun] = Alphabet(self.tokens, begun)
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
            mark_canonical(state.previous, v.merger.spines, self._followers, canonical)
        fill_mask(
            alphabet.table, entries, np.array(previous, np.int32), np.array(nodes, np.int32),
            canonical, TokenText(tokens.blob, tokens.at, begun), self._free, v.whole,
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
