"""Small byte-level vocabularies: merges of letters in any order, over all 256 bytes."""

from __future__ import annotations

import itertools
import json
import random

import numpy as np

from crosstok.loading import BYTE_OF_CHARACTER, read_json
from crosstok.vocabulary import Vocabulary

FLAGS = {"normalized": False, "single_word": False, "lstrip": False, "rstrip": False}
STEP = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def pairs(written: str) -> list[tuple[str, str]]:
    """``"a·b, ab·c"`` as merges."""
    return [tuple(rule.strip().split("·")) for rule in written.split(",") if rule.strip()]


def toy(
    merges, *, ignore_merges=False, extra=(), shift=0, added=(), control=("<|end|>",), without="",
    name="toy",
) -> Vocabulary:  # fmt: skip
    """A vocabulary of all bytes and these merges; ``extra`` tokens have none; ids are shifted."""
    merges = pairs(merges) if isinstance(merges, str) else list(merges)
    contents = [byte for byte in BYTE_OF_CHARACTER if byte not in without]
    for token in [*itertools.chain(*((a, b, a + b) for a, b in merges)), *extra]:
        if token not in contents:
            contents.append(token)
    contents = contents[shift:] + contents[:shift]
    flags = [(word, False) for word in added] + [(word, True) for word in control]
    outside = [word for word, _ in flags if word not in contents]
    ids = {word: k for k, word in enumerate([*contents, *outside])}
    model = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
        "ignore_merges": ignore_merges, "vocab": {text: ids[text] for text in contents},
        "merges": [list(pair) for pair in merges],
    }  # fmt: skip
    tokens = [{**FLAGS, "content": word, "special": flag, "id": ids[word]} for word, flag in flags]
    data = {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
        "added_tokens": sorted(tokens, key=lambda token: token["id"]),
        "pre_tokenizer": STEP, "post_processor": None, "decoder": STEP, "model": model,
    }  # fmt: skip
    return read_json(json.dumps(data).encode(), name=name, use_cache=False)


def random_merges(dice: random.Random, *, count: int, letters: str = "abc", longest: int = 5):
    """Random merges, several of which may make one token, in any order."""
    tokens, merges = list(letters), []
    for _ in range(30 * count):
        left, right = dice.choice(tokens), dice.choice(tokens)
        if len(left + right) > longest or (left, right) in merges:
            continue
        merges.append((left, right))
        tokens += [left + right] * (left + right not in tokens)
        if len(merges) == count:
            break
    dice.shuffle(merges)
    return merges


def words(letters: str = "abc", longest: int = 6):
    """All words up to a length."""
    for length in range(1, longest + 1):
        for word in itertools.product(letters, repeat=length):
            yield "".join(word)


def differences(native: Vocabulary, target: Vocabulary, at, ids, texts) -> list[str]:
    """The texts whose native tokens, mapped one by one, are not the target's tokens."""
    return [
        text
        for text in texts
        if [int(t) for n in native.encode(text) for t in ids[at[n] : at[n + 1]]]
        != target.encode(text)
    ]


def spelled(vocabulary: Vocabulary, ids) -> list[str]:
    """Tokens as text."""
    return [vocabulary.token_bytes[token].decode() for token in np.asarray(ids).tolist()]
