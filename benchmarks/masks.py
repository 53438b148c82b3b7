"""The cost of masks along 1,000 tokens of English: states, milliseconds a mask, µs a position.

Processor time of one core in one run; compiled functions are compiled before the clock starts.
``--text FILE`` (plain or gzip) is the English to use; without it the declaration of human rights
and the documentation strings of Python's library.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.settle import english
from crosstok import assets
from crosstok.loading import load
from crosstok.masks import Masks, NativeState, Walk
from crosstok.settling import Viability
from verify.common import circumstances, write_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from crosstok.vocabulary import Vocabulary

FAMILIES = ("gpt2", "smollm2", "qwen2_5", "llama3", "gemma2", "llama2", "deepseek_v3", "gpt4o")
TOKENS = 1000


def seconds(work: Callable[[], object]) -> float:
    began = process_time()
    work()
    return process_time() - began


def push_all(walk: Viability, ids: list[int]) -> None:
    for token in ids:
        walk.push(token)


def states_of(v: Vocabulary, ids: list[int]) -> list[NativeState]:
    walk, states = Walk(v), []
    for token in ids:
        states.append(walk.state)
        walk.push(token)
    return states


def measure(family: str, text: str) -> dict[str, Any]:
    v = load(assets.path(family), name=family)
    ids = v.encode(text[: 20 * TOKENS])[:TOKENS]
    Masks(v).document(ids[:50])  # compiles
    masks = Masks(v)
    tables = seconds(lambda: masks.alphabet(b""))
    states = states_of(v, ids)
    pushing = seconds(lambda: push_all(Viability(v), ids))
    walking = seconds(lambda: states_of(v, ids))
    making = seconds(lambda: [masks.packed(state) for state in states])
    rows = np.stack([masks.packed(state) for state in states])
    return {
        "tokens": len(ids),
        "kinds": len(masks.alphabet(b"").kinds),
        "tables, s": round(tables, 2),
        "states": masks.made,
        "distinct masks": len(np.unique(rows, axis=0)),
        "ms a mask": round(1e3 * making / masks.made, 2),
        "push, us a position": round(1e6 * pushing / len(ids)),
        "push and state, us a position": round(1e6 * walking / len(ids)),
        "all, us a position": round(1e6 * (walking + making) / len(ids)),
        "KiB a mask": round(rows.shape[1] / 1024, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.masks")
    parser.add_argument("--text", type=Path, help="running English, plain or gzip")
    parser.add_argument("--out", type=Path, help="write the result to this JSON file")
    parser.add_argument("--family", action="append", choices=FAMILIES)
    arguments = parser.parse_args()
    started = circumstances()
    text = english(arguments.text)
    results = {}
    for family in arguments.family or FAMILIES:
        results[family] = measure(family, text)
        print(family, results[family], flush=True)
    if arguments.out is not None:
        write_result(arguments.out, {"results": results, **started})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
