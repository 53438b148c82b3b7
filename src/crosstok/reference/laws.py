"""Which native sequences count: the laws `canonical`, `raw` and `given-ids`.

The vocabulary {a, b, ab} with P(a) = P(ab) = ½ and P(b | a) = .4 shows that they are three
different numbers for the text "ab":

>>> from crosstok.reference.bpe import SmallBpe
>>> from crosstok.reference.models import GivenTable
>>> small = SmallBpe("ab", [("a", "b")])
>>> model = GivenTable(small, {(): {"a": .5, "ab": .5}, ("a",): {"b": .4, "<eos>": .6}})
>>> CanonicalLaw(model).probability(("ab",))
0.5
>>> raw = RawLaw(model)
>>> raw.probability(("ab",)) + raw.probability(("a", "b"))
0.7
>>> given_ids_probability(model, ("a", "b"))
0.2
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from crosstok.reference.viability import viable_next

if TYPE_CHECKING:
    from crosstok.reference.bpe import SmallBpe, Tokens
    from crosstok.reference.models import Model, Row


class DeadEnd(ValueError):
    """A row without any viable mass, met on the path that was asked about."""


class Law(Protocol):
    """A distribution over native token sequences, one row at a time."""

    @property
    def vocabulary(self) -> SmallBpe:
        """The native vocabulary."""
        ...

    def row(self, prefix: Tokens) -> Row:
        """The probabilities of the next native token after ``prefix``."""
        ...


class CanonicalLaw:
    """At each step only viable next tokens, renormalised over them."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.smallest_viable_mass = 1.0
        self._rows: dict[Tokens, Row] = {}

    @property
    def vocabulary(self) -> SmallBpe:
        """The native vocabulary."""
        return self.model.vocabulary

    def row(self, prefix: Tokens) -> Row:
        """The model's row over viable tokens; raises `DeadEnd` if they have no mass."""
        if prefix not in self._rows:
            self._rows[prefix] = self._renormalised(prefix)
        return self._rows[prefix]

    def _renormalised(self, prefix: Tokens) -> Row:
        row = self.model.row(prefix)
        kept = {t: row[t] for t in viable_next(self.vocabulary, prefix) if row.get(t, 0.0) > 0}
        mass = math.fsum(kept.values())
        if not mass:
            raise DeadEnd(f"no viable token has any probability after {prefix}")
        self.smallest_viable_mass = min(self.smallest_viable_mass, mass)
        return {token: p / mass for token, p in kept.items()}

    def leak(self, prefix: Tokens) -> tuple[float, float]:
        """The mass that the law removes after ``prefix``, and the control tokens' part of it."""
        row = self.model.row(prefix)
        viable = viable_next(self.vocabulary, prefix)
        removed = math.fsum(p for token, p in row.items() if token not in viable)
        control = math.fsum(row.get(token, 0.0) for token in self.vocabulary.controls)
        return removed, control

    def probability(self, tokens: Tokens) -> float:
        """P that a native sequence begins with ``tokens``; 0 if they are not viable."""
        return _product(self, tokens)


class RawLaw:
    """Every native sequence counts, decodable or not."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @property
    def vocabulary(self) -> SmallBpe:
        """The native vocabulary."""
        return self.model.vocabulary

    def row(self, prefix: Tokens) -> Row:
        """The model's row as it is."""
        return self.model.row(prefix)

    def probability(self, tokens: Tokens) -> float:
        """P that a native sequence begins with exactly these tokens."""
        return _product(self, tokens)


def given_ids_probability(model: Model, tokens: Tokens) -> float:
    """The plain product for exactly these native tokens; says nothing about their text."""
    return _product(model, tokens)


def _product(rows: Law | Model, tokens: Tokens) -> float:
    probability = 1.0
    for i, token in enumerate(tokens):
        probability *= rows.row(tokens[:i]).get(token, 0.0)
        if not probability:
            return 0.0
    return probability
