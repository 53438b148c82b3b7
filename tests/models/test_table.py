"""Tables as models, and that the conformance check notices a broken promise."""

from __future__ import annotations

import numpy as np
import pytest

from crosstok.errors import BadInput, CrosstokError, ModelError
from crosstok.models import Evaluation, Forest, TableModel, conformance
from crosstok.models.dense import DenseRows

SIZE = 11


def table(**changes):
    return TableModel.random(SIZE, **{"seed": 3, "context_window": 30, **changes})


@pytest.mark.parametrize(
    "model",
    [
        table(),
        table(order=1),
        table(concentration=0.05),
        TableModel.of_ngrams({(): np.full(3, 1 / 3), (1,): [0, 0.5, 0.5], (2, 1): [1, 0, 0]}),
        TableModel.of_prefixes({(): [0.5, 0.5]}, otherwise=[0.25, 0.75]),
    ],
)
def test_tables_keep_the_promises(model):
    report = conformance.check(model)
    assert report.distances["rows in the order asked for"] == 0
    assert "a tree's rows as separate paths give them" in str(report)


def test_prefixes_and_ngrams_are_looked_up_as_they_say():
    prefixes = TableModel.of_prefixes({(): [1, 0], (0,): [0.5, 0.5]}, otherwise=[0, 1])
    rows = prefixes.evaluate(Forest.path([0, 0]), rows=[-1, 0, 1]).rows.to_host()
    assert rows.tolist() == [[1, 0], [0.5, 0.5], [0, 1]]
    ngrams = TableModel.of_ngrams({(): [1, 0], (1,): [0, 1], (0, 1): [0.5, 0.5]})
    rows = ngrams.evaluate(Forest.path([1, 1, 0, 1])).rows.to_host()
    assert rows.tolist() == [[0, 1], [0, 1], [1, 0], [0.5, 0.5]]


def test_random_rows_respect_the_mask_and_the_order():
    even = np.arange(SIZE) % 2 == 0
    rows = table(allowed=lambda prefix: even).evaluate(Forest.path([1, 2])).rows.to_host()
    assert (rows[:, ~even] == 0).all()
    assert (rows[:, even] > 0).all()
    rows = table(order=1).evaluate(Forest.path([1, 2, 1])).rows.to_host()
    assert (rows[0] == rows[2]).all()
    assert (rows[0] != rows[1]).any()


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        ([0.5, 0.6], ModelError, "sum to one"),
        ([1.5, -0.5], ModelError, "sum to one"),
        ([np.nan, 1], ModelError, "sum to one"),
        ([1.0], BadInput, "2 probabilities"),
    ],
)
def test_a_row_that_is_no_distribution_is_named(row, error, message):
    with pytest.raises(error, match=message):
        TableModel(lambda prefix: row, 2).evaluate(Forest.path([0]))


def test_a_prefix_that_is_not_listed_is_named():
    with pytest.raises(ModelError, match=r"prefix \(0, 1\)"):
        TableModel.of_prefixes({(0,): [1, 0]}).evaluate(Forest.path([0, 1]))
    with pytest.raises(BadInput, match="an empty table"):
        TableModel.of_prefixes({})


# -- the conformance check can fail ----------------------------------------------------------------


class Broken(TableModel):
    """A table that breaks one promise."""

    def __init__(self, broken):
        random = np.random.default_rng(0).dirichlet(np.ones(SIZE), 40)
        super().__init__(lambda prefix: random[sum(prefix) % 40], SIZE, context_window=30)
        self.broken = broken

    def evaluate(self, forest, *, rows=None, keep=()):
        if self.broken == "ids" and (forest.tokens >= SIZE).any():
            forest = Forest(forest.tokens % SIZE, forest.parents, forest.roots)
        if self.broken == "siblings" and len(forest) > 1:
            blind = np.arange(-1, len(forest) - 1, dtype=np.int32)
            parents = np.where(forest.parents >= 0, blind, forest.parents)
            forest = Forest(forest.tokens, parents, forest.roots)
        if self.broken == "roots":
            forest = Forest(forest.tokens, forest.parents, tuple(None for _ in forest.roots))
        found, handles = super().evaluate(forest, rows=rows, keep=keep)
        return Evaluation(self.spoilt(found), handles)

    def spoilt(self, found):
        p_nv = found.to_host()
        if self.broken == "sums":
            return DenseRows(p_nv * 0.999)
        if self.broken == "order":
            return DenseRows(p_nv[::-1])
        return Slip(p_nv, self.broken)

    def release(self, handles):
        if self.broken != "leak":
            super().release(handles)


class Slip(DenseRows):
    """Rows with one wrong answer."""

    def __init__(self, p_nv, broken):
        super().__init__(p_nv)
        self.broken = broken

    def restrict(self, masks, which):
        found = super().restrict(masks, which)
        return found._replace(rows=self) if self.broken == "restrict" else found

    def mass(self, masks, which, rows=None):
        return super().mass(masks, which, rows) * (0.99 if self.broken == "mass" else 1)

    def pick(self, rows, tokens):
        return super().pick(rows, (tokens + 1) % SIZE if self.broken == "pick" else tokens)

    def combine(self, plan):
        found = super().combine(plan)
        return found._replace(lost=found.lost * 0) if self.broken == "lost" else found

    def top(self, k):
        found = super().top(k)
        return found._replace(tail=found.tail + 1e-6) if self.broken == "tail" else found

    def take(self, rows):
        return super().take(rows[::-1] * 0) if self.broken == "take" else super().take(rows)


BREAKS = {
    "ids": "token 11 to be refused",
    "siblings": "separate paths",
    "roots": "hung on a handle",
    "sums": "sum to one",
    "order": "as its prefixes give them|in the order asked for|separate paths",
    "leak": "a cache that",
    "restrict": "renormalised over masks",
    "mass": "masses of masks",
    "pick": "probabilities of given tokens",
    "lost": "sends nowhere",
    "tail": "the tail beyond",
    "take": "taken and joined",
}


def test_the_unbroken_one_passes():
    conformance.check(Broken("nothing"))


@pytest.mark.parametrize("broken", BREAKS)
def test_a_broken_promise_is_named(broken):
    with pytest.raises(CrosstokError, match=BREAKS[broken]):
        conformance.check(Broken(broken))
