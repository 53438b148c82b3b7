"""Rank prefixes of every family: token-local on many texts, and equal to `tokenizers`.

Each text is encoded natively, its tokens are mapped one by one, and the result is compared with
what `tokenizers` makes of the text under the truncated file, as is our own encoding: 0 differences.
Llama 3 is cut at 32,000, 102,480 and 200,000 lines of its merge list; how many texts would differ
if `ignore_merges` were kept, with the parts of merges that the file would then name, is counted
beside it.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer

from crosstok import assets
from crosstok.conversion import Conversion, ConversionKind
from crosstok.errors import BadInput
from crosstok.loading import load
from crosstok.truncation import truncate
from tests.texts import LANGUAGES, adversarial, declaration, makers, python_sources, strings
from verify.common import Suite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crosstok.vocabulary import Vocabulary

TEXTS = 4_610
OTHER_TEXTS = 1_000
LLAMA_CUTS = (32_000, 102_480, 200_000)
SHARES = (0.05, 0.3, 0.8)
FAMILIES = (
    "gpt2", "smollm2", "qwen2_5", "qwen3", "llama3_1", "llama3_2", "gpt4", "gpt4o", "deepseek_v3",
    "mistral_nemo", "gemma2", "gemma3", "llama2", "mistral_v0_1",
)  # fmt: skip
LONGEST = 3_000


def texts(vocabulary: Vocabulary, count: int) -> Iterator[str]:
    """Parts of declarations and programs, and strings made to hurt, one after the other.

    A literal ▁ is left out: no decoding of a family that writes it for a space gives one.
    """
    random = Random(count)
    hostile = strings({**makers(vocabulary), **adversarial(vocabulary)}, 6 * count, "truncation")
    for k in range(count):
        if k % 3 == 0:
            text = "".join(next(hostile) for _ in range(6))
        else:
            whole = declaration(random.choice(LANGUAGES))
            if k % 3 == 1:
                whole = random.choice(python_sources())
            start = random.randrange(max(1, len(whole) - LONGEST))
            text = whole[start : start + random.randint(1, LONGEST)]
        yield text.replace("▁", "_") if vocabulary.spelling.low_line else text


def check(suite: Suite, native: Vocabulary, merges: int, count: int) -> None:
    """One truncation: its kind, its map on texts, and `tokenizers` on them."""
    cut = truncate(native, merges=merges)
    found = Conversion(native, cut.vocabulary)
    suite.require(f"{cut} is a subset", found.kind == ConversionKind.SUBSET)
    oracle = Tokenizer.from_str(cut.vocabulary.source.decode())
    oracle.encode_special_tokens = True
    tokens, seen, local, ours = 0, 0, 0, 0
    for text in texts(native, count):
        try:
            ids = native.encode_array(text)
        except BadInput:
            continue
        expected = oracle.encode(text, add_special_tokens=False).ids
        seen, tokens = seen + 1, tokens + len(ids)
        local += found.convert(ids) != expected
        ours += cut.vocabulary.encode(text) != expected
    suite.count(f"{cut.vocabulary.name}: texts", seen)
    suite.count(f"{cut.vocabulary.name}: native tokens", tokens)
    suite.violations(f"{cut.vocabulary.name}: tokens mapped one by one that differ", local)
    suite.violations(f"{cut.vocabulary.name}: encodings that differ from tokenizers", ours)


def kept_whole(native: Vocabulary, merges: int) -> Tokenizer:
    """The prefix as it must not be written: with ignore_merges, all parts of merges as tokens."""
    data: dict[str, Any] = json.loads(native.source)
    model = data["model"]
    pairs = [rule if isinstance(rule, list) else rule.split(" ") for rule in model["merges"]]
    pairs = pairs[:merges]
    named = {word for left, right in pairs for word in (left, right, left + right)}
    words = [word for word in model["vocab"] if word in named or len(word) == 1]
    model["vocab"] = {word: k for k, word in enumerate(words)}
    model["merges"] = pairs
    data["added_tokens"], data["post_processor"] = [], None
    return Tokenizer.from_str(json.dumps(data))


def count_whole(suite: Suite, native: Vocabulary, merges: int, count: int) -> None:
    """How many texts differ from their tokens, mapped one by one, if ignore_merges is kept."""
    bad = kept_whole(native, merges)
    alone: dict[int, list[str]] = {}
    differ = 0
    for text in texts(native, count):
        found: list[str] = []
        for token in native.encode(text):
            if token not in alone:
                alone[token] = _alone(bad, native.token_bytes[token])
            found += alone[token]
        differ += found != bad.encode(text, add_special_tokens=False).tokens
    suite.count(f"{native.name} cut at {merges} with ignore_merges kept: texts that differ", differ)
    suite.require(f"{merges}: ignore_merges kept breaks some texts", differ > 0)


def _alone(tokenizer: Tokenizer, piece: bytes) -> list[str]:
    """A token's bytes as one piece under the model, without a splitter before it."""
    return [token.value for token in tokenizer.model.tokenize(_byte_level(piece))]


def _byte_level(piece: bytes) -> str:
    from crosstok.loading import BYTE_OF_CHARACTER

    character = {byte: char for char, byte in BYTE_OF_CHARACTER.items()}
    return "".join(character[byte] for byte in piece)


def main() -> int:
    suite = Suite("truncation")
    llama = load(assets.path("llama3"), name="llama3")
    for merges in LLAMA_CUTS:
        check(suite, llama, merges, suite.scaled(TEXTS, least=60))
        count_whole(suite, llama, merges, suite.scaled(TEXTS, least=60))
    for name in FAMILIES:
        native = load(assets.path(name), name=name)
        lines = len(json.loads(native.source)["model"]["merges"])
        for share in SHARES if suite.budget >= 0.5 else SHARES[1:2]:
            check(suite, native, round(share * lines), suite.scaled(OTHER_TEXTS, least=30))
    return suite.finish()


if __name__ == "__main__":
    raise SystemExit(main())
