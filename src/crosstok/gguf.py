"""The tokenizers that two GGUF files carry, rebuilt as ``tokenizer.json``.

A GGUF file opens with a table of typed key-value pairs; the vocabulary, the merges or the
scores, and the kinds of the tokens are among them.  :func:`read_metadata` reads that table
and nothing of the weights behind it.

What the table does not say, the two rebuilders add: SmolLM2's pre-tokenizer splits digits
one by one before the byte-level step, and Llama 2's file has scores where a
``tokenizer.json`` has merges.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from crosstok.errors import BadInput

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["llama2_tokenizer_json", "read_metadata", "smollm2_tokenizer_json"]

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_STRING: Final = 8
_ARRAY: Final = 9
# The format's number of a scalar type -> its letter in the language of `struct`.
_SCALARS: Final = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
# The kinds a token can have, as far as we ask for them.
_UNKNOWN_TOKEN: Final = 2
_CONTROL_TOKEN: Final = 3


def read_metadata(path: Path) -> dict[str, Any]:
    """The key-value table at the head of a GGUF file."""
    with path.open("rb") as stream:
        reader = _Reader(stream, path)
        reader.expect_header()
        _tensors, count = reader.numbers("Q", 2)
        return {reader.string(): reader.value(reader.number("I")) for _ in range(count)}


class _Reader:
    """Takes typed values off a stream and names the file when it is cut short."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._stream = stream
        self._path = path

    def expect_header(self) -> None:
        magic = self._take(len(_MAGIC))
        if magic != _MAGIC:
            raise BadInput.explain(
                f"{self._path} to begin with {_MAGIC!r}", repr(magic), "give a GGUF file"
            )
        version = self.number("I")
        if version not in _VERSIONS:
            raise BadInput.explain(
                f"GGUF version 2 or 3 in {self._path}", str(version), "convert the file"
            )

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self._array()
        if kind not in _SCALARS:
            raise BadInput.explain(
                f"a known value type in {self._path}", str(kind), "download the file again"
            )
        return self.number(_SCALARS[kind])

    def string(self) -> str:
        return self._take(self.number("Q")).decode("utf-8")

    def number(self, letter: str) -> Any:
        return self.numbers(letter, 1)[0]

    def numbers(self, letter: str, count: int) -> tuple[Any, ...]:
        layout = f"<{count}{letter}"
        return struct.unpack(layout, self._take(struct.calcsize(layout)))

    def _array(self) -> list[Any]:
        kind, count = self.number("I"), self.number("Q")
        if kind in _SCALARS:
            return list(self.numbers(_SCALARS[kind], count))
        return [self.value(kind) for _ in range(count)]

    def _take(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) != size:
            raise BadInput.explain(
                f"{size} more bytes in {self._path}",
                f"the end of the file after {len(data)}",
                "download the file again",
            )
        return data


def smollm2_tokenizer_json(gguf: Path) -> dict[str, Any]:
    """SmolLM2's ``tokenizer.json``: byte-level BPE whose digits stand alone."""
    table = read_metadata(gguf)
    _expect_model(table, "gpt2", gguf)
    return _document(
        added_tokens=_control_tokens(table),
        normalizer=None,
        pre_tokenizer={
            "type": "Sequence",
            "pretokenizers": [
                # The GGUF's one word "smollm" stands for this step; readers that know only
                # the byte-level step lose it, and then "2024" may become a single token.
                {"type": "Digits", "individual_digits": True},
                _byte_level(add_prefix_space=False),
            ],
        },
        post_processor=None,
        decoder=_byte_level(add_prefix_space=True),
        model=_bpe(
            vocabulary=_vocabulary(table),
            merges=list(table["tokenizer.ggml.merges"]),
            unknown=None,
            byte_fallback=False,
        ),
    )


def llama2_tokenizer_json(gguf: Path) -> dict[str, Any]:
    """Llama 2's ``tokenizer.json``, its merges derived from SentencePiece scores."""
    table = read_metadata(gguf)
    _expect_model(table, "llama", gguf)
    vocabulary = _vocabulary(table)
    space = {"String": " "}
    underline = {"String": "▁"}
    return _document(
        added_tokens=_control_tokens(table),
        normalizer={
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": space, "content": "▁"},
            ],
        },
        pre_tokenizer=None,
        post_processor=_begin_with("<s>", vocabulary["<s>"]),
        decoder={
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": underline, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        model=_bpe(
            vocabulary=vocabulary,
            merges=merges_from_scores(vocabulary, table["tokenizer.ggml.scores"]),
            unknown="<unk>",
            byte_fallback=True,
        ),
    )


def merges_from_scores(vocabulary: dict[str, int], scores: list[float]) -> list[str]:
    """Every split of a piece into two pieces, the best-scored result first.

    SentencePiece joins the adjacent pair whose *result* scores best.  Where a result has
    several splits its score leaves their order open; the published file takes them by the
    ids of the left and then the right part, and results of equal score by their own id.

    >>> merges_from_scores({"a": 0, "b": 1, "ab": 2, "aba": 3, "ba": 4}, [0, 0, -1, -3, -2])
    ['a b', 'b a', 'a ba', 'ab a']
    """
    splits = (
        (-scores[index], index, vocabulary[left], vocabulary[right], f"{left} {right}")
        for piece, index in vocabulary.items()
        for left, right in ((piece[:cut], piece[cut:]) for cut in range(1, len(piece)))
        if left in vocabulary and right in vocabulary
    )
    return [merge for *_order, merge in sorted(splits)]


def _expect_model(table: dict[str, Any], wanted: str, gguf: Path) -> None:
    found = table.get("tokenizer.ggml.model")
    if found != wanted:
        raise BadInput.explain(
            f"a tokenizer of model {wanted!r} in {gguf}", repr(found), "give the file named"
        )


def _vocabulary(table: dict[str, Any]) -> dict[str, int]:
    return {token: index for index, token in enumerate(table["tokenizer.ggml.tokens"])}


def _control_tokens(table: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = table["tokenizer.ggml.token_type"]
    return [
        {
            "id": index,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index, token in enumerate(table["tokenizer.ggml.tokens"])
        if kinds[index] in (_UNKNOWN_TOKEN, _CONTROL_TOKEN)
    ]


def _document(**parts: Any) -> dict[str, Any]:
    return {"version": "1.0", "truncation": None, "padding": None, **parts}


def _byte_level(*, add_prefix_space: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": True,
        "use_regex": True,
    }


def _bpe(
    *, vocabulary: dict[str, int], merges: list[str], unknown: str | None, byte_fallback: bool
) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": byte_fallback,
        "byte_fallback": byte_fallback,
        "vocab": vocabulary,
        "merges": merges,
    }


def _begin_with(token: str, index: int) -> dict[str, Any]:
    """A post-processor that puts one control token before every sequence."""

    def opened(name: str, kind: int) -> list[dict[str, Any]]:
        return [
            {"SpecialToken": {"id": token, "type_id": kind}},
            {"Sequence": {"id": name, "type_id": kind}},
        ]

    return {
        "type": "TemplateProcessing",
        "single": opened("A", 0),
        "pair": [*opened("A", 0), *opened("B", 1)],
        "special_tokens": {token: {"id": token, "ids": [index], "tokens": [token]}},
    }
