"""`Conversion`: two vocabularies, the kind of their relation, and all tables that it needs."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Literal

import numpy as np

from crosstok.conversion.compare import ConversionKind, TokenMap, Verdict, compare
from crosstok.errors import BadInput
from crosstok.loading import BYTE_OF_CHARACTER, Special, read_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crosstok import bpe
    from crosstok.vocabulary import Vocabulary

FORMAT = 1  # of what is computed here: part of every digest
BYTES_EOS = 256
KEPT = 16  # verdicts kept in memory


@dataclass(frozen=True, slots=True)
class Ends:
    """What becomes of each token that ends a text: the target's, or None where it has none."""

    of: dict[int, int | None]
    why: str


@dataclass(frozen=True, eq=False, init=False)
class Conversion:
    """How the tokens of ``native`` become those of ``target``; see `crosstok.conversion`."""

    native: Vocabulary
    target: Vocabulary
    kind: ConversionKind
    why: str
    digest: str
    ends: Ends
    _map: TokenMap | None
    _start: TokenMap | None

    def __init__(self, native: Vocabulary, target: Vocabulary | Literal["bytes"]) -> None:
        goal = byte_vocabulary() if isinstance(target, str) else target
        if isinstance(target, str) and target != "bytes":
            raise BadInput.explain('a Vocabulary or "bytes"', repr(target), "load it first")
        digest = conversion_digest(native, goal)
        verdict = _verdict(native, goal, digest)
        for name, value in (
            ("native", native), ("target", goal), ("kind", verdict.kind), ("why", verdict.why),
            ("digest", digest), ("ends", find_ends(native, goal)),
            ("_map", verdict.map), ("_start", verdict.start),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"Conversion({self.native.name!r} -> {self.target.name!r}, {self.kind}: {self.why})"

    @property
    def is_local(self) -> bool:
        """Whether every native token stands for fixed target tokens."""
        return self._map is not None

    @property
    def map(self) -> TokenMap:
        """The target tokens of each native token, anywhere but at a text's start."""
        if self._map is None:
            raise BadInput.explain(
                "a token-local conversion",
                f"a general one from {self.native.name} to {self.target.name}: {self.why}",
                "score it with the general engine",
            )
        return self._map

    @property
    def start(self) -> TokenMap:
        """The same for the first token of a text (another map only where a space is taken off)."""
        return self.map if self._start is None else self._start

    def convert(self, ids: Sequence[int] | bpe.I32) -> list[int]:
        """The target tokens that the native tokens of a whole text stand for."""
        self.native.check_ids(ids)
        tokens = np.asarray(ids, np.int64)
        first = self.start.of(int(tokens[0])) if len(tokens) else ()
        return [*first, *self.map.convert(tokens[1:]).tolist()]


def conversion_digest(native: Vocabulary, target: Vocabulary) -> str:
    """Names everything that a conversion depends on."""
    sides = [[v.digest, v.splitter.digest, list(v.bos), sorted(v.eos)] for v in (native, target)]
    return hashlib.sha256(json.dumps([FORMAT, *sides]).encode()).hexdigest()


_kept: OrderedDict[tuple[str, ...], Verdict] = OrderedDict()
_lock = Lock()


def _verdict(native: Vocabulary, target: Vocabulary, digest: str) -> Verdict:
    """`compare`, once for each pair of vocabularies (and of names, which the reason holds)."""
    key = (digest, native.name, target.name)
    with _lock:
        found = _kept.pop(key, None) or compare(native, target)
        _kept[key] = found
        if len(_kept) > KEPT:
            _kept.popitem(last=False)
    return found


def find_ends(native: Vocabulary, target: Vocabulary) -> Ends:
    """End tokens by their contents; those without a namesake become the target's first one."""
    named = {target.names.get(token): token for token in target.eos}
    default = min(target.eos, default=None)
    found = {t: named.get(native.names.get(t, ""), default) for t in sorted(native.eos)}
    if not found:
        return Ends({}, f"{native.name} names no token that ends a text; give eos= when loading it")
    if default is None:
        return Ends(found, f"{target.name} names no token that ends a text; give eos= when loading")
    pairs = (
        f"{t} {native.names.get(t, '')} → {u} {target.names.get(u, '')}"
        for t, u in found.items()
        if u is not None
    )
    return Ends(found, "; ".join(pairs))


@lru_cache(maxsize=1)
def byte_vocabulary() -> Vocabulary:
    """The 256 bytes as a vocabulary: ids are byte values, and 256 ends a text."""
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    end = {
        "id": BYTES_EOS, "content": "<|endoftext|>", "special": True, "normalized": False,
        "single_word": False, "lstrip": False, "rstrip": False,
    }  # fmt: skip
    model: dict[str, object] = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
        "ignore_merges": False, "vocab": BYTE_OF_CHARACTER, "merges": [],
    }  # fmt: skip
    data = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [end],
        "normalizer": None, "pre_tokenizer": step, "post_processor": None, "decoder": step,
        "model": model,
    }  # fmt: skip
    special = Special(bos=(), eos=frozenset({BYTES_EOS}))
    return read_json(json.dumps(data).encode(), name="bytes", special=special)
