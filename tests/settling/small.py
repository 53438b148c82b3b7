"""Small random tokenizers, and brute force over every short continuation of a text."""

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from crosstok.loading import BYTE_OF_CHARACTER, read_json
from crosstok.vocabulary import Vocabulary

CHARACTER_OF_BYTE = {byte: character for character, byte in BYTE_OF_CHARACTER.items()}
GPT2_SPLIT = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
NO_SPLIT = {**GPT2_SPLIT, "use_regex": False}
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_SPLIT = {
    "type": "Sequence",
    "pretokenizers": [
        {
            "type": "Split",
            "pattern": {"Regex": QWEN_PATTERN},
            "behavior": "Isolated",
            "invert": False,
        },
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
    ],
}
BYTE_LEVEL_DECODER = {
    "type": "ByteLevel",
    "add_prefix_space": True,
    "trim_offsets": True,
    "use_regex": True,
}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
PREPEND = {"type": "Prepend", "prepend": "▁"}


def _merged(
    rng: random.Random, atoms: Sequence[str], count: int, several: bool
) -> list[tuple[str, str]]:
    """A random merge list; with ``several`` a token may have several merges, in any order."""
    tokens = list(atoms)
    merges: list[tuple[str, str]] = []
    for _ in range(count):
        pair = rng.choice(tokens), rng.choice(tokens)
        if pair in merges or len(pair[0] + pair[1]) > 4:
            continue
        if pair[0] + pair[1] in tokens and not several:
            continue
        merges.append(pair)
        tokens.append(pair[0] + pair[1])
    if several:
        rng.shuffle(merges)  # parts may now come later than their use
    return merges


def byte_level(
    seed: int, alphabet: str, merges: int, *, split: Any = GPT2_SPLIT, ignore_merges: bool = False,
    nfc: bool = False, several: bool = False, added: Sequence[str] = (),
) -> Vocabulary:  # fmt: skip
    """A random byte-level tokenizer over the bytes of ``alphabet``."""
    rng = random.Random(seed)
    used = sorted(set(alphabet.encode()))
    atoms = [CHARACTER_OF_BYTE[byte] for byte in used]
    rules = _merged(rng, atoms, merges, several)
    vocab = {atom: k for k, atom in enumerate(atoms)}
    for left, right in rules:
        vocab.setdefault(left + right, len(vocab))
    if ignore_merges:  # a token that only the whole piece can reach
        for _ in range(3):
            vocab.setdefault("".join(rng.choices(atoms, k=rng.randint(2, 4))), len(vocab))
    return _read(vocab, rules, split, {"type": "NFC"} if nfc else None, BYTE_LEVEL_DECODER, added,
                 ignore_merges=ignore_merges)  # fmt: skip


def with_fallback(
    seed: int, alphabet: str, merges: int, *, prefix: bool, several: bool = False,
    added: Sequence[str] = (),
) -> Vocabulary:  # fmt: skip
    """A random SentencePiece-type tokenizer: characters of ``alphabet``, bytes for all others."""
    rng = random.Random(seed)
    atoms = sorted(set(alphabet.replace(" ", "▁")))
    rules = _merged(rng, atoms, merges, several)
    vocab = {f"<0x{byte:02X}>": byte for byte in range(256)}
    for token in (*atoms, *(left + right for left, right in rules)):
        vocab.setdefault(token, len(vocab))
    steps = [PREPEND, REPLACE] if prefix else [REPLACE]
    decoders: list[Any] = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if prefix:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return _read(vocab, rules, None, {"type": "Sequence", "normalizers": steps},
                 {"type": "Sequence", "decoders": decoders}, added, byte_fallback=True)  # fmt: skip


def _read(
    vocab: dict[str, int], rules: Sequence[tuple[str, str]], split: Any, normalizer: Any,
    decoder: Any, added: Sequence[str], *, ignore_merges: bool = False, byte_fallback: bool = False,
) -> Vocabulary:  # fmt: skip
    missing = [content for content in added if content not in vocab]
    ids = {**vocab, **{content: len(vocab) + k for k, content in enumerate(missing)}}
    data = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": ids[content], "content": content, "single_word": False,
             "lstrip": False, "rstrip": False, "normalized": False, "special": False}
            for content in added
        ],
        "normalizer": normalizer,
        "pre_tokenizer": split,
        "post_processor": None,
        "decoder": decoder,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": byte_fallback,
            "ignore_merges": ignore_merges, "vocab": vocab,
            "merges": [list(rule) for rule in rules],
        },
    }  # fmt: skip
    return read_json(json.dumps(data).encode(), name="small", use_cache=False)


def continuations(alphabet: str, longest: int) -> Iterator[str]:
    """Every text over the alphabet up to a length, the empty one first."""
    for length in range(longest + 1):
        yield from map("".join, itertools.product(alphabet, repeat=length))


def byte_continuations(text: bytes, alphabet: str, longest: int) -> Iterator[bytes]:
    """Every continuation of bytes that may end inside a character of the alphabet."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        begun = text[error.start :]
        firsts = [c.encode()[len(begun) :] for c in alphabet if c.encode().startswith(begun)]
    else:
        firsts = [b""]
    for first in firsts:
        for more in continuations(alphabet, longest):
            yield first + more.encode()


def encodings(v: Vocabulary, text: bytes, alphabet: str, longest: int) -> list[tuple[int, ...]]:
    """The encodings of all short continuations of a text."""
    found = dict.fromkeys(
        tuple(v.encode(text + more)) for more in byte_continuations(text, alphabet, longest)
    )
    return list(found)
