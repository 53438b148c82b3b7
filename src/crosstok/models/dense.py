"""Rows as float64 probabilities on the host: the block of `TableModel`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosstok.errors import BadInput
from crosstok.models.protocol import (
    NOWHERE,
    Bools,
    Combined,
    Floats,
    Ints,
    Masks,
    Plan,
    Restricted,
    RowBlock,
    Top,
    check_k,
    check_mask,
    check_width,
    checked_ids,
)


class DenseRows:
    """A block of probabilities [N, V]; see `RowBlock`."""

    def __init__(self, probabilities: Floats) -> None:
        self._p_nv = np.asarray(probabilities, np.float64)

    @property
    def width(self) -> int:
        return int(self._p_nv.shape[1])

    def __len__(self) -> int:
        return len(self._p_nv)

    def restrict(self, masks: Masks, which: Ints) -> Restricted:
        mask_nv = self._masks(masks, which, len(self))
        kept_nv = np.where(mask_nv, self._p_nv, 0.0)
        kept = kept_nv.sum(1)
        removed = np.where(mask_nv, 0.0, self._p_nv).sum(1)
        # Where nothing is kept the row is all zero, whatever it is divided by.
        rows = DenseRows(kept_nv / np.where(kept > 0, kept, 1.0)[:, None])
        return Restricted(rows, kept, removed)

    def mass(self, masks: Masks, which: Ints, rows: Ints | None = None) -> Floats:
        p_iv = self._p_nv if rows is None else self._p_nv[self._rows(rows)]
        total: Floats = np.where(self._masks(masks, which, len(p_iv)), p_iv, 0.0).sum(1)
        return total

    def pick(self, rows: Ints, tokens: Ints) -> Floats:
        found = self._p_nv[self._rows(rows), checked_ids(tokens, self.width, "token ids")]
        return _log(found)

    def combine(self, plan: Plan) -> Combined:
        weighted_pv = self._p_nv[self._rows(plan.row)] * plan.weight[:, None]
        if plan.maps is None or plan.through is None or plan.size is None:
            out_gv = np.zeros((plan.groups, self.width))
            np.add.at(out_gv, plan.group, weighted_pv)
            return Combined(DenseRows(out_gv), np.zeros(plan.groups))
        check_width(plan.maps, self.width, "maps")
        to_pv = np.asarray(plan.maps)[plan.through]
        # One more column takes what goes nowhere.
        out_gt = np.zeros((plan.groups, plan.size + 1))
        to_pv = np.where(to_pv == NOWHERE, plan.size, to_pv)
        np.add.at(out_gt, (plan.group[:, None], to_pv), weighted_pv)
        return Combined(DenseRows(out_gt[:, :-1]), out_gt[:, -1])

    def top(self, k: int) -> Top:
        check_k(k, self.width)
        order_nv = np.argsort(-self._p_nv, axis=1, kind="stable").astype(np.int32)
        ids_nk, rest = order_nv[:, :k], order_nv[:, k:]
        logp = _log(np.take_along_axis(self._p_nv, ids_nk, 1))
        return Top(ids_nk, logp, np.take_along_axis(self._p_nv, rest, 1).sum(1))

    def take(self, rows: Ints) -> DenseRows:
        return DenseRows(self._p_nv[self._rows(rows)])

    def join(self, others: Sequence[RowBlock]) -> DenseRows:
        return DenseRows(np.concatenate([self._p_nv, *(self._like(other) for other in others)]))

    def to_host(self) -> Floats:
        return self._p_nv.copy()

    def _rows(self, rows: Ints) -> Ints:
        return checked_ids(rows, len(self), "rows")

    def _masks(self, masks: Masks, which: Ints, rows: int) -> Bools:
        chosen = checked_ids(which, masks.shape[0], "masks")
        check_mask(masks, chosen, rows, self.width)
        return np.asarray(masks, bool)[chosen]

    def _like(self, other: RowBlock) -> Floats:
        if not isinstance(other, DenseRows) or other.width != self.width:
            raise BadInput.explain(
                f"blocks of one model, {self.width} tokens wide",
                f"{type(other).__name__} of width {other.width}",
                "join what came from the same model",
            )
        return other.to_host()


def _log(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(values)
