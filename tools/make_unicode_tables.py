"""Write `src/crosstok/data/unicode_tables.txt` by probing the `tokenizers` package.

`tokenizers` carries three Unicode tables of different age: those of its regular-expression engine
(general categories and white space), those of Rust's standard library (what the `Digits`
pre-tokenizer calls numeric) and those of its normalizer.  None of them is Python's, so each is read
off by asking the package itself about every code point.

    python tools/make_unicode_tables.py            writes the file
    python tools/make_unicode_tables.py --check    exits 1 if the file differs from what is probed
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import tokenizers
from tokenizers import Regex
from tokenizers.normalizers import NFC, NFD
from tokenizers.pre_tokenizers import Digits, Split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

TARGET = Path(__file__).resolve().parents[1] / "src" / "crosstok" / "data" / "unicode_tables.txt"
CATEGORIES = {
    "L": "utlmo",
    "M": "nce",
    "N": "dlo",
    "P": "cdseifo",
    "S": "mcko",
    "Z": "slp",
    "C": "cfo",
}
BACKSLASH = "\\"
CHUNK = 1 << 14
# `|` takes part in no canonical composition, so it separates probes inside one long string.
SEPARATOR = "|"
LOW_MARK, HIGH_MARK = "\u0334", "\u0345"  # combining classes 1 and 240
HANGUL = range(0xAC00, 0xD7A4)
JAMO_AFTER = (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))

HEADER = """\
# Unicode as `tokenizers` {version} has it; written by tools/make_unicode_tables.py, do not edit.
# One table a line: its name, then ranges of code points in hexadecimal, both ends included.
# Lu .. Co: general categories of the regular-expression engine (absent: Cn and Cs)
# space: \\s there.   numeric: Rust's char::is_numeric.
# active: takes part in canonical reordering, decomposition or composition in the normalizer
# joins: its canonical decomposition begins with a mark or with what composes to the left
# compose: first+second=composite, without the Hangul syllables, which are arithmetic
"""


def scalars() -> Iterator[int]:
    """All code points that may stand in a text: everything but the surrogates."""
    yield from range(0xD800)
    yield from range(0xE000, 0x110000)


def chunks() -> Iterator[str]:
    """All of them, as strings of bounded length."""
    every = "".join(map(chr, scalars()))
    for start in range(0, len(every), CHUNK):
        yield every[start : start + CHUNK]


def matching(pattern: str) -> set[int]:
    """Code points that the engine's one-character pattern matches."""
    remover = Split(Regex(pattern), "removed")
    found: set[int] = set()
    for text in chunks():
        left = [text[a:b] for _, (a, b) in remover.pre_tokenize_str(text)]
        found.update(set(map(ord, text)) - set(map(ord, "".join(left))))
    return found


def numeric() -> set[int]:
    """Code points that `Digits` isolates; two letters between them keep all else in longer runs."""
    digits = Digits(individual_digits=True)
    found: set[int] = set()
    for text in chunks():
        pieces = digits.pre_tokenize_str("".join("aa" + c for c in text) + "aa")
        found.update(ord(piece) for piece, (a, b) in pieces if b - a == 1)
    return found


def each(normalize: Callable[[str], str], probes: Iterable[str]) -> list[str]:
    """The normal form of every probe, many probes to a call."""
    listed = list(probes)
    out: list[str] = []
    for start in range(0, len(listed), CHUNK):
        part = listed[start : start + CHUNK]
        out += normalize(SEPARATOR.join(part)).split(SEPARATOR)
    assert len(out) == len(listed)
    return out


class Normalization:
    """What the normalizer does to single characters and pairs."""

    def __init__(self) -> None:
        self.points = [cp for cp in scalars() if chr(cp) != SEPARATOR]
        self.nfd = self._map(NFD().normalize_str)
        self.nfc = self._map(NFC().normalize_str)
        self.marks = self._marks()
        self.pairs = self._pairs()

    def _map(self, normalize: Callable[[str], str]) -> dict[int, str]:
        images = each(normalize, map(chr, self.points))
        return {cp: t for cp, t in zip(self.points, images, strict=True) if t != chr(cp)}

    def _marks(self) -> set[int]:
        """A mark changes places with one of class 1 after it, or with one of class 240 before."""
        plain = [cp for cp in self.points if cp not in self.nfd]
        late = [chr(cp) + LOW_MARK for cp in plain]
        early = [HIGH_MARK + chr(cp) for cp in plain]
        found: set[int] = set()
        for probes in (late, early):
            images = each(NFD().normalize_str, probes)
            swapped = zip(plain, probes, images, strict=True)
            found.update(cp for cp, probe, image in swapped if image != probe)
        return found

    def _pairs(self) -> dict[tuple[int, int], int]:
        """(first, second) -> composite: a composite is a fixed point of NFC that NFD takes apart.

        NFC of all but the last character of its full decomposition is one character, `first`.
        """
        composites = [cp for cp in self.nfd if cp not in self.nfc and cp not in HANGUL]
        firsts = each(NFC().normalize_str, (self.nfd[cp][:-1] for cp in composites))
        seconds = [self.nfd[cp][-1] for cp in composites]
        joined = [a + b for a, b in zip(firsts, seconds, strict=True)]
        assert each(NFC().normalize_str, joined) == list(map(chr, composites))
        keys = [(ord(a), ord(b)) for a, b in zip(firsts, seconds, strict=True)]
        return dict(zip(keys, composites, strict=True))

    def active(self) -> set[int]:
        """What is not simply copied."""
        parts = {cp for pair in self.pairs for cp in pair}
        jamo = {*range(0x1100, 0x1113), *JAMO_AFTER}
        return {*self.marks, *self.nfd, *parts, *HANGUL, *jamo}

    def joins(self) -> set[int]:
        """What may change together with the characters before it."""
        seconds = {second for _, second in self.pairs} | set(JAMO_AFTER) | self.marks
        return {cp for cp in self.points if ord(self.nfd.get(cp, chr(cp))[0]) in seconds}


def ranges(points: Iterable[int]) -> str:
    """`41-5a 61` for the code points 0x41..0x5a and 0x61."""
    runs: list[list[int]] = []
    for cp in sorted(points):
        if runs and runs[-1][1] == cp - 1:
            runs[-1][1] = cp
        else:
            runs.append([cp, cp])
    return " ".join(f"{a:x}" if a == b else f"{a:x}-{b:x}" for a, b in runs)


def tables() -> Iterator[str]:
    """The lines of the file."""
    for category in (major + minor for major, minors in CATEGORIES.items() for minor in minors):
        yield f"{category} {ranges(matching(f'{BACKSLASH}p{{{category}}}'))}"
    yield f"space {ranges(matching(BACKSLASH + 's'))}"
    yield f"numeric {ranges(numeric())}"
    normalization = Normalization()
    yield f"active {ranges(normalization.active())}"
    yield f"joins {ranges(normalization.joins())}"
    pairs = sorted(normalization.pairs.items())
    yield "compose " + " ".join(f"{a:x}+{b:x}={c:x}" for (a, b), c in pairs)


def main() -> int:
    """Write or check the file."""
    text = HEADER.format(version=tokenizers.__version__) + "\n".join(tables()) + "\n"
    if "--check" in sys.argv[1:]:
        return int(TARGET.read_text(encoding="ascii") != text)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text, encoding="ascii")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
