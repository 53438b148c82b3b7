"""Where the tokens of a text lie in its bytes, so that two tokenizations can be laid side by side.

A token boundary has a place in the text as it was given, whatever was done to the text before it
was merged: spaces written as ``▁``, a dummy prefix, composed characters.  Where normalisation has
changed a stretch of text, a boundary inside it has no byte offset in the given text; its place is
then the stretch's start and how far inside the normalised stretch it lies.  Hence two boundaries
are the same exactly when their places are equal, under either tokenizer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from crosstok.settling import normal_chunks
from crosstok.unicode import nfc
from crosstok.vocabulary import as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from crosstok.vocabulary import Spelling, Vocabulary

Lengths = npt.NDArray[np.int64]


class Place(NamedTuple):
    """A byte offset in the text, and how many bytes of a changed stretch lie behind it."""

    offset: int
    inside: int = 0


@dataclass(frozen=True, slots=True)
class Placed:
    """A token of a text: its id, where it begins and ends, and the bytes that it stands for.

    The bytes are those of the text from start to stop, unless normalisation changed them or they
    are a dummy prefix; a token of only that begins and ends at one place.
    """

    token: int
    start: Place
    stop: Place
    content: bytes


def place_tokens(vocabulary: Vocabulary, text: str) -> list[Placed]:
    """The tokens of a whole text with their places."""
    found: list[Placed] = []
    at = 0
    for part in vocabulary.segments(as_text(text)):
        if isinstance(part, str):
            found += _place_segment(vocabulary, part, at)
            at += len(part.encode())
        else:
            content = vocabulary.token_bytes[part]
            found.append(Placed(part, Place(at), Place(at + len(content)), content))
            at += len(content)
    return found


def _place_segment(vocabulary: Vocabulary, segment: str, base: int) -> Iterator[Placed]:
    ids, stops = vocabulary.encode_segment(segment)
    units = _Units.of(vocabulary.spelling, segment, base)
    start = Place(base)
    for token, stop in zip(ids.tolist(), units.places(stops), strict=True):
        yield Placed(token, start, stop, vocabulary.token_bytes[token])
        start = stop


@dataclass(frozen=True, slots=True)
class _Units:
    """A segment cut into stretches, each of which is spelled by itself."""

    raw: Lengths  # where each begins in the text, and the end
    spelled: Lengths  # where each begins in the spelled segment, and the end
    same: npt.NDArray[np.bool_]  # whether it is spelled as it is written

    @classmethod
    def of(cls, spelling: Spelling, segment: str, base: int) -> _Units:
        size = len(segment.encode())
        if not segment or spelling.spell(segment) == segment:
            return cls.make([size], [size], [True], base)
        if spelling.low_line:
            return cls._low_line(spelling, segment, base)
        chunks = list(normal_chunks(segment))
        normal = [nfc(chunk) for chunk in chunks]
        same = [a == b for a, b in zip(chunks, normal, strict=True)]
        return cls.make(_sizes(chunks), _sizes(normal), same, base)

    @classmethod
    def _low_line(cls, spelling: Spelling, segment: str, base: int) -> _Units:
        """Every character for itself; the dummy prefix stands for no text."""
        raw = _sizes(segment)
        spelled = [3 if c == " " else size for c, size in zip(segment, raw, strict=True)]
        same = [c != " " for c in segment]
        if spelling.dummy_prefix:
            raw, spelled, same = [0, *raw], [3, *spelled], [False, *same]
        return cls.make(raw, spelled, same, base)

    @classmethod
    def make(
        cls, raw: Sequence[int], spelled: Sequence[int], same: Sequence[bool], base: int
    ) -> _Units:
        """From the lengths of the stretches."""
        return cls(
            np.cumsum([base, *raw], dtype=np.int64),
            np.cumsum([0, *spelled], dtype=np.int64),
            np.array([*same, True]),
        )

    def places(self, stops: Lengths) -> Iterator[Place]:
        """The places of boundaries given in bytes of the spelled segment."""
        unit = np.searchsorted(self.spelled, stops, side="right") - 1
        inside = stops - self.spelled[unit]
        offset = self.raw[unit] + np.where(self.same[unit], inside, 0)
        inside = np.where(self.same[unit], 0, inside)
        return map(Place, offset.tolist(), inside.tolist())


def _sizes(parts: Iterable[str]) -> list[int]:
    return [len(part.encode()) for part in parts]


def boundaries(tokens: Iterable[Placed], size: int) -> set[Place]:
    """The places between tokens, the text's start and end left out: every tokenizer has those."""
    return {token.stop for token in tokens} - {Place(0), Place(size)}
