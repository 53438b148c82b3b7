"""Appendix C.1: scoring by beam search over bytes, and sampling a next token by rejection.

Both rest on white space only ever *starting* a token.  A splitter that cuts before white space
guarantees it; `beam_probability` is then exact once the beam is wide enough.  Without such a
splitter it is wrong however wide the beam.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from crosstok.reference.bpe import SmallBpe, Token, Tokens
    from crosstok.reference.conversion import ByteView

WHITESPACE = b" "
ATTEMPTS = 10_000

Beam = tuple[bytes, bool, float]
"""A continuation's bytes, whether the text ends there, and its probability."""


def beam_probability(
    view: ByteView,
    target: SmallBpe,
    encoding: Tokens,
    beams: int | None = None,
    whitespace: bytes = WHITESPACE,
) -> float:
    """P(e) ≈ P_0(s) − Σ P_0(s') over the s' of Π that the beams found; all of them for None.

    Under a splitter that cuts before white space each Π term is a loss for certain, so fewer beams
    can only give more than the truth.
    """
    body, ended = target.strip_eos(encoding)
    if not target.is_canonical(encoding) and ended:
        return 0.0
    data = target.decode(body)
    if ended:
        return view.ending(data)
    found = search_beams(view, data, beams, whitespace)
    spent = (p for text, _, p in found if not _begins_with(target, text, encoding))
    return view.probability(data) - math.fsum(spent)


def _begins_with(target: SmallBpe, data: bytes, encoding: Tokens) -> bool:
    return target.encode(data)[: len(encoding)] == encoding


def search_beams(
    view: ByteView, data: bytes, beams: int | None = None, whitespace: bytes = WHITESPACE
) -> list[Beam]:
    """The candidates s': continuations of ``data`` up to the first white space or the end.

    After every byte the ``beams`` likeliest stay, finished ones among them.
    """
    open_beams: list[Beam] = [(data, False, view.probability(data))]
    finished: list[Beam] = []
    while open_beams:
        grown = [beam for parent in open_beams for beam in _grow(view, parent)]
        best = sorted(finished + grown, key=lambda beam: -beam[2])[:beams]
        finished = [beam for beam in best if is_finished(beam, whitespace)]
        open_beams = [beam for beam in best if not is_finished(beam, whitespace)]
    return finished


def _grow(view: ByteView, parent: Beam) -> Iterator[Beam]:
    data, _, probability = parent
    if not probability:
        return
    for value, p in view.row(data).items():
        yield (data + (value or b""), value is None, probability * p)


def is_finished(beam: Beam, whitespace: bytes = WHITESPACE) -> bool:
    """Has a continuation ended the text, or is its last byte white space?"""
    text, ended, _ = beam
    return ended or text[-1] in whitespace


def sample_next_token(
    view: ByteView,
    target: SmallBpe,
    encoding: Tokens,
    dice: random.Random,
) -> Token:
    """Draw t ~ P(· | e): draw bytes behind e, keep the draw if its encoding begins with e·t.

    Erratum: the paper stops at the first white space.  White space as the very first byte drawn
    *begins* the next token and does not say which it is; the draw goes on to the next one.
    """
    start = target.decode(encoding)
    for _ in range(ATTEMPTS):
        text, ended = draw_text(view, start, dice)
        encoded = target.encode(text, end=ended)
        if len(encoded) > len(encoding) and encoded[: len(encoding)] == encoding:
            return encoded[len(encoding)]
    raise ValueError(f"{ATTEMPTS} draws never began with {encoding}")


def draw_text(
    view: ByteView, start: bytes, dice: random.Random, whitespace: bytes = WHITESPACE
) -> tuple[bytes, bool]:
    """Draw bytes behind ``start`` until the end, or until white space ends the first new piece."""
    data = start
    while True:
        row = view.row(data)
        value = dice.choices(list(row), weights=list(row.values()))[0]
        if value is None:
            return data, True
        data += value
        if len(data) > len(start) + 1 and value in whitespace:
            return data, False
