"""What normalisation may still make of the end of a text that goes on."""

import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache

import numpy as np

from crosstok.covers import character_range
from crosstok.settling.offsets import last_chunk
from crosstok.unicode import nfc, nfc_active, nfc_boundary_before, nfc_composites, nfc_plain


def normal_forms(complete: str, begun: bytes) -> Iterator[tuple[str, bytes]]:
    """What the normalised text may begin with, and the bytes that a next character begins with.

    Only the last chunk can still change, in its first character and behind it, and a cut character.
    """
    at = last_chunk(complete)
    fixed, last = nfc(complete[:at]), complete[at:]
    written = nfc(last)
    yield fixed + written, begun
    joins = True
    if begun:
        joins, others = _cut_forms(begun)
        for other in others:
            if other < b"\x80":
                yield fixed + written + other.decode(), b""
            else:
                yield fixed + written, other
    if joins:
        yield from _joined_forms(fixed, last, written)


def _joined_forms(fixed: str, last: str, written: str) -> Iterator[tuple[str, bytes]]:
    """The forms in which what follows has changed the last chunk."""
    if last and not nfc_boundary_before(ord(last[0])):
        yield fixed, b""  # a mark without a letter: another may be put before it
    if len(last) > 1 and not written[:1] == last[:1] == written:
        # Marks may still be put between those that are there: the first character is sure, and
        # that a mark comes next.
        for lead in sorted(_mark_leads()):
            yield fixed + written[:1], lead
    for first in {last[:1], written[:1]} - {""}:
        for composite in nfc_composites(ord(first)):
            if len(written) == 1 or _takes_marks(first, composite):
                yield fixed + chr(composite), b""


@lru_cache(maxsize=4096)
def _takes_marks(first: str, composite: int) -> bool:
    """Whether a character becomes this composite by marks alone, which may jump over others."""
    has = unicodedata.normalize("NFD", first)
    wants = unicodedata.normalize("NFD", chr(composite))
    return all(unicodedata.combining(mark) for mark in wants if mark not in has)


@lru_cache(maxsize=4096)
def _cut_forms(begun: bytes) -> tuple[bool, tuple[bytes, ...]]:
    """What normalisation may make of a character that begins with these bytes.

    Whether it may change the characters before it; and what may stand in its place instead: an
    ASCII character, or the first byte of any other.
    """
    first, last = character_range(np.frombuffer(begun, np.uint8))
    changing = ~nfc_plain()[first : last + 1] | nfc_active()[first : last + 1]
    joins, others = False, set[bytes]()
    for point in (np.flatnonzero(changing) + first).tolist():
        if not nfc_boundary_before(point):
            joins = True
            continue
        written = ord(nfc(chr(point))[0])
        for other in (written, *nfc_composites(written)):
            others.add(chr(other).encode())
    leads = {other[:1] for other in others if not other.startswith(begun)}
    return joins, tuple(sorted(leads | _mark_leads() if joins else leads))


@cache
def _mark_leads() -> frozenset[bytes]:
    """The first bytes of all characters that may be put before a mark."""
    points = np.flatnonzero(~nfc_plain()).tolist()
    return frozenset(chr(cp).encode()[:1] for cp in points if not nfc_boundary_before(cp))
