"""What of a native id sequence decides which tokens may come next."""

from dataclasses import dataclass
from typing import NamedTuple

UNKNOWN = 2  # of `Table.known`


FRESH = -1  # stands for the lexer that begins a piece at the end of the text


NOWHERE, BEFORE, INSIDE = 0, 1, 2


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
