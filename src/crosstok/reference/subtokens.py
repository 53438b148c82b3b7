"""Algorithm 3: the next sub-token, full vocabulary to subset, one model row a step.

>>> from crosstok.reference.laws import CanonicalLaw
>>> from crosstok.reference.models import GivenTable
>>> native = SmallBpe("12", [("1", "2"), ("12", "2")])
>>> model = GivenTable(native, {(): {"12": .75, "122": .25}, ("12",): {"1": .5, "<eos>": .5}})
>>> digits = SubsetModel(CanonicalLaw(model), 0)
>>> digits.row(("1", "2"))
{'1': 0.375, '<eos>': 0.375, '2': 0.25}
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from crosstok.reference.bpe import SmallBpe, Token, Tokens
from crosstok.reference.relative import relative_decode, relative_encode
from crosstok.reference.viability import viable_next

if TYPE_CHECKING:
    from crosstok.reference.laws import Law
    from crosstok.reference.models import Row

WeightedCovers = dict[Tokens, float]


def first_subtoken(vocabulary: SmallBpe, token: Token, start: int) -> Token:
    """The t' with τ(t, t') = 1: the first token of decode_{M→M'}(t); EOS is its own."""
    return relative_decode(vocabulary, (token,), start)[0]


def subtoken_mass(vocabulary: SmallBpe, row: Row, start: int) -> Row:
    """Q · P: the row's mass by first sub-token.

    Erratum (Q): printed as "t' is a prefix of t", Q has a column of sum 2 for `aba` in
    V₁ = {a, b, ab} and V₂ = V₁ ∪ {aba}, of which a and ab are both prefixes.  The first relative
    sub-token τ is meant, and there is one.

    >>> small = SmallBpe("ab", [("a", "b"), ("ab", "a")])
    >>> subtoken_mass(small, {"aba": 1.0}, 1)
    {'ab': 1.0}
    """
    mass: defaultdict[Token, float] = defaultdict(float)
    for token, p in row.items():
        mass[first_subtoken(vocabulary, token, start)] += p
    return dict(mass)


def valid_row(vocabulary: SmallBpe, prefix: Tokens, row: Row) -> Row:
    """The row over viable next tokens, renormalised: the canonical law's row.

    Erratum (Q · P): the paper asks `is_valid` of covers only.  A row of a model that leaks then
    gives sub-tokens mass that no text has, so the same test belongs before Q.
    """
    kept = {t: row[t] for t in viable_next(vocabulary, prefix) if row.get(t, 0.0) > 0}
    whole = math.fsum(kept.values())
    return {token: p / whole for token, p in kept.items()}


def cover_construction(
    vocabulary: SmallBpe, encoding: Tokens, start: int, covers: WeightedCovers, row: Row
) -> WeightedCovers:
    """Cover_Construction: the covers of e, from those of e[:-1] and the row after e[:-1].

    Erratum: the printed version keeps a cover if the *first* sub-token of its last token is
    e[-1].  The last token may begin anywhere in e[:-1]; what must equal e[-1] is its sub-token at
    the place |e|, counted over the whole cover.
    """
    place, wanted = len(encoding) - 1, encoding[-1]
    kept = {
        cover: p
        for cover, p in covers.items()
        if relative_decode(vocabulary, cover, start)[place : place + 1] == (wanted,)
    }
    before = relative_encode(vocabulary, encoding[:-1], start)
    for token, p in valid_row(vocabulary, before, row).items():
        if first_subtoken(vocabulary, token, start) == wanted:
            kept[(*before, token)] = p * covers[before]
    return kept


def next_subtoken(
    vocabulary: SmallBpe, encoding: Tokens, start: int, covers: WeightedCovers, model: Law
) -> Row:
    """Step 2: P_M'(· | e) from the covers of e and one row of the model.

    Erratum: the printed loop reads the sub-token u'[0] behind e of every cover.  The cover that
    is encode_{M'→M}(e) has none; its mass is what Q · P spreads.
    """
    joint: defaultdict[Token, float] = defaultdict(float)
    whole = relative_encode(vocabulary, encoding, start)
    if covers.get(whole, 0.0) > 0:
        row = valid_row(vocabulary, whole, model.row(whole))
        for subtoken, p in subtoken_mass(vocabulary, row, start).items():
            joint[subtoken] += p * covers[whole]
    for cover, p in covers.items():
        behind = relative_decode(vocabulary, cover, start)[len(encoding) :]
        if behind:
            joint[behind[0]] += p
    total = math.fsum(joint.values())
    return {token: p / total for token, p in joint.items()}


class SubsetModel:
    """P_M' as a language model of its own, by Algorithm 3 from each prefix to the next.

    Every prefix asks the native model for one row, that of its own relative encoding; the covers
    and the rows met before are kept.
    """

    def __init__(self, law: Law, start: int) -> None:
        law.vocabulary.require_local()
        self.law = law
        self.start = start
        self.vocabulary = law.vocabulary.truncate(start)
        self._covers: dict[Tokens, WeightedCovers] = {(): {(): 1.0}}

    def row(self, prefix: Tokens) -> Row:
        """P_M'(· | prefix); the prefix must have a probability."""
        covers = self.covers(prefix)
        if not covers:
            raise ValueError(f"no text begins with {prefix}")
        return next_subtoken(self.law.vocabulary, prefix, self.start, covers, self.law)

    def covers(self, prefix: Tokens) -> WeightedCovers:
        """The covers of ``prefix`` and their probabilities; none if it has no probability."""
        if prefix not in self._covers:
            self._covers[prefix] = self._extend(prefix)
        return self._covers[prefix]

    def _extend(self, prefix: Tokens) -> WeightedCovers:
        covers = self.covers(prefix[:-1])
        before = relative_encode(self.law.vocabulary, prefix[:-1], self.start)
        row = self.law.row(before) if covers.get(before, 0.0) > 0 else {}
        return cover_construction(self.law.vocabulary, prefix, self.start, covers, row)

    def probability(self, encoding: Tokens) -> float:
        """P_M'(e), the sum of Lemma 1."""
        return math.fsum(self.covers(encoding).values())
