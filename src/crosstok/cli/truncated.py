"""`crosstok truncate`: a smaller vocabulary, written as the files of a tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crosstok.errors import BadInput
from crosstok.truncation import truncate

if TYPE_CHECKING:
    from crosstok.vocabulary import Vocabulary


def write_truncation(
    vocabulary: Vocabulary, out: str, like: Path | None, tokens: int | None, merges: int | None
) -> str:
    """Cut the vocabulary, write it, and say what it has become."""
    if (tokens is None) == (merges is None):
        found = "neither" if tokens is None else "both"
        raise BadInput.explain("either --tokens or --merges", found, "give one of the two")
    cut = truncate(vocabulary, tokens=tokens, merges=merges)
    try:
        cut.write(out, like=like)
    except OSError as error:
        raise BadInput.explain(
            "a folder to write to", f"{out!r}: {error.strerror}", "choose another folder"
        ) from error
    return str(cut)
