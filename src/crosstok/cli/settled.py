"""What is settled and what is open in a text, to read and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crosstok.cli.wording import quoted
from crosstok.settling import settle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crosstok.vocabulary import Vocabulary


def settled_dict(vocabulary: Vocabulary, text: str) -> dict[str, Any]:
    """The settled ids, and the open rest with the offset at which it begins."""
    found = settle(vocabulary, text)
    return {
        "tokenizer": vocabulary.name,
        "settled": found.ids,
        "offset": found.offset,
        "open": found.open.decode(errors="backslashreplace"),
        "if_it_ended_here": vocabulary.encode(text),
    }


def settled_lines(vocabulary: Vocabulary, text: str) -> Iterator[str]:
    """The tokens of the text as it stands, each with what is known about it."""
    found = settle(vocabulary, text)
    whole = vocabulary.encode(text)
    for number, token in enumerate(whole):
        state = "settled" if number < len(found.ids) else "open"
        yield f"{state:8} {token:>7}  {quoted(vocabulary.token_bytes[token])}"
    rest = f"open from byte {found.offset} on: {quoted(found.open)}"
    yield rest if found.open else "nothing is open"
