"""Algorithm 2: the relative covers of an encoding, in time linear in its length.

>>> small = SmallBpe("ab", [("a", "b"), ("ab", "a")])
>>> relative_cover_search(small, ("a", "ab"), 1)
(('a', 'ab'), ('a', 'aba'))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosstok.reference.bpe import SmallBpe, Token, Tokens
from crosstok.reference.relative import relative_decode, relative_encode
from crosstok.reference.viability import is_viable

if TYPE_CHECKING:
    from collections.abc import Iterator

Covers = tuple[Tokens, ...]


def relative_cover_search(vocabulary: SmallBpe, encoding: Tokens, start: int) -> Covers:
    """cover_{M'→M}(e) for an encoding over the first ``start`` merges (M'), shortest left first.

    A cover is a viable V_M-encoding whose last token begins inside ``encoding`` and reaches its
    end or past it.  An encoding that is not valid has none: its probability is 0.

    Erratum (appendix A.1's prose): the candidates are not the tokens that are a prefix of the
    rest s[i:] but those that the rest is a prefix of, as the printed pseudocode has it.

    The printed loop runs over every position of the text and encodes every s[:i-1] anew.  Both
    are quadratic.  Only the last places can begin a token that reaches the end, and the left
    tokens of all places lie in one tree (`PrefixEncodings`), which makes the search linear.
    """
    vocabulary.require_local()
    body, ended = vocabulary.strip_eos(encoding)
    if not vocabulary.is_valid(body, start):
        return ()
    if ended or not body:
        whole = relative_encode(vocabulary, body, start) + encoding[len(body) :]
        return (whole,) if is_viable(vocabulary, whole) else ()
    return tuple(_search(vocabulary, body, start))


def _search(vocabulary: SmallBpe, encoding: Tokens, start: int) -> Iterator[Tokens]:
    left = PrefixEncodings(vocabulary, encoding)
    for i in _places_within_reach(vocabulary, encoding):
        for right_token in _tokens_beginning_with(vocabulary, encoding[i:], start):
            cover = (*left.encoding_before(i), right_token)
            if is_viable(vocabulary, cover):  # the printed check1; check2 holds by choice
                yield cover


def _places_within_reach(vocabulary: SmallBpe, encoding: Tokens) -> list[int]:
    """The places i of e (in tokens) from which some token is long enough to reach the end."""
    longest = max(len(vocabulary.atoms_of(token)) for token in vocabulary.tokens)
    places, length = [], 0
    for i in reversed(range(len(encoding))):
        length += len(vocabulary.atoms_of(encoding[i]))
        if length > longest:
            break
        places.append(i)
    return places[::-1]


def _tokens_beginning_with(vocabulary: SmallBpe, rest: Tokens, start: int) -> Iterator[Token]:
    """The set B: tokens whose decoding to V_M' begins with ``rest`` (boundaries, not letters)."""
    for token in vocabulary.tokens:
        if relative_decode(vocabulary, (token,), start)[: len(rest)] == rest:
            yield token


class PrefixEncodings:
    """The V_M-encodings of all prefixes of a text, as a tree.

    A canonical encoding's prefixes are canonical and adjacent pairs decide canonicality (Lemmas B
    and C), so the encoding of a prefix is that of a shorter prefix and one more token.  Each
    prefix stores its last token only; at most as many places need a look as a token has atoms.

    >>> tree = PrefixEncodings(SmallBpe("ab", [("a", "b"), ("ab", "a")]), ("a", "a", "b", "a"))
    >>> [tree.encoding_before(i) for i in (2, 3, 4)]
    [('a', 'a'), ('a', 'ab'), ('a', 'aba')]
    """

    def __init__(self, vocabulary: SmallBpe, encoding: Tokens) -> None:
        self.vocabulary = vocabulary
        self.atoms = tuple(atom for token in encoding for atom in vocabulary.atoms_of(token))
        self.longest = max(len(vocabulary.atoms_of(token)) for token in vocabulary.tokens)
        self.ends = [0]
        for token in encoding:
            self.ends.append(self.ends[-1] + len(vocabulary.atoms_of(token)))
        self.last: list[Token | None] = [None]
        for end in range(1, len(self.atoms) + 1):
            self.last.append(self._last_token(end))

    def _last_token(self, end: int) -> Token:
        for begin in range(max(0, end - self.longest), end):
            token = self.vocabulary.token_of(self.atoms[begin:end])
            if token is not None and self._fits(self.last[begin], token):
                return token
        raise AssertionError("every prefix has an encoding, and it has a last token")

    def _fits(self, before: Token | None, token: Token) -> bool:
        if before is None:
            return self.vocabulary.making_rank(token) is not None
        return self.vocabulary.is_canonical_pair(before, token)

    def encoding_before(self, place: int) -> Tokens:
        """The V_M-encoding of the first ``place`` tokens of the encoding given."""
        end, tokens = self.ends[place], []
        while end:
            token = self.last[end]
            assert token is not None
            tokens.append(token)
            end -= len(self.vocabulary.atoms_of(token))
        return tuple(reversed(tokens))
