"""What it takes to go from the tokens of one vocabulary to those of another.

A `Conversion` is compiled once for a pair of vocabularies and says its **kind**:

* ``same``: the same ids for every text.
* ``padded``: the same ids for every text; one side has other ids that no text is encoded to.
* ``bytes``: the target's tokens are the 256 bytes.
* ``subset``: every native token stands for fixed target tokens, whatever surrounds it.
* ``general``: what a native token stands for depends on the text around it.

All but the last are **token-local**: `Conversion.map` holds the target tokens of each native token,
and putting them in a row gives the target encoding of every text that decoding can produce.  A
conversion counts as token-local only where a theorem or an exhaustive check of pairs proves it
(docs/theory/conversion.md); `Conversion.why` names the proof, or an example against it.

Read `compare` for how the kind is found, `pairs` for the check of pairs, `compiled` for the result.
"""

from __future__ import annotations

from crosstok.conversion.compare import ConversionKind, TokenMap
from crosstok.conversion.compiled import Conversion, Ends, byte_vocabulary

__all__ = ["Conversion", "ConversionKind", "Ends", "TokenMap", "byte_vocabulary"]
