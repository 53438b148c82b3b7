"""Relative encoding and decoding: V_M' as an alphabet of V_M (the paper's Definition 3).

V_M' is written as the number M' of its merges.

>>> small = SmallBpe("ab", [("a", "b"), ("ab", "a")])
>>> relative_encode(small, ("a", "ab", "a"), 1)
('a', 'aba')
>>> relative_decode(small, ("a", "aba"), 1)
('a', 'ab', 'a')
"""

from __future__ import annotations

from crosstok.reference.bpe import SmallBpe, Token, Tokens, demerge


def relative_encode(
    vocabulary: SmallBpe, tokens: Tokens, start: int, stop: int | None = None
) -> Tokens:
    """encode_{M'→M}: merge_{M'+1}, ..., merge_M over an encoding of the first ``start`` merges."""
    return vocabulary.apply_merges(tokens, start, _last(vocabulary, stop))


def relative_decode(
    vocabulary: SmallBpe, tokens: Tokens, start: int, stop: int | None = None
) -> Tokens:
    """decode_{M→M'}: demerge_M, ..., demerge_{M'+1}, back to the first ``start`` merges.

    Of several merges that make one token only the one that ever makes it is undone; undoing any
    other would spell an encoding that no text has (Lemma D).

    >>> several = SmallBpe("abc", [("b", "c"), ("a", "b"), ("ab", "c"), ("a", "bc")])
    >>> relative_decode(several, ("abc",), 2)
    ('a', 'bc')
    """
    for rank in reversed(range(start, _last(vocabulary, stop))):
        tokens = demerge_at(vocabulary, tokens, rank)
    return tokens


def demerge_at(vocabulary: SmallBpe, tokens: Tokens, rank: int) -> Tokens:
    """demerge_(rank+1): undo one merge, where that merge is the one that made the token."""
    left, right = vocabulary.merges[rank]
    return demerge(tokens, (left, right)) if undone_by(vocabulary, left + right) == rank else tokens


def undone_by(vocabulary: SmallBpe, token: Token) -> int:
    """The merge that demerging a token undoes; for tokens that nothing makes, the first listed."""
    rank = vocabulary.making_rank(token)
    if rank is not None:
        return rank
    return next(i for i, (left, right) in enumerate(vocabulary.merges) if left + right == token)


def _last(vocabulary: SmallBpe, stop: int | None) -> int:
    return len(vocabulary.merges) if stop is None else stop
