"""The GGUF reader on files made by hand: every value type, and everything that can be wrong."""

from __future__ import annotations

import struct

import pytest

from crosstok.errors import BadInput
from crosstok.gguf import llama2_tokenizer_json, read_metadata, smollm2_tokenizer_json

NUMBERS = {
    "B": 0,
    "b": 1,
    "H": 2,
    "h": 3,
    "I": 4,
    "i": 5,
    "f": 6,
    "?": 7,
    "Q": 10,
    "q": 11,
    "d": 12,
}


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(content: object, letter: str = "i") -> bytes:
    """The type and the value, as they stand after a key."""
    if isinstance(content, str):
        return struct.pack("<I", 8) + string(content)
    if isinstance(content, list):
        parts = [value(item, letter) for item in content]
        kind = parts[0][:4] if parts else struct.pack("<I", 4)
        return (
            struct.pack("<I", 9)
            + kind
            + struct.pack("<Q", len(parts))
            + b"".join(part[4:] for part in parts)
        )
    return struct.pack("<I", NUMBERS[letter]) + struct.pack(f"<{letter}", content)


def gguf(tmp_path, pairs: dict[str, bytes], version: int = 3):
    table = b"".join(string(key) + packed for key, packed in pairs.items())
    file = tmp_path / "file.gguf"
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", version, 0, len(pairs)) + table)
    return file


@pytest.mark.parametrize("letter", sorted(NUMBERS))
def test_every_number_type_is_read(tmp_path, letter):
    file = gguf(tmp_path, {"one": value(1, letter), "list": value([0, 1, 1], letter)})
    assert read_metadata(file) == {"one": 1, "list": [0, 1, 1]}


def test_strings_and_lists_of_lists_are_read(tmp_path):
    pairs = {"text": value("Ġwörld"), "texts": value(["a", ""]), "deep": value([[1], [2]])}
    expected = {"text": "Ġwörld", "texts": ["a", ""], "deep": [[1], [2]]}
    assert read_metadata(gguf(tmp_path, pairs)) == expected


def test_a_file_cut_short_anywhere_is_refused(tmp_path):
    file = gguf(tmp_path, {"text": value("abc"), "list": value([1, 2])})
    whole = file.read_bytes()
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(BadInput, match=r"file\.gguf"):
            read_metadata(file)


def test_another_format_is_refused(tmp_path):
    file = tmp_path / "file.gguf"
    file.write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(BadInput, match="to begin with b'GGUF', found b'PK"):
        read_metadata(file)


def test_another_version_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"GGUF version 2 or 3 .* found 4"):
        read_metadata(gguf(tmp_path, {}, version=4))


def test_an_unknown_type_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"a known value type .* found 99"):
        read_metadata(gguf(tmp_path, {"odd": struct.pack("<I", 99)}))


@pytest.mark.parametrize(
    ("rebuild", "other"), [(smollm2_tokenizer_json, "llama"), (llama2_tokenizer_json, "gpt2")]
)
def test_the_tokenizer_of_another_model_is_refused(tmp_path, rebuild, other):
    with pytest.raises(BadInput, match=f"found '{other}'"):
        rebuild(gguf(tmp_path, {"tokenizer.ggml.model": value(other)}))


def test_control_tokens_become_added_tokens(tmp_path):
    pairs = {
        "tokenizer.ggml.model": value("gpt2"),
        "tokenizer.ggml.tokens": value(["<end>", "a", "b", "ab"]),
        "tokenizer.ggml.token_type": value([3, 1, 1, 1]),
        "tokenizer.ggml.merges": value(["a b"]),
    }
    document = smollm2_tokenizer_json(gguf(tmp_path, pairs))
    assert [(token["id"], token["content"]) for token in document["added_tokens"]] == [(0, "<end>")]
    assert document["model"]["vocab"] == {"<end>": 0, "a": 1, "b": 2, "ab": 3}
    assert document["model"]["merges"] == ["a b"]
