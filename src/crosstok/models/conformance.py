"""Whether an adapter keeps the promises of `crosstok.models.protocol`.

`check` runs small forests through a model and compares the rows among each other, and the
arithmetic of its rows with plain numpy on the host.  The first broken promise is a `ModelError`
that names it.  Made for adapters of others too::

    from crosstok.models import conformance
    print(conformance.check(my_model))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from crosstok.errors import BadInput, ModelError
from crosstok.models.protocol import (
    NOWHERE,
    Evaluation,
    Floats,
    Forest,
    Handle,
    Ints,
    LanguageModel,
    Plan,
    RowBlock,
)

# Two measurements of the same noise differ, so comparisons allow a multiple of it.
NOISE_FACTOR = 16.0


@dataclass
class Report:
    """The largest distance found for each promise, next to what was allowed."""

    model: str
    tolerance: float
    distances: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{what}: {far:.3g}" for what, far in self.distances.items()]
        return "\n".join([f"{self.model}: allowed {self.tolerance:.3g}", *lines])

    def expect(self, what: str, far: float, allowed: float | None = None) -> None:
        """Record a distance, and stop where it is too large (or not a number)."""
        limit = self.tolerance if allowed is None else allowed
        self.distances[what] = max(far, self.distances.get(what, 0.0))
        if not far <= limit:
            raise ModelError.explain(
                f"{what}, within {limit:.3g}",
                f"a distance of {far:.3g} for {self.model}",
                "mend the adapter: results would depend on how a question is batched",
            )


@dataclass
class _Trial:
    """A model, the report on it, and random forests of its ids."""

    model: LanguageModel
    report: Report
    random: np.random.Generator
    length: int

    def ids(self, count: int) -> Ints:
        return self.random.integers(0, self.model.vocabulary_size, count).astype(np.int32)

    def tree(self, count: int, root: Handle | None = None) -> Forest:
        parents = [int(self.random.integers(-1, node)) for node in range(count)]
        return Forest(self.ids(count), np.array(parents, np.int32), (root,))

    def dense(self, forest: Forest, rows: npt.ArrayLike | None = None) -> Floats:
        return self.model.evaluate(forest, rows=rows).rows.to_host()

    def equal(self, what: str, some: Floats, others: Floats) -> None:
        self.report.expect(what, distance(some, others))


def check(
    model: LanguageModel, *, seed: int = 0, length: int = 12, tolerance: float | None = None
) -> Report:
    """Try every promise on forests of ``length`` tokens a path; raise on the first that is broken.

    ``tolerance`` bounds total variations; by default it is a small multiple of the noise that the
    model states.
    """
    allowed = NOISE_FACTOR * model.noise.worst if tolerance is None else tolerance
    trial = _Trial(model, Report(model.description, allowed), np.random.default_rng(seed), length)
    before = model.cached
    for promise in PROMISES:
        promise(trial)
        trial.report.expect("a cache that empties", abs(model.cached - before), 0)
    return trial.report


def distance(some: Floats, others: Floats) -> float:
    """The largest total variation between rows; infinite where the shapes differ."""
    if some.shape != others.shape:
        return np.inf
    far = 0.5 * np.abs(some - others).sum(-1)
    return float(np.max(far, initial=0.0))


def path_to(forest: Forest, node: int) -> list[int]:
    """The tokens from the root to a node."""
    tokens: list[int] = []
    while node >= 0:
        tokens.append(int(forest.tokens[node]))
        node = int(forest.parents[node])
    return tokens[::-1]


# -- forests ---------------------------------------------------------------------------------------


def _rows_sum_to_one(trial: _Trial) -> None:
    rows = trial.dense(Forest.path(trial.ids(trial.length)))
    shape = (trial.length, trial.model.vocabulary_size)
    trial.report.expect(
        "a row for every node, an entry for every token", float(rows.shape != shape), 0
    )
    trial.report.expect("rows that sum to one", float(np.abs(rows.sum(1) - 1).max()))
    trial.report.expect("no negative probability", float(-rows.min()), 0)


def _a_path_is_its_prefixes(trial: _Trial) -> None:
    ids = trial.ids(trial.length)
    singly = [trial.dense(Forest.path(ids[:end]), [end - 1]) for end in range(1, len(ids) + 1)]
    trial.equal(
        "a path's rows as its prefixes give them",
        trial.dense(Forest.path(ids)),
        np.concatenate(singly),
    )


def _a_tree_is_its_paths(trial: _Trial) -> None:
    tree = trial.tree(2 * trial.length)
    paths = [path_to(tree, node) for node in range(len(tree))]
    singly = [trial.dense(Forest.path(path), [len(path) - 1]) for path in paths]
    trial.equal(
        "a tree's rows as separate paths give them", trial.dense(tree), np.concatenate(singly)
    )


def _order_does_not_matter(trial: _Trial) -> None:
    forests = [trial.tree(size) for size in (1, trial.length, 3)]
    forward = trial.dense(Forest.join(forests))
    backward = trial.dense(Forest.join(forests[::-1]))
    again = np.split(backward, np.cumsum([len(forest) for forest in forests[::-1]])[:-1])[::-1]
    trial.equal("rows that ignore the order of a batch", forward, np.concatenate(again))
    chosen = np.array([len(forward) - 1, 0, 0], np.int32)
    some = trial.dense(Forest.join(forests), chosen)
    trial.equal("rows in the order asked for", some, forward[chosen])


def _handles_stand_for_paths(trial: _Trial) -> None:
    ids, half = trial.ids(trial.length), trial.length // 2
    first = trial.model.evaluate(Forest.path(ids[:half]), rows=[half - 1], keep=[half - 1, 0])
    end, begin = first.handles
    trial.report.expect("handles that know their length", abs(end.length - half), 0)
    whole = trial.dense(Forest.path(ids))
    second = _hung(trial, ids[half:], end)
    trial.equal("a path hung on a handle as the whole path", second.rows.to_host(), whole[half:])
    other = trial.tree(trial.length, begin)
    paths = [[int(ids[0]), *path_to(other, node)] for node in range(len(other))]
    singly = np.concatenate([trial.dense(Forest.path(path), [len(path) - 1]) for path in paths])
    # Both at once, a root's own row among them, and one root used twice.
    both = Forest.join([other, Forest.path(ids[half:], end), other])
    wanted = np.r_[np.arange(len(other)), -2, -1, np.arange(len(both) - len(other), len(both))]
    expected = np.concatenate([singly, whole[[half - 1]], whole[[0]], singly])
    trial.equal("forests hung on several handles", trial.dense(both, wanted), expected)
    trial.model.release([*first.handles, *second.handles])


def _hung(trial: _Trial, ids: Ints, root: Handle) -> Evaluation:
    return trial.model.evaluate(Forest.path(ids, root), keep=[len(ids) - 1])


def _handles_outlive_each_other(trial: _Trial) -> None:
    ids = trial.ids(trial.length)
    handles = trial.model.evaluate(Forest.path(ids), keep=range(len(ids))).handles
    held = trial.model.cached
    trial.model.release(handles[1:])
    trial.report.expect("a cache that shrinks", float(not 0 < trial.model.cached < held), 0)
    tail = trial.dense(Forest.path(ids[1:], handles[0]))
    trial.equal("a handle whose neighbours are gone", tail, trial.dense(Forest.path(ids))[1:])
    trial.model.release(handles[:1])


def _the_start_is_a_place(trial: _Trial) -> None:
    forest = Forest.path(trial.ids(2))
    if trial.model.row_at_start:
        sums = trial.dense(forest, [-1]).sum(1)
        trial.report.expect("a row at the start that sums to one", float(np.abs(sums - 1).max()))
    else:
        refused(lambda: trial.model.evaluate(forest, rows=[-1]), "the row of an empty context")


# -- the arithmetic of rows ------------------------------------------------------------------------


def _rows_of(trial: _Trial) -> tuple[RowBlock, Floats]:
    block = trial.model.evaluate(trial.tree(trial.length)).rows
    return block, block.to_host()


def _masks(trial: _Trial, rows: int) -> tuple[npt.NDArray[np.bool_], Ints]:
    masks = trial.random.random((3, trial.model.vocabulary_size)) < 0.5
    masks[:, 0] = [True, False, True]
    return masks, trial.random.integers(0, 3, rows).astype(np.int32)


def _restricting(trial: _Trial) -> None:
    block, p_nv = _rows_of(trial)
    masks, which = _masks(trial, len(p_nv))
    kept_nv, removed_nv = p_nv * masks[which], p_nv * ~masks[which]
    kept = kept_nv.sum(1, keepdims=True)
    expected = np.divide(kept_nv, kept, out=np.zeros_like(p_nv), where=kept > 0)
    for given in (masks, trial.model.place(masks)):
        found = block.restrict(given, which)
        trial.equal("rows renormalised over masks", found.rows.to_host(), expected)
        trial.equal("the mass kept", found.kept[:, None], kept)
        trial.equal("the mass removed", found.removed[:, None], removed_nv.sum(1, keepdims=True))
    nothing = block.restrict(np.zeros_like(masks), which)
    trial.report.expect("no row where nothing is kept", float(nothing.rows.to_host().max()), 0)
    trial.report.expect("no mass where nothing is kept", float(nothing.kept.max()), 0)


def _masses_and_picks(trial: _Trial) -> None:
    block, p_nv = _rows_of(trial)
    rows = trial.random.integers(0, len(p_nv), 2 * len(p_nv)).astype(np.int32)
    masks, which = _masks(trial, len(rows))
    masses = (p_nv[rows] * masks[which]).sum(1)
    trial.equal("masses of masks", block.mass(masks, which, rows)[:, None], masses[:, None])
    tokens = trial.ids(len(rows))
    picked = np.exp(block.pick(rows, tokens))
    trial.equal("probabilities of given tokens", picked[:, None], p_nv[rows, tokens][:, None])


def _combining(trial: _Trial) -> None:
    block, p_nv = _rows_of(trial)
    size, parts, groups = 7, 2 * len(p_nv), 4
    maps = trial.random.integers(NOWHERE, size, (2, p_nv.shape[1])).astype(np.int32)
    row, through, group = (
        trial.random.integers(0, high, parts).astype(np.int32) for high in (len(p_nv), 2, groups)
    )
    weight = trial.random.random(parts) / parts
    plain, mapped = np.zeros((groups, p_nv.shape[1])), np.zeros((groups, size + 1))
    for part in range(parts):
        plain[group[part]] += weight[part] * p_nv[row[part]]
        # The last column is where -1 leads.
        np.add.at(mapped[group[part]], maps[through[part]], weight[part] * p_nv[row[part]])
    found = block.combine(Plan(row, weight, group, groups))
    trial.equal("weighted sums of rows", found.rows.to_host(), plain)
    for given in (maps, trial.model.place(maps)):
        found = block.combine(Plan(row, weight, group, groups, given, through, size))
        trial.equal("weighted sums through maps", found.rows.to_host(), mapped[:, :-1])
        trial.equal("what a map sends nowhere", found.lost[:, None], mapped[:, -1:])


def _listing(trial: _Trial) -> None:
    block, p_nv = _rows_of(trial)
    # Half of these tokens get nothing: equal entries, the lowest id of which comes first.
    every_other = 2 * np.arange(p_nv.shape[1], dtype=np.int32)[None]
    spread = Plan.project(len(p_nv), every_other, np.zeros(len(p_nv), np.int32), 2 * p_nv.shape[1])
    for rows in (block, block.combine(spread).rows):
        host = rows.to_host()
        for k in (1, min(5, rows.width), rows.width - 1, rows.width):
            ids = np.argsort(-host, axis=1, kind="stable")[:, :k]
            top = rows.top(k)
            listed = np.take_along_axis(host, ids, 1)
            trial.report.expect(
                "the likeliest tokens, the lowest id first", float((top.ids != ids).any()), 0
            )
            trial.equal("their probabilities", np.exp(top.logp), listed)
            tail = np.array(
                [np.delete(row, some).sum() for row, some in zip(host, ids, strict=True)]
            )
            trial.equal("the tail beyond them", top.tail[:, None], tail[:, None])


def _taking_and_joining(trial: _Trial) -> None:
    block, p_nv = _rows_of(trial)
    chosen = np.array([2, 0, 2], np.int32)
    joined = block.take(chosen).join([block, block.take(chosen[:0])])
    trial.equal("rows taken and joined", joined.to_host(), np.concatenate([p_nv[chosen], p_nv]))
    trial.report.expect("a count of rows", abs(len(joined) - len(p_nv) - 3), 0)


# -- refusals --------------------------------------------------------------------------------------


def refused(call: Callable[[], object], what: str) -> None:
    """The call must be answered with `BadInput`."""
    try:
        call()
    except BadInput:
        return
    raise ModelError.explain(f"{what} to be refused as BadInput", "an answer", "mend the adapter")


def _bad_forests_are_refused(trial: _Trial) -> None:
    model, size = trial.model, trial.model.vocabulary_size
    refused(lambda: model.evaluate(Forest.path([0, size])), f"token {size}")
    refused(lambda: model.evaluate(Forest.path([0, -1])), "token -1")
    refused(lambda: Forest.path([]), "an empty forest")
    refused(
        lambda: Forest(np.zeros(2, np.int32), np.array([1, -1], np.int32)),
        "a parent after its child",
    )
    refused(lambda: model.evaluate(Forest.path([0]), rows=[1]), "a row of no node")
    refused(lambda: model.evaluate(Forest.path([0]), rows=[-2]), "a row of no root")
    refused(lambda: model.evaluate(Forest.path([0]), keep=[1]), "a handle to no node")
    long = np.zeros(model.context_window + 1, np.int32)
    refused(lambda: model.evaluate(Forest.path(long), rows=[0]), "a path longer than the window")


def _lost_handles_are_refused(trial: _Trial) -> None:
    model = trial.model
    (handle,) = model.evaluate(Forest.path([0, 0]), keep=[1]).handles
    model.release([handle])
    refused(lambda: model.evaluate(Forest.path([0], handle)), "a released handle")
    refused(lambda: model.release([handle]), "a second release")
    refused(lambda: model.evaluate(Forest.path([0], Handle(1))), "a handle of nobody")


def _bad_arithmetic_is_refused(trial: _Trial) -> None:
    block, p_nv = _rows_of(trial)
    n, width = p_nv.shape
    masks, zero = np.ones((1, width), bool), np.zeros(n, np.int32)
    refused(lambda: block.restrict(masks[:, 1:], zero), "a mask of another width")
    refused(lambda: block.restrict(masks, zero + 1), "a mask that was not given")
    refused(lambda: block.mass(masks, zero[1:]), "a row without a mask")
    refused(lambda: block.pick(zero, zero + width), "a token beyond the vocabulary")
    refused(lambda: block.take(zero + n), "a row beyond the block")
    refused(lambda: block.top(width + 1), "a list longer than a row")
    placed = trial.model.place(np.full((1, width), 3, np.int32))
    refused(lambda: block.combine(Plan.project(n, placed, zero, 3)), "a map beyond its target")
    narrow = block.combine(Plan.project(n, np.zeros((1, width), np.int32), zero, width + 1)).rows
    refused(lambda: block.join([narrow]), "a block of another width")


PROMISES = (
    _rows_sum_to_one,
    _a_path_is_its_prefixes,
    _a_tree_is_its_paths,
    _order_does_not_matter,
    _handles_stand_for_paths,
    _handles_outlive_each_other,
    _the_start_is_a_place,
    _restricting,
    _masses_and_picks,
    _combining,
    _listing,
    _taking_and_joining,
    _bad_forests_are_refused,
    _lost_handles_are_refused,
    _bad_arithmetic_is_refused,
)
