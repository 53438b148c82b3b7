"""What a vocabulary's tokens are to a mask: their spellings, and the added ones among them."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

import numpy as np

from crosstok import bpe
from crosstok.added import AddedTokens
from crosstok.bpe import I64, NONE, ROOT, U8, Bool, Trie
from crosstok.jit import njit
from crosstok.vocabulary import LOW_LINE, SPACE, Kind, Vocabulary


class Tokens:
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
