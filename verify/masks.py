"""Masks against `Viability`, token by token: on small random vocabularies of every kind, and on
real ones at states along texts and along random viable sequences.

* **Small**: every token in every state met.
* **Sampled**: at states of English, Vietnamese, Chinese, Hindi and of a text made of hard places,
  and behind viable ids drawn at random (half of them inside characters): some tokens of every sort.
* **Whole**: at a few of these states, every token of the vocabulary.
* **Followers**: what Qwen 2.5 never puts behind `a` and ` Review`, for its merges and in all.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np

from crosstok import assets, bpe
from crosstok.loading import load
from crosstok.masks import Walk, masks_of, viable_next
from crosstok.vocabulary import Kind
from tests.masks.small import EVERY, differences, existing, random_walk, text_tokens
from tests.texts import declaration
from verify.common import Suite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crosstok.vocabulary import Vocabulary

FAMILIES = (
    "gpt2", "smollm2", "qwen2_5", "llama3", "gemma2", "llama2", "deepseek_v3", "gpt4o",
    "gemma3", "mistral_nemo", "mistral_v0_1", "gpt4", "qwen3",
)  # fmt: skip
SEEDS = 40
STATES = 200
WALKS = 200
WHOLE = 3
HARD = (
    "It's 1234 o'clock:  x\u0327 \n\n\tnaïve 你好 <tool_call>\n\n<table>  3.5 é\u0323 👩\u200d👧 "
    "don't\r\n  week.  The <tool 'll<|im_start|> e\u0316\u0301 <\n\n\n a"
)


def main() -> int:
    suite = Suite("masks")
    check_small(suite)
    for family in FAMILIES:
        check_family(suite, family)
    check_followers(suite)
    return suite.finish()


def report(suite: Suite, what: str, wrong: list[str]) -> None:
    for line in wrong[:5]:
        print(f"masks: {what}: {line}")
    suite.violations(what, len(wrong))


def check_small(suite: Suite) -> None:
    asked, wrong = 0, []
    for name, family in EVERY.items():
        for seed in range(suite.scaled(SEEDS, least=2)):
            v = family.make(seed)
            tokens = existing(v)
            for walk, _ in random_walk(v, Random(seed), 7, text_tokens(v, family.alphabet)):
                wrong += [f"{name}, {seed}: {line}" for line in differences(walk, tokens)]
                asked += len(tokens)
    suite.count("small vocabularies: answers compared", asked)
    report(suite, "small vocabularies: differences", wrong)


def check_family(suite: Suite, family: str) -> None:
    v = load(assets.path(family), name=family)
    rng = Random(family)
    states, asked, wrong = 0, 0, []
    for walk in (*along_texts(v, suite, rng), *along_walks(v, suite, rng)):
        tokens = drawn(walk, rng)
        wrong += differences(walk, tokens)
        states, asked = states + 1, asked + len(tokens)
    for walk in rng.sample(list(along_texts(v, suite, rng)), suite.scaled(WHOLE, least=0)):
        wrong += differences(walk, existing(v))
        asked += v.size
    suite.count(f"{family}: states", states)
    suite.count(f"{family}: answers compared", asked)
    report(suite, f"{family}: differences", wrong)


def along_texts(v: Vocabulary, suite: Suite, rng: Random) -> Iterator[Walk]:
    """States at some places of texts, each with the walk that leads there."""
    texts = [*map(declaration, ("eng", "vie", "cmn_hans", "hin")), HARD * 5]
    few = suite.scaled(STATES, least=len(texts)) // len(texts)
    for text in texts:
        known = "".join(c for c in text if set(c.encode()).isdisjoint(v.missing_bytes))
        ids = v.encode(known)[:400]
        asked = set(rng.sample(range(len(ids)), min(few, len(ids))))
        walk = Walk(v)
        for k, token in enumerate(ids):
            if k in asked:
                yield walk.branch()
            assert walk.push(token), "a prefix of an encoding is viable"


def along_walks(v: Vocabulary, suite: Suite, rng: Random) -> Iterator[Walk]:
    """States behind viable ids that are drawn at random, half of them inside characters."""
    continuing = set(masks_of(v).tokens.continuing)
    for _ in range(suite.scaled(WALKS)):
        walk = Walk(v)
        for _ in range(rng.randint(1, 6)):
            good = np.flatnonzero(viable_next(v, walk.state)).tolist()
            inside = [token for token in good if token in continuing]
            if good:
                walk.push(rng.choice(inside if inside and rng.random() < 0.5 else good))
        yield walk


def drawn(walk: Walk, rng: Random) -> list[int]:
    """Tokens of every sort: viable, not viable, those that begin inside a character, added."""
    tokens = masks_of(walk.vocabulary).tokens
    mask = viable_next(walk.vocabulary, walk.state)
    there = walk.vocabulary.kinds != Kind.ABSENT
    sorts = [np.flatnonzero(mask), np.flatnonzero(~mask & there), tokens.continuing]
    chosen = {t for sort in sorts for t in rng.sample(list(sort), min(40, len(sort)))}
    chosen |= set(rng.sample(tokens.added_ids.tolist(), min(20, len(tokens.added_ids))))
    return sorted(map(int, chosen))


def check_followers(suite: Suite) -> None:
    v = load(assets.path("qwen2_5"), name="qwen2_5")
    mergeable = masks_of(v).tokens.mergeable
    for before, expected in (("a", 11_701), (" Review", 307)):
        walk = Walk(v)
        (previous,) = v.encode(before)
        walk.push(previous)
        mask = viable_next(v, walk.state)
        apart = np.array([merges_apart(v, previous, token) for token in range(v.size)])
        inside = int((mergeable & ~apart).sum())
        suite.count(f"qwen2_5: tokens that {before!r} merges with", inside)
        suite.require(f"qwen2_5: {expected} tokens merge with {before!r}", inside == expected)
        text = v.kinds == Kind.TEXT
        suite.count(f"qwen2_5: tokens not viable behind {before!r}", int((text & ~mask).sum()))


def merges_apart(v: Vocabulary, first: int, second: int) -> bool:
    return bool(bpe.pair_is_canonical(first, second, v.merger.spines, v.merger.merges))


if __name__ == "__main__":
    raise SystemExit(main())
