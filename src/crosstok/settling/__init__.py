"""What is certain about the encoding of a text that is not finished.

A **reading** of an open text is one way in which its encoding may turn out: the tokens up to the
last boundary inside the text, and what may come after them.  The text's readings together are
exact: the encoding of every continuation begins with the tokens of one of them, and every reading
has a continuation (`readings`).  Everything else is a question about readings:

* `settle`: the tokens that all readings begin with;
* `outcomes`: given a target prefix e, the one token that must follow it, a rejection, or several;
* `viable`: whether some continuation's encoding begins with the given native ids, which is so
  exactly when a reading with a boundary at the text's end has these ids.

Readings multiply at four places: an added token that is half typed (`readings.branches`), a last
character that normalisation may still change (`forms.normal_forms`), pieces that a continuation may
cut otherwise (`Splitter.segmentations`), and the covers of the open piece (`crosstok.covers`).

All work starts at the **anchor**, the last piece boundary that no continuation moves.
"""

from crosstok.settling.anchors import Tail, careful_tail, common_prefix, tail
from crosstok.settling.offsets import normal_chunks
from crosstok.settling.pieces import Reading
from crosstok.settling.questions import (
    REJECT,
    SEVERAL,
    Outcome,
    Settled,
    Verdict,
    open_outcomes,
    outcomes,
    settle,
)
from crosstok.settling.readings import readings, split_character
from crosstok.settling.streaming import Settler
from crosstok.settling.viability import Viability, viable
from crosstok.settling.witness import continuations

__all__ = [
    "REJECT",
    "SEVERAL",
    "Outcome",
    "Reading",
    "Settled",
    "Settler",
    "Tail",
    "Verdict",
    "Viability",
    "careful_tail",
    "common_prefix",
    "continuations",
    "normal_chunks",
    "open_outcomes",
    "outcomes",
    "readings",
    "settle",
    "split_character",
    "tail",
    "viable",
]
