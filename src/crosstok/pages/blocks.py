"""Two tokenizations of a text, cut into blocks at the boundaries that they share.

Inside a block no boundary is shared, so that blocks may stand on different lines of a page without
tearing anything apart.  A block's columns are the stretches between all boundaries of either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crosstok.alignment import Place, Placed


@dataclass(frozen=True, slots=True)
class Cell:
    """A token that covers some columns of a block, and those without any text right before it.

    A dummy prefix may be a token of its own; it needs a place to be shown at.
    """

    tokens: tuple[Placed, ...]

    @property
    def start(self) -> Place:
        """Where its text begins."""
        return self.tokens[0].start

    @property
    def stop(self) -> Place:
        """Where its text ends."""
        return self.tokens[-1].stop


@dataclass(frozen=True, slots=True)
class Block:
    """Both sides between two boundaries that they share and that follow each other."""

    native: tuple[Cell, ...]
    target: tuple[Cell, ...]

    @property
    def start(self) -> Place:
        """Where the block begins."""
        return self.native[0].start

    @property
    def stop(self) -> Place:
        """Where the block ends."""
        return self.native[-1].stop

    @property
    def agrees(self) -> bool:
        """Whether both sides have one token here."""
        return len(self.native) == len(self.target) == 1

    def edges(self) -> list[Place]:
        """The places at which a column begins or ends, in order."""
        cells = (*self.native, *self.target)
        return sorted({self.start, *(cell.stop for cell in cells)})


def blocks(native: Sequence[Placed], target: Sequence[Placed]) -> Iterator[Block]:
    """The blocks of a text, in order."""
    mine, other = list(_cells(native)), list(_cells(target))
    shared = {cell.stop for cell in mine} & {cell.stop for cell in other}
    yield from map(Block, _runs(mine, shared), _runs(other, shared))


def _cells(tokens: Sequence[Placed]) -> Iterator[Cell]:
    waiting: list[Placed] = []
    for token in tokens:
        waiting.append(token)
        if token.stop > token.start:
            yield Cell(tuple(waiting))
            waiting = []
    assert not waiting, "a text does not end with a token of no text"


def _runs(cells: Sequence[Cell], shared: set[Place]) -> Iterator[tuple[Cell, ...]]:
    run: list[Cell] = []
    for cell in cells:
        run.append(cell)
        if cell.stop in shared:
            yield tuple(run)
            run = []
    assert not run, "both sides end where the text ends"
