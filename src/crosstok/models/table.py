"""`TableModel`: a language model that is a table, exact in float64.  For tests and small truths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from crosstok.errors import BadInput, ModelError
from crosstok.models.dense import DenseRows
from crosstok.models.protocol import (
    Bools,
    Evaluation,
    Floats,
    Forest,
    Handle,
    Noise,
    check_forest,
    checked_ids,
    unknown_handle,
    wanted_rows,
)

Prefix = tuple[int, ...]
Table = Callable[[Prefix], npt.ArrayLike]
SUM_TOLERANCE = 1e-9
REMEMBERED = 1 << 14  # rows


class _Place(Handle):
    __slots__ = ("prefix",)

    def __init__(self, prefix: Prefix) -> None:
        super().__init__(len(prefix))
        self.prefix = prefix


class TableModel:
    """Rows come from a function of the ids so far; they must sum to one.

    >>> coin = TableModel(lambda prefix: [0.5, 0.5], 2)
    >>> coin.evaluate(Forest.path([0, 1]), rows=[1]).rows.to_host().tolist()
    [[0.5, 0.5]]
    """

    row_at_start = True
    noise = Noise()

    def __init__(self, table: Table, vocabulary_size: int, *, context_window: int = 4096) -> None:
        self.vocabulary_size = vocabulary_size
        self.context_window = context_window
        self._row = lru_cache(REMEMBERED)(lambda prefix: self._checked(table(prefix), prefix))
        self._places: set[_Place] = set()

    @classmethod
    def of_prefixes(
        cls,
        rows: Mapping[Prefix, npt.ArrayLike],
        *,
        otherwise: npt.ArrayLike | None = None,
        context_window: int = 4096,
    ) -> Self:
        """A row for each whole prefix that is listed, and one for all that are not."""

        def table(prefix: Prefix) -> npt.ArrayLike:
            found = rows.get(prefix, otherwise)
            return _unlisted(prefix) if found is None else found

        return cls(table, _width(rows), context_window=context_window)

    @classmethod
    def of_ngrams(cls, rows: Mapping[Prefix, npt.ArrayLike], *, context_window: int = 4096) -> Self:
        """A row for the last ids: that of the longest suffix listed."""
        longest = max(map(len, rows), default=0)

        def table(prefix: Prefix) -> npt.ArrayLike:
            for begin in range(max(0, len(prefix) - longest), len(prefix) + 1):
                if prefix[begin:] in rows:
                    return rows[prefix[begin:]]
            return _unlisted(prefix)

        return cls(table, _width(rows), context_window=context_window)

    @classmethod
    def random(
        cls,
        vocabulary_size: int,
        *,
        seed: int = 0,
        order: int | None = None,
        concentration: float = 1.0,
        allowed: Callable[[Prefix], Bools] | None = None,
        context_window: int = 4096,
    ) -> Self:
        """Rows drawn from a Dirichlet, one for each prefix or for each ``order`` last ids.

        Without ``allowed`` every token has mass after every prefix, so that most of them leak;
        with it only the tokens that its mask allows.
        """

        def table(prefix: Prefix) -> npt.ArrayLike:
            known = prefix if order is None else prefix[max(0, len(prefix) - order) :]
            draws = np.random.default_rng([seed, len(known), *known])
            weights = draws.gamma(concentration, size=vocabulary_size)
            if allowed is not None:
                weights = weights * allowed(prefix)
            return weights / (weights.sum() or 1.0)

        return cls(table, vocabulary_size, context_window=context_window)

    @property
    def description(self) -> str:
        return f"table over {self.vocabulary_size} tokens, float64"

    @property
    def cached(self) -> int:
        return sum(place.length for place in self._places)

    def evaluate(
        self, forest: Forest, *, rows: npt.ArrayLike | None = None, keep: npt.ArrayLike = ()
    ) -> Evaluation:
        roots = [self._prefix_of(root) for root in forest.roots]
        check_forest(forest, self)
        wanted = wanted_rows(forest, rows)
        kept = checked_ids(keep, len(forest), "nodes to keep")
        prefixes = _prefixes(forest, roots)
        places = tuple(_Place(prefixes[node]) for node in kept)
        found = [self._row(prefixes[at] if at >= 0 else roots[-1 - at]) for at in wanted]
        self._places.update(places)
        return Evaluation(DenseRows(np.reshape(found, (-1, self.vocabulary_size))), places)

    def place(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return array

    def release(self, handles: Sequence[Handle]) -> None:
        for handle in handles:
            self._prefix_of(handle)
            self._places.remove(handle)  # type: ignore[arg-type]  # the line above knows it

    def _prefix_of(self, root: Handle | None) -> Prefix:
        if root is None:
            return ()
        if not isinstance(root, _Place) or root not in self._places:
            raise unknown_handle()
        return root.prefix

    def _checked(self, values: npt.ArrayLike, prefix: Prefix) -> Floats:
        row = np.asarray(values, np.float64)
        if row.shape != (self.vocabulary_size,):
            raise BadInput.explain(
                f"a row of {self.vocabulary_size} probabilities after {prefix}",
                f"shape {list(row.shape)}",
                "give every token a probability",
            )
        # Written so that NaN fails too.
        if not (row.min() >= 0 and abs(row.sum() - 1) <= SUM_TOLERANCE):
            raise ModelError.explain(
                f"probabilities that sum to one after {prefix}",
                f"a sum of {row.sum()} and a least entry of {row.min()}",
                "mend the table",
            )
        return row


def _prefixes(forest: Forest, roots: Sequence[Prefix]) -> list[Prefix]:
    found: list[Prefix] = []
    for token, parent in zip(forest.tokens.tolist(), forest.parents.tolist(), strict=True):
        above = found[parent] if parent >= 0 else roots[-1 - parent]
        found.append((*above, token))
    return found


def _width(rows: Mapping[Prefix, npt.ArrayLike]) -> int:
    if not rows:
        raise BadInput.explain("at least one row", "an empty table", "list some prefix")
    return len(np.asarray(next(iter(rows.values()))))


def _unlisted(prefix: Prefix) -> npt.ArrayLike:
    raise ModelError.explain(
        f"a row for the prefix {prefix}", "none in the table", "list it, or give a row for the rest"
    )
