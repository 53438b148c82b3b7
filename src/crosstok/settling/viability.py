"""Whether native ids can begin the encoding of a text."""

from collections.abc import Sequence

from crosstok.errors import BadInput
from crosstok.quick import AT_START
from crosstok.settling.anchors import common_prefix, to_anchor
from crosstok.settling.inner import LONG, NO_INNER, added_byte, advanced
from crosstok.settling.offsets import last_chunk
from crosstok.settling.pieces import Reading
from crosstok.settling.readings import Script, branches, script_of, split_character
from crosstok.unicode import nfc
from crosstok.vocabulary import LOW_LINE, SPACE, Kind, Vocabulary


def viable(v: Vocabulary, ids: Sequence[int]) -> bool:
    """Whether the encoding of some text that `decode` can produce begins with these ids."""
    state = Viability(v)
    return all(state.push(token) for token in ids)


class Viability:
    """`viable`, one id at a time."""

    def __init__(self, v: Vocabulary, *, fresh: bool = True) -> None:
        self._v = v
        self._ids: list[int] = []  # behind the anchor
        self._text = b""
        self._chunk = ""  # characters before the anchor that normalisation may join to it
        self._fresh = fresh
        self._dead = False
        self._dummy = v.spelling.dummy_prefix and fresh
        self._inner = NO_INNER
        self._advance_at = LONG

    def push(self, token: int) -> bool:
        """Append an id; False once the sequence is not viable, and ever after."""
        self._v.check_ids((token,))
        if not self._dead:
            self._dead = not self._push(token)
        return not self._dead

    def _push(self, token: int) -> bool:
        v = self._v
        if v.kinds[token] == Kind.CONTROL:
            return False
        spelled = v.spelled(token)
        if v.spelling.low_line and SPACE in spelled:
            if token not in v.names:
                return False  # spelled text has no spaces: the byte 20 never falls back
            spelled = spelled.replace(SPACE, LOW_LINE.encode())
        if self._dummy and not spelled.startswith(LOW_LINE.encode()):
            return False
        self._dummy = False
        self._ids.append(token)
        self._text += spelled
        try:
            return self._is_normal() and self._check()
        except BadInput:  # not UTF-8, or a byte without a symbol
            return False

    def _is_normal(self) -> bool:
        complete, _ = split_character(self._text)
        text = self._chunk + complete
        return not self._v.spelling.nfc or nfc(text) == text

    def _check(self) -> bool:
        s = script_of(self._v, True)
        inner = self._inner
        if inner.at and added_byte(s.added).search(self._text, inner.at):
            inner = NO_INNER
        text, own = self._text[inner.at :], tuple(self._ids[inner.count :])
        fresh, inside = self._fresh and not inner.at, inner.inside
        ids, anchor, fresh = to_anchor(s, text, fresh, inside)
        if own[: len(ids)] != ids:
            return False
        rest = own[len(ids) :]
        found = list(branches(s, text[anchor:], fresh, AT_START if anchor else inside))
        if not any(reading.boundary and reading.tokens == rest for reading in found):
            return False
        if anchor:
            if self._v.spelling.nfc:
                passed = self._chunk + self._text[: inner.at + anchor].decode()
                self._chunk = "" if fresh else passed[last_chunk(passed) :]
            self._ids, self._text, self._fresh = list(rest), text[anchor:], fresh
            self._inner, self._advance_at = NO_INNER, LONG
        else:
            self._inner = inner
            if len(text) >= self._advance_at:
                self._advance(s, text, found)
        return True

    def _advance(self, s: Script, text: bytes, found: Sequence[Reading]) -> None:
        """Move the anchor into the open piece, or try again when it has grown by half."""
        if not added_byte(s.added).search(text):
            settled = found[0].tokens[: common_prefix(found)]
            contents = [self._v.spelled(token) for token in settled]
            self._inner = advanced(s, text, settled, contents, self._inner, self._fresh)
        self._advance_at = max(LONG, (len(self._text) - self._inner.at) * 3 // 2)
