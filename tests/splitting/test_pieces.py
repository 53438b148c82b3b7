"""Pieces equal those of the `tokenizers` package and of naive backtracking."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosstok.errors import BadInput
from crosstok.splitting import PATTERNS, Splitter, lex
from crosstok.splitting.pattern import pieces_by_backtracking

from .common import (
    BUDGET,
    FAMILIES,
    KNOWN,
    SPLITTING,
    Pair,
    class_strings,
    members,
    representatives,
)


@pytest.mark.parametrize("name", SPLITTING)
def test_all_short_texts(name):
    pair = Pair(name)
    letters = representatives(pair.splitter)
    for classes in class_strings(pair.splitter, 6, 6_000 * BUDGET):
        pair.assert_equal("".join(letters[k] for k in classes))


@pytest.mark.parametrize("name", SPLITTING)
def test_every_character_stands_for_its_class(name):
    pair = Pair(name)
    generator = random.Random(1)
    for classes in class_strings(pair.splitter, 5, 2_000 * BUDGET, seed=1):
        pair.assert_equal("".join(generator.choice(members(pair.splitter)[k]) for k in classes))


@pytest.mark.parametrize("name", SPLITTING)
def test_long_texts(name):
    """Long runs of few classes, where look-ahead reaches far."""
    pair = Pair(name)
    generator = random.Random(2)
    for _ in range(int(500 * BUDGET)):
        some = generator.sample(members(pair.splitter), k=generator.randint(1, 5))
        length = generator.randint(6, 60)
        pair.assert_equal("".join(generator.choice(generator.choice(some)) for _ in range(length)))


@pytest.mark.parametrize("name", SPLITTING)
@given(text=st.text(max_size=40))
def test_any_text(name, text):
    Pair(name).assert_equal(text)


@pytest.mark.parametrize("family", FAMILIES)
def test_backtracking(family):
    splitter, pattern = Splitter.by_name(family), PATTERNS[family]()
    letters = representatives(splitter)
    for classes in class_strings(splitter, 6, 200 * BUDGET):
        text = "".join(letters[k] for k in classes)
        assert splitter.pieces(text) == pieces_by_backtracking(pattern, text), ascii(text)


@pytest.mark.parametrize("name", [name for name in KNOWN if KNOWN[name]["family"] == "none"])
def test_none_is_one_piece(name):
    """The splitter sees normalized text, in which no space is left."""
    pair = Pair(name)
    for text in ("", "a", "▁a▁b\n\n\t▁", "a\u3000b"):
        pair.assert_equal(text)


def test_pieces_may_be_found_from_compiled_code():
    splitter = Splitter.by_name("gpt2")
    classes = np.frombuffer(splitter.classes("two words"), np.uint8)
    out = np.empty(len(classes), np.int64)
    count = lex(classes, splitter.nxt, splitter.rec, splitter.rec_end, out)
    assert out[:count].tolist() == splitter.pieces("two words") == [3, 9]


def test_lone_surrogates_belong_to_some_class():
    assert Splitter.by_name("gpt2").pieces("a\ud800") == [1, 2]


def test_there_is_one_object_a_name():
    splitter = Splitter.by_name("qwen2")
    assert Splitter.by_name("qwen2") is splitter
    assert pickle.loads(pickle.dumps(splitter)) is splitter


def test_digests_tell_families_apart():
    assert len({Splitter.by_name(name).digest for name in PATTERNS}) == len(PATTERNS)


def test_tables_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        Splitter.by_name("gpt2").nxt[0, 0] = 0


def test_an_unknown_name_is_refused():
    with pytest.raises(BadInput, match=r"gpt2, smollm2.*found 'gpt3'"):
        Splitter.by_name("gpt3")
