"""All HTML that crosstok writes: single files without anything from outside."""

from __future__ import annotations

from crosstok.pages.comparison import BYTES_SHOWN, Fact, comparison

__all__ = ["BYTES_SHOWN", "Fact", "comparison"]
