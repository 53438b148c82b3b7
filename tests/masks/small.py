"""Walks over viable ids, and what `Viability` says of every token behind them."""

from collections.abc import Iterator
from random import Random

import numpy as np

from crosstok.masks import Walk, viable_next
from crosstok.vocabulary import Kind, Vocabulary
from tests.settling.small import GPT2_SPLIT, QWEN_SPLIT, byte_level, with_fallback
from tests.settling.test_small import FAMILIES, Family

MARKS = "ae\u0301\u0323 =\u0327\u0316éáẹạệậȩ\u0338≠"
WIDE = "a é.\u2003\nñ你1٣'s"

# What settling's families leave out: cut characters behind a splitter, marks, added tokens that
# overlap each other and the ends of words.
MORE = {
    "cut characters, gpt2": Family(
        lambda seed: byte_level(seed, WIDE, 16, split=GPT2_SPLIT, several=seed % 2 == 1), WIDE
    ),
    "cut characters, qwen": Family(
        lambda seed: byte_level(seed, WIDE, 16, split=QWEN_SPLIT, several=seed % 2 == 1), WIDE
    ),
    "cut characters, ignore_merges": Family(
        lambda seed: byte_level(seed, "a é1٣'s", 12, split=QWEN_SPLIT, ignore_merges=True),
        "a é1٣'s",
    ),
    "normal forms": Family(
        lambda seed: byte_level(seed, MARKS, 9, split=QWEN_SPLIT, nfc=True, several=seed % 2 == 1),
        MARKS,
    ),
    "normal forms, added tokens": Family(
        lambda seed: byte_level(seed, MARKS + "<>", 12, split=QWEN_SPLIT, nfc=True,
                                added=["<a>", "<"]),
        MARKS + "<>",
    ),
    "overlapping added tokens": Family(
        lambda seed: byte_level(seed, "a <t>", 12, split=QWEN_SPLIT,
                                added=["<t>", "<a t>", "t>a", "aa"]),
        "a <t>",
    ),
    "added tokens, ignore_merges": Family(
        lambda seed: byte_level(seed, "a <t>1", 12, split=GPT2_SPLIT, ignore_merges=True,
                                added=["<t>", "  "]),
        "a <t>1",
    ),
    "added tokens behind a dummy prefix": Family(
        lambda seed: with_fallback(seed, "ab <", 9, prefix=True, added=["<a>", "b b", "a▁"]),
        "ab <>",
    ),
    "runs of newlines and spaces": Family(
        lambda seed: with_fallback(seed, "abé", 9, prefix=False, several=True,
                                   added=["\n", "\n\n", "  ", "▁▁", "é<"]),
        "abé\n<>",
    ),
}  # fmt: skip
EVERY = {**FAMILIES, **MORE}


def text_tokens(v: Vocabulary, alphabet: str) -> set[int]:
    """Ids whose bytes belong to the alphabet."""
    known = set(alphabet.encode())
    return {t for t in range(v.size) if v.token_bytes[t] and set(v.token_bytes[t]) <= known}


def existing(v: Vocabulary) -> list[int]:
    """All ids but the holes in the numbering."""
    return [token for token in range(v.size) if v.kinds[token] != Kind.ABSENT]


def differences(walk: Walk, tokens: list[int]) -> Iterator[str]:
    """Where the mask and `Viability` disagree about these tokens."""
    v, state = walk.vocabulary, walk.state
    mask = viable_next(v, state)
    for token in tokens:
        if walk.branch().push(token) != mask[token]:
            yield f"{walk._text!r} + {token} {v.token_bytes[token]!r}: mask {mask[token]}"


def random_walk(
    v: Vocabulary, rng: Random, length: int, liked: set[int]
) -> Iterator[tuple[Walk, list[int]]]:
    """A walk over viable tokens, mostly the liked ones, and its ids, at every step.

    The tokens are drawn at random, so the ids are viable and yet seldom what the encoder makes of
    their text alone.
    """
    walk, ids = Walk(v), []
    for _ in range(length):
        yield walk, ids
        good = np.flatnonzero(viable_next(v, walk.state)).tolist()
        if not good:
            return
        some = [token for token in good if token in liked] or good
        ids = [*ids, rng.choice(some if rng.random() < 0.9 else good)]
        walk.push(ids[-1])
