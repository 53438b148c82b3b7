"""`TransformersModel`: any causal language model of the transformers library.

Needs the extra ``torch``.  The model computes; this adapter owns the cache, packs forests into
passes, bounds their memory, and says which kind of pass it takes.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crosstok.errors import BadInput, ModelError
from crosstok.models.protocol import (
    Evaluation,
    Forest,
    Handle,
    Ints,
    Noise,
    check_forest,
    checked_ids,
    unknown_handle,
    wanted_rows,
)
from crosstok.vocabulary import Vocabulary

try:
    import torch
    import transformers

    from crosstok.models.passes import Network, Pass, Piece, batches
    from crosstok.models.probe import choose
    from crosstok.models.torch_rows import TorchRows, to_device
    from crosstok.models.trunks import Place, Trunk
except ImportError as error:
    raise BadInput.explain(
        "the packages torch and transformers", str(error), "pip install 'crosstok[torch]'"
    ) from error

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

# What one pass may take beside the weights, the cache and the rows given back.
MEMORY = 1 << 30
# After an out-of-memory error the pass is cut up for a quarter of the memory, and so on.
LADDER = (1, 4, 16, 64)
NO_LIMIT = 1 << 30


class Engine:
    """Evaluates forests by one kind of pass."""

    row_at_start = False

    def __init__(self, network: Network, way: Pass, size: int, window: int, memory: int) -> None:
        self.vocabulary_size = size
        self.context_window = window
        self.memory = memory
        self.noise = Noise()
        self._network = network
        self._way = way
        self._trunks: set[Trunk] = set()

    @property
    def description(self) -> str:
        network, config = self._network, self._network.config
        attention = getattr(config, "_attn_implementation", None) or "own"
        dtype = str(network.dtype).removeprefix("torch.")
        kind = type(network.model).__name__
        return f"{kind}, {dtype} on {network.device}, {attention} attention, {self._way.name}"

    @property
    def cached(self) -> int:
        return sum(len(trunk) for trunk in self._trunks)

    def evaluate(
        self, forest: Forest, *, rows: npt.ArrayLike | None = None, keep: npt.ArrayLike = ()
    ) -> Evaluation:
        roots = [self._known(root) for root in forest.roots]
        check_forest(forest, self)
        self._check_embedded(forest)
        wanted = wanted_rows(forest, rows)
        kept = checked_ids(keep, len(forest), "nodes to keep")
        grown = _Growth(forest, roots, wanted, kept)
        out_nv = self._network.empty_rows(len(wanted), self.vocabulary_size)
        try:
            self._run(grown.pieces(), out_nv, 0)
            handles = grown.handles(kept)
        finally:
            for trunk in grown.trunks:
                trunk.prune()
        self._trunks.update(trunk for trunk in grown.trunks if trunk.places)
        return Evaluation(TorchRows(out_nv), handles)

    def place(self, array: npt.NDArray[Any]) -> Any:
        return to_device(array, self._network.rows_device)

    def release(self, handles: Sequence[Handle]) -> None:
        touched = set()
        for handle in handles:
            place = self._known(handle)
            assert place is not None
            place.trunk.places.remove(place)
            touched.add(place.trunk)
        for trunk in touched:
            trunk.prune()
        self._trunks.difference_update(trunk for trunk in touched if not trunk.places)

    def _known(self, root: Handle | None) -> Place | None:
        if root is None:
            return None
        if (
            not isinstance(root, Place)
            or root.trunk not in self._trunks
            or root not in root.trunk.places
        ):
            raise unknown_handle()
        return root

    def _check_embedded(self, forest: Forest) -> None:
        if (highest := int(forest.tokens.max())) >= self._network.embedded:
            raise BadInput.explain(
                f"token ids that the model embeds, 0 to {self._network.embedded - 1}",
                str(highest),
                "use the tokenizer that the model was trained with",
            )

    def _run(self, pieces: Sequence[Piece], out_nv: torch.Tensor, rung: int) -> None:
        for batch in batches(pieces, self._way, self.memory // LADDER[rung]):
            try:
                self._way.run(batch, out_nv)
            except torch.OutOfMemoryError as error:
                self._step_down(batch, out_nv, rung, error)

    def _step_down(
        self, batch: Sequence[Piece], out_nv: torch.Tensor, rung: int, error: Exception
    ) -> None:
        if rung + 1 == len(LADDER):
            raise ModelError.explain(
                f"room for a pass of {self.memory // LADDER[rung]:,} bytes",
                f"{error}",
                "release handles, ask for fewer rows at once, or take a larger device",
            ) from error
        log.warning("out of memory: a pass of %d lines is cut up", len(batch))
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self._run(batch, out_nv, rung + 1)


class TransformersModel(Engine):
    """A causal language model of transformers, its weights already loaded.

    ``vocabulary`` is its tokenizer (or the number of its ids).  Logits beyond are padding: they get
    no mass.  Ids beyond the logits have probability 0.  ``memory`` bounds, in bytes, what one pass
    may take beside the weights, the cache and the rows given back.
    """

    def __init__(
        self,
        model: Any,
        vocabulary: Vocabulary | int,
        *,
        memory: int = MEMORY,
        context_window: int | None = None,
    ) -> None:
        size = vocabulary if isinstance(vocabulary, int) else vocabulary.size
        network = Network(_checked(model), size)
        window = context_window or _window(network.config)
        self.vocabulary = None if isinstance(vocabulary, int) else vocabulary

        def engine(way: Pass) -> Engine:
            return Engine(network, way, size, window, memory)

        way, noise = choose(engine, network, window)
        super().__init__(network, way, size, window, memory)
        self.noise = noise
        log.info("%s; noise %s", self.description, noise)

    @classmethod
    def load(
        cls,
        name_or_path: str | Path,
        *,
        vocabulary: Vocabulary | int | None = None,
        revision: str | None = None,
        token: str | bool | None = None,
        dtype: str | torch.dtype = "auto",
        device: str | torch.device | None = None,
        device_map: Any = None,
        peft: str | Path | None = None,
        gguf_file: str | None = None,
        memory: int = MEMORY,
        context_window: int | None = None,
    ) -> TransformersModel:
        """Load weights from a folder or the hub; quantised ones as their config says.

        ``vocabulary`` is read from the tokenizer beside them unless it is given.  With
        ``gguf_file``, a file in that folder, it must be given: such files may have lost their
        splitter.  ``peft`` is the folder or hub id of an adapter to put on the model.
        """
        if device is not None and device_map is not None:
            raise BadInput.explain("device or device_map", "both", "give one of the two")
        where = {"revision": revision, "token": token}
        if vocabulary is None:
            vocabulary = _vocabulary_beside(name_or_path, gguf_file, where)
        options = {"device_map": device_map, "gguf_file": gguf_file, **where}
        given = {name: value for name, value in options.items() if value is not None}
        model = _loaded(transformers.AutoModelForCausalLM, name_or_path, dtype=dtype, **given)
        if peft is not None:
            model = _with_adapter(model, peft, token)
        if device is not None:
            model = model.to(device)
        return cls(model, vocabulary, memory=memory, context_window=context_window)


class _Growth:
    """A forest on its trunks: which node became which, and the work that this makes."""

    def __init__(
        self, forest: Forest, roots: Sequence[Place | None], wanted: Ints, kept: Ints
    ) -> None:
        self._forest, self._roots = forest, roots
        self._wanted, self._kept = wanted, kept
        on = [Trunk() if root is None else root.trunk for root in roots]
        self.trunks = list(dict.fromkeys(on))
        number = {trunk: index for index, trunk in enumerate(self.trunks)}
        self._trunk_of_root = np.array([number[trunk] for trunk in on], np.int32)
        self._trunk_of = self._trunk_of_root[forest.root_of]
        self._node = np.full(len(forest), -1, np.int32)  # in its trunk
        self._again = np.full(len(roots), -1, np.int32)  # a root's last token, computed again
        self._begins = [len(trunk) for trunk in self.trunks]
        for index in range(len(self.trunks)):
            self._grow(index)

    def _grow(self, index: int) -> None:
        trunk, forest = self.trunks[index], self._forest
        nodes = np.flatnonzero(self._trunk_of == index)
        self._node[nodes] = np.arange(len(trunk), len(trunk) + len(nodes))
        base = np.array([-1 if root is None else root.node for root in self._roots], np.int32)
        parents = forest.parents[nodes]
        # An index below 0 means a root: it is read through `base`, the other entry is unused.
        above = np.where(parents >= 0, self._node[parents.clip(0)], base[(-1 - parents).clip(0)])
        trunk.grow(forest.tokens[nodes], above.astype(np.int32), forest.lengths[nodes])
        self._ask_roots(index)

    def _ask_roots(self, index: int) -> None:
        """The row at a root is that of its last token: compute that once more."""
        asked = np.unique(-1 - self._wanted[self._wanted < 0])
        for at in asked[self._trunk_of_root[asked] == index]:
            root = self._roots[at]
            if root is None:
                raise BadInput.explain(
                    "texts that begin with a token",
                    "a question about the empty context, where this model has no row",
                    "name the ids that begin its texts",
                )
            trunk, node = root.trunk, slice(root.node, root.node + 1)
            self._again[at] = len(trunk)
            trunk.grow(trunk.tokens[node], trunk.parents[node], trunk.lengths[node])

    def pieces(self) -> list[Piece]:
        """The work, one piece for each trunk."""
        inner = self._wanted >= 0
        root = np.where(inner, 0, -1 - self._wanted)
        node = np.where(inner, self._wanted, 0)
        trunks = np.where(inner, self._trunk_of[node], self._trunk_of_root[root])
        nodes = np.where(inner, self._node[node], self._again[root])
        kept = set(self._trunk_of[self._kept].tolist())
        found = []
        for index, trunk in enumerate(self.trunks):
            rows = np.flatnonzero(trunks == index)
            piece = Piece(trunk, self._begins[index], len(trunk), nodes[rows], rows, index in kept)
            found.append(piece)
        return [piece for piece in found if len(piece)]

    def handles(self, kept: Ints) -> tuple[Handle, ...]:
        """Handles to nodes of the forest."""
        trunks = (self.trunks[index] for index in self._trunk_of[kept])
        nodes = self._node[kept].tolist()
        return tuple(trunk.hold([node])[0] for trunk, node in zip(trunks, nodes, strict=True))


def _loaded(kind: Any, name: str | Path, **options: Any) -> Any:
    try:
        return kind.from_pretrained(name, **options)
    except (OSError, ValueError, ImportError, KeyError) as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise BadInput.explain(
            f"something that {kind.__name__} loads",
            f"{str(name)!r}, of which it says: {said}",
            "check the name, the revision and the access token, or install what is missing",
        ) from error


def _with_adapter(model: Any, peft: str | Path, token: str | bool | None) -> Any:
    try:
        from peft import PeftModel
    except ImportError as error:
        raise BadInput.explain("the package peft", str(error), "pip install peft") from error
    try:
        return PeftModel.from_pretrained(model, peft, token=token)
    except (OSError, ValueError) as error:
        raise BadInput.explain(
            "an adapter for this model", f"{peft}: {error}", "check its folder or hub id"
        ) from error


def _vocabulary_beside(
    name: str | Path, gguf_file: str | None, where: dict[str, Any]
) -> Vocabulary:
    if gguf_file is not None:
        raise BadInput.explain(
            "vocabulary=... beside gguf_file",
            "none, and tokenizers in GGUF files may have lost their splitter",
            "load the tokenizer.json that belongs to the model",
        )
    from crosstok.loading import load

    given = {key: value for key, value in where.items() if value is not None}
    return load(_loaded(transformers.AutoTokenizer, name, **given))


def _checked(model: Any) -> Any:
    config = getattr(model, "config", None)
    if config is None or getattr(config, "is_encoder_decoder", False) or not _predicts(model):
        raise BadInput.explain(
            "a causal language model with an output layer",
            type(model).__name__,
            "load it with AutoModelForCausalLM",
        )
    return model.eval()


def _predicts(model: Any) -> bool:
    return getattr(model, "get_output_embeddings", lambda: None)() is not None


def _window(config: Any) -> int:
    return int(getattr(config, "max_position_embeddings", None) or NO_LIMIT)
