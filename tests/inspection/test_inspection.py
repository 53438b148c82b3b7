"""What `inspect` finds out."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from itertools import combinations

import pytest

from crosstok import assets, inspection
from crosstok.errors import BadInput
from crosstok.inspection import PROBES, inspect, pieces, sample
from crosstok.settling import settle
from crosstok.splitting import PATTERNS, Splitter

from .toys import byte_level, low_line, toy

# What SmolLM2's vocabulary has no token for.
SMOLLM2_MISSING = bytes.fromhex("04 06 13 14 16 1d c0 c1 f1 f2 f5 f6 f7 f8 f9 fa fb fc fd fe ff")


def compare(native, target, text="abc ab"):
    return inspect(toy(native, "one"), toy(target, "two"), text)


def test_sizes():
    found = compare(byte_level("a·b b·c a·bc ab·c", added=["<t>", "<u>"]), low_line("a·b"))
    native, target = found.native.sizes, found.target.sizes
    assert (native.ids, native.text, native.control, native.added) == (262, 261, 1, 2)
    assert (native.merge_lines, native.merge_results, native.byte_fallback) == (4, 3, 0)
    assert (target.text, target.byte_fallback, target.control) == (10, 256, 2)
    # The bytes of ▁ read as a space, which has a fallback too.
    assert target.byte_strings == 256 + 1
    assert (native.unreachable, native.absent) == (0, 0)


def test_shared_tokens_are_counted_by_their_bytes():
    found = compare(byte_level("a·b b·c"), low_line("a·b c·d ▁·a")).shared
    assert found.count == 256 + 1
    assert found.of_native == 257 / (256 + 2)
    assert found.of_target == 257 / (256 + 3)


def test_boundaries_and_tokens_per_byte():
    found = compare(byte_level("a·b"), byte_level("b·c"), "abcxy").text
    assert (found.bytes, found.characters, found.source) == (5, 5, "given")
    assert (found.native_tokens, found.target_tokens) == (4, 4)
    assert found.native_tokens_per_byte == 4 / 5
    # ab|c|x|y against a|bc|x|y
    assert (found.native_boundaries, found.target_boundaries, found.shared_boundaries) == (3, 3, 2)
    assert found.of_native_boundaries == found.of_target_boundaries == 2 / 3


def test_a_text_of_one_token_has_no_boundary_to_share():
    found = compare(byte_level("a·b"), byte_level(), "ab").text
    assert found.of_native_boundaries is None
    assert found.of_target_boundaries == 0


def test_open_tokens_are_those_of_the_text_so_far_that_are_not_settled():
    native, target = toy(byte_level("a·b ab·c G·a")), toy(low_line("▁·a a·b b·c ▁a·b"))
    text = "abcab abé cab ab 12  b"
    found = inspect(native, target, text).text.unsettled
    ends = [end for end in _ends(native, text) if _is_text(text.encode()[:end])]
    assert found.positions == len(ends) < len(native.encode(text))
    for vocabulary, mean in ((native, found.native), (target, found.target)):
        counts = [_open_tokens(vocabulary, text.encode()[:end]) for end in ends]
        assert mean == sum(counts) / len(counts) > 0


def _ends(vocabulary, text):
    ids = vocabulary.encode(text)
    return [len(b"".join(map(vocabulary.bytes_of, ids[: k + 1]))) for k in range(len(ids))]


def _is_text(data):
    return data.decode(errors="ignore").encode() == data


def _open_tokens(vocabulary, data):
    return len(vocabulary.encode(data)) - len(settle(vocabulary, data).ids)


def test_single_bytes_are_never_open():
    found = inspect(toy(byte_level("a·b ab·c")), "bytes", "ab ab  ab")
    assert found.text.unsettled.target == 0 < found.text.unsettled.native
    assert found.conversion.kind == "bytes"
    assert found.split_differences == ()


def test_long_texts_are_fed_only_so_far(monkeypatch):
    monkeypatch.setattr(inspection, "MOST_POSITIONS", 20)
    found = compare(byte_level(), byte_level(), "xy " * 10)
    assert found.text.unsettled.positions == 20 < found.text.native_tokens


def test_normalizers_are_compared_in_words():
    (line,) = compare(byte_level(), byte_level(nfc=True)).normalizer_differences
    assert line.startswith("the target composes")
    (line,) = compare(byte_level(nfc=True), byte_level()).normalizer_differences
    assert line.startswith("the native composes")
    lines = compare(low_line(dummy=True), byte_level(nfc=True)).normalizer_differences
    assert len(lines) == 3
    assert compare(low_line(), low_line()).normalizer_differences == ()


def test_splitters_are_compared_in_words():
    found = compare(byte_level("a·b"), byte_level("a·b", digits=True)).split_differences
    assert {difference.what for difference in found} == {"digits", "space before digits"}
    digits = found[0]
    assert (digits.native, digits.target) == ("runs of any length", "one by one")
    assert digits.target_pieces == tuple("1234567")
    (whole,) = compare(low_line("a·b"), byte_level("a·b")).split_differences
    assert (whole.what, whole.native) == ("splitting", "merges the text as one piece")


@pytest.mark.parametrize(("what", "text", "words"), PROBES, ids=[probe[0] for probe in PROBES])
def test_every_probe_has_words_for_all_splitters_and_tells_some_apart(what, text, words):
    splitters = [Splitter.by_name(name) for name in PATTERNS if name != "none"]
    cuts = {"|".join(pieces(splitter, text)) for splitter in splitters}
    assert cuts == set(words)
    assert len(set(words.values())) > 1


def test_probes_tell_all_splitters_apart_but_for_what_is_called_numeric():
    def view(name):
        return [pieces(Splitter.by_name(name), text) for _, text, _ in PROBES]

    names = [name for name in PATTERNS if name != "none"]
    assert [pair for pair in combinations(names, 2) if view(pair[0]) == view(pair[1])] == []


def test_special_tokens_are_matched_by_name():
    native = byte_level(control=["<end>", "<tool>", "<mine>"], added=["<text>"])
    target = byte_level("a·b", control=["<yours>", "<end>"], added=["<tool>", "<text>"])
    found = compare(native, target).specials
    assert [(m.name, m.native, m.target) for m in found.shared] == [("<end>", 257, 260)]
    assert [special.name for special in found.native_only] == ["<mine>"]
    assert [special.name for special in found.target_only] == ["<yours>"]
    assert [m.name for m in found.text_in_target] == ["<tool>"]
    assert found.text_in_native == ()
    assert found.shared_added == 1


def test_ends_of_text_are_mapped():
    native, target = toy(byte_level()), toy(byte_level("a·b"))
    object.__setattr__(native, "eos", frozenset({256}))
    object.__setattr__(target, "eos", frozenset({257}))
    (end,) = inspect(native, target, "ab").specials.ends
    assert (end.native.id, end.native.name, end.target.id) == (256, "<|end|>", 257)


def test_the_same_tokenizer_twice():
    found = compare(byte_level("a·b"), byte_level("a·b"))
    assert found.conversion.kind == "same"
    assert found.conversion.why
    assert found.text.of_native_boundaries == 1
    assert (found.normalizer_differences, found.split_differences) == ((), ())


@pytest.mark.parametrize("text", ["", "\ud800"])
def test_a_text_that_is_none_is_refused(text):
    with pytest.raises(BadInput, match="expected"):
        compare(byte_level(), byte_level(), text)


def test_the_data_is_plain_and_stays_as_it_is():
    found = compare(byte_level("a·b"), low_line("a·b", dummy=True))
    plain = found.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["format"] == 1
    assert plain == compare(byte_level("a·b"), low_line("a·b", dummy=True)).to_dict()
    with pytest.raises(FrozenInstanceError):
        found.shared.count = 0


def test_every_supported_tokenizer_can_write_the_sample():
    assert not set(sample().encode()) & set(SMOLLM2_MISSING)
    assert len(sample().encode()) > 2000


@pytest.mark.assets
def test_two_real_tokenizers():
    found = inspect(assets.path("gpt2"), assets.path("qwen2_5"))
    assert (found.native.sizes.ids, found.target.sizes.ids) == (50257, 151665)
    assert (found.native.splitter, found.target.splitter) == ("gpt2", "qwen2")
    assert found.conversion.kind == "general"
    assert found.shared.count == _shared_contents("gpt2", "qwen2_5")
    assert found.text.source == "sample"


def _shared_contents(*names):
    """Counted in the files: both write bytes in the same way."""
    files = [json.loads((assets.path(n) / "tokenizer.json").read_bytes()) for n in names]
    vocabularies = [set(file["model"]["vocab"]) for file in files]
    control = {token["content"] for file in files for token in file["added_tokens"]}
    return len(set.intersection(*vocabularies) - control)
