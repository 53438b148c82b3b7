"""All tokens that may come next, at once: the mask behind a native id sequence.

`settling.Viability` answers for one id.  A mask answers for the whole vocabulary, and two sequences
have the same mask if they are in the same **state** (`NativeState`): the splitter's lexers of the
open text, which of them the ids agree with, the last id where it stands inside an open piece, and
what is left of a cut character, of half-typed added tokens and of characters that normalisation
may change.  A `Walk` is a `Viability` that knows its state.

A mask is made in two steps.  Tokens that read the same to the splitter from each of its states are
of one **kind**; what becomes of the open text's pieces is asked once a kind, and remembered for all
states with the same lexers (`kinds.Alphabet`).  Then one compiled pass over the tokens tests pairs
by their spines (`filling.fill_mask`).  Proofs: docs/theory/masks.md.
"""

from crosstok.masks.states import Lexer, NativeState, may_end
from crosstok.masks.walks import DocumentMasks, Masks, Walk, masks_for, masks_of, viable_next

__all__ = [
    "DocumentMasks",
    "Lexer",
    "Masks",
    "NativeState",
    "Walk",
    "masks_for",
    "masks_of",
    "may_end",
    "viable_next",
]
