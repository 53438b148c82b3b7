"""Settling on every supported family; verify/settle.py does it at scale."""

from __future__ import annotations

from functools import cache
from time import process_time

import pytest

from crosstok import assets
from crosstok.errors import BadInput
from crosstok.loading import load
from crosstok.settling import Settler, Viability, careful_tail, settle, viable
from tests import texts
from verify import settle as suite

pytestmark = pytest.mark.assets
CASES = 60


class Collected:
    """What the parts of the suite find."""

    def __init__(self):
        self.found = {}
        self.wrong = {}

    def count(self, what, figure):
        self.found[what] = figure

    def violations(self, what, number):
        self.wrong[what] = number

    def require(self, what, holds):
        self.violations(what, int(not holds))

    def verdict(self):
        assert self.wrong, "nothing was checked"
        assert not {what: number for what, number in self.wrong.items() if number}


@cache
def vocabulary(family):
    return load(assets.path(family), name=family)


@cache
def oracle(family):
    return suite.Oracle(family)


@pytest.fixture
def collected():
    return Collected()


@pytest.mark.parametrize("family", suite.FAMILIES)
def test_settled_tokens_begin_the_encoding_of_every_continuation(family, collected):
    suite.check_sound(collected, family, vocabulary(family), oracle(family), CASES)
    collected.verdict()


@pytest.mark.parametrize("family", suite.FAMILIES)
def test_bytes_that_are_not_utf8_are_refused(family, collected):
    suite.check_refusals(collected, family, vocabulary(family))
    collected.verdict()


@pytest.mark.parametrize("family", suite.FAMILIES)
def test_what_is_open_has_two_continuations(family, collected):
    sources = {"sums": suite.SUMS, "Chinese": texts.declaration("cmn_hans")}
    suite.check_tight(collected, family, vocabulary(family), oracle(family), sources, CASES // 4)
    collected.verdict()
    assert all(
        share > 0.9 for what, share in collected.found.items() if what.endswith("nothing open")
        and "witness" in what
    )  # fmt: skip


@pytest.mark.parametrize("family", suite.FAMILIES)
def test_prefixes_of_encodings_are_viable(family, collected):
    suite.check_prefixes(collected, family, vocabulary(family), oracle(family), 4 * CASES)
    collected.verdict()


@pytest.mark.parametrize("family", suite.FAMILIES)
def test_the_quick_path_is_the_careful_path(family, collected):
    suite.check_quick(collected, family, vocabulary(family), 2 * CASES)
    collected.verdict()


@pytest.mark.parametrize("family", suite.FAMILIES)
def test_feeding_in_parts_gives_what_the_whole_gives(family, collected):
    suite.check_feeding(collected, family, vocabulary(family), CASES // 6)
    collected.verdict()


@pytest.mark.parametrize("family", suite.FAMILIES)
def test_nothing_and_the_start_of_nothing(family):
    v = vocabulary(family)
    found = settle(v, b"")
    assert (found.ids, found.offset, found.open) == ([], 0, b"")
    assert viable(v, [])
    assert Settler(v).finish() == []


@pytest.mark.parametrize("unit", ["a", " ", "\n", "你", "=", "\t", "0", "ab", "\n ", "é"])
@pytest.mark.parametrize("family", ["gpt2", "qwen2_5", "llama3", "gpt4o", "gemma2", "llama2"])
def test_a_long_piece_takes_no_longer_than_many_short_ones(family, unit):
    """The anchor moves on inside the piece: 2,000 characters without it would take many seconds."""
    v = vocabulary(family)
    text = (unit * 2_000).encode()
    if unit == "a" and not v.missing_bytes:
        text += b"bc  \n"
    settler = Settler(v)
    ids = []
    began = process_time()
    for k in range(len(text)):
        ids += settler.feed(text[k : k + 1])
    assert process_time() - began < 5
    whole = settle(v, text)
    assert ids == whole.ids
    assert settler.open == whole.open
    assert ids + settler.finish() == v.encode(text)


@pytest.mark.parametrize("family", ["gpt2", "llama3", "gemma2"])
def test_an_anchor_inside_a_piece_is_forgotten_with_the_piece(family):
    """A Settler goes on rightly behind a long piece, whatever closes it."""
    v = vocabulary(family)
    for closing in (" the end", "\n\nx", "'s 12", "<table>", "  \n", "。", "\u0301!"):
        text = ("abcdefgh" * 40 + closing + "xyz" * 40 + closing).encode()
        settler = Settler(v)
        ids = []
        for k in range(len(text)):
            ids += settler.feed(text[k : k + 1])
            assert settler.open == settle(v, text[: k + 1]).open
        assert ids + settler.finish() == v.encode(text)


def test_a_cut_mark_may_change_what_stands_before_it():
    """E0 B1 may become a mark, and another mark may still be put before that one."""
    v = vocabulary("qwen2_5")
    text = " వ".encode()
    found = careful_tail(v, text + b"\xe0\xb1")
    later = v.encode(text.decode() + "\u0338\u0c4d")
    assert later[: len(found.settled)] == [*found.settled]


def test_a_cut_character_may_be_replaced_by_its_normal_form():
    """EF A4 begins U+F900, which becomes U+8C48, of quite other bytes."""
    v = vocabulary("qwen2_5")
    found = settle(v, "好".encode() + b"\xef\xa4")
    assert v.encode("好\uf900")[: len(found.ids)] == found.ids
    assert found.open.endswith(b"\xef\xa4")


def test_viability_ends_with_the_first_token_that_cannot_follow():
    v = vocabulary("gpt2")
    state = Viability(v)
    ids = v.encode("Hello")
    assert all(state.push(token) for token in ids)
    state = Viability(v)
    assert state.push(v.encode("H")[0])
    assert not state.push(v.encode("ello")[0])
    assert not state.push(v.encode(" world")[0]), "once dead, dead for ever"
    with pytest.raises(BadInput, match="ids of gpt2"):
        state.push(v.size)


def test_normal_form_is_asked_for_across_piece_boundaries() -> None:
    """The mark of another class ends a piece, but an acute behind it still joins the letter."""
    v = vocabulary("qwen2_5")
    marks = v.encode("e\u0316")
    assert viable(v, marks)
    assert not viable(v, [*marks, *v.encode("\u0301")])
    assert v.encode("e\u0316\u0301") == v.encode("é\u0316")
