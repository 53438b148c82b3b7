"""Where a pre-tokenizer cuts a text, and where it may still cut one that goes on.

Theory of operation.  A pre-tokenizer is one `pattern` that matches from every place on; its
matches, one after the other, are the **pieces** of a text.  The `automaton` finds them in one pass
over the characters' **classes**, keeping for the piece at hand its state and the last match
recorded.  There is no look-behind, so that nothing before a piece's start matters to the rest.

An **open** text is one that may go on.  What its characters say about its pieces is then not final:
the piece at hand may end at its last recorded match, or at or after the text's end.  `Splitter`
answers exactly what is possible (`segmentations`, `may_end`, `may_go_on`), by following the
automaton on every continuation at once.  Definitions and proofs: docs/theory/splitting.md.

>>> gpt2 = Splitter.by_name("gpt2")
>>> gpt2.pieces("It's  9 o'clock")  # It 's ␣ ␣9 ␣o ' clock
[2, 4, 5, 7, 9, 10, 15]
>>> gpt2.segmentations(gpt2.classes("a  "))  # the last space stays, or goes to what follows
((0, 1), (0, 1, 2))
"""

from __future__ import annotations

from crosstok.splitting.families import PATTERNS
from crosstok.splitting.kernels import follow, lex, state_behind
from crosstok.splitting.splitter import Splitter, recognise

__all__ = ["PATTERNS", "Splitter", "follow", "lex", "recognise", "state_behind"]
