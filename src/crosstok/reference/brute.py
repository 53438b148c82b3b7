"""Brute force: every native sequence that the model can produce, one by one.

Nothing here is clever, and everything else is measured against it.

>>> from crosstok.reference.bpe import SmallBpe
>>> from crosstok.reference.laws import CanonicalLaw
>>> from crosstok.reference.models import GivenTable
>>> native = SmallBpe("12", [("1", "2"), ("12", "2")])
>>> model = GivenTable(native, {(): {"12": .75, "122": .25}, ("12",): {"1": .5, "<eos>": .5}})
>>> law = CanonicalLaw(model)
>>> law.row(("12",)).get("2", 0.0)             # natively, 2 never follows 12 ...
0.0
>>> truth = BruteForce(law, native.truncate(0))
>>> truth.row(("1", "2"))["2"]                 # ... but the text does go on with a 2
0.25
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import TYPE_CHECKING

from crosstok.reference.bpe import SmallBpe, Token, Tokens
from crosstok.reference.laws import CanonicalLaw, DeadEnd, RawLaw
from crosstok.reference.viability import characters, settled, split_utf8

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crosstok.reference.models import Row

CONTROL: Token = "<control>"
UNDECODABLE: Token = "<undecodable>"
DEAD_END: Token = "<dead-end>"

Ending = tuple[Tokens, Token, float]


def native_endings(law: CanonicalLaw | RawLaw) -> Iterator[Ending]:
    """All native sequences until they end: their tokens, how they ended, their probability.

    They end by EOS; under `raw` also before the first control token (`CONTROL`) and before the
    first token that leaves UTF-8, EOS after half a character included (`UNDECODABLE`); under
    `canonical` at a row without viable mass (`DEAD_END`).
    """
    waiting: list[tuple[Tokens, float]] = [((), 1.0)]
    while waiting:
        prefix, probability = waiting.pop()
        try:
            row = law.row(prefix)
        except DeadEnd:
            yield prefix, DEAD_END, probability
            continue
        for token, p in row.items():
            how = _how_it_ends(law.vocabulary, prefix, token)
            if how is not None:
                yield prefix, how, probability * p
            elif p > 0:
                waiting.append(((*prefix, token), probability * p))


def _how_it_ends(vocabulary: SmallBpe, prefix: Tokens, token: Token) -> Token | None:
    if token in vocabulary.controls:
        return CONTROL
    parts = split_utf8(vocabulary.decode((*prefix, token)))
    ended = token == vocabulary.eos
    if parts is None or (ended and parts[1]):
        return UNDECODABLE
    return token if ended else None


def probability_over_texts(
    law: CanonicalLaw, target: SmallBpe, encoding: Tokens, longest: int
) -> float:
    """P(e) by enumerating texts: the sum of P(text·EOS) over texts of up to ``longest`` characters.

    This is the sum that section 4.3 of the paper writes down before it looks for a finite one.
    It is exact for a model whose texts are no longer than that.
    """
    native = law.vocabulary
    return math.fsum(
        law.probability(native.encode(text, end=True))
        for length in range(longest + 1)
        for text in map("".join, itertools.product(characters(native), repeat=length))
        if target.encode(text, end=True)[: len(encoding)] == encoding
    )


class BruteForce:
    """P(e) and next-token rows over a target vocabulary, by enumeration.

    Every native sequence becomes one target sequence: the encoding of its text and EOS, or what
    its text had settled and the class that cut it off.  P(e) is the mass of those beginning with
    e, so P(x) = Σ P(x·t) over target tokens, EOS and classes holds by construction, and what it
    tests is the enumeration.
    """

    def __init__(self, law: CanonicalLaw | RawLaw, target: SmallBpe) -> None:
        self.law = law
        self.target = target
        self._masses: dict[Tokens, list[float]] = defaultdict(list)
        for tokens, how, probability in native_endings(law):
            self._add(self._target_sequence(tokens, how), probability)

    def _target_sequence(self, tokens: Tokens, how: Token) -> Tokens:
        data = self.law.vocabulary.decode(tokens)
        if how == self.law.vocabulary.eos:
            return self.target.encode(data, end=True)
        return (*settled(self.target, data), how)

    def _add(self, sequence: Tokens, probability: float) -> None:
        for length in range(len(sequence) + 1):
            self._masses[sequence[:length]].append(probability)

    def prefixes(self) -> list[Tokens]:
        """Every target prefix that has any probability, shortest first."""
        return sorted(self._masses, key=lambda prefix: (len(prefix), prefix))

    def probability(self, encoding: Tokens) -> float:
        """P(e): the target encoding begins with ``encoding``."""
        return math.fsum(self._masses.get(encoding, ()))

    def row(self, encoding: Tokens) -> Row:
        """P(t | e) for target tokens, EOS, `CONTROL`, `UNDECODABLE` and `DEAD_END`."""
        whole = self.probability(encoding)
        if not whole:
            raise ValueError(f"no text begins with {encoding}")
        names = (*self.target.tokens, self.target.eos, CONTROL, UNDECODABLE, DEAD_END)
        joint = {token: self.probability((*encoding, token)) for token in names}
        return {token: mass / whole for token, mass in joint.items() if mass > 0}
