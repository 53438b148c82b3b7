"""How texts and bytes are written in one line of a terminal."""

from __future__ import annotations

import unicodedata

ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}
# Marks would sit on what stands before them, controls would be obeyed, separators not be seen.
UNSEEN = ("M", "C", "Z")


def quoted(text: str | bytes, mark: str = '"') -> str:
    """The text between marks, with escapes for what could not be seen or told apart."""
    if isinstance(text, bytes):
        text = text.decode(errors="surrogateescape")
    return mark + "".join(_escaped(character) for character in text) + mark


def _escaped(character: str) -> str:
    if character in ESCAPES:
        return ESCAPES[character]
    if "\udc80" <= character <= "\udcff":  # how undecodable bytes come out of surrogateescape
        return f"\\x{ord(character) - 0xDC00:02x}"
    if character != " " and unicodedata.category(character).startswith(UNSEEN):
        return ascii(character)[1:-1]
    return character
