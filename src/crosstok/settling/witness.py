"""Two continuations that disagree at the first token that is not settled."""

import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np

from crosstok.bpe import NONE
from crosstok.covers import character_range
from crosstok.errors import BadInput
from crosstok.settling.anchors import Tail
from crosstok.settling.readings import branches, encode_rest, script_of, split_character
from crosstok.splitting import Splitter
from crosstok.unicode import nfc_composites, nfc_plain
from crosstok.vocabulary import Vocabulary

ENDINGS = ("", " ", "a", "s", "1", ".", "\n", "\u00a0", "'", "\u4f60", "(", "  a", "\u0338")


def find_witness(v: Vocabulary, text: bytes, found: Tail) -> tuple[bytes, bytes] | None:
    """Two continuations, built from the live covers, that disagree at the first open token."""
    if found.offset == len(text):
        return None
    place = len(found.settled)
    rest = text[found.anchor :]
    seen: dict[int, bytes] = {}
    for more in continuations(v, rest, fresh=found.fresh):
        try:
            tokens = encode_rest(v, rest + more, found.fresh)
        except BadInput:  # a byte without a symbol
            continue
        if place < len(tokens):
            seen.setdefault(tokens[place], more)
        if len(seen) == 2:
            first, second = seen.values()
            return first, second
    return None


def continuations(v: Vocabulary, text: bytes, *, fresh: bool = True) -> Iterator[bytes]:
    """Continuations under which the readings of an open text are likely to come true.

    Each reading asks for one of its covers and then for something that ends the piece or goes on
    with it: a character of any class of the splitter.
    """
    covers = dict.fromkeys([b"", *_cover_rests(v, text, fresh), *_composing(v, text)])
    ways = [(cover, _completions(v, begun)) for cover, begun in _continuing(text, covers)]
    for endings in (ENDINGS, _class_endings(v.splitter), _class_pairs(v.splitter)):
        for cover, completions in ways:
            for completion in completions:
                for ending in endings:
                    yield cover + completion + ending.encode()


def _cover_rests(v: Vocabulary, text: bytes, fresh: bool) -> Iterator[bytes]:
    """What the covers of the readings add to the text."""
    for reading in branches(script_of(v, False), text, fresh):
        start = reading.stops[-1] if reading.stops else 0
        for token in reading.following:
            content = v.names[token].encode() if token in v.names else v.token_bytes[token]
            if not reading.stops and fresh and v.spelling.dummy_prefix and token not in v.names:
                content = content[1:]
            yield content[len(text) - start :]


def _composing(v: Vocabulary, text: bytes) -> Iterator[bytes]:
    """Marks that normalisation makes one with the last character."""
    last = split_character(text)[0][-1:]
    if v.spelling.nfc and last:
        for composite in nfc_composites(ord(last)):
            yield unicodedata.normalize("NFD", chr(composite))[1:].encode()


def _continuing(text: bytes, covers: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Those of the covers that continue the text, with the incomplete character at their end.

    What a cover adds to a text that normalisation changed may be none of its raw bytes.
    """
    for cover in covers:
        try:
            yield cover, split_character(text + cover)[1]
        except BadInput:
            continue


@lru_cache(maxsize=4096)
def _completions(v: Vocabulary, begun: bytes) -> tuple[bytes, ...]:
    """Endings of a cut character: of each class, in the vocabulary and not in it."""
    if not begun:
        return (b"",)
    first, last = character_range(np.frombuffer(begun, np.uint8))
    points = np.arange(first, last + 1)
    points = points[(points < 0xD800) | (points >= 0xE000)]
    kinds = v.splitter.class_of[points].astype(np.int64) * 4
    if v.merger.atoms.characters:
        kinds += v.merger.atoms.of_char[points] == NONE
    if v.spelling.nfc:
        kinds += 2 * ~nfc_plain()[points]
    firsts = np.unique(kinds, return_index=True)[1].tolist()
    chosen = dict.fromkeys([*firsts, len(points) // 2, len(points) - 1])
    return tuple(chr(points[k]).encode()[len(begun) :] for k in chosen)


@lru_cache(maxsize=64)
def _class_endings(splitter: Splitter) -> tuple[str, ...]:
    """One character of each class that has any beside surrogates."""
    points = np.delete(np.arange(len(splitter.class_of)), range(0xD800, 0xE000))
    firsts = np.unique(splitter.class_of[points], return_index=True)[1]
    return tuple(map(chr, points[firsts].tolist()))


@lru_cache(maxsize=64)
def _class_pairs(splitter: Splitter) -> tuple[str, ...]:
    """Two characters of each pair of classes: a contraction takes two letters."""
    endings = _class_endings(splitter)
    return tuple(one + other for one in endings for other in endings)
