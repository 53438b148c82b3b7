"""Settling and encoding English bit by bit, token by token, against one encode by `tokenizers`.

A `Settler` is fed the bytes of each token in turn, as a generation would feed it, and the time is
given as a ratio to `Tokenizer.encode` of the whole text, processor time of one core in one run.
Compiled functions are compiled before the clock starts, and the memo starts empty.

``--text FILE`` (plain or gzip) is the English to use; without it the declaration of human rights
and the documentation strings of Python's library are repeated as often as it takes.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import os
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # read when tokenizers first encodes

from tokenizers import Tokenizer

from crosstok import assets
from crosstok.loading import load
from crosstok.settling import Settler
from tests.texts import declaration, python_sources
from verify.common import circumstances, write_result

if TYPE_CHECKING:
    from crosstok.vocabulary import Vocabulary

AT_MOST = {"gpt2": 20, "llama3_1": 20, "qwen2_5": 20, "gemma2": 30}
MILLION = 1_000_000
GROWTH = 12
ROUNDS = 3


def english(file: Path | None) -> str:
    """Running English, without repetition where there is enough of it."""
    if file is None:
        return "\n\n".join([declaration("eng"), *docstrings()])
    data = file.read_bytes()
    return (gzip.decompress(data) if file.suffix == ".gz" else data).decode()


def docstrings() -> list[str]:
    """What Python's own library says about itself."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for source in python_sources() for node in ast.walk(ast.parse(source))]
    return [text for node in nodes if isinstance(node, kinds) and (text := ast.get_docstring(node))]


def of_size(text: str, size: int) -> str:
    """The text's first bytes, repeated where it is too short."""
    data = text.encode()
    return (data * (size // len(data) + 1))[:size].decode(errors="ignore")


def incremental(v: Vocabulary, parts: list[bytes]) -> tuple[float, list[int]]:
    """Seconds for feeding all parts, and the ids that settle."""
    settler = Settler(v)
    ids: list[int] = []
    began = process_time()
    for part in parts:
        ids += settler.feed(part)
    ids += settler.finish()
    return process_time() - began, ids


def parts_of(tokenizer: Any, text: str) -> list[bytes]:
    """The bytes of each token of a text."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    cuts = [0, *(end for _, end in encoding.offsets), len(text)]
    return [text[a:b].encode() for a, b in pairwise(cuts) if b > a]


def measure(family: str, text: str, size: int) -> dict[str, Any]:
    v = load(assets.path(family), name=family)
    tokenizer = Tokenizer.from_file(str(assets.path(family) / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    short, long = of_size(text, size), of_size(text, 10 * size)
    incremental(v, parts_of(tokenizer, short[:10_000]))  # compiles what is not yet compiled
    parts = parts_of(tokenizer, short)
    baseline, ours = [], []
    for _ in range(ROUNDS):
        began = process_time()
        expected = tokenizer.encode(short, add_special_tokens=False).ids
        baseline.append(process_time() - began)
        seconds, ids = incremental(v, parts)
        ours.append(seconds)
        assert ids == expected, f"{family}: settled ids are not the encoding"
    tenfold, _ = incremental(v, parts_of(tokenizer, long))
    return {
        "bytes": len(short),
        "tokens": len(expected),
        "tokenizers seconds": round(min(baseline), 4),
        "incremental seconds": round(min(ours), 4),
        "microseconds a token": round(1e6 * min(ours) / len(parts), 2),
        "ratio": round(min(ours) / min(baseline), 2),
        "ratio at most": AT_MOST[family],
        "tenfold text": round(tenfold / min(ours), 2),
        "tenfold text at most": GROWTH,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.settle", description=__doc__)
    parser.add_argument("--text", type=Path, help="English to use, plain or gzip")
    parser.add_argument("--size", type=int, default=MILLION, help="bytes of the shorter text")
    parser.add_argument("--families", nargs="*", default=list(AT_MOST))
    parser.add_argument("--out", type=Path, help="write the result to this JSON file")
    options = parser.parse_args()
    started = circumstances()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    text = english(options.text)
    rows = {}
    print(
        f"{'family':10} {'tokens':>9} {'µs/token':>9} {'ratio':>7} {'at most':>8} {'10x text':>9}"
    )
    for family in options.families:
        row = rows[family] = measure(family, text, options.size)
        print(
            f"{family:10} {row['tokens']:9,} {row['microseconds a token']:9.2f} {row['ratio']:7.2f}"
            f" {row['ratio at most']:8} {row['tenfold text']:9.2f}", flush=True,
        )  # fmt: skip
    if options.out is not None:
        name = options.text.name if options.text else "declaration of human rights, docstrings"
        write_result(options.out, {"text": name, "families": rows, **started})
    slow = [
        family for family, row in rows.items()
        if row["ratio"] > row["ratio at most"] or row["tenfold text"] > GROWTH
    ]  # fmt: skip
    print(f"too slow: {', '.join(slow) or 'none'}")
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
