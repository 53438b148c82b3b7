"""Rank files encode as tiktoken's rule says, and as the tokenizer.json of the same family."""

from __future__ import annotations

import base64
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosstok import assets
from crosstok.errors import BadInput
from crosstok.loading import read_json
from crosstok.ranks import load_tiktoken, read_ranks, tokenizer_json
from crosstok.splitting import PATTERNS, recognise
from crosstok.splitting.families import pre_tokenizer
from tests import texts

from .toys import vocabulary

quick = settings(max_examples=150, deadline=None, derandomize=True)


def by_rank(piece, ranks):
    """The rule itself: a known piece is one token, else the lowest rank first, leftmost first."""
    if piece in ranks:
        return [ranks[piece]]
    parts = [piece[k : k + 1] for k in range(len(piece))]
    while True:
        found = [(ranks[a + b], k) for k, (a, b) in enumerate(pairwise(parts)) if a + b in ranks]
        if not found:
            return [ranks[part] for part in parts]
        _, k = min(found)
        parts[k : k + 2] = [parts[k] + parts[k + 1]]


def read_toy(ranks):
    return read_json(tokenizer_json(ranks, "gpt2"), name="toy", use_cache=False)


@quick
@given(
    st.lists(st.text("ab", min_size=2, max_size=7), unique=True, max_size=14),
    st.lists(st.text("ab", max_size=20), max_size=8),
)
def test_equal_ranks_never_disagree(tokens, found):
    """One token can be made of its parts in several ways, which all have its rank."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks.update({token.encode(): 256 + k for k, token in enumerate(tokens)})
    v = read_toy(ranks)
    for text in [*found, *tokens]:
        assert v.encode(text) == (by_rank(text.encode(), ranks) if text else [])


@pytest.mark.assets
@pytest.mark.parametrize(
    ("encoding", "splitter", "family", "special"),
    [
        ("r50k", "gpt2", "gpt2", {"<|endoftext|>": 50256}),
        ("cl100k", "cl100k", "gpt4", {"<|endoftext|>": 100257, "<|endofprompt|>": 100276}),
        ("o200k", "o200k", "gpt4o", {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
    ],
)
def test_ranks_encode_as_the_tokenizer_of_the_same_name(encoding, splitter, family, special):
    path = assets.path("tiktoken") / f"{encoding}_base.tiktoken"
    v, same = load_tiktoken(path, splitter=splitter, special=special), vocabulary(family)
    assert v.eos == {special["<|endoftext|>"]}
    assert v.names == {token: content for content, token in special.items()}
    assert v.token_bytes == same.token_bytes
    drawn = {**texts.makers(v), **texts.adversarial(v)}
    for text in texts.strings(drawn, 300, seed=encoding):
        assert v.encode(text) == same.encode(text), ascii(text)


@pytest.mark.assets
def test_a_hole_in_the_ranks_is_an_absent_id():
    path = assets.path("tiktoken") / "p50k_base.tiktoken"
    v = load_tiktoken(path, splitter="gpt2")
    assert v.eos == frozenset()
    assert v.token_bytes[50256] == b""
    with pytest.raises(BadInput, match="found 50256"):
        v.bytes_of(50256)
    ranks = read_ranks(path)
    text = "def f(x):\n        return [x]  # 'It's'   "
    pieces = v.splitter.pieces(text)
    cut = [text[a:b] for a, b in pairwise([0, *pieces])]
    assert v.encode(text) == [token for piece in cut for token in by_rank(piece.encode(), ranks)]


def written(tmp_path, lines):
    file = tmp_path / "toy.tiktoken"
    file.write_bytes(b"\n".join(lines))
    return file


def line(token, rank):
    return base64.b64encode(token) + b" %d" % rank


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([b"IQ== 0", b"!!!! 1"], "line 2 of toy.tiktoken, found '!!!! 1'"),
        ([b"IQ== zero"], "in base 64 and its rank in line 1"),
        ([b"IQ=="], "line 1"),
        ([b'{"model": 1}'], "line 1"),
        ([], "0 ranks for 0 tokens"),
        ([line(b"a", 0), line(b"b", 0)], "1 ranks for 2 tokens"),
        ([line(b"a", -1)], "different ranks"),
    ],
)
def test_a_damaged_rank_file_is_named(tmp_path, lines, said):
    with pytest.raises(BadInput, match=said):
        load_tiktoken(written(tmp_path, lines), splitter="gpt2")


def test_what_is_asked_for_must_fit(tmp_path):
    file = written(tmp_path, [line(bytes([byte]), byte) for byte in range(256)])
    v = load_tiktoken(file, splitter="gpt2", special={"<s>": 300}, bos=[300], eos=[0])
    assert (v.name, v.bos, v.eos, v.size) == ("toy", (300,), {0}, 301)
    with pytest.raises(BadInput, match=r"one of gpt2, .* found 'bert'"):
        load_tiktoken(file, splitter="bert")
    with pytest.raises(BadInput, match="nothing at"):
        load_tiktoken(tmp_path / "other.tiktoken", splitter="gpt2")
    for special in ({"<s>": 97}, {"a": 300}):
        with pytest.raises(BadInput, match="which is a token of text"):
            load_tiktoken(file, splitter="gpt2", special=special)


@pytest.mark.parametrize("name", PATTERNS)
def test_every_family_can_be_written_down(name):
    assert recognise(pre_tokenizer(name), None).name == name
