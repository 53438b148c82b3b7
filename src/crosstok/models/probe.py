"""Which kind of pass a model bears, found by trying it, and how much noise each kind makes.

Rows of a small random forest are computed path by path, one pass each, and then in every faster
way.  Packed trees are taken only if they give the same rows *and* a wrong mask would have been
noticed: a check that could not fail proves nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from crosstok.errors import BadInput
from crosstok.models.passes import Network, PackedTrees, Pass, SeparatePaths
from crosstok.models.protocol import Floats, Forest, Ints, Noise

if TYPE_CHECKING:
    from crosstok.models.transformers import Engine

log = logging.getLogger(__name__)

# What packed rows may differ by, as total variation: float32 stays far below, and coarser types
# may differ by a multiple of what batching alone does.
EXACT = 1e-4
BATCHING = 4.0
# How much farther off a wrong mask must be.
NOTICED = 10.0
SHORTEST = 8
# The rows compared: the last ones of the path, and those of the branches.
COMPARED = 20
# A window longer than this is not crossed by the probe: the pass would take too long.
LONGEST = 1040
# How a model answers a mask that it does not understand.
FAILURES = (TypeError, ValueError, RuntimeError, AttributeError, IndexError, KeyError)


def choose(engine: Callable[[Pass], Engine], network: Network, window: int) -> tuple[Pass, Noise]:
    """The fastest pass that is right, and the noise measured on the way."""
    forest, cut = _forest(network, window)
    plain = _rows(engine(SeparatePaths(network, together=1)), forest)
    batched = _distance(_rows(engine(SeparatePaths(network)), forest), plain)
    rounding = _rounding(network)
    paths = SeparatePaths(network)
    if network.kinds is None:
        log.info("%s: its layers take no mask of ours", paths.name)
        return paths, Noise(batched, batched, rounding)
    allowed = max(EXACT, BATCHING * batched)
    try:
        packed = _distance(_grown(engine(PackedTrees(network)), forest, cut), plain)
        wrong = _distance(_rows(engine(PackedTrees(network, blind=True)), forest), plain)
    except FAILURES as error:
        log.info("%s: packed trees failed with %s: %s", paths.name, type(error).__name__, error)
        return paths, Noise(batched, batched, rounding)
    if packed <= allowed and NOTICED * packed < wrong:
        log.info("packed trees: %.2g off separate passes (a wrong mask: %.2g)", packed, wrong)
        return PackedTrees(network), Noise(packed, batched, rounding)
    log.info("%s: packed trees are %.2g off (a wrong mask: %.2g)", paths.name, packed, wrong)
    return paths, Noise(batched, batched, rounding)


def _forest(network: Network, window: int) -> tuple[Forest, int]:
    """A path across the sliding window with side branches, and where to cut it in two."""
    inner = [size for size in (network.kinds or {}).values() if size is not None]
    crossing = [size + 4 for size in inner if size + 4 <= LONGEST]
    if len(crossing) < len(inner):
        log.info("a window of %d tokens is not crossed by the check", max(inner))
    length = min(max([16, *crossing]), window)
    if length < SHORTEST:
        raise BadInput.explain(
            f"a window of at least {SHORTEST} tokens", str(window), "check context_window"
        )
    cut = length // 2
    # Without its context a network is at its noisiest, so some branches begin early.
    branches = [-1, -1, 0, 1, length // 3, cut, length - 3, length - 2]
    parents = [*range(-1, length - 1)]
    for branch in branches:
        parents += [branch, len(parents)]  # two nodes, one under the other
    tokens = np.random.default_rng(0).integers(0, network.outputs, len(parents))
    return Forest(tokens.astype(np.int32), np.array(parents, np.int32)), cut


def _ends(forest: Forest) -> Ints:
    """The last nodes: the path's end and the branches."""
    return np.arange(max(0, len(forest) - COMPARED), len(forest), dtype=np.int32)


def _rows(engine: Engine, forest: Forest) -> Floats:
    return engine.evaluate(forest, rows=_ends(forest)).rows.to_host()


def _grown(engine: Engine, forest: Forest, cut: int) -> Floats:
    """The same rows, the forest's second half hung on handles to the first."""
    handles = engine.evaluate(Forest.path(forest.tokens[:cut]), rows=[], keep=range(cut)).handles
    # The first nodes become roots, and the start the last of them.
    above = forest.parents[cut:]
    parents = np.where(above < cut, -1 - np.where(above < 0, cut, above), above - cut)
    second = Forest(forest.tokens[cut:], parents.astype(np.int32), (*handles, None))
    return engine.evaluate(second, rows=_ends(second)).rows.to_host()


def _distance(some: Floats, others: Floats) -> float:
    return float(0.5 * np.abs(some - others).sum(1).max())


def _rounding(network: Network) -> float:
    """What rounding alone may move: the stored logarithms, and one last place of the network's own.

    The second part is there because coarse types often hide all noise in the few rows of a probe,
    and show one flipped place in the next; see docs/theory/models.md.
    """
    stored = float(np.log(network.outputs) + 2) * 2.0**-24
    return stored + float(torch.finfo(network.dtype).eps) / 2
