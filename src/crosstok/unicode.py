"""Unicode as the `tokenizers` package has it, which is not Unicode as Python has it.

`tokenizers` carries three tables: the general categories and the white space of its regular
expressions, Rust's `char::is_numeric`, and an old normalizer.  `tools/make_unicode_tables.py` reads
them off by asking the package about every code point; this module loads the result (about fifty
kilobytes of text, on first use) and depends on no Unicode table of Python's that changes.

**Classes.**  `category`, `white_space` and `numeric` are masks over all code points.

**NFC.**  A character that the old normalizer does not know is *inert* there: no mark, no
decomposition, no part in a composition.  Nothing is reordered or composed across an inert
character, so NFC of a text is NFC run by run, and within a run of known characters Python's result
is the same, because normal forms of assigned characters never change.  Hence `nfc` hands exactly
the runs of *active* characters to `unicodedata`.

**Open texts.**  What may still change when a text goes on is answered for single characters:
`nfc_boundary_before` (the text may be cut before it), `nfc_composites` (what it may turn into) and
`nfc_inert_after` (it stays what it is); for all characters at once by `nfc_plain` and `nfc_active`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

N_CODE_POINTS = 0x110000
# Characters before the first combining mark are their own NFC whatever stands beside them.
_MAY_CHANGE = re.compile("[\u0300-\U0010ffff]")
_HANGUL_FIRST, _HANGUL_LAST, _TRAILING_JAMO = 0xAC00, 0xD7A3, 28
_LEADING_JAMO_FIRST, _LEADING_JAMO_LAST, _VOWELS = 0x1100, 0x1112, 21

Mask = NDArray[np.bool_]


@cache
def _tables() -> dict[str, str]:
    """The data file: the name of each table and the rest of its line."""
    text = files("crosstok").joinpath("data", "unicode_tables.txt").read_text(encoding="ascii")
    lines = (line.partition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: rest for name, _, rest in lines}


def _ranges(name: str) -> list[tuple[int, int]]:
    """The ranges of a table, both ends included."""
    ends = (item.partition("-") for item in _tables()[name].split())
    return [(int(a, 16), int(b or a, 16)) for a, _, b in ends]


@cache
def _mask(name: str) -> Mask:
    """A table as a read-only mask over all code points."""
    mask = np.zeros(N_CODE_POINTS, np.bool_)
    for first, last in _ranges(name):
        mask[first : last + 1] = True
    mask.setflags(write=False)
    return mask


def category(*names: str) -> Mask:
    r"""The code points whose general category is one of `names`: `category("Lu", "Lt")`.

    A one-letter name means all its categories: `category("L")` is `\p{L}`.
    """
    known = [table for name in names for table in _tables() if _is_category(table, name)]
    if not known:
        raise KeyError(f"no such general category: {' '.join(names)}")
    union: Mask = np.any([_mask(table) for table in known], axis=0)
    return union


def _is_category(table: str, name: str) -> bool:
    return len(table) == 2 and table in (name, name + table[1])


def white_space() -> Mask:
    r"""The code points that `\s` matches."""
    return _mask("space")


def numeric() -> Mask:
    """The code points that the `Digits` pre-tokenizer calls numeric."""
    return _mask("numeric")


def nfc(text: str) -> str:
    """NFC as `tokenizers.normalizers.NFC` computes it, under any version of Python.

    >>> nfc("e\u0301") == "\u00e9"
    True
    """
    if _MAY_CHANGE.search(text) is None:
        return text
    return _active_run().sub(lambda run: unicodedata.normalize("NFC", run[0]), text)


@cache
def _active_run() -> re.Pattern[str]:
    spans = (f"{re.escape(chr(a))}-{re.escape(chr(b))}" for a, b in _ranges("active"))
    return re.compile(f"[{''.join(spans)}]+")


def nfc_boundary_before(cp: int) -> bool:
    """Whether NFC may always be computed separately before and from this character on.

    True exactly if the first character of its canonical decomposition is a starter that composes
    with nothing to its left: NFC(x + y) = NFC(x) + NFC(y) for every y that begins with it.
    """
    return not _mask("joins")[cp]


def nfc_composites(cp: int) -> tuple[int, ...]:
    """All other characters that this one may turn into when the text goes on, in order.

    Of a character whose NFC is several ones (U+0958) the first of these is meant.
    That is more than what it composes with: a mark that belongs before its own is composed first,
    so that e with acute (U+00E9) and a cedilla become e with cedilla (U+0229) and an acute.

    >>> nfc_composites(ord("q")), [chr(c) for c in nfc_composites(ord("y"))][:2]
    ((), ['ý', 'ÿ'])
    >>> 0x229 in nfc_composites(0xE9)
    True
    """
    return _composites(nfc(chr(cp)))


def nfc_inert_after(cp: int) -> bool:
    """Whether nothing that is appended can turn this character into another one.

    What is appended to a mark may still be put before it; a starter stays where it is.
    """
    return not nfc_composites(cp)


@cache
def nfc_plain() -> Mask:
    """The characters that NFC copies: a text of nothing else is its own NFC.

    They are their own NFC, and neither marks nor composed with what stands before them.
    """
    plain = ~_mask("joins")
    for cp in _active_but_syllables():
        plain[cp] &= nfc(chr(cp)) == chr(cp)
    plain.setflags(write=False)
    return plain


@cache
def nfc_active() -> Mask:
    """The characters that something appended may turn into another: not `nfc_inert_after`."""
    active = np.zeros(N_CODE_POINTS, np.bool_)
    active[[cp for cp in _active_but_syllables() if nfc_composites(cp)]] = True
    active[_HANGUL_FIRST : _HANGUL_LAST + 1 : _TRAILING_JAMO] = True
    active.setflags(write=False)
    return active


def _active_but_syllables() -> list[int]:
    """What takes part in normalization, but for Hangul syllables, which are their own NFC."""
    active = _mask("active").copy()
    active[_HANGUL_FIRST : _HANGUL_LAST + 1] = False
    points: list[int] = np.flatnonzero(active).tolist()
    return points


@cache
def _composites(spelled: str) -> tuple[int, ...]:
    """What the first character of a normal form may turn into.

    A candidate is composed of the same starter and of marks.  If it can be had at all, then by
    appending those of its marks that are not there already (docs/theory/splitting.md).
    """
    first = ord(spelled[0])
    hangul = _hangul_composites(first)
    if hangul or not _mask("active")[first]:
        return hangul
    decomposed = unicodedata.normalize("NFD", spelled)
    found = []
    for candidate in _composed_of(ord(decomposed[0])):
        marks = unicodedata.normalize("NFD", chr(candidate))[1:]
        missing = "".join(mark for mark in marks if mark not in decomposed)
        if candidate != first and nfc(spelled + missing)[0] == chr(candidate):
            found.append(candidate)
    return tuple(found)


@cache
def _composed_of(starter: int) -> tuple[int, ...]:
    """The primary composites whose full decomposition begins with this character, in order."""
    found: set[int] = set()
    waiting = [starter]
    while waiting:
        new = [c for c in _composed_from().get(waiting.pop(), ()) if c not in found]
        found.update(new)
        waiting += new
    return tuple(sorted(found))


def _hangul_composites(first: int) -> tuple[int, ...]:
    """Syllables: leading + vowel (+ trailing) jamo; a syllable without trailing one takes one."""
    if _LEADING_JAMO_FIRST <= first <= _LEADING_JAMO_LAST:
        block = _VOWELS * _TRAILING_JAMO
        start = _HANGUL_FIRST + (first - _LEADING_JAMO_FIRST) * block
        return tuple(range(start, start + block))
    if _HANGUL_FIRST <= first <= _HANGUL_LAST and (first - _HANGUL_FIRST) % _TRAILING_JAMO == 0:
        return tuple(range(first + 1, first + _TRAILING_JAMO))
    return ()


@cache
def _composed_from() -> dict[int, tuple[int, ...]]:
    """For every first element of a primary composite: the composites."""
    out: dict[int, tuple[int, ...]] = {}
    for item in _tables()["compose"].split():
        pair, _, composite = item.partition("=")
        first = int(pair.partition("+")[0], 16)
        out[first] = (*out.get(first, ()), int(composite, 16))
    return out
