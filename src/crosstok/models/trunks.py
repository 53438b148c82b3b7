"""The adapter's own cache: one trunk for each text, shared by all handles into it.

A trunk is a tree of tokens with the attention keys and values of each.  Forests grow on it; after
each evaluation it is pruned to the paths that lead to handles still held.

Suffixes: l layers, h heads, s stored nodes, d width of a head, q new nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosstok.jit import njit
from crosstok.models.protocol import Bools, Handle, Ints


class Place(Handle):
    """A handle of `TransformersModel`: a node of a trunk."""

    __slots__ = ("node", "trunk")

    def __init__(self, trunk: Trunk, node: int) -> None:
        super().__init__(int(trunk.lengths[node]))
        self.trunk = trunk
        self.node = node


class Trunk:
    """The tokens of one text's tree, and what the model has computed for the first of them."""

    def __init__(self) -> None:
        none = np.zeros(0, np.int32)
        self.tokens, self.parents, self.lengths = none, none, none
        self.places: set[Place] = set()
        # For each layer the keys and the values [1, h, s, d]; none on the path without a cache.
        self.layers: list[tuple[Any, Any]] = []

    def __len__(self) -> int:
        return len(self.tokens)

    def grow(self, tokens: Ints, parents: Ints, lengths: Ints) -> None:
        """New nodes; ``parents`` counts from the trunk's first node, −1 for none."""
        self.tokens = np.concatenate([self.tokens, tokens])
        self.parents = np.concatenate([self.parents, parents])
        self.lengths = np.concatenate([self.lengths, lengths])

    def hold(self, nodes: Sequence[int]) -> list[Place]:
        """Handles to nodes."""
        places = [Place(self, node) for node in nodes]
        self.places.update(places)
        return places

    def prune(self) -> None:
        """Drop every node from which no handle is reached."""
        ends = np.array(sorted({place.node for place in self.places}), np.int32)
        needed = np.flatnonzero(visible(self.parents, ends).any(0))
        if len(needed) == len(self):
            return
        number = np.full(len(self) + 1, -1, np.int32)  # the last entry renumbers −1
        number[needed] = np.arange(len(needed))
        self.parents = number[self.parents[needed]]
        self.tokens, self.lengths = self.tokens[needed], self.lengths[needed]
        self.layers = [(_select(k, needed), _select(v, needed)) for k, v in self.layers]
        for place in self.places:
            place.node = int(number[place.node])


def visible(parents: Ints, nodes: Ints) -> Bools:
    """For each of ``nodes`` which nodes lie on its path, itself included."""
    seen: Bools = _climb(parents.astype(np.int32), nodes.astype(np.int32))
    return seen


@njit()
def _climb(parents: Any, nodes: Any) -> Any:
    seen = np.zeros((len(nodes), len(parents)), np.bool_)
    for row, start in enumerate(nodes):
        node = start
        while node >= 0:
            seen[row, node] = True
            node = parents[node]
    return seen


def _select(states_1hsd: Any, nodes: Any) -> Any:
    if len(nodes) == states_1hsd.shape[2]:
        return states_1hsd  # all that is stored; what is dropped never was
    import torch

    return states_1hsd[:, :, torch.from_numpy(nodes).to(states_1hsd.device)]
