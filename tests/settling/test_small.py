"""Settling against brute force: every short continuation of every text, on small tokenizers.

Tokens have at most four characters and continuations reach as far, so that brute force sees every
cover and the character behind it: equality is demanded, not only soundness.
"""

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from crosstok.errors import BadInput
from crosstok.quick import quick_tail
from crosstok.settling import (
    REJECT,
    SEVERAL,
    Outcome,
    Settler,
    Verdict,
    Viability,
    careful_tail,
    outcomes,
    settle,
    split_character,
    viable,
)
from crosstok.vocabulary import Kind, Vocabulary
from tests.settling.small import (
    GPT2_SPLIT,
    NO_SPLIT,
    QWEN_SPLIT,
    byte_level,
    encodings,
    with_fallback,
)

SEEDS = range(max(2, int(3 * float(os.environ.get("CROSSTOK_BUDGET", "1")))))
Ids = tuple[int, ...]


@dataclass(frozen=True)
class Family:
    """How to make a small tokenizer, the texts to try, and how far continuations reach."""

    make: Callable[[int], Vocabulary]
    alphabet: str
    reach: int = 4


FAMILIES = {
    "bytes without splitter": Family(
        lambda seed: byte_level(seed, "abé", 8, split=NO_SPLIT, several=seed % 2 == 1), "abé"
    ),
    "gpt2": Family(
        lambda seed: byte_level(seed, "a s'1", 9, split=GPT2_SPLIT, several=seed % 2 == 1), "a s'1"
    ),
    "qwen": Family(
        lambda seed: byte_level(seed, "as'\n 1", 9, split=QWEN_SPLIT, several=seed % 2 == 1),
        "as'\n 1",
    ),
    "ignore_merges": Family(
        lambda seed: byte_level(
            seed, "ab 1", 9, split=QWEN_SPLIT, ignore_merges=True, several=seed % 2 == 1
        ),
        "ab 1",
    ),
    "added tokens": Family(
        lambda seed: byte_level(seed, "a <t>", 9, split=QWEN_SPLIT, added=["<t>", "<a t>"]),
        "a <t>",
    ),
    "dummy prefix": Family(
        lambda seed: with_fallback(seed, "ab ", 7, prefix=True, several=seed % 2 == 1), "abé "
    ),
    "newline runs": Family(
        lambda seed: with_fallback(seed, "ab", 7, prefix=False, added=["\n", "\n\n", "<a>"]),
        "ab\n<>",
    ),
}
EXACT = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


def texts(family: Family, seed: int) -> Iterator[bytes]:
    """Random texts, and some that end inside a character."""
    rng = random.Random(seed)
    for _ in range(8):
        text = "".join(rng.choices(family.alphabet, k=rng.randint(0, 6))).encode()
        yield text
        if text and text[-1] >= 0x80:
            yield text[:-1]


def shared_start(found: list[Ids]) -> Ids:
    """The tokens that all sequences begin with."""
    first = min(found)
    last = max(found)
    size = 0
    while size < min(len(first), len(last)) and first[size] == last[size]:
        size += 1
    return first[:size]


def seen_outcome(found: list[Ids], prefix: Ids) -> Outcome:
    """The outcome by definition, from the encodings of all short continuations."""
    size = len(prefix)
    seen = {ids[size : size + 1] if ids[:size] == prefix else None for ids in found}
    if seen == {None}:
        return REJECT
    if len(seen) == 1 and seen != {()}:
        (token,) = seen.pop() or ()
        return Outcome(Verdict.TOKEN, token)
    return SEVERAL


def inside(v: Vocabulary, ids: Ids, text: bytes) -> Ids:
    """The ids without those that reach past the text."""
    while ids and len(v.decode(ids)) > len(text):
        ids = ids[:-1]
    return ids


def text_tokens(v: Vocabulary, alphabet: str) -> list[int]:
    """Tokens whose bytes belong to the alphabet."""
    known = set(alphabet.encode())
    kinds = (Kind.TEXT, Kind.BYTE)
    return [
        token
        for token in range(v.size)
        if v.kinds[token] in kinds and set(v.token_bytes[token]) <= known
    ]


@EXACT
@pytest.mark.parametrize("seed", SEEDS)
def test_settle_is_what_all_continuations_share(family: Family, seed: int) -> None:
    v = family.make(seed)
    for text in texts(family, seed):
        found = encodings(v, text, family.alphabet, family.reach)
        expected = inside(v, shared_start(found), text)
        settled = settle(v, text)
        assert tuple(settled.ids) == expected, text
        assert v.decode(expected) == text[: settled.offset]
        assert settled.open == text[settled.offset :]


@EXACT
@pytest.mark.parametrize("seed", SEEDS)
def test_outcomes_are_those_of_all_continuations(family: Family, seed: int) -> None:
    v = family.make(seed)
    rng = random.Random(seed)
    tokens = text_tokens(v, family.alphabet)
    for text in texts(family, seed):
        if family.alphabet == "abé " and text.endswith(b"\xc3"):
            continue  # brute force knows one of the characters that begin with this byte only
        found = encodings(v, text, family.alphabet, family.reach)
        prefixes = {ids[:size] for ids in found for size in range(min(len(ids), 4) + 1)}
        prefixes |= {
            (*prefix[:-1], rng.choice(tokens)) for prefix in prefixes if rng.random() < 0.3
        }
        for prefix in sorted(prefixes)[:60]:
            if len(v.decode(prefix)) <= len(text) + family.reach - 2:
                assert outcomes(v, text, prefix) == seen_outcome(found, prefix), (text, prefix)


@EXACT
@pytest.mark.parametrize("seed", SEEDS)
def test_viable_is_being_the_start_of_some_encoding(family: Family, seed: int) -> None:
    v = family.make(seed)
    rng = random.Random(seed)
    tokens = text_tokens(v, family.alphabet)
    for _ in range(60):
        ids = tuple(rng.choices(tokens, k=rng.randint(1, 4)))
        text = b"".join(v.token_bytes[token] for token in ids)
        if v.spelling.dummy_prefix:
            if not text.startswith(b" "):
                assert not viable(v, ids)
                continue
            text = text[1:]
        try:
            split_character(text)
        except BadInput:
            assert not viable(v, ids)
            continue
        found = encodings(v, text, family.alphabet, family.reach)
        assert viable(v, ids) == any(seen[: len(ids)] == ids for seen in found), (ids, text)


@EXACT
@pytest.mark.parametrize("seed", SEEDS)
def test_the_quick_path_says_what_the_readings_say(family: Family, seed: int) -> None:
    v = family.make(seed)
    asked = 0
    for text in texts(family, seed):
        for fresh in (True, False):
            quick = quick_tail(v, text, fresh)
            if quick is not None:
                careful = careful_tail(v, text, fresh=fresh)
                assert quick.ids.tolist() == [*careful.ids, *careful.settled], text
                assert quick.offset == careful.offset
                assert quick.before <= len(quick.ids)
                asked += 1
    assert asked


@EXACT
@pytest.mark.parametrize("seed", SEEDS)
def test_streaming_gives_what_the_whole_gives(family: Family, seed: int) -> None:
    v = family.make(seed)
    rng = random.Random(seed)
    text = "".join(rng.choices(family.alphabet, k=40)).encode()
    for size in (1, 3, len(text)):
        settler = Settler(v)
        ids: list[int] = []
        for at in range(0, len(text), size):
            ids += settler.feed(text[at : at + size])
            assert ids == settle(v, text[: at + size]).ids
            assert settler.open == settle(v, text[: at + size]).open
        assert ids + settler.finish() == v.encode(text)


@EXACT
def test_viability_never_comes_back(family: Family) -> None:
    v = family.make(1)
    rng = random.Random(1)
    tokens = text_tokens(v, family.alphabet)
    for _ in range(30):
        state = Viability(v)
        answers = [state.push(rng.choice(tokens)) for _ in range(5)]
        assert answers == sorted(answers, reverse=True)


MARKS = "ae\u0301\u0323 =\u0327"


@pytest.mark.parametrize("seed", SEEDS)
def test_normalisation_never_makes_settling_unsound(seed: int) -> None:
    """Brute force knows few marks, so it may think more settled than is; never less."""
    symbols = MARKS + "éáẹạệậȩ\u0338≠"
    v = byte_level(seed, symbols, 9, split=QWEN_SPLIT, nfc=True, several=seed % 2 == 1)
    family = Family(lambda _: v, MARKS, 3)
    for text in texts(family, seed):
        found = encodings(v, text, MARKS, 3)
        settled = settle(v, text).ids
        assert shared_start(found)[: len(settled)] == tuple(settled), text
        for prefix in {ids[:size] for ids in found for size in range(4)}:
            expected, given = seen_outcome(found, prefix), outcomes(v, text, prefix)
            assert given in (expected, SEVERAL), (text, prefix)
        assert all(viable(v, ids[:size]) for ids in found[:20] for size in range(len(ids)))
