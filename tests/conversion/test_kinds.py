"""Every kind of conversion, on small and on real vocabularies."""

import numpy as np
import pytest

from crosstok import assets
from crosstok.conversion import Conversion, ConversionKind, byte_vocabulary, compare
from crosstok.conversion.compiled import conversion_digest
from crosstok.conversion.pairs import Report
from crosstok.errors import BadInput
from crosstok.loading import load
from tests.conversion.toys import spelled, toy

TEXTS = (
    "Hello, world! It's the cat's 3rd day; WE'LL see 12345 things.\n\n\n  and \t tabs \r\n",
    "x = [i**2 for i in range(10)]\n\n\tif x != None:\n\t\treturn {'a': 0.5e-3}\n",
    "Zażółć gęślą jaźń 日本語 한국어 👩‍👩‍👧‍👦 नमस्ते  ",
    " a",
    "",
)


def test_a_vocabulary_is_the_same_as_itself():
    native = toy("a·b, ab·c")
    found = Conversion(native, toy("a·b, ab·c"))
    assert found.kind == ConversionKind.SAME
    assert found.convert(native.encode("abcab")) == native.encode("abcab")


def test_useless_merges_make_no_difference():
    found = Conversion(toy("a·b, ab·c"), toy("a·b, ab·c, a·bc"))
    assert found.kind == ConversionKind.PADDED  # bc is a token that no text is encoded to
    assert (
        Conversion(toy("a·b, b·c, ab·c"), toy("a·b, b·c, ab·c, a·bc")).kind == ConversionKind.SAME
    )


def test_renamed_ids_are_a_subset_with_one_token_each():
    native, target = toy("a·b, ab·c", ignore_merges=True), toy("a·b, ab·c", shift=9)
    found = Conversion(native, target)
    assert found.kind == ConversionKind.SUBSET
    assert "other ids" in found.why
    assert found.convert(native.encode("abcb")) == target.encode("abcb")


def test_whole_tokens_follow_their_names():
    native = toy("a·b", ignore_merges=True, extra=["abba"])
    target = toy("a·b", ignore_merges=True, extra=["abba"], shift=9)
    found = Conversion(native, target)
    assert found.kind == ConversionKind.SUBSET
    assert found.convert(native.encode("abba")) == target.encode("abba")
    assert len(target.encode("abba")) == 1
    off = Conversion(native, toy("a·b"))
    assert off.kind == ConversionKind.SUBSET
    assert len(off.convert(native.encode("abba"))) == 3


def reason(native, target):
    found = Conversion(native, target)
    assert found.kind == ConversionKind.GENERAL
    return found.why


def test_a_special_token_may_hide_a_part_of_an_added_one():
    """After <|end|> the text >> is matched as one special token and a >, and nothing more."""
    plain = toy("a·b", added=[">>"])
    other = toy("a·b", added=[">>"], control=["<|stop]"])
    assert Conversion(plain, toy("a·b", added=[">>"], shift=5)).is_local
    assert 'special token "<|end|>" hides a part of ">>" in one only' in reason(plain, other)
    merged = toy([(">", ">")], added=[">>"])
    assert spelled(merged, merged.encode("<|end|>>")) == ["<", "|", "e", "n", "d", "|", ">>"]
    assert "is both matched and" in reason(merged, toy("a·b", added=[">>"]))


def test_a_byte_without_a_symbol_is_named():
    native, target = toy("a·b"), toy("a·b", without="q")
    assert "toy lacks the symbol of a native token" in reason(native, target)
    assert Conversion(target, native).is_local


def test_a_check_that_was_too_large_is_no_proof(monkeypatch):
    monkeypatch.setattr(compare, "check_pairs", lambda *_: Report([], 5, complete=False))
    native, target = toy("a·b, c·d, b·a, d·d"), toy("a·b, b·a, d·d")
    assert "check of pairs is too large (5)" in reason(native, target)


def test_a_pair_that_no_text_shows_is_refused_all_the_same():
    """The splitter keeps letters and digits apart, which the check of pairs does not know."""
    why = reason(toy("a·b, b·1"), toy("b·1"))
    assert "ab·1 may stand side by side, but the pieces b·1 would merge" in why


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (toy("a·b", added=["<x>"]), 'only toy has the added token "<x>"'),
        (toy("c·a"), '"ca" is no merged token of toy'),
    ],
)
def test_what_is_general_says_why(target, words):
    found = Conversion(toy("a·b"), target)
    assert words in reason(found.native, target)
    with pytest.raises(BadInput, match="expected a token-local conversion, found a general one"):
        found.map  # noqa: B018


def test_bytes_are_local_for_every_token():
    native = toy("a·b, ab·c", added=["<think>"])
    found = Conversion(native, "bytes")
    assert found.kind == ConversionKind.BYTES
    assert found.target is byte_vocabulary()
    text = "abc <think> é"
    assert bytes(found.convert(native.encode(text))) == text.encode()
    assert found.map.first[native.encode("abc")[0]] == ord("a")
    assert found.map.first[native.size - 1] == -1
    with pytest.raises(BadInput, match='expected a Vocabulary or "bytes"'):
        Conversion(native, "words")


def test_ends_are_matched_by_name_and_missing_ones_are_named():
    native = toy("a·b")
    unnamed = Conversion(native, "bytes").ends
    assert unnamed.of == {}
    assert "names no token that ends a text" in unnamed.why
    load_ = lambda name, eos: load(assets.path(name), name=name, eos=eos)  # noqa: E731
    llama, older = load_("llama3_1", {128001, 128009}), load_("llama3", {128009, 128001})
    assert Conversion(llama, older).ends.of == {128001: 128001, 128009: 128009}
    gpt2 = load_("gpt2", {50256})
    assert Conversion(llama, gpt2).ends.of == {128001: 50256, 128009: 50256}
    none = load_("gpt2", set())
    assert Conversion(llama, none).ends.of == {128001: None, 128009: None}
    assert "gpt2 names no token" in Conversion(llama, none).ends.why


def test_a_conversion_is_compiled_once_and_named_by_what_it_depends_on():
    native, target = toy("a·b, ab·c"), toy("a·b")
    one, two = Conversion(native, target), Conversion(native, target)
    assert one.map is two.map
    assert one.digest == two.digest != Conversion(target, native).digest
    other = load(assets.path("gpt2"), eos={0})
    assert conversion_digest(native, other) != conversion_digest(native, load(assets.path("gpt2")))
    with pytest.raises(AttributeError):
        one.kind = ConversionKind.SAME


# -- real tokenizers -------------------------------------------------------------------------------

REAL = [
    ("llama3", "llama3_1", ConversionKind.SAME),
    ("llama3_1", "llama3_2", ConversionKind.PADDED),
    ("llama3", "gpt4", ConversionKind.SUBSET),
    ("gpt4", "llama3", ConversionKind.GENERAL),
    ("qwen2_5", "qwen3", ConversionKind.GENERAL),
    ("qwen2_5", "gpt4", ConversionKind.GENERAL),
    ("gpt2", "smollm2", ConversionKind.GENERAL),
    ("llama2", "mistral_v0_1", ConversionKind.GENERAL),
]


@pytest.mark.assets
@pytest.mark.parametrize(("native", "target", "kind"), REAL)
def test_kinds_of_real_pairs(native, target, kind):
    found = Conversion(
        load(assets.path(native), name=native), load(assets.path(target), name=target)
    )
    assert found.kind == kind, found
    if found.is_local:
        for text in TEXTS:
            assert found.convert(found.native.encode(text)) == found.target.encode(text)


@pytest.mark.assets
@pytest.mark.parametrize("name", ["gpt2", "qwen2_5", "gemma2", "llama2", "mistral_v0_1"])
def test_bytes_of_real_texts(name):
    native = load(assets.path(name), name=name)
    found = Conversion(native, "bytes")
    for text in TEXTS:
        assert bytes(found.convert(native.encode(text))) == text.encode()
    prefixed = native.spelling.dummy_prefix
    assert (found.start is not found.map) == prefixed
    if prefixed:
        (token,) = native.encode("a")
        assert bytes(found.start.of(token)) == b"a"
        assert bytes(found.map.of(token)) == b" a"


def test_all_maps_agree_with_the_bytes():
    native = load(assets.path("gpt2"))
    tokens = Conversion(native, "bytes").map
    assert np.array_equal(np.diff(tokens.at), [len(text) for text in native.token_bytes])
