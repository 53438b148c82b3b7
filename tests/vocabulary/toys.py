"""Small tokenizers written as tokenizer.json, and what `tokenizers` makes of them."""

from __future__ import annotations

import copy
import json
from functools import cache

import numpy as np
from tokenizers import Tokenizer

from crosstok import assets, bpe
from crosstok.loading import BYTE_OF_CHARACTER, load, read_json

CHARACTERS = {byte: character for character, byte in BYTE_OF_CHARACTER.items()}
LOW_LINE_DECODER = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ],
}
TO_LOW_LINE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}


@cache
def vocabulary(name):
    """A real one, read once a session."""
    return load(assets.path(name))


@cache
def oracle(name):
    return with_specials_as_text(Tokenizer.from_file(str(assets.path(name) / "tokenizer.json")))


def with_specials_as_text(tokenizer):
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def expected_ids(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


def added(content, token, **flags):
    return {
        "id": token,
        "content": content,
        **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False),
        **flags,
    }


def byte_level(merges=(), *, symbols=range(256), added_tokens=(), **model):
    """A byte-level tokenizer with GPT-2's splitter; merges are pairs of bytes objects."""
    contents = [CHARACTERS[byte] for byte in symbols]
    vocab, written = _with_merges(contents, [(_written(a), _written(b)) for a, b in merges])
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return _file(vocab, written, step, dict(step), added_tokens, model)


def by_characters(
    merges=(), *, characters="▁abc", added_tokens=(), normalizer=TO_LOW_LINE, **model
):
    """A tokenizer of Gemma's kind: characters, and bytes where a character is missing."""
    contents = [f"<0x{byte:02X}>" for byte in range(256)] + list(characters)
    vocab, written = _with_merges(contents, list(merges))
    data = _file(vocab, written, None, LOW_LINE_DECODER, added_tokens, model)
    data["model"]["byte_fallback"] = True
    data["normalizer"] = normalizer
    return data


def _written(token):
    return "".join(CHARACTERS[byte] for byte in token)


def _with_merges(contents, merges):
    vocab = {content: token for token, content in enumerate(contents)}
    for left, right in merges:
        vocab.setdefault(left + right, len(vocab))
    return vocab, [[left, right] for left, right in merges]


def _file(vocab, merges, pre_tokenizer, decoder, added_tokens, model):
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": list(added_tokens),
        "normalizer": None,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": copy.deepcopy(decoder),
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, **model},
    }


def text_of(data):
    return json.dumps(data, ensure_ascii=False).encode()


def read(data, **options):
    options.setdefault("use_cache", False)
    return read_json(text_of(data), name="toy", **options)


def tokenizer(data):
    return with_specials_as_text(Tokenizer.from_str(text_of(data).decode()))


def merged(merger, spelled):
    """The merge run itself over the atoms of a spelling: the readable truth."""
    data = np.frombuffer(bytes(spelled), np.uint8)
    symbols = np.empty(max(1, len(data)), np.int32)
    ranks, births = np.empty_like(symbols), np.empty_like(symbols)
    count = bpe.to_atoms(data, merger.atoms, symbols)
    count, _ = bpe.merge_run(symbols, count, merger.merges, ranks, births)
    return symbols[:count].tolist()
