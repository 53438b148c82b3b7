"""Algorithm 1 (subset to full), Lemma 1 (full to subset) and their composition over bytes.

>>> from crosstok.reference.laws import CanonicalLaw
>>> from crosstok.reference.models import GivenTable
>>> native = SmallBpe("abc", [("b", "c")])
>>> table = {(): {"a": .5, "b": .5}, ("a",): {"bc": .5, "b": .25, "<eos>": .25}}
>>> law = CanonicalLaw(GivenTable(native, table))
>>> target = SmallBpe("abc", [("a", "b"), ("ab", "c")])
>>> convert_through_bytes(law, target, ("abc",)), convert_through_bytes(law, target, ("ab",))
(0.25, 0.125)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from crosstok.reference.bpe import SmallBpe, Token, Tokens
from crosstok.reference.covers import relative_cover_search
from crosstok.reference.relative import demerge_at
from crosstok.reference.viability import characters, split_utf8, unfinished

if TYPE_CHECKING:
    from crosstok.reference.laws import CanonicalLaw

PrefixProbability = Callable[[Tokens], float]


def convert_probability(
    vocabulary: SmallBpe, encoding: Tokens, probability: PrefixProbability, start: int = 0
) -> float:
    """Algorithm 1: P(e) over V_M from a model P over V_M', the first ``start`` merges.

    ``probability`` gives P_M' of V_M'-encodings, EOS allowed as their last token.

    >>> flat = lambda tokens: 0.5 ** len(tokens)            # fair coins for ever
    >>> convert_probability(SmallBpe("ab", [("a", "b")]), ("a",), flat)
    0.25
    """
    vocabulary.require_local()
    return _convert(vocabulary, encoding, len(vocabulary.merges), start, probability)


def _convert(
    vocabulary: SmallBpe, encoding: Tokens, merges: int, start: int, probability: PrefixProbability
) -> float:
    """ConvertProb(e, M).

    Erratum: an encoding that is not valid has probability 0, at every depth.  The printed version
    never asks; with merges ab, bc, a·bc and e = [a] it subtracts P(a·bc), although such texts
    encode as [ab, c] and were never counted.

    A pair that the splitter cuts apart, or that is not the one which makes its token, never
    merges: no alternative then.
    """
    if not vocabulary.is_valid(encoding, merges):
        return 0.0
    if merges == start:
        return probability(encoding)
    left, right = vocabulary.merges[merges - 1]
    decoded = demerge_at(vocabulary, encoding, merges - 1)
    stays = _convert(vocabulary, decoded, merges - 1, start, probability)
    if encoding[-1:] != (left,) or vocabulary.making_rank(left + right) != merges - 1:
        return stays
    return stays - _convert(vocabulary, (*decoded, right), merges - 1, start, probability)


def subset_probability(law: CanonicalLaw, encoding: Tokens, start: int) -> float:
    """Lemma 1: P(e) over V_M' as the sum over e's relative covers."""
    covers = relative_cover_search(law.vocabulary, encoding, start)
    return math.fsum(law.probability(cover) for cover in covers)


class ByteView:
    """A native law read byte by byte: Lemma 1 with bytes as the relative alphabet.

    It walks the native sequences that have a probability, so splitters, byte fallback and
    ``ignore_merges`` need no thought: what is not viable has no mass.  A dead end on the way leaves
    the number open, so it is raised (`DeadEnd`).
    """

    def __init__(self, law: CanonicalLaw) -> None:
        self.law = law
        self._prefix: dict[bytes, float] = {b"": 1.0}

    def probability(self, data: bytes) -> float:
        """P(the text begins with ``data``): all sequences whose last token reaches its end."""
        if data not in self._prefix:
            self._prefix[data] = math.fsum(self._reaching((), data, 1.0))
        return self._prefix[data]

    def _reaching(self, prefix: Tokens, rest: bytes, mass: float) -> list[float]:
        found: list[float] = []
        for token, p in self.law.row(prefix).items():
            spelled = self.law.vocabulary.bytes_of(token)
            if spelled.startswith(rest):
                found.append(mass * p)
            elif spelled and rest.startswith(spelled):
                found += self._reaching((*prefix, token), rest[len(spelled) :], mass * p)
        return found

    def ending(self, data: bytes) -> float:
        """P(the text is exactly ``data``)."""
        return math.fsum(self._spelling((), data, 1.0))

    def _spelling(self, prefix: Tokens, rest: bytes, mass: float) -> list[float]:
        row = self.law.row(prefix)
        if not rest:
            return [mass * row.get(self.law.vocabulary.eos, 0.0)]
        found: list[float] = []
        for token, p in row.items():
            spelled = self.law.vocabulary.bytes_of(token)
            if spelled and rest.startswith(spelled):
                found += self._spelling((*prefix, token), rest[len(spelled) :], mass * p)
        return found

    def row(self, data: bytes) -> dict[bytes | None, float]:
        """P(next byte | data) for every possible byte; None stands for the end of the text."""
        values = {byte for token in self.law.vocabulary.tokens for byte in self._bytes(token)}
        joint: dict[bytes | None, float] = {
            value: self.probability(data + value) for value in sorted(values)
        }
        joint[None] = self.ending(data)
        whole = self.probability(data)
        return {value: mass / whole for value, mass in joint.items() if mass > 0}

    def _bytes(self, token: Token) -> list[bytes]:
        return [bytes([value]) for value in self.law.vocabulary.bytes_of(token)]


def atom_probability(view: ByteView, target: SmallBpe, atoms: Tokens) -> float:
    """P_0 over the target's atoms, from bytes.

    Atoms are bytes in disguise, up to one case: under byte fallback a text that begins with the
    byte atom <0xC3> is one whose first character is *not* in the alphabet, so the characters that
    are, and that begin with this byte, come off.
    """
    body, ended = target.strip_eos(atoms)
    data = target.decode(body)
    parts = split_utf8(data)
    if parts is None or unfinished(target, body) is None:
        return 0.0
    text, rest = parts
    if ended:
        return 0.0 if rest else view.ending(data)
    others = [c for c in characters(target) if rest and _is_other(target, c, rest)]
    spent = math.fsum(view.probability((text + character).encode()) for character in others)
    return view.probability(data) - spent


def _is_other(target: SmallBpe, character: str, rest: bytes) -> bool:
    return character in target.alphabet and character.encode().startswith(rest)


def convert_through_bytes(law: CanonicalLaw, target: SmallBpe, encoding: Tokens) -> float:
    """P(e) over any target: α → bytes by Lemma 1, bytes → β by Algorithm 1."""
    view = ByteView(law)

    def of_atoms(atoms: Tokens) -> float:
        return atom_probability(view, target, atoms)

    return convert_probability(target, encoding, of_atoms)
