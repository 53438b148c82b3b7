"""Language models as a scorer sees them.

`crosstok.models.protocol` says what a scorer needs: forests in, rows and handles out.
`TableModel` is a table, exact, for tests; `crosstok.models.conformance` tries any adapter.
"""

from __future__ import annotations

from crosstok.models.protocol import (
    NOWHERE,
    Combined,
    Evaluation,
    Forest,
    Handle,
    LanguageModel,
    Noise,
    Placed,
    Plan,
    Restricted,
    RowBlock,
    Top,
)
from crosstok.models.table import TableModel

__all__ = [
    "NOWHERE",
    "Combined",
    "Evaluation",
    "Forest",
    "Handle",
    "LanguageModel",
    "Noise",
    "Placed",
    "Plan",
    "Restricted",
    "RowBlock",
    "TableModel",
    "Top",
]
