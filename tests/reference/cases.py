"""Small vocabularies and models for the reference's tests."""

from __future__ import annotations

import os
import random

from hypothesis import settings
from hypothesis import strategies as st

from crosstok.reference import (
    CanonicalLaw,
    LatePart,
    LocalSplitter,
    SmallBpe,
    TableLM,
)

BUDGET = float(os.environ.get("CROSSTOK_BUDGET", "1"))
CLOSE = 1e-12


def examples(full: int):
    """Hypothesis settings: ``full`` examples at budget 1, always the same ones."""
    return settings(max_examples=max(1, round(full * BUDGET)), deadline=None, derandomize=True)


def random_merges(alphabet: str, count: int, dice: random.Random, longest: int = 3) -> list:
    """Random pairs of tokens made before; several may make the same token."""
    tokens, merges = list(alphabet), []
    for _ in range(20 * count):
        left, right = dice.choice(tokens), dice.choice(tokens)
        if len(left + right) > longest or (left, right) in merges:
            continue
        merges.append((left, right))
        tokens += [left + right] * (left + right not in tokens)
        if len(merges) == count:
            break
    return merges


def ordered_vocabulary(alphabet: str, count: int, seed: int, splitter=None) -> SmallBpe:
    """A random vocabulary that the paper's algorithms admit."""
    dice = random.Random(seed)
    while True:
        vocabulary = SmallBpe(alphabet, random_merges(alphabet, count, dice), splitter)
        try:
            vocabulary.require_ordered()
        except LatePart:
            continue
        return vocabulary


def shuffled_vocabulary(alphabet: str, count: int, seed: int, **options) -> SmallBpe:
    """A random vocabulary whose merges come in any order, parts after their uses."""
    dice = random.Random(seed)
    merges = random_merges(alphabet, count, dice)
    dice.shuffle(merges)
    return SmallBpe(alphabet, merges, **options)


def fallback_vocabulary(count: int, seed: int) -> SmallBpe:
    """Characters a and é, and bytes for è; é's bytes are atoms that are never used for é."""
    dice = random.Random(seed)
    merges = random_merges("aé", count, dice)
    if dice.random() < 0.5:
        merges.append(("<0xC3>", "<0xA8>"))
    return SmallBpe(["a", "é", "<0xC3>", "<0xA8>", "<0xA9>"], merges)


def byte_vocabulary(count: int, seed: int) -> SmallBpe:
    """A byte-level vocabulary: a, and é and è from bytes; merges may end inside a character."""
    dice = random.Random(seed)
    tokens, merges = ["a", "<0xC3>", "<0xA8>", "<0xA9>"], []
    while len(merges) < count:
        left, right = dice.choice(tokens[:4]), dice.choice(tokens)
        if (left, right) not in merges and len(left + right) <= 18:
            merges.append((left, right))
            tokens.append(left + right)
    return SmallBpe(tokens[:4], merges)


def canonical_table(vocabulary: SmallBpe, seed: int, limit: int = 4, leak: float = 0.0):
    return CanonicalLaw(TableLM(vocabulary, seed, limit=limit, leak=leak))


SEEDS = st.integers(0, 2**20)
COUNTS = st.integers(0, 7)
SPLITTERS = st.sampled_from(
    [None, LocalSplitter(before=" "), LocalSplitter(before="b"), LocalSplitter("b", "b")]
)
