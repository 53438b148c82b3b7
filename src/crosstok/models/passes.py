"""Forward passes: token trees packed into one, or paths side by side.

Both take pieces of work, run them in one call of the model's public ``forward``, and hand the
logits of the places asked for to their rows.

Suffixes: b lines of a batch, q new nodes, s stored nodes, c columns of keys (stored and new),
r rows asked for, v tokens, h heads, d width of a head.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from crosstok.errors import ModelError
from crosstok.models.protocol import Ints
from crosstok.models.torch_rows import sum_dtype
from crosstok.models.trunks import Trunk, visible

Longs = npt.NDArray[np.int64]
FULL, SLIDING = "full_attention", "sliding_attention"
# Bytes for one logit in flight: the model's own, its float64 copy, the logarithm of its share.
LOGIT_BYTES = 20


@dataclass(frozen=True, eq=False)
class Piece:
    """The nodes ``begin`` to ``end`` of a trunk, and which of them have rows ``rows`` to fill."""

    trunk: Trunk
    begin: int
    end: int
    nodes: Ints  # nodes of the trunk, one for each row
    rows: Longs
    keep: bool  # whether later pieces or handles need the keys and values

    def __len__(self) -> int:
        return self.end - self.begin

    def cut(self, size: int) -> list[Piece]:
        """The same in pieces of at most ``size`` nodes, parents first."""
        starts = range(self.begin, self.end, size)
        return [self._between(begin, min(begin + size, self.end)) for begin in starts]

    def _between(self, begin: int, end: int) -> Piece:
        inside = (begin <= self.nodes) & (self.nodes < end)
        keep = self.keep or end < self.end
        return Piece(self.trunk, begin, end, self.nodes[inside], self.rows[inside], keep)


class Pass(Protocol):
    """One way of running pieces."""

    name: str

    def cost(self, piece: Piece, width: int) -> int:
        """About how many bytes a line of ``width`` places for this piece takes."""
        ...

    def run(self, pieces: Sequence[Piece], out_nv: torch.Tensor) -> None:
        """Fill the rows of pieces of different trunks, in one forward pass."""
        ...


class Network:
    """A causal model of transformers as its forward function and a few facts about it."""

    def __init__(self, model: Any, outputs: int) -> None:
        self.model = model
        inner = model.get_base_model() if hasattr(model, "get_base_model") else model
        self.config = inner.config.get_text_config(decoder=True)
        self.takes_places = "logits_to_keep" in inspect.signature(inner.forward).parameters
        self.device = model.get_input_embeddings().weight.device
        self.dtype = model.dtype
        output = model.get_output_embeddings().weight
        self.logits, self.rows_device = int(output.shape[0]), output.device
        self.embedded = int(model.get_input_embeddings().weight.shape[0])
        self.outputs = min(outputs, self.logits)  # logits beyond are padding and get no mass

    @property
    def kinds(self) -> dict[str, int | None] | None:
        """The attention kinds of the layers and their windows; None where they are not known."""
        window = getattr(self.config, "sliding_window", None)
        listed = getattr(self.config, "layer_types", None)
        if listed is None:
            listed = [FULL if window is None else SLIDING]
        known: dict[str, int | None] = {FULL: None, SLIDING: window}
        if not set(listed) <= set(known):
            return None
        return {kind: known[kind] for kind in sorted(set(listed))}

    def logits_at(self, columns: Longs, **inputs: Any) -> tuple[torch.Tensor, Any]:
        """The logits [b, columns, v] of some columns, and the cache."""
        places = torch.from_numpy(columns).to(self.device)
        if self.takes_places:
            inputs["logits_to_keep"] = places
        with torch.inference_mode():
            found = self.model(**inputs)
            logits = found.logits if self.takes_places else found.logits[:, places]
            return logits, getattr(found, "past_key_values", None)

    def fill(self, out_nv: torch.Tensor, rows: Longs, logits_rv: torch.Tensor) -> None:
        """Write log-probabilities into the rows; padding gets no mass."""
        wide_rv = logits_rv[:, : self.outputs].to(sum_dtype(logits_rv.device))
        total_r1 = torch.logsumexp(wide_rv, 1, keepdim=True)
        if not bool(torch.isfinite(total_r1).all()):
            raise ModelError.explain(
                "logits that are numbers", "NaN or infinite ones", "try a wider dtype than this one"
            )
        to = torch.from_numpy(rows).to(out_nv.device)
        out_nv[to, : wide_rv.shape[1]] = (wide_rv - total_r1).to(out_nv)

    def empty_rows(self, count: int, size: int) -> torch.Tensor:
        """Rows without any mass, where the model's logits come out."""
        shape = (count, size)
        return torch.full(shape, -torch.inf, dtype=torch.float32, device=self.rows_device)

    def tensor(self, array: npt.NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)


class PackedTrees:
    """Each trunk is a line of the batch; a mask lets every node see its own path only."""

    name = "packed trees"

    def __init__(self, network: Network, *, blind: bool = False) -> None:
        self._network = network
        self._kinds = network.kinds or {FULL: None}
        # For the check at load: every node sees all nodes before it, which must not pass.
        self._blind = blind

    def cost(self, piece: Piece, width: int) -> int:
        columns = piece.begin + width
        wanted = LOGIT_BYTES * self._network.logits if len(piece.nodes) else 0
        hidden = 64 * int(self._network.config.hidden_size)
        return width * (wanted + hidden + 16 * columns)

    def run(self, pieces: Sequence[Piece], out_nv: torch.Tensor) -> None:
        new = max(map(len, pieces))
        stored = max(piece.begin for piece in pieces)
        lines = [_line(piece, stored, new) for piece in pieces]
        tokens, lengths, seen = (np.stack(parts) for parts in zip(*lines, strict=True))
        columns = np.unique(np.concatenate([piece.nodes - piece.begin for piece in pieces]))
        logits_brv, cache = self._network.logits_at(
            columns.astype(np.int64),
            input_ids=self._network.tensor(tokens),
            position_ids=self._network.tensor(lengths[:, stored:] - 1),
            attention_mask=self._masks(seen, lengths),
            past_key_values=_stacked(pieces, stored),
            use_cache=True,
        )
        for line, piece in enumerate(pieces):
            at = self._network.tensor(np.searchsorted(columns, piece.nodes - piece.begin))
            if len(piece.nodes):
                self._network.fill(out_nv, piece.rows, logits_brv[line, at.to(logits_brv.device)])
            if piece.keep:
                _store(piece, cache, line, stored)

    def _masks(self, seen_bqc: npt.NDArray[np.bool_], lengths_bc: Longs) -> Any:
        first = lengths_bc.shape[1] - seen_bqc.shape[1]
        if self._blind:
            seen_bqc = np.tril(np.ones_like(seen_bqc), first)
        masks = {}
        for kind, window in self._kinds.items():
            inside = seen_bqc
            if window is not None:
                far_bqc = lengths_bc[:, first:, None] - lengths_bc[:, None, :]
                inside = seen_bqc & (far_bqc < window)
            masks[kind] = self._additive(inside)
        # Models with one kind of layer take the mask as it is, the others one for each kind.
        return masks if hasattr(self._network.config, "layer_types") else next(iter(masks.values()))

    def _additive(self, seen_bqc: npt.NDArray[np.bool_]) -> torch.Tensor:
        dtype = self._network.dtype
        seen = self._network.tensor(seen_bqc)[:, None]
        hidden = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
        return hidden.masked_fill_(~seen, torch.finfo(dtype).min)


def _line(piece: Piece, stored: int, new: int) -> tuple[Longs, Longs, npt.NDArray[np.bool_]]:
    """One line of the batch: its new tokens, the lengths of all columns, and what sees what."""
    trunk, begin, count = piece.trunk, piece.begin, len(piece)
    tokens = np.zeros(new, np.int64)
    tokens[:count] = trunk.tokens[begin : piece.end]
    lengths = np.ones(stored + new, np.int64)
    lengths[:begin] = trunk.lengths[:begin]
    lengths[stored : stored + count] = trunk.lengths[begin : piece.end]
    seen = np.zeros((new, stored + new), bool)
    path = visible(trunk.parents[: piece.end], np.arange(begin, piece.end, dtype=np.int32))
    seen[:count, :begin] = path[:, :begin]
    seen[:count, stored : stored + count] = path[:, begin:]
    # Filling sees itself: a place that sees nothing would give NaN.
    filling = np.arange(count, new)
    seen[filling, stored + filling] = True
    return tokens, lengths, seen


def _stacked(pieces: Sequence[Piece], stored: int) -> Any:
    """The trunks' keys and values as one cache of the library's."""
    from transformers import DynamicCache

    cache = DynamicCache()
    if not stored:
        return cache
    model = next(piece.trunk.layers for piece in pieces if piece.begin)
    for layer, (keys, values) in enumerate(model):
        states = [
            _padded(pieces, layer, part, like, stored) for part, like in enumerate((keys, values))
        ]
        cache.update(states[0], states[1], layer)
    return cache


def _padded(pieces: Sequence[Piece], layer: int, part: int, like: Any, stored: int) -> Any:
    if len(pieces) == 1:
        return pieces[0].trunk.layers[layer][part]
    _one, heads, _stored, width = like.shape
    states_bhsd = like.new_zeros(len(pieces), heads, stored, width)
    for line, piece in enumerate(pieces):
        if piece.begin:
            states_bhsd[line, :, : piece.begin] = piece.trunk.layers[layer][part][0]
    return states_bhsd


def _store(piece: Piece, cache: Any, line: int, stored: int) -> None:
    """Put the new nodes' keys and values behind those of their trunk."""
    columns = [*range(piece.begin), *range(stored, stored + len(piece))]
    whole = len(columns) == cache.layers[0].keys.shape[2]

    def own(states_bhsd: torch.Tensor) -> torch.Tensor:
        mine = states_bhsd[line : line + 1]
        if whole and len(states_bhsd) == 1:
            return mine
        return mine[:, :, torch.tensor(columns, device=mine.device)]

    piece.trunk.layers = [(own(layer.keys), own(layer.values)) for layer in cache.layers]


class SeparatePaths:
    """Each path is a line of the batch, computed from its start: right for any causal model."""

    name = "separate paths"

    def __init__(self, network: Network, *, together: int | None = None) -> None:
        self._network = network
        self._together = together  # the most paths in one pass; None: what fits

    def cost(self, piece: Piece, width: int) -> int:
        inside = slice(piece.begin, min(piece.begin + width, piece.end))
        longest = int(piece.trunk.lengths[inside].max(initial=1))
        # A path for each node without a child here, its logits where rows are wanted.
        parents = np.unique(piece.trunk.parents[inside])
        paths = width - int(np.count_nonzero(parents >= piece.begin))
        wanted = LOGIT_BYTES * self._network.logits * min(len(piece.nodes), longest)
        return paths * (wanted + 64 * int(self._network.config.hidden_size) * longest)

    def run(self, pieces: Sequence[Piece], out_nv: torch.Tensor) -> None:
        paths = [path for piece in pieces for path in _paths(piece)]
        step = self._together or max(1, len(paths))
        for begin in range(0, len(paths), step):
            self._run(paths[begin : begin + step], out_nv)

    def _run(self, paths: Sequence[_Path], out_nv: torch.Tensor) -> None:
        longest = max(len(path.tokens) for path in paths)
        tokens, there = (np.zeros((len(paths), longest), np.int64) for _ in range(2))
        for line, path in enumerate(paths):
            tokens[line, : len(path.tokens)] = path.tokens
            there[line, : len(path.tokens)] = 1
        columns = np.unique(np.concatenate([path.at for path in paths]))
        logits_brv, _cache = self._network.logits_at(
            columns,
            input_ids=self._network.tensor(tokens),
            attention_mask=self._network.tensor(there),
            use_cache=False,
        )
        for line, path in enumerate(paths):
            at = torch.from_numpy(np.searchsorted(columns, path.at)).to(logits_brv.device)
            self._network.fill(out_nv, path.rows, logits_brv[line, at])


@dataclass(frozen=True, eq=False)
class _Path:
    tokens: Ints
    at: Longs  # places in the path whose rows are wanted
    rows: Longs


def _paths(piece: Piece) -> list[_Path]:
    """The fewest paths that pass all wanted nodes; each node's row is taken from one of them."""
    seen = visible(piece.trunk.parents, piece.nodes)
    nodes, first = np.unique(piece.nodes, return_index=True)
    # Leaves are on no path but their own (a node asked for twice counts once).
    leaves = first[seen[first][:, nodes].sum(0) == 1]
    found, waiting = [], np.ones(len(piece.nodes), bool)
    for leaf in leaves:
        here = waiting & seen[leaf, piece.nodes]
        waiting &= ~here
        at = piece.trunk.lengths[piece.nodes[here]].astype(np.int64) - 1
        found.append(_Path(piece.trunk.tokens[seen[leaf]], at, piece.rows[here]))
    return found


def batches(pieces: Sequence[Piece], way: Pass, memory: int) -> list[list[Piece]]:
    """Batches of pieces that each stay within ``memory``; a trunk's pieces in their order."""
    waves: dict[int, list[Piece]] = {}
    for piece in pieces:
        for wave, part in enumerate(piece.cut(_most(piece, way, memory))):
            waves.setdefault(wave, []).append(part)
    return [batch for wave in waves.values() for batch in _packed(wave, way, memory)]


def _most(piece: Piece, way: Pass, memory: int) -> int:
    """The most nodes of a piece that fit at once, halving from all of them."""
    size = len(piece)
    while size > 1 and way.cost(piece, size) > memory:
        size = -(-size // 2)
    return size


def _packed(pieces: Sequence[Piece], way: Pass, memory: int) -> list[list[Piece]]:
    """Lines of similar length share a batch."""
    found: list[list[Piece]] = []
    room = 0
    for piece in sorted(pieces, key=len, reverse=True):
        width = len(found[-1][0]) if found else 0
        cost = way.cost(piece, max(width, len(piece)))
        if not found or cost > room:
            found.append([])
            room = memory
            cost = way.cost(piece, len(piece))
        found[-1].append(piece)
        room -= cost
    return found
