"""What a scorer needs of a language model, and nothing more.

A `Forest` is a batch of token trees.  `LanguageModel.evaluate` runs it in as few passes as the
model allows and gives back the next-token rows that were asked for, as a `RowBlock`, and handles
to places in the model's own cache, on which later forests hang.  Rows stay where the model is.
What leaves them are masses, the likeliest tokens, and the probabilities of given tokens.

Suffixes of array names in this package: n rows, v tokens of the rows, t tokens of a target,
m masks or maps, p parts of a plan, g groups, i questions, k listed tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from crosstok.errors import BadInput

Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
NOWHERE = -1  # what a map gives for a token that has no image


class Handle:
    """A place in a model's cache: the end of a path of ``length`` tokens.  Opaque otherwise.

    It belongs to the model that made it, and lives until it is given to `LanguageModel.release`.
    """

    __slots__ = ("length",)

    def __init__(self, length: int) -> None:
        self.length = length


@dataclass(frozen=True, eq=False)
class Forest:
    """Token trees that hang on handles, or on nothing (None: the empty context).

    Node i holds ``tokens[i]``.  Its parent is the node ``parents[i]`` before it, or, written
    −1 − r, the root ``roots[r]``.

    >>> forest = Forest.join([Forest.path([5, 6, 7]), Forest.path([5])])
    >>> forest.parents.tolist(), len(forest.roots), forest.depths.tolist()
    ([-1, 0, 1, -2], 2, [1, 2, 3, 1])
    """

    tokens: Ints
    parents: Ints
    roots: tuple[Handle | None, ...] = (None,)

    def __post_init__(self) -> None:
        for name in ("tokens", "parents"):
            object.__setattr__(self, name, _ints(getattr(self, name), name))
        _same_length(tokens=self.tokens, parents=self.parents)
        if not len(self.tokens):
            raise BadInput.explain("a forest of at least one node", "none", "skip the call")
        wrong = np.flatnonzero(
            (self.parents >= np.arange(len(self.tokens))) | (self.parents < -len(self.roots))
        )
        if len(wrong):
            raise BadInput.explain(
                f"parents among the nodes before, or from -1 to {-len(self.roots)} for a root",
                f"node {wrong[0]} under {self.parents[wrong[0]]}",
                "list parents before their children",
            )

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def path(cls, tokens: npt.ArrayLike, root: Handle | None = None) -> Self:
        """One line of tokens, such as a document."""
        ids = _ints(tokens, "tokens")
        return cls(ids, np.arange(-1, len(ids) - 1, dtype=np.int32), (root,))

    @classmethod
    def join(cls, forests: Sequence[Forest]) -> Forest:
        """All of them side by side; their nodes and their roots are numbered on."""
        if not forests:
            raise BadInput.explain("at least one forest", "none", "skip the call")
        nodes = np.cumsum([0, *(len(forest) for forest in forests)])
        roots = np.cumsum([0, *(len(forest.roots) for forest in forests)])
        parents = [
            np.where(forest.parents >= 0, forest.parents + node, forest.parents - root)
            for forest, node, root in zip(forests, nodes, roots, strict=False)
        ]
        return Forest(
            np.concatenate([forest.tokens for forest in forests]),
            np.concatenate(parents).astype(np.int32),
            tuple(root for forest in forests for root in forest.roots),
        )

    @property
    def root_of(self) -> Ints:
        """The root under which each node stands."""
        above = self.parents
        while (inner := above >= 0).any():  # each round doubles the step
            above = np.where(inner, above[above.clip(0)], above)
        return -1 - above

    @property
    def depths(self) -> Ints:
        """How many of the forest's tokens end at each node, itself included."""
        above, depths = self.parents, np.ones(len(self), np.int32)
        while (inner := above >= 0).any():
            depths = depths + np.where(inner, depths[above.clip(0)], 0).astype(np.int32)
            above = np.where(inner, above[above.clip(0)], above)
        return depths

    @property
    def lengths(self) -> Ints:
        """How many tokens end at each node, those under its root's handle included."""
        under = np.array([0 if root is None else root.length for root in self.roots], np.int32)
        return self.depths + under[self.root_of]


@runtime_checkable
class Placed(Protocol):
    """An array that `LanguageModel.place` has put where the rows are.  Opaque otherwise."""

    @property
    def shape(self) -> Any: ...


Masks = Bools | Placed  # [M, V]
Maps = Ints | Placed  # [M, V]


@dataclass(frozen=True, eq=False)
class Plan:
    """Weighted sums of rows: part p adds ``weight[p]`` times row ``row[p]`` to ``group[p]``.

    With ``maps``, part p reads its row through ``maps[through[p]]``: the mass of token v goes to
    token ``maps[through[p], v]`` of ``size`` tokens, or `NOWHERE`.  Without, tokens stay as they
    are.
    """

    row: Ints
    weight: Floats
    group: Ints
    groups: int
    maps: Maps | None = None
    through: Ints | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        for name in ("row", "group", "through"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _ints(getattr(self, name), name))
        object.__setattr__(self, "weight", np.asarray(self.weight, np.float64))
        optional = {} if self.through is None else {"through": self.through}
        _same_length(row=self.row, weight=self.weight, group=self.group, **optional)
        _in_range(self.group, self.groups, "groups")
        self._check_maps()
        if not (np.isfinite(self.weight) & (self.weight >= 0)).all():
            raise BadInput.explain(
                "weights that are finite and not negative", str(self.weight), "check the masses"
            )

    def _check_maps(self) -> None:
        given = [part is not None for part in (self.maps, self.through, self.size)]
        if any(given) != all(given):
            raise BadInput.explain(
                "maps, through and size together, or none of them",
                f"{sum(given)} of the three",
                "give what is missing",
            )
        if self.maps is not None and self.through is not None and self.size is not None:
            _in_range(self.through, self.maps.shape[0], "maps")
            if isinstance(self.maps, np.ndarray):
                check_map_values(int(self.maps.min()), int(self.maps.max()), self.size)

    @classmethod
    def project(cls, rows: int, maps: Maps, through: Ints, size: int) -> Self:
        """Each of ``rows`` rows by itself, read through a map."""
        each = np.arange(rows, dtype=np.int32)
        return cls(each, np.ones(rows), each, rows, maps, through, size)


class Restricted(NamedTuple):
    """Rows renormalised over masks, and the mass that was kept and removed, each summed."""

    rows: RowBlock
    kept: Floats
    removed: Floats


class Combined(NamedTuple):
    """The rows that a plan gives, and the mass of each that its maps sent nowhere."""

    rows: RowBlock
    lost: Floats


class Top(NamedTuple):
    """The likeliest tokens of each row, and the mass of all others, summed over them."""

    ids: Ints
    logp: Floats
    tail: Floats


class RowBlock(Protocol):
    """Rows over one vocabulary, where the model is.  Arguments and answers are on the host.

    A row from a model sums to one; one from `combine` to what its weights say.  Blocks never
    change: every method that gives rows gives new ones.
    """

    @property
    def width(self) -> int:
        """How many tokens a row has."""
        ...

    def __len__(self) -> int: ...

    def restrict(self, masks: Masks, which: Ints) -> Restricted:
        """Each row n over the tokens of ``masks[which[n]]`` only, made to sum to one.

        Where nothing is kept the row is empty (all zero) and ``kept`` is 0: a dead end.
        """
        ...

    def mass(self, masks: Masks, which: Ints, rows: Ints | None = None) -> Floats:
        """The mass of ``masks[which[i]]`` in row ``rows[i]``; without ``rows``, in row i."""
        ...

    def pick(self, rows: Ints, tokens: Ints) -> Floats:
        """The log-probability of ``tokens[i]`` in row ``rows[i]``."""
        ...

    def combine(self, plan: Plan) -> Combined:
        """Weighted sums of rows, read through maps."""
        ...

    def top(self, k: int) -> Top:
        """The ``k`` likeliest tokens of each row; of equal ones the lowest id comes first."""
        ...

    def take(self, rows: Ints) -> RowBlock:
        """Some of the rows, in the order given."""
        ...

    def join(self, others: Sequence[RowBlock]) -> RowBlock:
        """These rows, then those of blocks of the same model and width."""
        ...

    def to_host(self) -> Floats:
        """All probabilities [N, V].  For tests and tiny vocabularies only."""
        ...


class Evaluation(NamedTuple):
    """What a forest gave: rows and handles in the order in which they were asked for."""

    rows: RowBlock
    handles: tuple[Handle, ...]


@dataclass(frozen=True)
class Noise:
    """How far two ways of computing the same row lie apart, as total variation.

    ``packed`` and ``batched`` are the largest distances from passes over single paths, measured
    once for each model; ``rounding`` is what storing a row and computing with it may add.
    """

    packed: float = 0.0  # trees packed into one pass, hung on the cache
    batched: float = 0.0  # paths of different lengths side by side
    rounding: float = 1e-12

    @property
    def worst(self) -> float:
        """What comparisons between two runs must allow."""
        return max(self.packed, self.batched) + self.rounding


class LanguageModel(Protocol):
    """A language model over token ids, with a cache of its own."""

    @property
    def vocabulary_size(self) -> int:
        """The ids are 0 to this number less one; a row has an entry for each."""
        ...

    @property
    def context_window(self) -> int:
        """The most tokens a path may have."""
        ...

    @property
    def row_at_start(self) -> bool:
        """Whether the empty context has a row; where not, texts begin with ids that are named."""
        ...

    @property
    def description(self) -> str:
        """What was computed with: the kind of model, device, dtype and kind of pass."""
        ...

    @property
    def noise(self) -> Noise: ...

    @property
    def cached(self) -> int:
        """How many tokens the cache holds."""
        ...

    def evaluate(
        self, forest: Forest, *, rows: npt.ArrayLike | None = None, keep: npt.ArrayLike = ()
    ) -> Evaluation:
        """The rows after the nodes ``rows`` (None: all), and handles to the nodes ``keep``.

        In ``rows``, −1 − r asks for the row at root r itself.
        """
        ...

    def place(self, array: npt.NDArray[Any]) -> Placed:
        """Masks or maps, put where the rows are once and for all uses."""
        ...

    def release(self, handles: Sequence[Handle]) -> None:
        """Give places in the cache back."""
        ...


# -- checks that every adapter shares --------------------------------------------------------------


def checked_ids(values: npt.ArrayLike, size: int, what: str) -> Ints:
    """Indices below ``size``, as an array."""
    ids = _ints(values, what)
    _in_range(ids, size, what)
    return ids


def check_forest(forest: Forest, model: LanguageModel) -> None:
    """The forest's tokens exist, and its paths fit into the window."""
    _in_range(forest.tokens, model.vocabulary_size, "token ids")
    longest = int(forest.lengths.max())
    if longest > model.context_window:
        raise BadInput.explain(
            f"paths of at most {model.context_window} tokens, the model's window",
            f"one of {longest}",
            "cut the text into overlapping windows",
        )


def wanted_rows(forest: Forest, rows: npt.ArrayLike | None) -> Ints:
    """The places whose rows are asked for: nodes, or −1 − r for root r."""
    if rows is None:
        return np.arange(len(forest), dtype=np.int32)
    wanted = _ints(rows, "rows")
    low = -len(forest.roots)
    if ((wanted < low) | (wanted >= len(forest))).any():
        raise BadInput.explain(
            f"rows of nodes 0 to {len(forest) - 1}, or of roots -1 to {low}",
            str(wanted.tolist()),
            "ask for places of this forest",
        )
    return wanted


def check_mask(masks: Masks, which: Ints, rows: int, width: int) -> None:
    """Masks fit the rows, and every row has one."""
    check_width(masks, width, "masks")
    _in_range(which, masks.shape[0], "masks")
    if len(which) != rows:
        raise BadInput.explain(f"a mask for each of {rows} rows", str(len(which)), "name one each")


def check_width(array: Any, width: int, what: str) -> None:
    """Masks and maps have an entry for every token of a row."""
    if len(array.shape) != 2 or array.shape[1] != width:
        raise BadInput.explain(
            f"{what} of shape [any, {width}]",
            f"shape {list(array.shape)}",
            "build them for this vocabulary",
        )


def check_map_values(low: int, high: int, size: int) -> None:
    """A map leads to a token of the target, or nowhere."""
    if low < NOWHERE or high >= size:
        raise BadInput.explain(
            f"maps to tokens 0 to {size - 1} or {NOWHERE}",
            f"values from {low} to {high}",
            "build the maps for this target",
        )


def check_k(k: int, width: int) -> None:
    """A row can list at most as many tokens as it has."""
    if not 0 < k <= width:
        raise BadInput.explain(f"k from 1 to {width}", str(k), "list fewer tokens")


def unknown_handle() -> BadInput:
    """For a handle that this model did not make, or that was released."""
    return BadInput.explain(
        "a handle that this model made and still holds",
        "one that was released, or is another model's",
        "keep handles until their last use, each with its own model",
    )


def _ints(values: npt.ArrayLike, what: str) -> Ints:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise BadInput.explain(
            f"{what} as a list of whole numbers",
            f"{array.dtype} of shape {list(array.shape)}",
            "give a one-dimensional array of ids",
        )
    if array.size and not -(2**31) <= array.min() <= array.max() < 2**31:
        raise BadInput.explain(f"{what} of 32 bits", str(array.max()), "check the ids")
    return array.astype(np.int32)


def _same_length(**arrays: npt.NDArray[Any]) -> None:
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise BadInput.explain("arrays of equal length", str(lengths), "give one entry each")


def _in_range(values: Ints, size: int, what: str) -> None:
    if len(values) and not (values.min() >= 0 and values.max() < size):
        wrong = values[(values < 0) | (values >= size)][0]
        raise BadInput.explain(
            f"{what} from 0 to {size - 1}", str(int(wrong)), "check what made this number"
        )
