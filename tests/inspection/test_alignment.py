"""Where tokens lie in a text."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosstok.alignment import Place, boundaries, place_tokens

from .toys import NASTY, byte_level, families, low_line, toy

vocabularies = cache(families)
NAMES = ["bytes", "nfc", "low line", "dummy"]
TEXTS = st.text(
    st.sampled_from("abc  \t\n1你é▁\u0301\u0323\u0338=\u1100\u1161\u11a8👩<tool>"), max_size=24
)


@pytest.mark.parametrize("name", NAMES)
def test_tokens_lie_end_to_end(name):
    check(vocabularies()[name], NASTY)


@settings(max_examples=60, deadline=None)
@given(text=TEXTS, name=st.sampled_from(NAMES))
def test_tokens_of_any_text_lie_end_to_end(text, name):
    check(vocabularies()[name], text)


def check(vocabulary, text):
    tokens = place_tokens(vocabulary, text)
    assert [token.token for token in tokens] == vocabulary.encode(text)
    place = Place(0)
    for token in tokens:
        assert token.start == place
        place = token.stop
        assert token.stop >= token.start
        raw = text.encode()[token.start.offset : token.stop.offset]
        if not vocabulary.spelling.nfc:
            assert token.content in (raw, raw.replace("▁".encode(), b" "), b" " + raw)
    assert place == Place(len(text.encode()))


def test_a_boundary_inside_what_was_composed_is_shared_by_those_who_compose():
    one, two = (toy(byte_level(merges, nfc=True)) for merges in ("", "a·b"))
    plain = toy(byte_level())
    text = "xe\u0301y"
    ends = [boundaries(place_tokens(v, text), len(text.encode())) for v in (one, two, plain)]
    assert ends[0] == ends[1] == {Place(1), Place(1, 1), Place(4)}
    assert ends[2] == {Place(1), Place(2), Place(3), Place(4)}


def test_a_dummy_prefix_alone_takes_no_text():
    first, second = place_tokens(toy(low_line(dummy=True)), "b")
    assert (first.start, first.stop, first.content) == (Place(0), Place(0), b" ")
    assert (second.start, second.stop) == (Place(0), Place(1))
    assert boundaries([first, second], 1) == set()


def test_spaces_are_one_byte_though_spelled_with_three():
    tokens = place_tokens(toy(low_line("▁·a")), "b ab")
    assert [token.stop.offset for token in tokens] == [1, 3, 4]


def test_added_tokens_have_their_places():
    tokens = place_tokens(toy(byte_level(added=["<t>"])), "é<t>b")
    assert [token.stop.offset for token in tokens] == [1, 2, 5, 6]
    assert tokens[2].content == b"<t>"
