"""Every supported family encodes as `tokenizers` does; verify/encode.py does it at scale."""

from __future__ import annotations

from random import Random

import pytest

from crosstok import unicode
from crosstok.errors import BadInput
from crosstok.vocabulary import Kind
from tests import texts
from verify.encode import FAMILIES, PUBLISHED, published_differences

from .toys import expected_ids, oracle, vocabulary

pytestmark = pytest.mark.assets
STRINGS = 200


def sample(family):
    v = vocabulary(family)
    drawn = {**texts.makers(v), **texts.adversarial(v)}
    for maker in drawn.values():
        yield maker(Random(family))
    yield from texts.strings(drawn, STRINGS, seed=family)


def ids_or_none(v, text):
    try:
        return v.encode(text)
    except BadInput:
        return None


@pytest.mark.parametrize("family", FAMILIES)
def test_encoding_is_that_of_tokenizers(family):
    v, tokenizer = vocabulary(family), oracle(family)
    for text in sample(family):
        if not set(v.missing_bytes).isdisjoint(text.encode()):
            assert ids_or_none(v, text) is None, ascii(text)
        else:
            assert ids_or_none(v, text) == expected_ids(tokenizer, text), ascii(text)


@pytest.mark.parametrize("family", FAMILIES)
def test_decoding_gives_the_text_back(family):
    v = vocabulary(family)
    for text in sample(family):
        ids = ids_or_none(v, text)
        if ids is None or (v.spelling.dummy_prefix and v.added.may_occur(text.encode())):
            continue
        assert v.decode(ids) == as_decoded(v, text).encode(), ascii(text)


def as_decoded(v, text):
    """What encoding and decoding must make of a text."""
    if v.spelling.nfc:
        text = "".join(
            v.names[part] if isinstance(part, int) else unicode.nfc(part)
            for part in v.segments(text)
        )
    return text.replace("▁", " ") if v.spelling.low_line else text


def decodes_alike(v, token, kind):
    return kind != Kind.ABSENT and (kind != Kind.CONTROL or token in v.names)


@pytest.mark.parametrize("family", FAMILIES)
def test_decoding_is_that_of_tokenizers(family):
    v, tokenizer = vocabulary(family), oracle(family)
    dice = Random(family)
    # `tokenizers` knows which tokens are special, but not that the unknown one is no text.
    known = [token for token, kind in enumerate(v.kinds.tolist()) if decodes_alike(v, token, kind)]
    for _ in range(STRINGS):
        ids = dice.choices(known, k=4)
        expected = tokenizer.decode(ids, skip_special_tokens=True)
        try:
            found = v.decode(ids).decode()
        except UnicodeDecodeError:
            continue  # `tokenizers` writes replacement characters where it pleases
        assert found == expected, ids


@pytest.mark.parametrize("family", FAMILIES)
def test_encode_array_segments_and_pieces_agree(family):
    v = vocabulary(family)
    for text in texts.strings(texts.PLAIN, 20, seed=family):
        by_parts = []
        for part in v.segments(text):
            if isinstance(part, int):
                by_parts.append(part)
                continue
            ids, stops = v.encode_segment(part)
            spelled = v.spelling.spell(part)
            again, stops_again = v.encode_spelled(spelled.encode(), v.piece_ends(spelled))
            assert ids.tolist() == again.tolist()
            assert stops.tolist() == stops_again.tolist()
            lengths = [len(v.spelled(token)) for token in ids.tolist()]
            assert stops.tolist() == [sum(lengths[: k + 1]) for k in range(len(lengths))]
            by_parts += ids.tolist()
        assert by_parts == v.encode(text)


@pytest.mark.parametrize(("family", "name"), PUBLISHED.items())
def test_the_published_ids_come_out(family, name):
    assert published_differences(family, name) == 0


def test_smollm2_refuses_the_bytes_it_lacks():
    v = vocabulary("smollm2")
    assert len(v.missing_bytes) == 21
    assert "21 bytes" in v.notes[0]
    for byte in v.missing_bytes:
        if byte < 0x80:
            with pytest.raises(BadInput, match=f"no symbol for byte {byte:02x};"):
                v.encode("a" + chr(byte))
    with pytest.raises(BadInput, match="byte f1"):
        v.encode("\U00040000")
    assert v.encode("a\x01") == expected_ids(oracle("smollm2"), "a\x01")


def test_only_smollm2_lacks_bytes():
    assert [family for family in FAMILIES if vocabulary(family).missing_bytes] == ["smollm2"]


@pytest.mark.parametrize(
    ("family", "bos", "eos"),
    [
        ("gpt2", (), {50256}),
        ("qwen2_5", (), {151645}),
        ("deepseek_v3", (0,), {1}),
        ("mistral_nemo", (1,), {2}),
        ("llama3_1", (128000,), {128009}),
        ("gemma2", (2,), {1}),
        ("gemma3", (2,), {106}),
        ("llama2", (1,), {2}),
        ("smollm2", (), {2}),
    ],
)
def test_what_begins_and_ends_a_text(family, bos, eos):
    v = vocabulary(family)
    assert (v.bos, v.eos) == (bos, eos)
    assert all(v.kinds[token] == Kind.CONTROL for token in (*v.bos, *v.eos))


def test_text_that_spells_a_special_token_is_text():
    v = vocabulary("qwen2_5")
    ids = v.encode("<|im_end|>")
    assert not v.eos & set(ids)
    assert v.decode(ids) == b"<|im_end|>"


def test_text_added_tokens_match_before_everything():
    v = vocabulary("qwen3")
    token = v.added.text[b"<think>"]
    assert v.encode("a  <think>") == [*v.encode("a  "), token]
    assert v.bytes_of(token) == b"<think>"


def test_gemma_matches_low_lines_in_the_raw_text():
    v = vocabulary("gemma2")
    assert [v.spelled(token).decode() for token in v.encode("▁▁ the")] == ["▁▁", "▁the"]
    assert [v.spelled(token).decode() for token in v.encode("   the")] == ["▁▁▁", "the"]


def test_many_merges_for_one_token_and_parts_that_come_late():
    v = vocabulary("gemma2")
    merges = v.merger.merges
    assert (len(merges.rank), len(set(merges.result.tolist()))) == (580_604, 234_865)
    newlines = v.added.text[b"\n" * 31]
    assert merges.result[0] == newlines


def test_llama3_takes_588_tokens_only_whole():
    v = vocabulary("llama3")
    only_whole = [
        token
        for token in range(v.size)
        if v.kinds[token] == Kind.TEXT and not v.reachable[token] and token not in v.names
    ]
    assert len(only_whole) == 588
    whole = [t for t in only_whole if len(v.piece_ends(v.token_bytes[t].decode())) == 1]
    assert all(v.encode(v.token_bytes[token].decode()) == [token] for token in whole)
