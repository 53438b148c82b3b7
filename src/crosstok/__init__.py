"""crosstok: one tokenizer's text, and one model's probabilities, in the tokens of another.

Importing the package is light: a public name loads the module behind it on first use, so
``import crosstok`` pulls in none of the heavy packages that an extra may have installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosstok.conversion import Conversion, ConversionKind, byte_vocabulary
    from crosstok.errors import (
        AssetError,
        BadInput,
        CrosstokError,
        ModelError,
        StoreError,
        UnsupportedTokenizer,
    )
    from crosstok.inspection import inspect
    from crosstok.loading import load
    from crosstok.masks import masks_for, viable_next
    from crosstok.models import Forest, TableModel
    from crosstok.ranks import load_tiktoken
    from crosstok.rows import Rows, Status
    from crosstok.settling import Settler, Viability, outcomes, settle, viable
    from crosstok.truncation import Truncation, truncate
    from crosstok.vocabulary import Vocabulary

__version__ = "0.1.0.dev0"

# Public name -> the module that defines it.  A new export takes one line here, one under
# TYPE_CHECKING above and one in __all__; tests/project/test_exports.py compares the three.
_HOME = {
    "AssetError": "crosstok.errors",
    "BadInput": "crosstok.errors",
    "Conversion": "crosstok.conversion",
    "ConversionKind": "crosstok.conversion",
    "CrosstokError": "crosstok.errors",
    "Forest": "crosstok.models",
    "ModelError": "crosstok.errors",
    "Rows": "crosstok.rows",
    "Settler": "crosstok.settling",
    "Status": "crosstok.rows",
    "StoreError": "crosstok.errors",
    "TableModel": "crosstok.models",
    "Truncation": "crosstok.truncation",
    "UnsupportedTokenizer": "crosstok.errors",
    "Viability": "crosstok.settling",
    "Vocabulary": "crosstok.vocabulary",
    "byte_vocabulary": "crosstok.conversion",
    "inspect": "crosstok.inspection",
    "load": "crosstok.loading",
    "load_tiktoken": "crosstok.ranks",
    "masks_for": "crosstok.masks",
    "outcomes": "crosstok.settling",
    "settle": "crosstok.settling",
    "truncate": "crosstok.truncation",
    "viable": "crosstok.settling",
    "viable_next": "crosstok.masks",
}

__all__ = [
    "AssetError",
    "BadInput",
    "Conversion",
    "ConversionKind",
    "CrosstokError",
    "Forest",
    "ModelError",
    "Rows",
    "Settler",
    "Status",
    "StoreError",
    "TableModel",
    "Truncation",
    "UnsupportedTokenizer",
    "Viability",
    "Vocabulary",
    "__version__",
    "byte_vocabulary",
    "inspect",
    "load",
    "load_tiktoken",
    "masks_for",
    "outcomes",
    "settle",
    "truncate",
    "viable",
    "viable_next",
]


def __getattr__(name: str) -> object:
    """Load the module behind a public name the first time the name is asked for."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
