"""Small byte-pair vocabularies: the paper's section 3, written to be read.

A vocabulary is an *alphabet* of atoms and an ordered list of *merges*.  A merge is a pair
``(left, right)``; it makes the token whose name is ``left + right``.  Tokens are their names
(strings), encodings are tuples of names, texts are strings and decoded texts are bytes:

>>> small = SmallBpe("ab", [("a", "b"), ("ab", "a")])
>>> small.tokens
('a', 'b', 'ab', 'aba')
>>> small.encode("aaba")
('a', 'aba')
>>> small.decode(("a", "aba"))
b'aaba'

An atom is one character, or one byte written ``<0xE4>``.  A character that the alphabet lacks
is spelled by its UTF-8 bytes.  That covers both families of real vocabularies: with ASCII
characters and byte atoms it is a byte-level vocabulary, with further characters it is one
with *byte fallback*:

>>> fallback = SmallBpe(["a", "é", "<0xC3>", "<0xA8>", "<0xA9>"], [])
>>> fallback.encode("aéè")
('a', 'é', '<0xC3>', '<0xA8>')
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence

Token = str
Tokens = tuple[Token, ...]
Pair = tuple[Token, Token]
Splitter = Callable[[str], Sequence[str]]

EOS: Token = "<eos>"
_BYTE_NAME = re.compile(r"<0x([0-9A-F]{2})>")


class ReferenceRefusal(ValueError):
    """A vocabulary or a text that the reference cannot treat rightly, said by name."""


class LatePart(ReferenceRefusal):
    """A merge uses a token that only a later merge makes."""


class NotLocal(ReferenceRefusal):
    """An algorithm of the paper met a splitter or an option that the paper does not know."""


class UnknownCharacter(ReferenceRefusal):
    """A text holds a character that the vocabulary cannot spell."""


class UndecodableBytes(ReferenceRefusal):
    """Bytes that are not UTF-8 have no encoding."""


def byte_name(value: int) -> Token:
    """The name of a byte atom.

    >>> byte_name(0xE4)
    '<0xE4>'
    """
    return f"<0x{value:02X}>"


def merge(tokens: Tokens, pair: Pair) -> Tokens:
    """Figure 2's merge operator: join every occurrence of ``pair``, from the left.

    >>> merge(("a", "a", "a", "b"), ("a", "a"))
    ('aa', 'a', 'b')

    Erratum 1: the printed loop runs ``while i < |e|`` and so loses an unmerged last token; it
    runs to the last token here.  It also compares the joined *strings*, but only the pair itself
    may be joined: with merges ba, ab, ab·a the tokens a, ba spell ``aba`` and must stay apart.

    >>> merge(("a", "ba"), ("ab", "a"))
    ('a', 'ba')
    """
    merged: list[Token] = []
    i = 0
    while i < len(tokens):
        if tokens[i : i + 2] == pair:
            merged.append(pair[0] + pair[1])
            i += 2
        else:
            merged.append(tokens[i])
            i += 1
    return tuple(merged)


def demerge(tokens: Tokens, pair: Pair) -> Tokens:
    """Figure 2's demerge operator: undo one merge everywhere.

    >>> demerge(("aa", "a", "b"), ("a", "a"))
    ('a', 'a', 'a', 'b')
    """
    whole = pair[0] + pair[1]
    return tuple(part for token in tokens for part in (pair if token == whole else (token,)))


class LocalSplitter:
    """A splitter whose cuts depend on the two characters beside them and on nothing else.

    It cuts before every character of ``before`` and behind every character of ``after``.
    Such cuts are final as soon as both neighbours are known, so they forbid some merges and
    change nothing else: the paper's algorithms stay right.

    >>> LocalSplitter(before=" ")("so it is")
    ['so', ' it', ' is']
    """

    def __init__(self, before: str = "", after: str = "") -> None:
        self.before = frozenset(before)
        self.after = frozenset(after)

    def cuts(self, left: str, right: str) -> bool:
        """Is there a cut between two neighbouring atoms?"""
        return right in self.before or left in self.after

    def split_atoms(self, atoms: Sequence[str]) -> list[Tokens]:
        """Cut a sequence of atoms into pieces."""
        starts = [i for i in range(len(atoms)) if i == 0 or self.cuts(atoms[i - 1], atoms[i])]
        ends = [*starts[1:], len(atoms)] if atoms else []
        return [tuple(atoms[i:j]) for i, j in zip(starts, ends, strict=True)]

    def __call__(self, text: str) -> list[str]:
        """Cut a text into pieces."""
        return ["".join(piece) for piece in self.split_atoms(text)]


class RegexSplitter:
    r"""A splitter as in real tokenizers: every match is a piece, and so is every gap.

    >>> RegexSplitter(r"\s+(?!\S)|\s+|\S+")("  1")
    [' ', ' ', '1']
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = re.compile(pattern)

    def __call__(self, text: str) -> list[str]:
        """Cut a text into pieces."""
        edges = {0, len(text)}
        for match in self.pattern.finditer(text):
            edges.update(match.span())
        order = sorted(edges)
        return [text[i:j] for i, j in itertools.pairwise(order)]


class SmallBpe:
    """A byte-pair vocabulary small enough to be understood token by token.

    ``alphabet``       characters and byte names; a string will do for characters.
    ``merges``         pairs in rank order; several may make the same token.
    ``splitter``       text -> pieces; no merge crosses a piece.  A string is a regular expression.
    ``ignore_merges``  a piece that is a token is taken whole, merges unasked.
    ``whole``          texts that are tokens although no merge makes them.
    ``controls``       tokens without any text, other than ``eos``.
    """

    def __init__(
        self,
        alphabet: Iterable[str],
        merges: Iterable[Pair],
        splitter: Splitter | str | None = None,
        *,
        ignore_merges: bool = False,
        whole: Iterable[str] = (),
        controls: Iterable[Token] = (),
        eos: Token = EOS,
    ) -> None:
        self.alphabet: Tokens = tuple(alphabet)
        self.merges: tuple[Pair, ...] = tuple(merges)
        self.splitter = RegexSplitter(splitter) if isinstance(splitter, str) else splitter
        self.ignore_merges = ignore_merges
        self.whole = tuple(whole)
        self.controls: Tokens = tuple(controls)
        self.eos = eos
        self._rank = {pair: rank for rank, pair in reversed(list(enumerate(self.merges)))}
        self._atoms = self._spell_tokens()
        self._token_of = {atoms: token for token, atoms in reversed(self._atoms.items())}
        self._making_rank = {token: self._find_making_rank(token) for token in self._atoms}
        self._pairs: dict[Pair, bool] = {}

    # ---- what the tokens are -------------------------------------------------------------

    @property
    def tokens(self) -> Tokens:
        """All tokens with a text: atoms, results of merges by first appearance, whole texts."""
        return tuple(self._atoms)

    def atoms_of(self, token: Token) -> Tokens:
        """The atoms that a token consists of."""
        return self._atoms[token]

    def bytes_of(self, token: Token) -> bytes:
        """A token's bytes; EOS and control tokens have none."""
        return b"".join(_atom_bytes(atom) for atom in self._atoms.get(token, ()))

    def decode(self, tokens: Iterable[Token]) -> bytes:
        """The bytes that a token sequence spells, UTF-8 or not."""
        return b"".join(self.bytes_of(token) for token in tokens)

    def token_of(self, atoms: Tokens) -> Token | None:
        """The token with exactly these atoms, if there is one."""
        return self._token_of.get(atoms)

    def _spell_tokens(self) -> dict[Token, Tokens]:
        atoms: dict[Token, Tokens] = {atom: (atom,) for atom in self.alphabet}
        pending = list(self.merges)
        while pending:
            ready = [pair for pair in pending if pair[0] in atoms and pair[1] in atoms]
            if not ready:
                raise ReferenceRefusal(f"no merge makes a part of {pending[0]}")
            for left, right in ready:
                self._spell(atoms, left + right, atoms[left] + atoms[right])
            pending = [pair for pair in pending if pair not in ready]
        atoms = self._in_rank_order(atoms)
        for text in self.whole:
            self._spell(atoms, text, self.atomize(text))
        return atoms

    def _in_rank_order(self, atoms: dict[Token, Tokens]) -> dict[Token, Tokens]:
        names = [*self.alphabet, *(left + right for left, right in self.merges)]
        return {name: atoms[name] for name in names}

    @staticmethod
    def _spell(atoms: dict[Token, Tokens], token: Token, spelling: Tokens) -> None:
        if atoms.setdefault(token, spelling) != spelling:
            raise ReferenceRefusal(f"the name {token!r} stands for two different atom sequences")

    # ---- texts ---------------------------------------------------------------------------

    def atomize(self, text: str) -> Tokens:
        """A text's atoms: its characters, or their bytes where the alphabet lacks them."""
        atoms: list[Token] = []
        for character in text:
            if character in self.alphabet:
                atoms.append(character)
                continue
            spelled = [byte_name(value) for value in character.encode()]
            if not set(spelled) <= set(self.alphabet):
                raise UnknownCharacter(f"{character!r} is neither an atom nor spelled by bytes")
            atoms.extend(spelled)
        return tuple(atoms)

    def pieces(self, text: str) -> list[str]:
        """The splitter's pieces; the text itself where there is no splitter."""
        if self.splitter is None:
            return [text] if text else []
        return list(self.splitter(text))

    # ---- encoding ------------------------------------------------------------------------

    def encode(self, text: str | bytes, *, end: bool = False) -> Tokens:
        """The canonical encoding; with ``end`` the text is over and EOS follows.

        Inside a piece: the lowest rank first, the leftmost place first, parts as they become
        available.  This is what the `tokenizers` library does.

        >>> late = SmallBpe("abc", [("ab", "c"), ("a", "b")])
        >>> late.encode("abc")
        ('abc',)
        """
        pieces = self.pieces(as_text(text))
        tokens = tuple(token for piece in pieces for token in self._encode_piece(piece))
        return (*tokens, self.eos) if end else tokens

    def _encode_piece(self, piece: str) -> Tokens:
        atoms = self.atomize(piece)
        if self.ignore_merges and atoms in self._token_of:
            return (self._token_of[atoms],)
        return self.merge_atoms(atoms)

    def merge_atoms(self, atoms: Tokens) -> Tokens:
        """Merging alone, without splitter or ``ignore_merges``."""
        return self._run(atoms)[0]

    def _run(self, atoms: Tokens) -> tuple[Tokens, int]:
        """Merge as `encode` does; also the rank of the last merge made, -1 for none."""
        parts, last = list(atoms), -1
        while True:
            ranks = [(self._rank.get(pair, -1), i) for i, pair in enumerate(_neighbours(parts))]
            usable = [place for place in ranks if place[0] >= 0]
            if not usable:
                return tuple(parts), last
            last, i = min(usable)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]

    def encode_rule_by_rule(self, text: str | bytes, *, end: bool = False) -> Tokens:
        """The paper's encoding: merge_1, then merge_2, ..., each over the whole piece.

        Equal to `encode` as long as no merge uses a part that is only made later:

        >>> SmallBpe("abc", [("ab", "c"), ("a", "b")]).encode_rule_by_rule("abc")
        Traceback (most recent call last):
        ...
        crosstok.reference.bpe.LatePart: merge 0 joins 'ab' and 'c', but 'ab' is made by merge 1
        """
        self.require_ordered()
        if self.ignore_merges:
            raise NotLocal("ignore_merges takes pieces whole, which no rule of the paper does")
        encoded: list[Token] = []
        for piece in self.pieces(as_text(text)):
            encoded.extend(self.apply_merges(self.atomize(piece), 0, len(self.merges)))
        return (*encoded, self.eos) if end else tuple(encoded)

    def apply_merges(self, tokens: Tokens, start: int, stop: int) -> Tokens:
        """merge_stop ∘ ... ∘ merge_(start+1), leaving out pairs that the splitter cuts apart."""
        for pair in self.merges[start:stop]:
            if not self._cut_apart(pair):
                tokens = merge(tokens, pair)
        return tokens

    def _cut_apart(self, pair: Pair) -> bool:
        if not isinstance(self.splitter, LocalSplitter):
            return False
        return self.splitter.cuts(self._atoms[pair[0]][-1], self._atoms[pair[1]][0])

    # ---- which merge makes a token ---------------------------------------------------------

    def making_rank(self, token: Token) -> int | None:
        """The rank of the one merge that ever makes ``token``: -1 for atoms, None if none does.

        A token arises in every text by the same merges (docs/theory/paper.md, Lemma D), namely
        those that its own atoms undergo.  Of several merges with the same result at most one
        is therefore ever used:

        >>> several = SmallBpe("abc", [("b", "c"), ("a", "b"), ("ab", "c"), ("a", "bc")])
        >>> several.making_rank("abc")
        3
        """
        return self._making_rank[token]

    def _find_making_rank(self, token: Token) -> int | None:
        atoms = self._atoms[token]
        if isinstance(self.splitter, LocalSplitter) and len(self.splitter.split_atoms(atoms)) > 1:
            return None
        encoded, last = self._run(atoms)
        return last if encoded == (token,) else None

    def require_ordered(self) -> None:
        """Raise `LatePart` unless every used merge finds its parts already made."""
        for rank in self._making_rank.values():
            if rank is None or rank < 0:
                continue
            for part in self.merges[rank]:
                made = self._making_rank[part]
                if made is not None and made > rank:
                    left, right = self.merges[rank]
                    raise LatePart(
                        f"merge {rank} joins {left!r} and {right!r}, "
                        f"but {part!r} is made by merge {made}"
                    )

    def require_local(self) -> None:
        """Raise unless the paper's algorithms apply: parts in order, cuts local, merges asked."""
        self.require_ordered()
        if self.ignore_merges:
            raise NotLocal("ignore_merges: a piece's tokens would depend on where the piece ends")
        if self.splitter is not None and not isinstance(self.splitter, LocalSplitter):
            raise NotLocal("only a LocalSplitter's cuts are final once both neighbours are known")

    # ---- validity --------------------------------------------------------------------------

    def is_canonical(self, tokens: Tokens) -> bool:
        """Is this what the encoder gives for a whole text (with or without EOS)?"""
        body, _ = self.strip_eos(tokens)
        if any(token not in self._atoms for token in body):
            return False
        try:
            return self.encode(self.decode(body)) == body
        except ReferenceRefusal:
            return False

    def is_valid(self, tokens: Tokens, merges: int | None = None) -> bool:
        """The paper's validity over the first ``merges`` merges: e = encode(decode(e)).

        Asked of atoms rather than of UTF-8 texts, so that half a character is no obstacle.

        >>> SmallBpe("ab", [("a", "b")]).is_valid(("b", "a", "b"))
        False
        """
        body, _ = self.strip_eos(tokens)
        if any(token not in self._atoms for token in body):
            return False
        stop = len(self.merges) if merges is None else merges
        atoms = tuple(atom for token in body for atom in self._atoms[token])
        return self.apply_merges(atoms, 0, stop) == body

    def is_canonical_pair(self, left: Token, right: Token) -> bool:
        """May ``right`` stand behind ``left`` inside one piece, or across a local cut?

        >>> SmallBpe("ab", [("a", "b")]).is_canonical_pair("a", "b")
        False
        """
        pair = (left, right)
        if pair not in self._pairs:
            self._pairs[pair] = self._test_pair(pair)
        return self._pairs[pair]

    def _test_pair(self, pair: Pair) -> bool:
        if any(self._making_rank[token] is None for token in pair):
            return False
        return (
            self._cut_apart(pair)
            or self.merge_atoms(self._atoms[pair[0]] + self._atoms[pair[1]]) == pair
        )

    def strip_eos(self, tokens: Tokens) -> tuple[Tokens, bool]:
        """A sequence without its final EOS, and whether there was one."""
        ended = tokens[-1:] == (self.eos,)
        return (tokens[:-1] if ended else tokens), ended

    # ---- truncation --------------------------------------------------------------------------

    def truncate(self, merges: int) -> SmallBpe:
        """The vocabulary of the first ``merges`` merges: V_M' of the paper.

        ``ignore_merges`` is written off and ``whole`` dropped, without which a truncation is not
        a subset (merges a·a, a·aa, aa·a cut to two: `aaab` would lose the `aaa` of `aaa`).  Merges
        of parts that only a later merge makes can never act in it and go too.
        """
        return SmallBpe(
            self.alphabet,
            self._with_parts(self.merges[:merges]),
            self.splitter,
            controls=self.controls,
            eos=self.eos,
        )

    def _with_parts(self, merges: tuple[Pair, ...]) -> tuple[Pair, ...]:
        made = {*self.alphabet, *(left + right for left, right in merges)}
        usable = tuple(pair for pair in merges if made.issuperset(pair))
        return merges if usable == merges else self._with_parts(usable)


def as_text(text: str | bytes) -> str:
    """Strings as they are, bytes as UTF-8; anything else has no encoding."""
    if isinstance(text, str):
        return text
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise UndecodableBytes(f"{text!r} is not UTF-8") from error


def _atom_bytes(atom: Token) -> bytes:
    match = _BYTE_NAME.fullmatch(atom)
    return bytes([int(match[1], 16)]) if match else atom.encode()


def _neighbours(parts: Sequence[Token]) -> Iterable[Pair]:
    return itertools.pairwise(parts)
