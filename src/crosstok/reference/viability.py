"""What may still follow: viable sequences, settled tokens and possible outcomes.

A token sequence is *viable* when some text's encoding begins with it.  The definition speaks of
all texts; the functions here search continuations of at most `reach` characters, which is enough
for merges (a cover reaches at most one token past the end) and for the splitters of small
examples (which look one or two characters ahead).
"""

from __future__ import annotations

import codecs
import itertools
from functools import lru_cache
from typing import TYPE_CHECKING

from crosstok.reference.bpe import LocalSplitter, SmallBpe, Token, Tokens, byte_name

if TYPE_CHECKING:
    from collections.abc import Iterator

REJECT: Token = "<reject>"


def split_utf8(data: bytes) -> tuple[str, bytes] | None:
    r"""Whole characters and the bytes of an unfinished one; None if no text begins so.

    >>> split_utf8(b"a" + b"\xc3")
    ('a', b'\xc3')
    >>> split_utf8(b"\xc0") is None
    True
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        text = decoder.decode(data)
    except UnicodeDecodeError:
        return None
    rest = decoder.getstate()[0]
    return (text, rest) if _completable(rest) else None


def _completable(rest: bytes) -> bool:
    """Python's decoder keeps waiting after ED A0, which only surrogates begin with."""
    if not rest:
        return True
    endings = (rest + filler * n for n in (1, 2, 3) for filler in (b"\x80", b"\xbf"))
    return any(_is_utf8(data) for data in endings)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@lru_cache(maxsize=256)
def characters(vocabulary: SmallBpe) -> tuple[str, ...]:
    """Every character that the vocabulary can spell: its own, and those made of its byte atoms.

    >>> characters(SmallBpe(["a", "<0xC3>", "<0xA8>", "<0xA9>"], []))
    ('a', 'è', 'é')
    """
    atoms = [atom for atom in vocabulary.alphabet if len(atom) == 1]
    values = sorted(vocabulary.bytes_of(atom) for atom in vocabulary.alphabet if len(atom) > 1)
    return (*atoms, *(char for char in _spelled(b"", values) if char not in atoms))


def _spelled(start: bytes, values: list[bytes]) -> Iterator[str]:
    for value in values:
        parts = split_utf8(start + value)
        if parts is not None and parts[1]:
            yield from _spelled(start + value, values)
        elif parts is not None:
            yield parts[0]


def default_reach(vocabulary: SmallBpe) -> int:
    """How many characters past the end can matter: a token's, and what a splitter looks at."""
    longest = max(len(vocabulary.atoms_of(token)) for token in vocabulary.tokens)
    return longest - 1 + (not _cuts_are_local(vocabulary)) + vocabulary.ignore_merges


def continuations(vocabulary: SmallBpe, data: bytes, reach: int) -> Iterator[str]:
    """All texts that begin with ``data`` and go on for at most ``reach`` characters.

    A character that ``data`` leaves unfinished is finished first and does not count.
    """
    parts = split_utf8(data)
    if parts is None:
        return
    text, rest = parts
    known = characters(vocabulary)
    finished = [c for c in known if c.encode().startswith(rest)] if rest else [""]
    for length in range(reach + 1):
        for more in itertools.product(known, repeat=length):
            yield from (text + character + "".join(more) for character in finished)


def is_viable(vocabulary: SmallBpe, tokens: Tokens) -> bool:
    """Does some text's encoding begin with ``tokens``?  With EOS: is it a text's encoding?

    Where only merges and local cuts are at work, adjacent pairs decide (Lemmas C and F); elsewhere
    the continuations are searched.

    >>> is_viable(SmallBpe("12", [("1", "2"), ("12", "2")]), ("12", "2"))
    False
    """
    body, ended = vocabulary.strip_eos(tokens)
    if ended:
        return vocabulary.is_canonical(tokens)
    if any(token not in vocabulary.tokens for token in body):
        return False
    if vocabulary.ignore_merges or not _cuts_are_local(vocabulary):
        return is_viable_by_search(vocabulary, tokens)
    return _viable_by_pairs(vocabulary, tokens)


def _cuts_are_local(vocabulary: SmallBpe) -> bool:
    return vocabulary.splitter is None or isinstance(vocabulary.splitter, LocalSplitter)


def _viable_by_pairs(vocabulary: SmallBpe, tokens: Tokens) -> bool:
    if any(vocabulary.making_rank(token) is None for token in tokens):
        return False
    if not all(itertools.starmap(vocabulary.is_canonical_pair, itertools.pairwise(tokens))):
        return False
    atoms = tuple(atom for token in tokens for atom in vocabulary.atoms_of(token))
    rest = unfinished(vocabulary, atoms)
    return rest == () or (rest is not None and _can_finish(vocabulary, tokens[-1], rest))


def unfinished(vocabulary: SmallBpe, atoms: Tokens) -> Tokens | None:
    """The byte atoms of a last character that is not complete; None if no text begins so.

    Under byte fallback the bytes of a character that the alphabet has are not that character:

    >>> fallback = SmallBpe(["é", "<0xC3>", "<0xA8>", "<0xA9>"], [])
    >>> unfinished(fallback, ("é", "<0xC3>"))
    ('<0xC3>',)
    >>> unfinished(fallback, ("<0xC3>", "<0xA9>")) is None
    True
    """
    parts = split_utf8(vocabulary.decode(atoms))
    if parts is None:
        return None
    rest = tuple(byte_name(value) for value in parts[1])
    return rest if vocabulary.atomize(parts[0]) + rest == atoms else None


@lru_cache(maxsize=1 << 16)
def _can_finish(vocabulary: SmallBpe, last: Token, rest: Tokens) -> bool:
    """Can tokens follow ``last`` so that its unfinished character becomes one?

    Pairs do not answer that: with merges C3·A8 and C3·A9, and no other byte, the token C3 is
    followed by neither, and no text's encoding begins with it.
    """
    waiting = [(last, rest)]
    for before, open_atoms in waiting:
        for token in vocabulary.tokens:
            if not vocabulary.is_canonical_pair(before, token):
                continue
            more = unfinished(vocabulary, open_atoms + vocabulary.atoms_of(token))
            if more == ():
                return True
            if more is not None and (token, more) not in waiting:
                waiting.append((token, more))
    return False


def is_viable_by_search(vocabulary: SmallBpe, tokens: Tokens, reach: int | None = None) -> bool:
    """Viability by its definition, over all continuations within reach."""
    body, ended = vocabulary.strip_eos(tokens)
    if ended:
        return vocabulary.is_canonical(tokens)
    if any(token not in vocabulary.tokens for token in body):
        return False
    reach = default_reach(vocabulary) if reach is None else reach
    texts = continuations(vocabulary, vocabulary.decode(tokens), reach)
    return any(vocabulary.encode(text)[: len(tokens)] == tokens for text in texts)


@lru_cache(maxsize=1 << 16)
def viable_next(vocabulary: SmallBpe, prefix: Tokens) -> Tokens:
    """The tokens, EOS among them, that may follow a viable prefix."""
    if prefix[-1:] == (vocabulary.eos,):
        return ()
    candidates = (*vocabulary.tokens, vocabulary.eos)
    return tuple(token for token in candidates if is_viable(vocabulary, (*prefix, token)))


@lru_cache(maxsize=1 << 16)
def settled(vocabulary: SmallBpe, data: bytes, reach: int | None = None) -> Tokens:
    """The tokens that no continuation of ``data`` can change.

    >>> settled(SmallBpe("ab", [("a", "b")]), b"aa")
    ('a',)
    """
    reach = default_reach(vocabulary) if reach is None else reach
    common: Tokens | None = None
    for text in continuations(vocabulary, data, reach):
        encoded = vocabulary.encode(text)
        common = encoded if common is None else _common_prefix(common, encoded)
    return common or ()


def _common_prefix(one: Tokens, other: Tokens) -> Tokens:
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple(token for token, _ in same)


def outcomes(
    vocabulary: SmallBpe, data: bytes, encoding: Tokens, reach: int | None = None
) -> frozenset[Token]:
    """What may come next after ``encoding`` in texts that begin with ``data``.

    Next tokens, EOS, and `REJECT` for texts whose encoding does not begin with ``encoding``.

    >>> sorted(outcomes(SmallBpe("ab", [("a", "b")]), b"a", ()))
    ['a', 'ab']
    """
    reach = default_reach(vocabulary) if reach is None else reach
    found: set[Token] = set()
    for text in continuations(vocabulary, data, reach):
        encoded = vocabulary.encode(text, end=True)
        agrees = encoded[: len(encoding)] == encoding
        found.update(encoded[len(encoding) : len(encoding) + 1] if agrees else (REJECT,))
    return frozenset(found)
