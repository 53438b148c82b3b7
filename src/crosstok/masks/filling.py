"""The compiled pass over all tokens: pairs by their spines, pieces taken whole."""

from typing import NamedTuple

import numpy as np

from crosstok import bpe
from crosstok.bpe import I32, I64, NEVER, NONE, ROOT, U8, Bool, Merger, Trie
from crosstok.covers import Cutter, Memo, can_cover
from crosstok.jit import njit
from crosstok.masks.kinds import Entries, Table
from crosstok.masks.states import UNKNOWN


class TokenText(NamedTuple):
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


def followers_of(m: Merger) -> _Followers:
    """The merges by their left part, as `mark_canonical` walks them."""
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
def mark_canonical(previous: int, spines: bpe.Spines, f: _Followers, out: Bool) -> None:
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
def fill_mask(
    a: Table,
    entries: Entries,
    previous: I32,
    nodes: I32,
    canonical: Bool,
    text: TokenText,
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
def _piece(node: int, token: int, text: TokenText, whole: Trie) -> int:
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
    k: int, state: int, a: Table, text: TokenText, m: Merger, cutter: Cutter, memo: Memo
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
