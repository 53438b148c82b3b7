"""`Rows`: next-token distributions over a target vocabulary, one for each position of a batch.

A row lists the likeliest target tokens (one that ends the text among them) and sums up the rest:

* ``tail``: the mass of the target tokens that are not listed, summed over them and never taken as
  one minus the others, so that `Rows.check` can fail;
* ``control`` and ``undecodable``: native mass that leads to no target token.  Under the law
  ``raw`` they are outcomes of the row, under ``canonical`` they are none: there ``control`` is a
  part of ``leak``, the native mass that was taken out before the row was made.

So the listed tokens and the tail (under ``raw`` with control and undecodable mass) sum to one.
Nothing is clamped or renormalised: a number that is off is shown, and `Rows.check` names it.
Bounds are probabilities, rounded outward whenever they are stored more coarsely.

>>> rows = Rows.from_dense(np.array([[0.5, 0.2, 0.3]]), k=2)
>>> rows.ids.tolist(), rows.tail.tolist()
([[0, 2]], [0.2])
>>> rows.check(tolerance=1e-12)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crosstok.errors import BadInput

Floats = npt.NDArray[np.floating[Any]]
Law = Literal["canonical", "raw"]
NOTHING = -1  # the id of a place in the list that holds no token


class Status(IntEnum):
    """What a row is worth."""

    OK = 0
    DEAD_END = 1  # a branch met a native row without any viable token; its mass stays open
    PREFIX_UNPROVEN = 2  # the lower bound of the prefix's own probability is 0
    IMPOSSIBLE = 3  # nothing can be accepted: there is no row
    PARTIAL = 4  # some target tokens only: there is no tail
    UNDEFINED = 5  # behind an impossible token: there is no row


NO_ROW = (Status.IMPOSSIBLE, Status.UNDEFINED)


@dataclass(frozen=True, eq=False)
class Rows:
    """Distributions at ``n`` positions, ``k`` tokens listed at each."""

    ids: npt.NDArray[np.int32]  # [n, k], NOTHING where fewer are listed
    logp: Floats  # [n, k]
    lower: Floats  # [n, k], a probability
    upper: Floats  # [n, k], a probability
    tail: Floats  # [n], NaN where there is none
    control: Floats  # [n]
    leak: Floats  # [n]
    undecodable: Floats  # [n]
    status: npt.NDArray[np.uint8]  # [n]
    error: Floats | None = None  # [n], the expected error of the row
    rest: Floats | None = None  # [n], the highest upper bound of a token that is not listed
    law: Law = "canonical"

    def __post_init__(self) -> None:
        n, k = self.ids.shape
        for name, value in self.arrays().items():
            shape = (n, k) if name in WIDE else (n,)
            if value.shape != shape:
                raise BadInput.explain(
                    f"{name} of shape {shape}, as the ids have it",
                    f"shape {value.shape}",
                    "give all arrays for the same positions",
                )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The fields that are arrays and not None, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    def __len__(self) -> int:
        return len(self.ids)

    # -- making them ------------------------------------------------------------------------------

    @classmethod
    def from_dense(
        cls,
        probabilities: Floats,
        k: int,
        *,
        lower: Floats | None = None,
        upper: Floats | None = None,
        control: Floats | float = 0.0,
        leak: Floats | float = 0.0,
        undecodable: Floats | float = 0.0,
        error: Floats | None = None,
        law: Law = "canonical",
    ) -> Rows:
        """The ``k`` likeliest tokens of each row of [n, V], with the sum of all others.

        Bounds are given for all tokens, or the probabilities are exact.  Of equal probabilities the
        lowest id comes first.
        """
        dense = np.asarray(probabilities, np.float64)
        n, size = dense.shape
        if not 0 < k <= size:
            raise BadInput.explain(f"k from 1 to {size}", str(k), "list fewer tokens")
        ids = np.argsort(-dense, axis=1, kind="stable")[:, :k].astype(np.int32)
        low, high = (dense if bound is None else bound for bound in (lower, upper))
        listed = np.take_along_axis(dense, ids, 1)
        with np.errstate(divide="ignore"):
            logp = np.log(listed)
        return cls(
            ids=ids, logp=logp,
            lower=np.take_along_axis(low, ids, 1), upper=np.take_along_axis(high, ids, 1),
            tail=_without(dense, ids).sum(1), rest=_without(high, ids).max(1),
            control=_each(control, n), leak=_each(leak, n), undecodable=_each(undecodable, n),
            status=np.zeros(n, np.uint8), error=error, law=law,
        )  # fmt: skip

    @classmethod
    def without_row(cls, n: int, k: int, status: Status, law: Law = "canonical") -> Rows:
        """Positions that have no row."""
        wide, narrow = np.zeros((n, k)), np.zeros(n)
        return cls(
            ids=np.full((n, k), NOTHING, np.int32), logp=np.full((n, k), -np.inf),
            lower=wide, upper=wide, tail=np.full(n, np.nan), control=narrow, leak=narrow,
            undecodable=narrow, status=np.full(n, status, np.uint8), law=law,
        )  # fmt: skip

    def astype(self, dtype: npt.DTypeLike) -> Rows:
        """The same rows in another precision, bounds rounded outward."""
        changed: dict[str, Any] = {}
        for name, value in self.arrays().items():
            if name in {"ids", "status"}:
                continue
            toward = {"lower": -np.inf, "upper": np.inf, "rest": np.inf}.get(name)
            changed[name] = round_toward(value, dtype, toward)
        return replace(self, **changed)

    # -- parts ------------------------------------------------------------------------------------

    def __getitem__(self, which: int | slice | npt.NDArray[Any]) -> Rows:
        """Some of the positions; one index gives a batch of one."""
        if isinstance(which, (int, np.integer)):
            if not -len(self) <= which < len(self):
                raise IndexError(f"expected a position below {len(self)}, found {which}")
            which = np.array([which])
        changed: dict[str, Any] = {name: value[which] for name, value in self.arrays().items()}
        return replace(self, **changed)

    @staticmethod
    def concat(parts: Sequence[Rows]) -> Rows:
        """One batch of several; they must list as many tokens and hold the same fields."""
        if not parts:
            raise BadInput.explain("at least one batch of rows", "none", "skip empty batches")
        shapes = {(part.law, part.ids.shape[1], tuple(part.arrays())) for part in parts}
        if len(shapes) > 1:
            raise BadInput.explain(
                "rows of one law, one k and the same fields",
                " and ".join(f"{law} with k={k} and {len(names)} fields"
                             for law, k, names in sorted(shapes)),
                "make them with the same settings",
            )  # fmt: skip
        columns = [part.arrays() for part in parts]
        joined: dict[str, Any] = {
            name: np.concatenate([part[name] for part in columns]) for name in columns[0]
        }
        return replace(parts[0], **joined)

    def to_dict(self) -> dict[str, npt.NDArray[Any]]:
        """Plain arrays by name; the law is one of them."""
        return {**self.arrays(), "law": np.array(self.law)}

    @classmethod
    def from_dict(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Rows:
        """The inverse of `to_dict`."""
        known = {field.name for field in fields(cls)}
        needed = known - {"error", "rest", "law"}
        if not needed <= arrays.keys() <= known:
            odd = sorted((needed - arrays.keys()) | (arrays.keys() - known))
            raise BadInput.explain(
                "the arrays of Rows.to_dict", f"others: {', '.join(odd)} missing or unknown",
                "keep the dictionary as it was made",
            )  # fmt: skip
        given: dict[str, Any] = {name: value for name, value in arrays.items() if name != "law"}
        law: Any = str(arrays["law"]) if "law" in arrays else "canonical"
        return cls(**given, law=law)

    # -- what they say ----------------------------------------------------------------------------

    def certain(self, k: int) -> npt.NDArray[np.bool_]:
        """Which of the listed tokens are among the ``k`` likeliest, whatever the bounds leave open.

        A token is, if fewer than ``k`` others can be as likely as it is at the least.
        """
        listed = self.ids != NOTHING
        upper = np.where(listed, self.upper, -np.inf)
        rivals = (upper[:, None, :] >= self.lower[:, :, None]).sum(2) - 1  # not its own rival
        certain: npt.NDArray[np.bool_] = listed & (rivals + self._unlisted_rivals() < k)
        return certain

    def _unlisted_rivals(self) -> Floats:
        """How many unlisted tokens can be as likely as each listed one is at the least.

        As many as their mass allows; none if the likeliest of them cannot.
        """
        lower = self.lower.astype(np.float64)
        mass = np.maximum(1 - lower.sum(1, keepdims=True), 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            rivals = np.where(lower > 0, np.floor(mass / lower * (1 + 1e-12)), np.inf)
        return rivals if self.rest is None else np.where(self.rest[:, None] < lower, 0, rivals)

    def check(self, tolerance: float) -> None:
        """Raise BadInput at the first position that is no distribution.

        What the precision of the arrays alone explains is allowed; beyond it, ``tolerance``.
        """
        faults = [(int(np.argmax(bad)), what) for what, bad in self._faults(tolerance) if bad.any()]
        if not faults:
            return
        at, what = min(faults, key=lambda fault: fault[0])
        raise BadInput.explain(
            f"rows with {what}", f"otherwise at position {at} ({self._shown(at)})",
            "the row was changed or computed wrongly; do not renormalise it",
        )  # fmt: skip

    def _faults(self, tolerance: float) -> list[tuple[str, npt.NDArray[np.bool_]]]:
        listed = self.ids != NOTHING
        none = np.isin(self.status, NO_ROW)
        partial = self.status == Status.PARTIAL
        low, p, high = _interval(self.logp)
        excess = _total(self, p) - 1
        slack = tolerance + _total_rounding(self, high - low)
        beyond = np.where(partial, excess > slack, np.abs(excess) > slack)
        ordered = (self.lower >= 0) & (self.lower <= high) & (low <= self.upper) & (self.upper <= 1)
        masses = [self.control, self.leak, self.undecodable]
        faults = [
            ("a known status", self.status > max(Status)),
            ("tokens exactly where there is a row", none & listed.any(1)),
            ("a tail unless partial", np.isnan(self.tail) != (partial | none)),
            ("probability 0 where nothing is listed", (~listed & ~np.isneginf(self.logp)).any(1)),
            ("every token listed once", _repeats(self.ids)),
            ("0 ≤ lower ≤ p ≤ upper ≤ 1", (listed & ~ordered).any(1)),
            ("masses from 0 to 1", ~np.all([_is_mass(m, tolerance) for m in masses], axis=0)),
            ("a tail of 0 or more", self.tail < 0),
            (f"a sum of 1 within {tolerance:g}", ~none & (beyond | ~np.isfinite(excess))),
        ]
        if self.law == "canonical":
            over = self.control > self.leak + tolerance + np.spacing(self.leak)
            faults.append(("control mass within the leak", over))
        return faults

    def _shown(self, at: int) -> str:
        _, p, _ = _interval(self.logp)
        status = int(self.status[at])
        name = Status(status).name if status <= max(Status) else str(status)
        return (
            f"{name}, listed {p[at].sum():.9g}, tail {self.tail[at]:.9g}, "
            f"control {self.control[at]:.3g}, "
            f"undecodable {self.undecodable[at]:.3g}, leak {self.leak[at]:.3g}, law {self.law}"
        )


WIDE = ("ids", "logp", "lower", "upper")


def round_toward(values: npt.NDArray[Any], dtype: npt.DTypeLike, toward: float | None) -> Floats:
    """Values in another precision: the nearest one, or the nearest one on that side."""
    with np.errstate(over="ignore"):
        near: Floats = values.astype(dtype)
    if toward is None:
        return near
    wrong = near > values if toward < 0 else near < values
    return np.where(wrong, np.nextafter(near, near.dtype.type(toward)), near)


def _without(dense: Floats, ids: npt.NDArray[np.int32]) -> Floats:
    rest = np.array(dense, np.float64)
    np.put_along_axis(rest, ids, 0.0, 1)
    return rest


def _each(value: Floats | float, n: int) -> Floats:
    return np.array(np.broadcast_to(np.asarray(value, np.float64), (n,)))


def _interval(logp: Floats) -> tuple[Floats, Floats, Floats]:
    """What the stored log-probability may stand for: least, nominal, most."""
    exact = logp.astype(np.float64)
    with np.errstate(invalid="ignore"):
        half = np.where(np.isfinite(exact), np.spacing(np.abs(logp)).astype(np.float64), 0) / 2
    # Log and exp each round too, in double precision.
    half = half + 4 * np.finfo(np.float64).eps
    return np.exp(exact - half), np.exp(exact), np.exp(exact + half)


def _outcomes(rows: Rows) -> list[Floats]:
    """The masses that belong to the sum, beside the listed tokens."""
    tail = np.where(rows.status == Status.PARTIAL, 0, rows.tail)
    return [tail, rows.control, rows.undecodable] if rows.law == "raw" else [tail]


def _total(rows: Rows, p: Floats) -> Floats:
    total: Floats = p.sum(1) + sum(mass.astype(np.float64) for mass in _outcomes(rows))
    return total


def _total_rounding(rows: Rows, widths: Floats) -> Floats:
    """By how much storing alone can have moved the sum."""
    stored = [rows.tail, rows.control, rows.undecodable]
    total: Floats = widths.sum(1) + sum(
        np.nan_to_num(np.spacing(np.abs(mass)).astype(np.float64)) for mass in stored
    )
    return total


def _is_mass(mass: Floats, tolerance: float) -> npt.NDArray[np.bool_]:
    inside: npt.NDArray[np.bool_] = (mass >= 0) & (mass <= 1 + tolerance)
    return inside


def _repeats(ids: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    ordered = np.sort(ids, axis=1)
    again = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NOTHING)
    return np.asarray(again.any(1))
