"""Language models small enough for brute force: exact tables and n-grams that surely end."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Protocol

from crosstok.reference.bpe import SmallBpe, Token, Tokens
from crosstok.reference.viability import is_viable, viable_next

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = dict[Token, float]


class Model(Protocol):
    """A native language model: a vocabulary and next-token rows."""

    @property
    def vocabulary(self) -> SmallBpe:
        """The native vocabulary."""
        ...

    def row(self, prefix: Tokens) -> Row:
        """The probabilities of the next token, EOS among them, after ``prefix``."""
        ...


class GivenTable:
    """A model written out by hand; prefixes that are not listed end at once.

    >>> model = GivenTable(SmallBpe("ab", [("a", "b")]), {(): {"a": .5, "ab": .5}})
    >>> model.row(("ab",))
    {'<eos>': 1.0}
    """

    def __init__(self, vocabulary: SmallBpe, table: dict[Tokens, Row]) -> None:
        self.vocabulary = vocabulary
        self.table = table

    def row(self, prefix: Tokens) -> Row:
        """The listed row, or EOS."""
        return dict(self.table.get(prefix, {self.vocabulary.eos: 1.0}))


class TableLM:
    """A random table: the row depends on the last ``context`` tokens (on all, if None).

    Rows are drawn from ``seed`` and the context alone, so the same arguments give the same model.
    A share ``leak`` of every row goes to random tokens, viable or not, control tokens among them;
    the rest to viable ones.  Texts end once they have ``limit`` bytes and may end.
    """

    def __init__(
        self,
        vocabulary: SmallBpe,
        seed: int,
        *,
        limit: int = 5,
        context: int | None = None,
        leak: float = 0.0,
    ) -> None:
        self.vocabulary = vocabulary
        self.seed = seed
        self.limit = limit
        self.context = context
        self.leak = leak
        self._rows: dict[Tokens, Row] = {}

    def row(self, prefix: Tokens) -> Row:
        """The row drawn for this context, or the one that a text's end forces."""
        if prefix not in self._rows:
            forced = forced_end(self.vocabulary, prefix, self.limit)
            self._rows[prefix] = self._draw(prefix) if forced is None else forced
        return dict(self._rows[prefix])

    def _draw(self, prefix: Tokens) -> Row:
        seen = prefix if self.context is None else prefix[max(0, len(prefix) - self.context) :]
        dice = random.Random(repr((self.seed, seen)))
        weights = {token: dice.random() ** 2 + 0.02 for token in self._everything()}
        viable = viable_next(self.vocabulary, prefix) if is_viable_prefix(self, prefix) else ()
        lawful = _normalised({token: weights[token] for token in viable})
        leak = self.leak if lawful else 1.0
        anything = _normalised({token: dice.random() for token in self._everything()})
        return _mixed(lawful, anything, leak)

    def _everything(self) -> Tokens:
        return (*self.vocabulary.tokens, self.vocabulary.eos, *self.vocabulary.controls)


class NgramLM:
    """Counts of encoded texts, smoothed by ``smoothing`` over the whole vocabulary.

    Smoothing gives non-viable tokens some mass, as real models do.

    >>> small = NgramLM(SmallBpe("ab", [("a", "b")]), ["ab", "aab"], order=2, limit=4)
    >>> row = small.row(("a",))
    >>> round(row["ab"], 3), round(row["b"], 3)
    (0.786, 0.071)
    """

    def __init__(
        self,
        vocabulary: SmallBpe,
        texts: Iterable[str],
        *,
        order: int = 2,
        smoothing: float = 0.1,
        limit: int = 6,
    ) -> None:
        self.vocabulary = vocabulary
        self.order = order
        self.smoothing = smoothing
        self.limit = limit
        self._counts: Counter[Tokens] = Counter()
        for text in texts:
            self._count(vocabulary.encode(text, end=True))

    def _count(self, tokens: Tokens) -> None:
        for i, token in enumerate(tokens):
            context = tokens[max(0, i - self.order + 1) : i]
            self._counts[(*context, token)] += 1

    def row(self, prefix: Tokens) -> Row:
        """Smoothed counts, or the row that a text's end forces."""
        forced = forced_end(self.vocabulary, prefix, self.limit)
        if forced is not None:
            return forced
        context = prefix[max(0, len(prefix) - self.order + 1) :]
        names = (*self.vocabulary.tokens, self.vocabulary.eos, *self.vocabulary.controls)
        counts = {token: self._counts[(*context, token)] + self.smoothing for token in names}
        return _normalised(counts)


def is_viable_prefix(model: Model, prefix: Tokens) -> bool:
    """Is the sequence one that a canonical text may begin with (EOS excluded)?"""
    return model.vocabulary.eos not in prefix and is_viable(model.vocabulary, prefix)


def forced_end(vocabulary: SmallBpe, prefix: Tokens, limit: int) -> Row | None:
    """The row that ends a text of ``limit`` bytes or more; None for shorter ones.

    EOS is forced only where a text may end.  Elsewhere (half a character) the row forces the
    shortest way to such a place; after a non-viable sequence every place will do.
    """
    spelled = len(vocabulary.decode(prefix)) + sum(t in vocabulary.controls for t in prefix)
    if spelled < limit:
        return None
    if not is_viable(vocabulary, prefix):
        return {vocabulary.eos: 1.0}
    return {shortest_ending(vocabulary, prefix)[0]: 1.0}


def shortest_ending(vocabulary: SmallBpe, prefix: Tokens) -> Tokens:
    """The fewest viable tokens, EOS last, that end a text which begins with ``prefix``."""
    waiting: list[Tokens] = [()]
    for more in waiting:
        following = viable_next(vocabulary, prefix + more)
        if vocabulary.eos in following:
            return (*more, vocabulary.eos)
        waiting.extend((*more, token) for token in following)
    raise ValueError(f"no text begins with {prefix}")


def _normalised(weights: Row) -> Row:
    total = sum(weights.values())
    return {token: weight / total for token, weight in weights.items()}


def _mixed(lawful: Row, anything: Row, leak: float) -> Row:
    tokens = anything if leak else lawful
    row = {t: (1 - leak) * lawful.get(t, 0.0) + leak * anything.get(t, 0.0) for t in tokens}
    return {token: mass for token, mass in row.items() if mass > 0}
