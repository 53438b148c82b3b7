"""Live covers: how the encoding of an open piece may end, whatever text follows.

Let w be an open piece.  The encoding of any continuation begins with merge(w[:i]) for some *live*
i: either a token boundary falls on the end of w, or a token begins at i and reaches past it.  Such
a token must be canonical after the last token of merge(w[:i]), continue the text as UTF-8, and
leave a piece that the splitter can still produce (THEORY, Live covers).
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crosstok import bpe
from crosstok.bpe import I32, I64, NONE, ROOT, U8, Merger, Trie
from crosstok.jit import njit
from crosstok.splitting import Splitter

DEAD = -1
BLOCK = 64  # code points a word of the class masks


class Cutter(NamedTuple):
    """The splitter's automaton as the kernels need it."""

    class_of: U8
    nxt: npt.NDArray[np.int16]
    may_end: npt.NDArray[np.bool_]  # the piece may end exactly here
    blocks: npt.NDArray[np.uint64]  # classes that occur in each run of 64 code points


@cache
def cutter_of(splitter: Splitter) -> Cutter:
    """The kernels' view of a splitter."""
    bits = np.left_shift(np.uint64(1), splitter.class_of.astype(np.uint64))
    blocks = np.bitwise_or.reduceat(bits, np.arange(0, len(bits), BLOCK))
    may_end = np.array([splitter.may_end(state) for state in range(len(splitter.nxt))])
    return Cutter(splitter.class_of, splitter.nxt, may_end, blocks)


class Memo(NamedTuple):
    """Answers of `can_cover`, direct-mapped: bounded, and forgetful where two questions collide."""

    keys: I64
    answers: U8


def new_memo(bits: int = 18) -> Memo:
    """An empty memo with 2**bits places."""
    return Memo(np.full(1 << bits, -1, np.int64), np.zeros(1 << bits, np.uint8))


class Character(NamedTuple):
    """A character of which some bytes are there: how many are missing, the value so far, and the
    bounds of the next byte.  ``missing`` 0 is a character boundary, -1 what is not UTF-8.
    """

    missing: int
    value: int
    low: int
    high: int


@njit(cache=True)
def take_byte(  # noqa: PLR0911
    missing: int, value: int, low: int, high: int, byte: int
) -> tuple[int, int, int, int]:
    """One step of reading UTF-8; see `Character`."""
    if missing > 0:
        if byte < low or byte > high:
            return -1, 0, 0, 0
        return missing - 1, (value << 6) | (byte & 0x3F), 0x80, 0xBF
    if byte < 0x80:
        return 0, byte, 0x80, 0xBF
    if byte < 0xC2 or byte > 0xF4:
        return -1, 0, 0, 0
    if byte < 0xE0:
        return 1, byte & 0x1F, 0x80, 0xBF
    if byte < 0xF0:
        return 2, byte & 0x0F, 0xA0 if byte == 0xE0 else 0x80, 0x9F if byte == 0xED else 0xBF
    return 3, byte & 0x07, 0x90 if byte == 0xF0 else 0x80, 0x8F if byte == 0xF4 else 0xBF


@njit(cache=True)
def _some_character_fits(
    missing: int, value: int, low: int, high: int, state: int, cutter: Cutter
) -> bool:
    """Whether one of the characters that begin with these bytes stays inside the piece."""
    first = (value << 6) | (low & 0x3F)
    last = (value << 6) | (high & 0x3F)
    shift = 6 * (missing - 1)
    first = first << shift
    last = ((last + 1) << shift) - 1
    point = first
    while point <= last:
        if point & (BLOCK - 1) == 0 and point + BLOCK - 1 <= last:
            if _some_class_goes_on(cutter.blocks[point >> 6], state, cutter):
                return True
            point += BLOCK
        else:
            if cutter.nxt[state, cutter.class_of[point]] != DEAD:
                return True
            point += 1
    return False


@njit(cache=True)
def _some_class_goes_on(classes: int, state: int, cutter: Cutter) -> bool:
    for k in range(cutter.nxt.shape[1]):
        if (classes >> np.uint64(k)) & np.uint64(1) and cutter.nxt[state, k] != DEAD:
            return True
    return False


@njit(cache=True)
def _read_begun(begun: U8) -> tuple[int, int, int, int]:
    missing, value, low, high = 0, 0, 0x80, 0xBF
    for k in range(len(begun)):
        missing, value, low, high = take_byte(missing, value, low, high, begun[k])
    return missing, value, low, high


@njit(cache=True)
def covers_below(
    trie: Trie,
    node: int,
    previous: int,
    begun: U8,
    state: int,
    m: Merger,
    cutter: Cutter,
    must_end: bool,
    out: I32,
) -> int:
    """Tokens strictly below ``node`` that may cover the text's end.

    What they add to the text must continue it as UTF-8 and stay inside the piece: ``begun`` holds
    the bytes of an incomplete character at the text's end and ``state`` the splitter's state before
    that character.  With ``must_end`` the piece must be able to end with the token.  Subtrees that
    the splitter or UTF-8 forbids are not entered.  Fills ``out``; returns how many, at most its
    length.
    """  # fmt: skip
    count = 0
    child = np.empty(m.longest + 1, np.int64)
    final = np.empty(m.longest + 1, np.int64)
    reading = np.empty((m.longest + 1, 5), np.int64)
    missing, value, low, high = _read_begun(begun)
    depth = 0
    child[0], final[0] = trie.child[node], trie.child[node + 1]
    _set(reading, 0, missing, value, low, high, state)
    while depth >= 0:
        here = child[depth]
        if here >= final[depth]:
            depth -= 1
            continue
        child[depth] += 1
        missing, value, low, high = take_byte(
            reading[depth, 0], reading[depth, 1], reading[depth, 2], reading[depth, 3],
            trie.label[here],
        )  # fmt: skip
        state = reading[depth, 4]
        if missing < 0:
            continue
        if missing == 0:
            state = cutter.nxt[state, cutter.class_of[value]]
            if state == DEAD:
                continue
        elif not _some_character_fits(missing, value, low, high, state, cutter):
            continue
        token = trie.token[here]
        if token != NONE and _may_stand(token, previous, missing, state, must_end, m, cutter):
            out[count] = token
            count += 1
            if count == len(out):
                return count
        depth += 1
        child[depth], final[depth] = trie.child[here], trie.child[here + 1]
        _set(reading, depth, missing, value, low, high, state)
    return count


@njit(cache=True)
def _set(reading: I64, at: int, missing: int, value: int, low: int, high: int, state: int) -> None:
    reading[at, 0] = missing
    reading[at, 1] = value
    reading[at, 2] = low
    reading[at, 3] = high
    reading[at, 4] = state


@njit(cache=True)
def _may_stand(
    token: int, previous: int, missing: int, state: int, must_end: bool, m: Merger, cutter: Cutter
) -> bool:
    if must_end and (missing > 0 or not cutter.may_end[state]):
        return False
    if previous == NONE:
        return True
    return bpe.pair_is_canonical(previous, token, m.spines, m.merges)


@njit(cache=True)
def character_range(begun: U8) -> tuple[int, int]:
    """The first and the last code point whose UTF-8 begins with these bytes."""
    missing, value, low, high = _read_begun(begun)
    shift = 6 * (missing - 1)
    first = ((value << 6) | (low & 0x3F)) << shift
    last = ((((value << 6) | (high & 0x3F)) + 1) << shift) - 1
    return first, last


@njit(cache=True)
def falls_back(begun: U8, m: Merger) -> bool:
    """Whether some character that begins with these bytes is not in the vocabulary."""
    first, last = character_range(begun)
    for point in range(first, last + 1):  # noqa: SIM110 - compiled
        if m.atoms.of_char[point] == NONE:
            return True
    return False


@njit(cache=True)
def can_cover(
    node: int, previous: int, begun: U8, state: int, m: Merger, cutter: Cutter, memo: Memo
) -> bool:
    """Whether `covers_below` finds any token. Asked again and again, mostly about common words."""
    scratch = np.empty(1, np.int32)
    if len(begun) > 0:
        return covers_below(m.trie, node, previous, begun, state, m, cutter, False, scratch) > 0
    key = (np.int64(previous + 1) << 40) | (np.int64(node) << 12) | np.int64(state)
    mixed = key * 0x9E3779B97F4A7C1
    place = (mixed ^ (mixed >> 31)) & (len(memo.keys) - 1)
    if memo.keys[place] != key:
        memo.answers[place] = (
            covers_below(m.trie, node, previous, begun, state, m, cutter, False, scratch) > 0
        )
        memo.keys[place] = key
    return memo.answers[place] != 0


@njit(cache=True)
def open_piece(
    piece: U8,
    begun: int,
    before: int,
    state: int,
    m: Merger,
    cutter: Cutter,
    memo: Memo,
    last: I32,
    starts: I32,
    nodes: I32,
) -> int:
    """`bpe.grow_tree`, with the starts that no cover needs taken out.

    ``begun`` of the piece's last bytes belong to an incomplete character, ``state`` is the
    splitter's state at that character.  Returns the number of live starts.
    """  # fmt: skip
    active = bpe.grow_tree(piece, before, m, last, starts, nodes)
    cut = piece[len(piece) - begun :]
    live = 0
    for k in range(active):
        if can_cover(nodes[k], last[starts[k]], cut, state, m, cutter, memo):
            starts[live] = starts[k]
            nodes[live] = nodes[k]
            live += 1
    return live


@njit(cache=True)
def find_node(text: U8, trie: Trie) -> int:
    """The trie node behind a text, or NONE."""
    node = ROOT
    for k in range(len(text)):
        node = bpe.step(trie, node, text[k])
        if node == NONE:
            return NONE
    return node
