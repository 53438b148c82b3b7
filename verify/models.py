"""Model adapters: the conformance check on a real model and on small networks of each kind.

The real one is SmolLM2-135M as its GGUF file holds it.  ``--device`` and ``--dtype`` choose what is
computed on; ``--small`` leaves the real model out.  Beside the promises, the suite shows how far
other precisions lie from float32.
"""

from __future__ import annotations

import argparse
import copy
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transformers

from crosstok import assets
from crosstok.errors import ModelError
from crosstok.loading import load
from crosstok.models import Forest, conformance
from crosstok.models.transformers import TransformersModel
from verify.common import Suite

if TYPE_CHECKING:
    from collections.abc import Iterator

IDS, LOGITS, WINDOW = 300, 304, 256
SCALE = 6  # of the weights: what a node sees must change its row
TEXT = """The town lies where two rivers meet. On market days farmers bring cheese, honey and
apples, and by noon most of it is sold. In 1887 the bridge was rebuilt in stone; it has stood since.
"""
HIGHEST_BITS = 2.0  # a byte: a model that is loaded wrongly needs three or more


def configs() -> Iterator[tuple[str, Any]]:
    """Small networks: full attention, sliding attention, both."""
    small = {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": LOGITS,
        "max_position_embeddings": WINDOW,
    }
    mixed = {"head_dim": 16, "sliding_window": 20}
    yield "Llama", transformers.LlamaConfig(**small)
    yield "Qwen 2", transformers.Qwen2Config(**small)
    yield "Qwen 3", transformers.Qwen3Config(**small, head_dim=16)
    yield (
        "GPT-2",
        transformers.GPT2Config(
            n_embd=64,
            n_layer=4,
            n_head=4,
            vocab_size=LOGITS,
            n_positions=WINDOW,
            bos_token_id=0,
            eos_token_id=0,
        ),
    )
    yield "Gemma 2", transformers.Gemma2Config(**small, **mixed)
    yield "Gemma 3", transformers.Gemma3TextConfig(**small, **mixed)
    yield "Mistral", transformers.MistralConfig(**small, sliding_window=20)


def network(config: Any) -> Any:
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(SCALE)
    return model


def check(suite: Suite, name: str, model: TransformersModel, seed: int, length: int) -> None:
    """One conformance check, its largest distance beside the noise that the model states."""
    try:
        report = conformance.check(model, seed=seed, length=length)
    except ModelError as error:
        print(f"{suite.name}: {name}: {error}")
        suite.violations(f"{name}: broken promises, seed {seed}", 1)
        return
    suite.violations(f"{name}: broken promises, seed {seed}", 0)
    suite.count(f"{name}: largest distance, seed {seed}", max(report.distances.values()))


def small(suite: Suite, device: str, dtype: torch.dtype) -> None:
    for name, config in configs():
        exact = network(config)
        model = TransformersModel(copy.deepcopy(exact).to(device, dtype), IDS)
        suite.count(f"{name}: computed with", model.description)
        suite.count(f"{name}: noise, packed", model.noise.packed)
        suite.count(f"{name}: noise, batched", model.noise.batched)
        suite.require(f"{name}: packed trees", model.description.endswith("packed trees"))
        for seed in range(suite.scaled(50, least=0)):  # the tests run one, too
            check(suite, name, model, seed, 16)
        forest = Forest.path(np.random.default_rng(0).integers(0, IDS, 64))
        rows = TransformersModel(exact, IDS).evaluate(forest).rows.to_host()
        far = conformance.distance(model.evaluate(forest).rows.to_host(), rows)
        suite.count(f"{name}: distance from float32 on the CPU, largest of 64 rows", far)


def real(suite: Suite, device: str, dtype: torch.dtype) -> None:
    """A real model: its text costs what it should, and the promises hold."""
    vocabulary = load(assets.path("smollm2"))
    (file,) = assets.path("smollm2_gguf").rglob("*.gguf")
    began = time.monotonic()
    model = TransformersModel.load(
        file.parent, vocabulary=vocabulary, gguf_file=file.name, dtype=dtype, device=device
    )
    suite.count("SmolLM2: seconds to load and probe", time.monotonic() - began)
    suite.count("SmolLM2: computed with", model.description)
    suite.count("SmolLM2: noise, packed", model.noise.packed)
    suite.count("SmolLM2: noise, batched", model.noise.batched)
    suite.require("SmolLM2: packed trees", model.description.endswith("packed trees"))
    (begin,) = sorted(vocabulary.bos or vocabulary.eos)[:1]
    ids = np.array([begin, *vocabulary.encode(TEXT)], np.int32)
    began = time.monotonic()
    block = model.evaluate(Forest.path(ids)).rows
    suite.count("SmolLM2: tokens a second, plain pass", len(ids) / (time.monotonic() - began))
    each = np.arange(len(ids) - 1, dtype=np.int32)
    bits = -block.pick(each, ids[1:]).sum() / math.log(2) / len(TEXT.encode())
    suite.count("SmolLM2: bits a byte", float(bits))
    suite.require(f"SmolLM2: at most {HIGHEST_BITS} bits a byte", bits <= HIGHEST_BITS)
    check(suite, "SmolLM2", model, 0, suite.scaled(16, least=4))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m verify.models", add_help=False)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--small", action="store_true")
    options, others = parser.parse_known_args()
    suite = Suite("models", others)
    dtype = getattr(torch, options.dtype)
    small(suite, options.device, dtype)
    if not options.small:
        real(suite, options.device, dtype)
    return suite.finish()


if __name__ == "__main__":
    raise SystemExit(main())
