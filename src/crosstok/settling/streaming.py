"""Settling a text that arrives bit by bit."""

from collections import OrderedDict

from crosstok.quick import Inside
from crosstok.settling.anchors import Tail, tail
from crosstok.settling.inner import LONG, NO_INNER, Inner, added_byte, advanced
from crosstok.settling.readings import encode_rest, script_of
from crosstok.vocabulary import Vocabulary, as_text


class Settler:
    """`settle` for a text that arrives bit by bit."""

    def __init__(self, v: Vocabulary, *, remember: int = 1 << 16) -> None:
        self.vocabulary = v
        self._fresh = True
        self._text = b""  # behind the anchor
        self._given = 0  # settled tokens behind the anchor that were handed out already
        self._offset = 0  # where the open rest begins in _text
        self._memory: OrderedDict[tuple[bytes, bool, Inside], Tail] = OrderedDict()
        self._remember = remember
        self._inner = NO_INNER
        self._advance_at = LONG  # open bytes from which on an anchor inside the piece is sought
        self._added_byte = added_byte(v.added)

    @property
    def open(self) -> bytes:
        """The text that is not settled."""
        return self._text[self._offset :]

    def feed(self, data: bytes) -> list[int]:
        """Take more text; returns the tokens that it settles."""
        text = self._text + data
        inner = self._inner
        if inner.at and self._added_byte.search(text, inner.at):
            inner = NO_INNER
        rest = text[inner.at :]
        found = self._tail(rest, inner)
        new = [*found.ids, *found.settled][self._given - inner.count :]
        if found.anchor:
            self._given += len(new) - inner.count - len(found.ids)
            self._text = rest[found.anchor :]
            self._offset = found.offset - found.anchor
            self._fresh = found.fresh
            self._inner, self._advance_at = NO_INNER, LONG
        else:
            self._given += len(new)
            self._text = text
            self._offset = inner.at + found.offset
            self._inner = inner
            if len(rest) >= self._advance_at:
                self._advance(rest, found)
        return new

    def _advance(self, rest: bytes, found: Tail) -> None:
        """Move the anchor into the open piece, or try again when it has grown by half."""
        v = self.vocabulary
        if not self._added_byte.search(rest):
            contents = [v.token_bytes[token] for token in found.settled]
            if contents and v.spelling.dummy_prefix and self._fresh and self._inner.at == 0:
                contents[0] = contents[0][1:]
            s = script_of(v, False)
            self._inner = advanced(s, rest, found.settled, contents, self._inner, self._fresh)
        self._advance_at = max(LONG, (len(self._text) - self._inner.at) * 3 // 2)

    def finish(self) -> list[int]:
        """The text ends here: the rest of its tokens."""
        complete = as_text(self._text)
        return list(encode_rest(self.vocabulary, complete.encode(), self._fresh)[self._given :])

    def _tail(self, text: bytes, inner: Inner) -> Tail:
        fresh = self._fresh and inner.at == 0
        key = (text, fresh, inner.inside)
        found = self._memory.get(key)
        if found is None:
            found = tail(self.vocabulary, text, fresh=fresh, inside=inner.inside)
            if len(text) <= 4 * LONG:
                self._memory[key] = found
                if len(self._memory) > self._remember:
                    self._memory.popitem(last=False)
        return found
