"""Masks of small random vocabularies against `Viability`, token by token: no difference."""

import os
from random import Random

import numpy as np
import pytest

from crosstok.errors import BadInput
from crosstok.masks import Masks, Walk, masks_for, masks_of, may_end, viable_next
from crosstok.settling import viable
from tests.masks.small import EVERY, differences, existing, random_walk, text_tokens
from tests.settling.small import GPT2_SPLIT, QWEN_SPLIT, byte_level, with_fallback
from tests.settling.test_small import Family

BUDGET = float(os.environ.get("CROSSTOK_BUDGET", "1"))
SEEDS = range(max(2, int(2 * BUDGET)))
ALL = pytest.mark.parametrize("family", EVERY.values(), ids=EVERY)


@ALL
@pytest.mark.parametrize("seed", SEEDS)
def test_a_mask_is_what_viability_says_of_every_token(family: Family, seed: int) -> None:
    v = family.make(seed)
    rng = Random(seed)
    liked = text_tokens(v, family.alphabet)
    tokens = existing(v)
    for _ in range(2):
        for walk, _ in random_walk(v, rng, 7, liked):
            few = rng.sample(tokens, 50) + sorted(liked) if len(tokens) > 200 else tokens
            assert list(differences(walk, few)) == []


@ALL
@pytest.mark.parametrize("seed", SEEDS)
def test_equal_states_have_equal_futures(family: Family, seed: int) -> None:
    """Of two sequences in one state, `Viability` takes the same tokens."""
    v = family.make(seed)
    rng = Random(seed)
    liked = sorted(text_tokens(v, family.alphabet))
    seen: dict[object, tuple[bool, ...]] = {}
    for _ in range(8):
        for walk, _ in random_walk(v, rng, 5, set(liked)):
            answers = tuple(walk.branch().push(token) for token in liked)
            assert seen.setdefault(walk.state.key, answers) == answers, walk.text


@ALL
def test_a_text_may_end_where_its_encoding_is_complete(family: Family) -> None:
    v = family.make(1)
    if v.spelling.dummy_prefix and v.added:
        pytest.skip("such a text does not come back from its ids: each segment has a prefix")
    rng = Random(1)
    for _ in range(6):
        for walk, ids in random_walk(v, rng, 6, text_tokens(v, family.alphabet)):
            text = v.decode(ids)
            try:
                complete = v.encode(text) == ids
            except BadInput:  # cut inside a character
                complete = False
            assert may_end(walk.state) == complete, (ids, text)


def test_the_dummy_prefix_alone_is_no_whole_text() -> None:
    v = with_fallback(0, "ab ", 7, prefix=True)
    walk = Walk(v)
    lone = next(t for t in range(v.size) if v.spelled(t) == "▁".encode())
    assert walk.push(lone)
    assert not may_end(walk.state)
    assert may_end(Walk(v).state)


def test_no_bytes_of_a_surrogate_follow_each_other() -> None:
    v = with_fallback(0, "ab", 7, prefix=False)
    walk = Walk(v)
    assert walk.push(0xED)
    mask = viable_next(v, walk.state)
    assert np.flatnonzero(mask).tolist() == list(range(0x80, 0xA0))
    assert list(differences(walk, existing(v))) == []


@ALL
def test_a_document_has_one_mask_a_position(family: Family) -> None:
    v = family.make(1)
    rng = Random(2)
    ids = v.encode("".join(rng.choices(family.alphabet, k=40)))
    found = masks_for(v, ids)
    walk = Walk(v)
    for k, token in enumerate([*ids, None]):
        assert (found.mask(k) == viable_next(v, walk.state)).all()
        assert found.ends[k] == may_end(walk.state)
        if token is not None:
            assert found.mask(k)[token]
            assert walk.push(token)
    assert found.stopped is None
    assert found.ends[0]
    assert found.ends[len(ids)]
    assert len(found.packed) == found.index.max() + 1 <= len(ids) + 1


def test_the_first_id_that_is_not_viable_is_reported() -> None:
    v = byte_level(0, "ab ", 9, split=GPT2_SPLIT)
    ids = v.encode("ab ab ba")
    wrong = next(t for t in range(v.size) if not viable(v, [*ids, t]))
    found = masks_for(v, [*ids, wrong, *ids])
    assert found.stopped == len(ids)
    assert (found.index[: len(ids) + 1] >= 0).all()
    assert (found.index[len(ids) + 1 :] == -1).all()
    assert not found.mask(len(ids))[wrong]
    assert not found.mask(len(ids) + 1).any()
    assert not found.ends[len(ids) + 1 :].any()


def test_the_cache_is_bounded_and_forgets_what_was_used_longest_ago() -> None:
    v = byte_level(0, "ab 1", 9, split=QWEN_SPLIT)
    row = (v.size + 7) // 8
    masks = Masks(v, memory=2 * row)
    walk = Walk(v)
    states = [walk.state]
    for token in v.encode("ab a1b ba"):
        walk.push(token)
        if walk.state.key not in {state.key for state in states}:
            states.append(walk.state)
    first, second, third = states[:3]
    expected = masks.next(first).copy()
    masks.next(second)
    masks.next(first)
    assert masks.made == 2
    masks.next(third)
    assert masks.memory == 2 * row
    masks.next(first)
    assert masks.made == 3
    masks.next(second)
    assert masks.made == 4
    assert (masks.next(first) == expected).all()


def test_the_masks_of_a_vocabulary_are_shared() -> None:
    v = byte_level(0, "ab", 5)
    assert masks_of(v) is masks_of(v)
    assert masks_of(v).next(Walk(v).state).dtype == np.bool_
