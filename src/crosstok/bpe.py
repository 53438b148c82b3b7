"""Byte-pair merging on arrays: the compiled inner loops of the core.

Theory of operation (proofs: ``docs/THEORY.md``)
------------------------------------------------
An encoder starts from atoms and repeats the merge of lowest rank, leftmost first, until none is
left (the *merge run*).  Three facts about that run carry everything here:

* **Locality.** A run never looks across a boundary that survives it.  Hence a contiguous part of
  a canonical sequence is canonical, and a sequence is canonical exactly when its adjacent pairs
  are (`pair_is_canonical`).
* **Spines.** Whether two tokens may stand side by side is decided by the symbols that touch each
  other while both are being built: the right spine of the first and the left spine of the second
  (`derive`, `pair_is_canonical`).  No encoder runs.
* **Prefix tree.** The encodings of all prefixes of a piece form a tree: the last token of each is
  the only token that ends there and is canonical after the one before it (`grow_tree`).

Tokens are looked up in a trie over their spellings (`build_trie`); the starts from which the
text read so far may still become a token are its *active nodes*.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crosstok.jit import njit

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
Bool = npt.NDArray[np.bool_]

NONE = -1
NEVER = np.int32(2**31 - 1)  # the rank of an event that does not come
ROOT = 0


class MergeTable(NamedTuple):
    """The merge list as an open-addressing hash: (left, right) -> index into rank and result."""

    keys: I64
    slots: I32
    rank: I32
    result: I32


class Atoms(NamedTuple):
    """How text becomes the first symbols of the run.

    ``characters`` is True where the atom is the character and a byte only its fallback.
    """

    characters: bool
    of_byte: I32  # [256] id of the single byte, NONE if there is none
    of_char: I32  # [0x110000] id of the character; length 1 where atoms are bytes


class Spines(NamedTuple):
    """Symbols that a token's last (first) place holds while it is built, bottom up, flattened.

    ``seg`` of an entry is the highest rank among the run's events from that symbol's birth to its
    death; NEVER for the token itself, which does not die.
    """

    right_at: I32
    right_id: I32
    right_seg: I32
    left_at: I32
    left_id: I32
    left_seg: I32


class Trie(NamedTuple):
    """All tokens that merging can produce, by spelling; children of a node are consecutive."""

    child: I32  # [nodes + 1] first child
    label: U8  # byte on the edge into a node
    token: I32  # token that ends at the node, or NONE
    low: I32  # the node's tokens are sorted[low:high]
    high: I32
    sorted: I32


class Glue(NamedTuple):
    """What keeps two neighbours together: pairs of characters, or of bytes where these are atoms.

    A boundary whose neighbours stand side by side in no token is a token boundary for ever.
    """

    bytewise: bool
    pairs: I64


class Merger(NamedTuple):
    """Everything the kernels need of one vocabulary."""

    merges: MergeTable
    atoms: Atoms
    spines: Spines
    trie: Trie
    blob: U8  # spellings, concatenated
    at: I64  # [ids + 1] where each id's spelling begins
    longest: int  # bytes of the longest spelling


@njit(cache=True, inline="always")
def _slot(key: int, mask: int) -> int:
    mixed = key * 0x9E3779B97F4A7C1
    return (mixed ^ (mixed >> 29)) & mask


@njit(cache=True)
def hash_pairs(left: I32, right: I32) -> tuple[I64, I32]:
    """Open-addressing table over (left, right); a later entry replaces an earlier equal one."""
    size = 4
    while size < 2 * len(left) + 2:
        size *= 2
    keys = np.full(size, -1, np.int64)
    slots = np.full(size, -1, np.int32)
    for index in range(len(left)):
        key = (np.int64(left[index]) << 32) | np.int64(right[index])
        at = _slot(key, size - 1)
        while keys[at] != -1 and keys[at] != key:
            at = (at + 1) & (size - 1)
        keys[at] = key
        slots[at] = index
    return keys, slots


@njit(cache=True)
def find_merge(merges: MergeTable, left: int, right: int) -> int:
    """Index of the merge of two symbols, or NONE."""
    key = (np.int64(left) << 32) | np.int64(right)
    mask = len(merges.keys) - 1
    at = _slot(key, mask)
    while merges.keys[at] != -1:
        if merges.keys[at] == key:
            return merges.slots[at]
        at = (at + 1) & mask
    return NONE


@njit(cache=True)
def char_length(lead: int) -> int:
    """Bytes of the UTF-8 character that begins with this byte (1 for any other byte)."""
    if lead < 0xC2:
        return 1
    if lead < 0xE0:
        return 2
    if lead < 0xF0:
        return 3
    return 4


@njit(cache=True)
def code_point(text: U8, at: int, length: int) -> int:
    """The code point of the complete character at ``at``."""
    if length == 1:
        return np.int64(text[at])  # type: ignore[return-value]  # numba knows no other int
    value = np.int64(text[at]) & (0x7F >> length)
    for k in range(1, length):
        value = (value << 6) | (np.int64(text[at + k]) & 0x3F)
    return value  # type: ignore[return-value]


@njit(cache=True)
def to_atoms(text: U8, atoms: Atoms, out: I32) -> int:
    """Write the atoms of a complete text; NONE stands for what has no atom. Returns how many."""
    if not atoms.characters:
        for k in range(len(text)):
            out[k] = atoms.of_byte[text[k]]
        return len(text)
    count = 0
    at = 0
    while at < len(text):
        length = char_length(text[at])
        symbol = NONE
        if at + length <= len(text):
            symbol = atoms.of_char[code_point(text, at, length)]
        if symbol != NONE:
            out[count] = symbol
            count += 1
        else:
            for k in range(at, min(at + length, len(text))):
                out[count] = atoms.of_byte[text[k]]
                count += 1
        at += length
    return count


@njit(cache=True)
def merge_run(
    symbols: I32, count: int, merges: MergeTable, ranks: I32, births: I32, fewest: int = 1
) -> tuple[int, int]:
    """The merge run itself: lowest rank first, leftmost first. The readable twin of `grow_tree`.

    ``symbols[:count]`` is merged in place, until no merge is left or only ``fewest`` symbols are.
    ``ranks`` receives the rank of every event and ``births`` the number of events that had
    happened when each remaining symbol was made.  Returns (symbols left, events).
    """
    births[:count] = 0
    events = 0
    while count > fewest:
        best = NONE
        best_at = 0
        for k in range(count - 1):
            found = find_merge(merges, symbols[k], symbols[k + 1])
            if found != NONE and (best == NONE or merges.rank[found] < merges.rank[best]):
                best = found
                best_at = k
        if best == NONE:
            break
        ranks[events] = merges.rank[best]
        events += 1
        symbols[best_at] = merges.result[best]
        births[best_at] = events
        for k in range(best_at + 1, count - 1):
            symbols[k] = symbols[k + 1]
            births[k] = births[k + 1]
        count -= 1
    return count, events


@njit(cache=True)
def derive(
    blob: U8, at: I64, wanted: Bool, atoms: Atoms, merges: MergeTable
) -> tuple[I32, I32, I32, I32, Bool]:
    """How merging makes each token of its own bytes.

    Returns (left, right, left segment, right segment, reachable): the last merge's parts, the
    highest rank among the events after that part's birth, and whether merging the token's bytes
    gives the token at all.
    """
    size = len(at) - 1
    left = np.full(size, NONE, np.int32)
    right = np.full(size, NONE, np.int32)
    left_seg = np.full(size, NEVER, np.int32)
    right_seg = np.full(size, NEVER, np.int32)
    reachable = np.zeros(size, np.bool_)
    longest = 1
    for token in range(size):
        longest = max(longest, at[token + 1] - at[token])
    symbols = np.empty(longest, np.int32)
    ranks = np.empty(longest, np.int32)
    births = np.empty(longest, np.int32)
    for token in range(size):
        if not wanted[token] or at[token] == at[token + 1]:
            continue
        text = blob[at[token] : at[token + 1]]
        count = to_atoms(text, atoms, symbols)
        if count == 1:
            reachable[token] = symbols[0] == token
            continue
        # One merge less than the whole run shows the two parts of the last merge.
        left_count, events = merge_run(symbols, count, merges, ranks, births, 2)
        if left_count != 2:
            continue
        last = find_merge(merges, symbols[0], symbols[1])
        if last == NONE or merges.result[last] != token:
            continue
        reachable[token] = True
        left[token] = symbols[0]
        right[token] = symbols[1]
        left_seg[token] = _highest(ranks, births[0], events, merges.rank[last])
        right_seg[token] = _highest(ranks, births[1], events, merges.rank[last])
    return left, right, left_seg, right_seg, reachable


@njit(cache=True)
def _highest(ranks: I32, start: int, stop: int, value: int) -> int:
    for k in range(start, stop):
        value = max(value, ranks[k])
    return value


@njit(cache=True)
def build_spines(
    left: I32, right: I32, left_seg: I32, right_seg: I32
) -> tuple[I32, I32, I32, I32, I32, I32]:
    """Flatten the right and left spines of every token, bottom up (see `Spines`)."""
    right_at, right_id, right_dies = _flatten(right, right_seg)
    left_at, left_id, left_dies = _flatten(left, left_seg)
    return right_at, right_id, right_dies, left_at, left_id, left_dies


@njit(cache=True)
def _flatten(part: I32, seg: I32) -> tuple[I32, I32, I32]:
    size = len(part)
    at = np.zeros(size + 1, np.int32)
    for token in range(size):
        depth = 1
        node = token
        while part[node] != NONE:
            node = part[node]
            depth += 1
        at[token + 1] = at[token] + depth
    ids = np.empty(at[size], np.int32)
    dies = np.empty(at[size], np.int32)
    for token in range(size):
        place = at[token + 1] - 1
        node = token
        ids[place] = node
        dies[place] = NEVER
        while part[node] != NONE:
            place -= 1
            dies[place] = seg[node]
            node = part[node]
            ids[place] = node
    return at, ids, dies


@njit(cache=True)
def pair_is_canonical(first: int, second: int, spines: Spines, merges: MergeTable) -> bool:
    """Whether merging ``bytes(first) + bytes(second)`` gives exactly [first, second].

    Both tokens are built at once; ``a`` and ``b`` are the highest ranks that stand between now and
    the death of the symbols that touch each other.  A crossing merge of rank c happens iff it is
    reached before either death; on equal ranks the leftmost goes first.
    """
    i = spines.right_at[first]
    j = spines.left_at[second]
    while True:
        a = spines.right_seg[i]
        b = spines.left_seg[j]
        found = find_merge(merges, spines.right_id[i], spines.left_id[j])
        if a == NEVER and b == NEVER:
            return found == NONE
        if a <= b:
            if found != NONE and merges.rank[found] < a:
                return False
            i += 1
        else:
            if found != NONE and merges.rank[found] <= b:
                return False
            j += 1


@njit(cache=True)
def build_trie(blob: U8, at: I64, order: I32) -> tuple[I32, U8, I32, I32, I32]:
    """Level by level from the tokens in the order of their spellings (all distinct)."""
    total = 1
    for k in range(len(order)):
        total += at[order[k] + 1] - at[order[k]]
    child = np.zeros(total + 2, np.int32)
    label = np.zeros(total + 1, np.uint8)
    token = np.full(total + 1, NONE, np.int32)
    low = np.zeros(total + 1, np.int32)
    high = np.zeros(total + 1, np.int32)
    depth = np.zeros(total + 1, np.int32)
    high[0] = len(order)
    nodes = 1
    node = 0
    while node < nodes:
        child[node] = nodes
        d = depth[node]
        k = low[node]
        if k < high[node] and at[order[k] + 1] - at[order[k]] == d:
            token[node] = order[k]
            k += 1
        while k < high[node]:
            byte = blob[at[order[k]] + d]
            start = k
            while k < high[node] and blob[at[order[k]] + d] == byte:
                k += 1
            label[nodes] = byte
            low[nodes] = start
            high[nodes] = k
            depth[nodes] = d + 1
            nodes += 1
        node += 1
    child[nodes] = nodes
    return (
        child[: nodes + 1].copy(),
        label[:nodes].copy(),
        token[:nodes].copy(),
        low[:nodes].copy(),
        high[:nodes].copy(),
    )


@njit(cache=True)
def step(trie: Trie, node: int, byte: int) -> int:
    """The node's child by one byte, or NONE."""
    low = trie.child[node]
    high = trie.child[node + 1]
    while low < high:
        middle = (low + high) >> 1
        if trie.label[middle] < byte:
            low = middle + 1
        else:
            high = middle
    if low < trie.child[node + 1] and trie.label[low] == byte:
        return low
    return NONE


@njit(cache=True)
def grow_tree(piece: U8, before: int, m: Merger, last: I32, starts: I32, nodes: I32) -> int:
    """The prefix tree of a piece: ``last[i]`` is the last token of merge(piece[:i]).

    ``before`` is the token that precedes the piece's text inside the same splitter piece (NONE at
    the piece's start); then ``last[i]`` is NONE where no encoding has a boundary after it and at i.
    ``starts`` and ``nodes`` receive the active nodes: where a token may have begun that the piece
    ends inside of (or at the end of).  Returns their number.
    """
    active = 0
    last[0] = before
    at = 0
    while at < len(piece):
        length = 1
        if m.atoms.characters:
            length = char_length(piece[at])
        if at == 0 or last[at] != NONE:
            starts[active] = at
            nodes[active] = ROOT
            active += 1
        stop = min(at + length, len(piece))
        for k in range(at, stop):
            active = _advance(m.trie, piece[k], starts, nodes, active)
            last[k + 1] = NONE
        if at + length <= len(piece):
            if m.atoms.characters and m.atoms.of_char[code_point(piece, at, length)] == NONE:
                for k in range(at, stop):
                    last[k + 1] = m.atoms.of_byte[piece[k]]
            else:
                last[stop] = _last_token(m, last, starts, nodes, active)
        at = stop
    return active


@njit(cache=True)
def _advance(trie: Trie, byte: int, starts: I32, nodes: I32, active: int) -> int:
    kept = 0
    for k in range(active):
        node = step(trie, nodes[k], byte)
        if node != NONE:
            starts[kept] = starts[k]
            nodes[kept] = node
            kept += 1
    return kept


@njit(cache=True)
def _last_token(m: Merger, last: I32, starts: I32, nodes: I32, active: int) -> int:
    """The only token that ends here and is canonical after what stands before it."""
    for k in range(active):
        token = m.trie.token[nodes[k]]
        if token == NONE:
            continue
        previous = last[starts[k]]
        if previous == NONE or pair_is_canonical(previous, token, m.spines, m.merges):
            return token
    return NONE


@njit(cache=True)
def token_length(m: Merger, token: int) -> int:
    """Bytes of a token's spelling."""
    return m.at[token + 1] - m.at[token]


@njit(cache=True)
def whole_token(piece: U8, trie: Trie) -> int:
    """The token spelled exactly like the piece, or NONE."""
    node = ROOT
    for k in range(len(piece)):
        node = step(trie, node, piece[k])
        if node == NONE:
            return NONE
    return trie.token[node]


@njit(cache=True)
def encode_pieces(
    text: U8, ends: I64, m: Merger, whole: Trie, use_whole: bool, ids: I32, stops: I64
) -> int:
    """Encode a text that is cut at ``ends``; returns the number of tokens.

    A negative number is -1 - offset of a piece with a byte that has no symbol.  ``whole`` holds the
    tokens that a piece may equal (ignore_merges).
    """
    longest = 1
    begin = np.int64(0)
    for k in range(len(ends)):
        longest = max(longest, ends[k] - begin)
        begin = ends[k]
    last = np.empty(longest + 1, np.int32)
    starts = np.empty(longest + 1, np.int32)
    nodes = np.empty(longest + 1, np.int32)
    count = 0
    begin = np.int64(0)
    for k in range(len(ends)):
        piece = text[begin : ends[k]]
        token = NONE
        if use_whole:
            token = whole_token(piece, whole)
        if token == NONE:
            # Most pieces are one token, which the merges of its own bytes give.
            token = whole_token(piece, m.trie)
        if token != NONE:
            ids[count] = token
            stops[count] = ends[k]
            count += 1
        else:
            grow_tree(piece, NONE, m, last, starts, nodes)
            added = walk_back(len(piece), begin, m, last, ids, stops, count)
            if added < 0:
                return -1 - begin  # type: ignore[return-value]
            count += added
        begin = ends[k]
    return count


@njit(cache=True)
def walk_back(end: int, offset: int, m: Merger, last: I32, ids: I32, stops: I64, count: int) -> int:
    """Write the tokens of merge(piece[:end]) at ids[count:]; how many, or NONE."""
    number = 0
    at = end
    while at > 0:
        token = last[at]
        if token == NONE:
            return NONE
        at -= token_length(m, token)
        number += 1
    at = end
    for k in range(count + number - 1, count - 1, -1):
        token = last[at]
        ids[k] = token
        stops[k] = offset + at
        at -= token_length(m, token)
    return number


@njit(cache=True)
def glued_pairs(blob: U8, at: I64, order: I32, bytewise: bool) -> I64:
    """Hash set of the characters (or bytes) that stand side by side inside some token."""
    pairs = np.int64(0)
    for k in range(len(order)):
        pairs += at[order[k] + 1] - at[order[k]]
    table = _empty_set(pairs)
    used = 0
    for k in range(len(order)):
        here = at[order[k]]
        end = at[order[k] + 1]
        previous = np.int64(-1)
        while here < end:
            length = 1 if bytewise else char_length(blob[here])
            point = np.int64(blob[here])
            if length > 1:
                point = code_point(blob, here, length)
            if previous >= 0 and _insert(table, (previous << 21) | point):
                used += 1
            previous = point
            here += length
    small = _empty_set(used)
    for k in range(len(table)):
        if table[k] != -1:
            _insert(small, table[k])
    return small


@njit(cache=True)
def _empty_set(members: int) -> I64:
    size = 4
    while size < 2 * members + 2:
        size *= 2
    return np.full(size, -1, np.int64)


@njit(cache=True)
def _insert(table: I64, key: int) -> bool:
    at = _slot(key, len(table) - 1)
    while table[at] != -1:
        if table[at] == key:
            return False
        at = (at + 1) & (len(table) - 1)
    table[at] = key
    return True


@njit(cache=True)
def is_glued(glue: Glue, first: int, second: int) -> bool:
    """Whether some token reaches over the boundary between these two characters."""
    if glue.bytewise:
        first = first if first < 0x80 else 0x80 | (first & 0x3F)
        second = _lead_byte(second)
    key = (np.int64(first) << 21) | np.int64(second)
    at = _slot(key, len(glue.pairs) - 1)
    while glue.pairs[at] != -1:
        if glue.pairs[at] == key:
            return True
        at = (at + 1) & (len(glue.pairs) - 1)
    return False


@njit(cache=True)
def _lead_byte(point: int) -> int:
    if point < 0x80:
        return point
    if point < 0x800:
        return 0xC0 | (point >> 6)
    if point < 0x10000:
        return 0xE0 | (point >> 12)
    return 0xF0 | (point >> 18)


@njit(cache=True)
def decode_characters(text: U8, points: I32, ends: I64) -> int:
    """Code points and byte ends of a valid text; returns their number."""
    count = 0
    at = 0
    while at < len(text):
        length = char_length(text[at])
        points[count] = code_point(text, at, length)
        at += length
        ends[count] = at
        count += 1
    return count


@njit(cache=True)
def cut_ends(points: I32, ends: I64, count: int, glued: Glue, out: I64) -> int:
    """Byte ends of the runs between characters that no token holds side by side."""
    cuts = 0
    for k in range(count):
        if k + 1 == count or not is_glued(glued, points[k], points[k + 1]):
            out[cuts] = ends[k]
            cuts += 1
    return cuts
