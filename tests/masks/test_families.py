"""Masks of real vocabularies against `Viability`, on some states and some tokens of each."""

import os
from random import Random

import numpy as np
import pytest

from crosstok import assets
from crosstok.loading import load
from crosstok.masks import Walk, masks_of, viable_next
from crosstok.settling import viable
from crosstok.vocabulary import Kind, Vocabulary
from tests.masks.small import differences

pytestmark = pytest.mark.assets
FAMILIES = ("gpt2", "smollm2", "qwen2_5", "llama3", "gemma2", "llama2", "deepseek_v3", "gpt4o")
FEW = FAMILIES if float(os.environ.get("CROSSTOK_BUDGET", "1")) > 1 else ("qwen2_5", "llama2")
TEXT = (
    "It's 1234 o'clock:  x\u0327 \n\n\tnaïve 你好 <tool_call>\n\n<table>  3.5 é\u0323 👩\u200d👧 "
    "don't\r\n  week.  The"
)


def vocabulary(family: str) -> Vocabulary:
    return load(assets.path(family), name=family)


def drawn(walk: Walk, rng: Random) -> list[int]:
    """Tokens of every sort: viable, not viable, those that begin inside a character, added."""
    tokens = masks_of(walk.vocabulary).tokens
    mask = viable_next(walk.vocabulary, walk.state)
    mask[walk.vocabulary.kinds == Kind.ABSENT] = False
    sorts = [np.flatnonzero(mask).tolist(), np.flatnonzero(~mask).tolist(), tokens.continuing]
    sorts.append(tokens.added_ids.tolist())
    some = {token for sort in sorts for token in rng.sample(sort, min(12, len(sort)))}
    return sorted(some - set(np.flatnonzero(walk.vocabulary.kinds == Kind.ABSENT).tolist()))


@pytest.mark.parametrize("family", FEW)
def test_masks_along_a_text_are_what_viability_says(family: str) -> None:
    v = vocabulary(family)
    rng = Random(family)
    walk = Walk(v)
    ids = v.encode("".join(c for c in TEXT if set(c.encode()).isdisjoint(v.missing_bytes)))
    asked = set(rng.sample(range(len(ids)), 12))
    for k, token in enumerate(ids):
        if k in asked:
            assert list(differences(walk, drawn(walk, rng))) == []
        assert walk.push(token)


@pytest.mark.parametrize(("before", "never"), [("a", 13_811), (" Review", 2_417)])
def test_how_many_tokens_qwen_never_puts_behind_another(before: str, never: int) -> None:
    """11,701 and 307 of them for their merges alone (verify/masks.py counts these)."""
    v = vocabulary("qwen2_5")
    walk = Walk(v)
    for token in v.encode(before):
        assert walk.push(token)
    mask = viable_next(v, walk.state)
    assert (v.kinds == Kind.TEXT).sum() - mask.sum() == never
    (plural,) = v.encode("s")
    assert not mask[plural]
    assert not viable(v, [*v.encode(before), plural])
