"""Real pre-tokenizers, the splitters that stand for them, and texts over character classes."""

from __future__ import annotations

import itertools
import json
import os
import random
from functools import cache
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from crosstok.splitting import PATTERNS, Splitter, recognise

# Scales the samples; at 400 whatever can be exhausted is.
BUDGET = float(os.environ.get("CROSSTOK_BUDGET", "1"))

# The two parts of each tokenizer.json that decide about pieces.
KNOWN = {
    entry["tokenizer"]: entry
    for entry in json.loads(Path(__file__).with_name("pre_tokenizers.json").read_text("utf-8"))
}
# One tokenizer a family, and both spellings of cl100k.
SPLITTING = [
    "gpt2",
    "smollm2",
    "gpt4",
    "llama3",
    "qwen2_5",
    "gpt4o",
    "mistral_nemo",
    "deepseek_v3",
]
FAMILIES = [name for name in PATTERNS if name != "none"]
LAST = 0x10FFFF


class Pair:
    """A pre-tokenizer of the `tokenizers` package and the splitter that must equal it."""

    def __init__(self, name: str) -> None:
        entry = KNOWN[name]
        self.splitter = recognise(entry["pre_tokenizer"], entry["normalizer"])
        self._pre_tokenizer = pre_tokenizer(entry["pre_tokenizer"])

    def expected(self, text: str) -> list[int]:
        if self._pre_tokenizer is None:  # no pre-tokenizer: the text is one piece
            return [len(text)] if text else []
        return [end for _, (_, end) in self._pre_tokenizer.pre_tokenize_str(text)]

    def assert_equal(self, text: str) -> None:
        assert self.splitter.pieces(text) == self.expected(text), ascii(text)


def pre_tokenizer(spec: object) -> object:
    """The package's pre-tokenizer for a part of a tokenizer.json."""
    model = {"type": "BPE", "vocab": {}, "merges": []}
    whole = {"version": "1.0", "added_tokens": [], "pre_tokenizer": spec, "model": model}
    return Tokenizer.from_str(json.dumps(whole)).pre_tokenizer


@cache
def members(splitter: Splitter) -> list[list[str]]:
    """The characters of every class."""
    points = np.arange(LAST + 1)
    scalar = (points < 0xD800) | (points > 0xDFFF)
    return [
        list(map(chr, points[scalar & (splitter.class_of == k)].tolist()))
        for k in range(splitter.n_classes)
    ]


def representatives(splitter: Splitter) -> list[str]:
    return [characters[0] for characters in members(splitter)]


def class_strings(splitter: Splitter, longest: int, limit: float, seed: int = 0) -> list[bytes]:
    """All class strings of up to `longest`; a length that has more than `limit` is sampled."""
    generator = random.Random(seed)
    found: list[bytes] = []
    for length in range(1, longest + 1):
        if splitter.n_classes**length <= limit:
            found += map(bytes, itertools.product(range(splitter.n_classes), repeat=length))
        else:
            found += (
                bytes(generator.choices(range(splitter.n_classes), k=length))
                for _ in range(int(limit))
            )
    return found
