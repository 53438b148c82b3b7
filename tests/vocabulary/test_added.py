"""Added tokens are found as `tokenizers` finds them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosstok.added import AddedTokens, Match
from crosstok.errors import UnsupportedTokenizer

from .toys import added, byte_level, expected_ids, read, tokenizer

quick = settings(max_examples=250, deadline=None, derandomize=True)
LETTERS = "ab<é "
contents = st.text(st.sampled_from(LETTERS), min_size=1, max_size=4)
tokens = st.dictionaries(contents, st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=6)


@quick
@given(tokens, st.booleans(), st.lists(st.text(st.sampled_from(LETTERS), max_size=16), max_size=8))
def test_encoding_with_added_tokens_is_that_of_tokenizers(flags, normalized, found):
    """Special ones are disabled, but hide what they cover from those searched with them."""
    data = byte_level()
    vocab = data["model"]["vocab"]
    for content, (special, late) in flags.items():
        token = vocab[content] if content in vocab else 256 + len(data["added_tokens"])
        # The model knows the id, else `tokenizers` would number the tokens itself.
        vocab.setdefault(content, token)
        data["added_tokens"].append(
            added(content, token, special=special, normalized=late if special else normalized)
        )
    if len(set(vocab.values())) < len(vocab) or len(vocab) != max(vocab.values()) + 1:
        return
    try:
        v = read(data)
    except UnsupportedTokenizer:
        return  # test_loading.py names these
    theirs = tokenizer(data)
    for text in ["".join(flags), *found]:
        assert v.encode(text) == expected_ids(theirs, text)


def test_leftmost_first_longest_first_without_overlap():
    found = AddedTokens({b"ab": 1, b"abc": 2, b"cd": 3, b"d": 4})
    assert list(found.matches(b"xabcd ab")) == [Match(1, 4, 2), Match(4, 5, 4), Match(6, 8, 1)]


def test_a_disabled_special_hides_what_it_covers():
    found = AddedTokens({b"b>": 1}, [b"<ab"])
    assert list(found.matches(b"<ab>b>")) == [Match(4, 6, 1)]
    assert list(AddedTokens({b"b>": 1}).matches(b"<ab>b>")) == [Match(2, 4, 1), Match(4, 6, 1)]


@quick
@given(
    st.dictionaries(st.binary(min_size=1, max_size=3), st.integers(0, 9), max_size=5), st.binary()
)
def test_may_occur_is_never_wrong_about_absence(text_added, text):
    found = AddedTokens(text_added)
    assert bool(found) == bool(text_added)
    if not found.may_occur(text):
        assert not list(found.matches(text))
        assert found.halves(text) == ([], [])


@quick
@given(
    st.dictionaries(st.text("ab<", min_size=1, max_size=4), st.integers(0, 9), max_size=5),
    st.sets(st.text("ab<", min_size=1, max_size=4), max_size=3),
    st.text("ab<", max_size=10),
    st.text("ab<", max_size=5),
)
def test_every_later_match_was_announced(text_added, control, text, more):
    """What a continuation changes about the text's own matches begins at a half."""
    control = control - text_added.keys()
    found = AddedTokens(
        {k.encode(): t for k, t in text_added.items()}, {c.encode() for c in control}
    )
    now, halves = found.halves(text.encode())
    later = [m for m in found.matches((text + more).encode()) if m.start < len(text)]
    assert now == list(found.matches(text.encode()))
    starts = {half.start for half in halves}
    for match in later:
        if match not in now:
            assert match.stop <= len(text) or match.start in starts


@pytest.mark.parametrize("content", ["▁", "\n\n", "<table>"])
def test_an_empty_set_finds_nothing(content):
    assert not list(AddedTokens({}, [content.encode()]).matches(content.encode() * 3))
