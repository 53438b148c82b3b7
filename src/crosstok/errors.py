"""What can go wrong, as one tree.

::

    CrosstokError
    ├── UnsupportedTokenizer     a tokenizer that cannot be reproduced exactly
    ├── BadInput (ValueError)    an argument that has no meaning here
    ├── ModelError               a language model that broke its promise
    ├── StoreError               a file of ours that is damaged, foreign or too new
    └── AssetError               a named download that could not be had

Catch :class:`CrosstokError` to catch everything this package raises on purpose.
Broken invariants of our own are ``assert`` statements, never part of this tree: nobody
should catch those.

Every message says three things, in this order: what was expected, what was found, and
what to do about it.  :meth:`CrosstokError.explain` puts the three together:

>>> print(BadInput.explain("a vocabulary size of at least 256", "12", "raise tokens=…"))
expected a vocabulary size of at least 256, found 12; raise tokens=…
"""

from __future__ import annotations

from typing import Self

__all__ = [
    "AssetError",
    "BadInput",
    "CrosstokError",
    "ModelError",
    "StoreError",
    "UnsupportedTokenizer",
]


class CrosstokError(Exception):
    """The root of everything that crosstok raises on purpose."""

    @classmethod
    def explain(cls, expected: str, found: str, fix: str) -> Self:
        """The error whose message says what was expected, what was found and what to do."""
        return cls(f"expected {expected}, found {found}; {fix}")


class UnsupportedTokenizer(CrosstokError):
    """A tokenizer holds a step that crosstok cannot reproduce exactly, so it is refused."""


class BadInput(CrosstokError, ValueError):
    """An argument has no meaning here: the caller can fix it.

    It is a :class:`ValueError` too, so code that knows nothing of crosstok catches it.
    """


class ModelError(CrosstokError):
    """A language model broke what crosstok relies on, such as rows that sum to one."""


class StoreError(CrosstokError):
    """A cached or stored file is damaged, was written by something else, or is too new."""


class AssetError(CrosstokError):
    """A named asset could not be fetched, verified or rebuilt."""
