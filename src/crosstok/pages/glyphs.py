"""How the bytes of a token are shown, and said, so that nothing of them is invisible.

Ordinary characters stand for themselves.  White space keeps its characters, with a sign drawn over
them.  Parts of characters, and characters that cannot be seen or that HTML cannot hold, are shown
as bytes in hexadecimal.
"""

from __future__ import annotations

import unicodedata
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNS = {" ": "·", "\t": "→", "\n": "⏎", "\r": "␍", "\u00a0": "⍽", "\u3000": "□"}
SPOKEN = {
    " ": "space", "\t": "tab", "\n": "line break", "\r": "carriage return",
    "\u00a0": "no-break space", "\u3000": "ideographic space",
}  # fmt: skip
# Format and control characters, separators without a sign, private and unassigned ones.
HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})


def characters(raw: bytes) -> Iterator[str | bytes]:
    """The characters of some bytes of a text; bytes that make up no whole one by themselves."""
    at = 0
    while at < len(raw):
        size = _size(raw[at])
        piece = raw[at : at + size]
        try:
            yield piece.decode()
            at += size
        except UnicodeDecodeError:
            yield raw[at : at + 1]
            at += 1


def _size(lead: int) -> int:
    return 1 + (lead >= 0xC2) + (lead >= 0xE0) + (lead >= 0xF0)


def is_hidden(character: str) -> bool:
    """Whether a character is shown by its bytes."""
    return character not in SIGNS and unicodedata.category(character) in HIDDEN


def markup(raw: bytes) -> str:
    """The bytes as HTML, whose text is the same text again but for the bytes in ``<b>``."""
    shown = [_markup(character) for character in characters(raw)]
    if shown and _joins(raw):
        # A mark would sit on whatever stands before the token; give it something to sit on.
        shown[0] = f'<i class="mark">{shown[0]}</i>'
    return "".join(shown)


def _joins(raw: bytes) -> bool:
    first = next(characters(raw))
    return isinstance(first, str) and unicodedata.category(first).startswith("M")


def _markup(character: str | bytes) -> str:
    if isinstance(character, bytes):
        return _hex(character)
    if character in SIGNS:
        # A reference, because parsers make line feeds of carriage returns.
        return f'<i data-sign="{SIGNS[character]}">&#{ord(character)};</i>'
    return _hex(character.encode()) if is_hidden(character) else escape(character)


def _hex(raw: bytes) -> str:
    return "".join(f"<b>{byte:02x}</b>" for byte in raw)


def spoken(raw: bytes) -> str:
    """The bytes in words, for a reader who hears them."""
    words: list[str] = []
    for seen, run in groupby(map(_spoken, characters(raw)), key=lambda pair: pair[1]):
        said = [word for word, _ in run]
        words += _together(said) if seen == "named" else ["".join(said)]
    return " ".join(words)


def _spoken(character: str | bytes) -> tuple[str, str]:
    """How a character is said, and whether by name."""
    if isinstance(character, bytes):
        return f"byte {character.hex()}", "named"
    if character in SPOKEN:
        return SPOKEN[character], "named"
    if is_hidden(character):
        name = unicodedata.name(character, "character")
        return f"{name.lower()} U+{ord(character):04X}", "named"
    return character, "plain"


def _together(names: list[str]) -> Iterator[str]:
    for name, run in groupby(names):
        count = len(list(run))
        yield name if count == 1 else f"{count} times {name}"


def width(raw: bytes) -> int:
    """About how many columns the bytes take in a font of one width."""
    return sum(_width(character) for character in characters(raw))


def _width(character: str | bytes) -> int:
    if isinstance(character, bytes):
        return 3
    if character not in SIGNS and is_hidden(character):
        return 3 * len(character.encode())
    if unicodedata.category(character).startswith("M"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
