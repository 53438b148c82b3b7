"""Where places of spelled text lie in the raw text.

A place that has none gets the largest one surely before it.
"""

from collections.abc import Iterator
from typing import TypeAlias

from crosstok.unicode import nfc, nfc_boundary_before
from crosstok.vocabulary import Vocabulary


class Same:
    """Raw offsets where spelling changes nothing."""

    def __init__(self, base: int) -> None:
        self._base = base

    def __call__(self, end: int) -> int:
        return self._base + end

    def is_exact(self, end: int) -> bool:  # noqa: ARG002
        """Whether this place of the spelled text is one of the raw text too."""
        return True


class _Table:
    """Raw offsets by table; a place that has none gets the largest one surely before it."""

    def __init__(self, table: list[int], vague: frozenset[int] = frozenset()) -> None:
        self._table = table
        self._vague = vague

    def __call__(self, end: int) -> int:
        beyond = max(end - len(self._table) + 1, 0)  # bytes of an incomplete last character
        return self._table[end - beyond] + beyond

    def is_exact(self, end: int) -> bool:
        """Whether this place of the spelled text is one of the raw text too."""
        return end not in self._vague


RawOffsets: TypeAlias = Same | _Table


def raw_offsets(v: Vocabulary, raw: str, spelled: str, base: int) -> RawOffsets:
    """Where each place of a spelled text lies in its raw text, which begins at ``base``."""
    if raw == spelled:
        return Same(base)
    return _low_line_offsets(raw, spelled, base) if v.spelling.low_line else _nfc_offsets(raw, base)


def _low_line_offsets(raw: str, spelled: str, base: int) -> _Table:
    table, vague = [base], frozenset[int]()
    if len(spelled) > len(raw):  # the dummy prefix stands for nothing
        table, vague = [base] * 4, frozenset({1, 2, 3})
    for character in raw:
        at = table[-1]
        if character == " ":
            table += [at, at, at + 1]
        else:
            table += range(at + 1, at + 1 + len(character.encode()))
    return _Table(table, vague)


def _nfc_offsets(raw: str, base: int) -> _Table:
    table: list[int] = [base]
    vague: list[int] = []
    for chunk in normal_chunks(raw):
        written, at = nfc(chunk), table[-1]
        size = len(written.encode())
        if written == chunk:
            table += range(at + 1, at + 1 + size)
        else:
            vague += range(len(table), len(table) + size - 1)
            table += _places_in_chunk(chunk, written, at)
    return _Table(table, frozenset(vague))


LONG_CHUNK = 64  # characters of a chunk from which on a place in it gets the chunk's start


def _places_in_chunk(chunk: str, written: str, base: int) -> list[int]:
    """Raw offsets behind each byte of a chunk that normalisation changed.

    Inside it those places have one up to which the raw text's own normal form is what is written.
    """
    ends = {len(written.encode()): len(chunk.encode())}
    if len(chunk) <= LONG_CHUNK:
        for k in range(1, len(chunk)):
            begins = nfc(chunk[:k])
            if written.startswith(begins):
                ends[len(begins.encode())] = len(chunk[:k].encode())
    found = [base]
    for place in range(1, max(ends) + 1):
        found.append(max(found[-1], base + ends.get(place, 0)))
    return found[1:]


def normal_chunks(text: str) -> Iterator[str]:
    """The text cut before every character at which normalisation starts afresh."""
    start = 0
    for at in range(1, len(text)):
        if nfc_boundary_before(ord(text[at])):
            yield text[start:at]
            start = at
    if start < len(text):
        yield text[start:]


def last_chunk(text: str) -> int:
    """Where the last of `normal_chunks` begins."""
    for at in range(len(text) - 1, 0, -1):
        if nfc_boundary_before(ord(text[at])):
            return at
    return 0
