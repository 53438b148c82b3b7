"""Rows as float32 log-probabilities on a torch device: the block of `TransformersModel`.

What is stored is the logarithm, because a trained model gives a token e⁻¹⁰⁰ and float32 has no such
probability.  What is summed is summed as float64 wherever the device has it.  See
``docs/theory/models.md`` for the error bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from crosstok.errors import BadInput
from crosstok.models.protocol import (
    NOWHERE,
    Combined,
    Floats,
    Ints,
    Masks,
    Plan,
    Restricted,
    RowBlock,
    Top,
    check_k,
    check_map_values,
    check_mask,
    check_width,
    checked_ids,
)

EMPTY = float("-inf")
# Entries that an operation holds in float64 at once: 128 MiB of them.
AT_ONCE = 1 << 24


class TorchRows:
    """A block of log-probabilities [n, v]; see `RowBlock`."""

    def __init__(self, logp_nv: torch.Tensor) -> None:
        self._logp_nv = logp_nv

    @property
    def width(self) -> int:
        return int(self._logp_nv.shape[1])

    def __len__(self) -> int:
        return int(self._logp_nv.shape[0])

    def restrict(self, masks: Masks, which: Ints) -> Restricted:
        mask_mv, chosen = self._masks(masks, which, len(self))
        out_nv = torch.empty_like(self._logp_nv)
        sums_2n = self._wide_zeros(2, len(self))
        for some in _slices(len(self), self.width):
            logp_nv, mask_nv = self._wide(some), mask_mv[chosen[some]]
            kept_nv = logp_nv.masked_fill(~mask_nv, EMPTY)
            total_n1 = torch.logsumexp(kept_nv, 1, keepdim=True)
            # Where nothing is kept the row stays empty; −∞ less −∞ would be no number.
            out_nv[some] = (kept_nv - total_n1.masked_fill(total_n1 == EMPTY, 0)).to(out_nv.dtype)
            sums_2n[0, some] = total_n1.exp()[:, 0]
            sums_2n[1, some] = logp_nv.exp_().masked_fill_(mask_nv, 0).sum(1)
        kept, removed = _host(sums_2n)
        return Restricted(TorchRows(out_nv), kept, removed)

    def mass(self, masks: Masks, which: Ints, rows: Ints | None = None) -> Floats:
        every = np.arange(len(self), dtype=np.int32) if rows is None else rows
        row_i = self._rows(every)
        mask_mv, chosen = self._masks(masks, which, len(every))
        sums = self._wide_zeros(len(every))
        for some in _slices(len(every), self.width):
            sums[some] = self._wide(row_i[some]).exp_().mul_(mask_mv[chosen[some]]).sum(1)
        return _host(sums)

    def pick(self, rows: Ints, tokens: Ints) -> Floats:
        token_i = self._index(checked_ids(tokens, self.width, "token ids"))
        return _host(self._logp_nv[self._rows(rows), token_i])

    def combine(self, plan: Plan) -> Combined:
        size = self.width if plan.size is None else plan.size
        parts = self._sorted_parts(plan)
        out_gt = self._logp_nv.new_empty(plan.groups, size)
        lost = self._wide_zeros(plan.groups)
        for some in _slices(plan.groups, size):
            # One more column takes what goes nowhere.
            sums_gt = self._wide_zeros(some.stop - some.start, size + 1)
            for images_pt, group_p in parts.images(some, size):
                sums_gt.index_add_(0, group_p - some.start, images_pt)
            out_gt[some] = sums_gt[:, :size].log().to(out_gt.dtype)
            lost[some] = sums_gt[:, size]
        return Combined(TorchRows(out_gt), _host(lost))

    def top(self, k: int) -> Top:
        check_k(k, self.width)
        listed = [self._top(some, k) for some in _slices(len(self), self.width)]
        ids, logp, tail = (torch.cat(parts).cpu().numpy() for parts in zip(*listed, strict=True))
        return Top(ids.astype(np.int32), logp.astype(np.float64), tail.astype(np.float64))

    def take(self, rows: Ints) -> TorchRows:
        return TorchRows(self._logp_nv[self._rows(rows)])

    def join(self, others: Sequence[RowBlock]) -> TorchRows:
        return TorchRows(torch.cat([self._logp_nv, *(self._like(other) for other in others)]))

    def to_host(self) -> Floats:
        return np.exp(_host(self._logp_nv))

    # -- parts of the above ------------------------------------------------------------------------

    def _top(self, some: slice, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        logp_nv = self._logp_nv[some]
        least_n1 = logp_nv.topk(k, dim=1).values[:, -1:]
        above_nv, tied_nv = logp_nv > least_n1, logp_nv == least_n1
        room_n1 = k - above_nv.sum(1, keepdim=True)
        # Of those that tie for the last places the lowest ids are listed.
        listed_nv = above_nv | (tied_nv & (tied_nv.cumsum(1, dtype=torch.int32) <= room_n1))
        ids_nk = listed_nv.nonzero()[:, 1].reshape(-1, k)
        values_nk = logp_nv.gather(1, ids_nk)
        values_nk, order_nk = values_nk.sort(dim=1, descending=True, stable=True)
        tail = self._wide(some).exp_().masked_fill_(listed_nv, 0).sum(1)
        return ids_nk.gather(1, order_nk), values_nk, tail

    def _sorted_parts(self, plan: Plan) -> _Parts:
        order = np.argsort(plan.group, kind="stable")
        maps, through = None, None
        if plan.maps is not None and plan.through is not None and plan.size is not None:
            check_width(plan.maps, self.width, "maps")
            maps = to_device(plan.maps, self._logp_nv.device)
            check_map_values(int(maps.min()), int(maps.max()), plan.size)
            through = self._index(plan.through[order])
        return _Parts(
            self, self._rows(plan.row[order]), plan.weight[order], plan.group[order], maps, through
        )

    def _masks(self, masks: Masks, which: Ints, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = checked_ids(which, masks.shape[0], "masks")
        check_mask(masks, chosen, rows, self.width)
        return to_device(masks, self._logp_nv.device).bool(), self._index(chosen)

    def _rows(self, rows: Ints) -> torch.Tensor:
        return self._index(checked_ids(rows, len(self), "rows"))

    def _index(self, ids: Ints) -> torch.Tensor:
        return torch.from_numpy(ids.astype(np.int64)).to(self._logp_nv.device)

    def _wide(self, some: slice | torch.Tensor) -> torch.Tensor:
        """A copy of some rows, in the precision of sums."""
        return self._logp_nv[some].to(sum_dtype(self._logp_nv.device), copy=True)

    def _wide_zeros(self, *shape: int) -> torch.Tensor:
        device = self._logp_nv.device
        return torch.zeros(shape, dtype=sum_dtype(device), device=device)

    def _like(self, other: RowBlock) -> torch.Tensor:
        if not isinstance(other, TorchRows) or other.width != self.width:
            raise BadInput.explain(
                f"blocks of one model, {self.width} tokens wide",
                f"{type(other).__name__} of width {other.width}",
                "join what came from the same model",
            )
        return other._logp_nv  # noqa: SLF001  # a block of this very class


class _Parts:
    """The parts of a plan in the order of their groups."""

    def __init__(
        self,
        block: TorchRows,
        row: torch.Tensor,
        weight: Floats,
        group: Ints,
        maps: torch.Tensor | None,
        through: torch.Tensor | None,
    ) -> None:
        self._block = block
        self._row = row
        self._weight = torch.from_numpy(weight).to(row.device, sum_dtype(row.device))
        self._host_group = group
        self._group = torch.from_numpy(group.astype(np.int64)).to(row.device)
        self._maps = maps
        self._through = through

    def images(self, groups: slice, size: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The weighted images of some groups' parts, with one more column, and their groups."""
        begin, end = np.searchsorted(self._host_group, [groups.start, groups.stop])
        for inner in _slices(int(end - begin), max(size, self._block.width)):
            some = slice(int(begin) + inner.start, int(begin) + inner.stop)
            p_pv = self._block._wide(self._row[some]).exp_()  # noqa: SLF001
            p_pv.mul_(self._weight[some, None])
            image_pt = p_pv.new_zeros(len(p_pv), size + 1)
            if self._maps is None or self._through is None:
                image_pt[:, :size] = p_pv
            else:
                to_pv = self._maps[self._through[some]].long()
                image_pt.scatter_add_(1, to_pv.masked_fill_(to_pv == NOWHERE, size), p_pv)
            yield image_pt, self._group[some]


def sum_dtype(device: torch.device) -> torch.dtype:
    """What sums are accumulated in: float64, but where the device has none."""
    return torch.float32 if device.type == "mps" else torch.float64


def to_device(array: Any, device: torch.device) -> torch.Tensor:
    """An array of the host, or one placed before, on the device."""
    if isinstance(array, torch.Tensor):
        return array.to(device)
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def _slices(count: int, width: int) -> Iterator[slice]:
    """0 to ``count`` in steps that keep ``width`` entries each within what is held at once."""
    step = max(1, AT_ONCE // max(1, width))
    for begin in range(0, count, step):
        yield slice(begin, min(count, begin + step))


def _host(values: torch.Tensor) -> Floats:
    array: npt.NDArray[Any] = values.detach().cpu().numpy()
    return array.astype(np.float64)
