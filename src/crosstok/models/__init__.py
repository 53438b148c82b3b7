"""Language models as a scorer sees them.

`crosstok.models.protocol` says what a scorer needs: forests in, rows and handles out.
`TableModel` is a table, exact, for tests; `TransformersModel` runs any causal language model of
transformers (extra ``torch``, loaded when it is asked for); `crosstok.models.conformance` tries any
adapter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from crosstok.models.transformers import TransformersModel

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
    "TransformersModel",
]


def __getattr__(name: str) -> object:
    """The adapter that needs torch is loaded the first time it is asked for."""
    if name != "TransformersModel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from crosstok.models.transformers import TransformersModel

    return TransformersModel
