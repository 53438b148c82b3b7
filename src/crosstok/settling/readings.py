"""All readings of an open text, through every branch that a continuation decides."""

import codecs
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from crosstok.added import AddedTokens, Half, Match
from crosstok.errors import BadInput
from crosstok.quick import AT_START, Inside
from crosstok.settling.forms import normal_forms
from crosstok.settling.offsets import raw_offsets
from crosstok.settling.pieces import Reading, open_pieces
from crosstok.vocabulary import LOW_LINE, Vocabulary


@dataclass(frozen=True, slots=True)
class Script:
    """In what script a text is given: raw, or already spelled as native ids spell it.

    Spelled text is in normal form and stays so; it holds the dummy prefix, and its spaces are ▁.
    """

    v: Vocabulary
    added: AddedTokens
    spelled: bool

    def spell(self, text: str, fresh: bool) -> str:
        """`Spelling.spell`; only a segment's start gets the dummy prefix."""
        if self.spelled:
            return text
        if self.v.spelling.dummy_prefix and not fresh:
            return text.replace(" ", LOW_LINE)
        return self.v.spelling.spell(text)

    @property
    def normalises(self) -> bool:
        """Whether what follows may change the characters that are there."""
        return self.v.spelling.nfc and not self.spelled


@lru_cache(maxsize=256)
def script_of(v: Vocabulary, spelled: bool) -> Script:
    """The script of raw text, or of text as native ids spell it."""
    if not spelled or not v.spelling.low_line:
        return Script(v, v.added, spelled)
    low_line = LOW_LINE.encode()
    text = {
        content.replace(b" ", low_line): token
        for content, token in v.added.text.items()
        if low_line not in content  # matches a literal ▁ of raw text, which no ids stand for
    }
    return Script(v, AddedTokens(text, v.added.control), spelled)


def split_character(text: bytes) -> tuple[str, bytes]:
    """The complete characters of a text and the bytes of a last, incomplete one."""
    try:
        complete, used = codecs.utf_8_decode(text, "strict", False)
    except UnicodeDecodeError as error:
        raise BadInput(
            f"expected text in valid UTF-8 (a cut last character is fine), found {error.reason} "
            f"at offset {error.start}"
        ) from error
    begun = text[used:]
    if begun[:1] == b"\xed" and begun[1:2] >= b"\xa0":  # the codec waits for the third byte
        raise BadInput(
            "expected text in valid UTF-8 (a cut last character is fine), found the beginning of a "
            f"surrogate at offset {used}"
        )
    return complete, begun


def readings(vocabulary: Vocabulary, text: bytes, *, fresh: bool = True) -> list[Reading]:
    """All readings of an open text that begins at an anchor.

    ``fresh``: the text begins a segment (the start of the whole text, or behind an added token).
    """
    return list(branches(script_of(vocabulary, False), text, fresh))


def branches(s: Script, text: bytes, fresh: bool, inside: Inside = AT_START) -> Iterator[Reading]:
    """The readings for each way in which half-typed added tokens may turn out."""
    if inside is not AT_START or not s.added.may_occur(text):
        yield from _open_segment(s, text, 0, fresh, inside)
        return
    matches, halves = s.added.halves(text)
    tokens, stops, at = closed_tokens(s, text, matches, fresh)
    for reading in _open_segment(s, text[at:], at, fresh or at > 0):
        yield replace(reading, tokens=tokens + reading.tokens, stops=stops + reading.stops)
    for half in halves:
        yield _completed(s, text, matches, half, fresh)


def _completed(
    s: Script, text: bytes, matches: Sequence[Match], half: Half, fresh: bool
) -> Reading:
    """The reading in which a half-typed added token is completed: its segment ends before it."""
    before = [match for match in matches if match.stop <= half.start]
    tokens, stops, at = closed_tokens(s, text, before, fresh)
    if at < half.start:
        more, ends = _encode_closed(s, text[at : half.start], at, fresh or at > 0)
        tokens, stops = tokens + more, stops + ends
    return Reading(tokens, stops, boundary=False, following=half.tokens)


def closed_tokens(
    s: Script, text: bytes, matches: Iterable[Match], fresh: bool
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Tokens of the segments and added tokens up to the end of the last match."""
    tokens: list[int] = []
    stops: list[int] = []
    at = 0
    for match in matches:
        if match.start > at:
            more, ends = _encode_closed(s, text[at : match.start], at, fresh or at > 0)
            tokens += more
            stops += ends
        tokens.append(match.token)
        stops.append(match.stop)
        at = match.stop
    return tuple(tokens), tuple(stops), at


def _encode_closed(
    s: Script, segment: bytes, base: int, fresh: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tokens and raw stops of a segment that has ended."""
    text = segment.decode()
    spelled = s.spell(text, fresh)
    ids, ends = s.v.encode_spelled(spelled.encode(), s.v.piece_ends(spelled))
    to_raw = raw_offsets(s.v, text, spelled, base)
    return tuple(ids.tolist()), tuple(to_raw(end) for end in ends.tolist())


def _open_segment(
    s: Script, segment: bytes, base: int, fresh: bool, inside: Inside = AT_START
) -> Iterator[Reading]:
    """Readings of the last segment, which goes on."""
    v = s.v
    complete, begun = split_character(segment)
    if not s.normalises:
        spelled = s.spell(complete, fresh)
        if begun and not complete and fresh and not s.spelled and v.spelling.dummy_prefix:
            spelled = LOW_LINE
        yield from open_pieces(v, spelled, begun, raw_offsets(v, complete, spelled, base), inside)
        return
    missing = v.missing_bytes
    for k, (text, cut) in enumerate(normal_forms(complete, begun)):
        if k and missing and not set(missing).isdisjoint(text.encode()):
            continue  # no text with this composite can be encoded
        yield from open_pieces(v, text, cut, raw_offsets(v, complete, text, base), inside)


def encode_rest(v: Vocabulary, text: bytes, fresh: bool) -> tuple[int, ...]:
    """The encoding of a whole text that begins at an anchor."""
    s = script_of(v, False)
    tokens, _, at = closed_tokens(s, text, v.added.matches(text), fresh)
    if at < len(text):
        tokens += _encode_closed(s, text[at:], at, fresh or at > 0)[0]
    return tokens
