"""What a tokenizer is: one immutable object that alone knows tokenizer families.

A text becomes tokens in four steps, and `Vocabulary.encode` is their composition:

1. **added tokens** are cut out of the raw text (`crosstok.added`);
2. each segment between them is **spelled**: normalised (NFC), its spaces written as ``▁``, a dummy
   prefix put before it, as the family demands (`Spelling`);
3. the spelled segment is **split** into pieces (`crosstok.splitting`);
4. each piece is **merged** (`crosstok.bpe`), unless the piece is a token and the vocabulary takes
   such pieces whole (``ignore_merges``).

Text that names a special token is text: specials are never produced by encoding.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from crosstok import bpe
from crosstok.added import AddedTokens
from crosstok.errors import BadInput
from crosstok.jit import njit
from crosstok.splitting import Splitter, lex
from crosstok.unicode import nfc

SPACE = b" "
LOW_LINE = "▁"


class Kind(IntEnum):
    """What an id is."""

    ABSENT = 0  # a hole in the numbering
    TEXT = 1  # bytes of text
    BYTE = 2  # a byte fallback: one byte of a character that the vocabulary lacks
    CONTROL = 3  # special: stands for no text


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a segment of text is written before it is split and merged."""

    nfc: bool = False
    low_line: bool = False  # spaces are written ▁
    dummy_prefix: bool = False  # ▁ is put before every segment that is not empty

    def spell(self, segment: str) -> str:
        """The segment as the splitter and the merges see it."""
        if self.nfc:
            segment = nfc(segment)
        if self.dummy_prefix and segment:
            segment = LOW_LINE + segment
        return segment.replace(" ", LOW_LINE) if self.low_line else segment

    def read(self, spelled: bytes) -> bytes:
        """The text that spelled bytes stand for (the dummy prefix, if any, included)."""
        return spelled.replace(LOW_LINE.encode(), SPACE) if self.low_line else spelled


class Cutting(NamedTuple):
    """What the kernels need to cut a spelled segment into pieces."""

    by_cuts: bool
    glued: bpe.Glue
    class_of: bpe.U8
    nxt: Any
    rec: Any
    rec_end: Any


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """One tokenizer, understood. Built by `crosstok.loading.load`; never changed afterwards."""

    name: str
    digest: str
    spelling: Spelling
    splitter: Splitter
    added: AddedTokens
    merger: bpe.Merger
    whole: bpe.Trie  # tokens that a piece may equal; empty unless ignore_merges
    ignore_merges: bool
    kinds: bpe.U8
    reachable: bpe.Bool  # whether merging the token's bytes gives the token
    glued: bpe.Glue  # neighbours inside tokens; used where no splitter cuts
    left: bpe.I32  # last merge of each token, NONE for atoms
    right: bpe.I32
    bos: tuple[int, ...]
    eos: frozenset[int]
    names: dict[int, str] = field(repr=False)  # contents of added tokens
    notes: tuple[str, ...]  # what a user must know: bytes without a symbol, and the like
    source: bytes = field(repr=False)  # the tokenizer.json this was read from

    @property
    def size(self) -> int:
        """One more than the highest id."""
        return len(self.kinds)

    def __repr__(self) -> str:
        return f"Vocabulary({self.name!r}, size={self.size}, splitter={self.splitter.name!r})"

    def spelled(self, token: int) -> bytes:
        """The token as the merges spell it (▁ for a space, where the family writes it so)."""
        at = self.merger.at
        return self.merger.blob[at[token] : at[token + 1]].tobytes()

    @cached_property
    def token_bytes(self) -> tuple[bytes, ...]:
        """The decoded bytes of every id; empty for ids that stand for no text."""
        blob, at = self.merger.blob.tobytes(), self.merger.at.tolist()
        read = self.spelling.read
        return tuple(read(blob[at[k] : at[k + 1]]) for k in range(self.size))

    def bytes_of(self, token: int) -> bytes:
        """The bytes that an id stands for; a control token is refused."""
        self.check_ids((token,))
        if self.kinds[token] == Kind.CONTROL:
            raise BadInput(
                f"token {token} ({self.names.get(token, '?')}) is a control token and stands for "
                f"no text; expected a text token of {self.name}"
            )
        return self.token_bytes[token]

    def check_ids(self, ids: Sequence[int] | bpe.I32) -> None:
        """Every id must exist in this vocabulary."""
        for token in ids:
            if not 0 <= token < self.size or self.kinds[token] == Kind.ABSENT:
                raise BadInput(
                    f"expected ids of {self.name} (0 to {self.size - 1}), found {int(token)}; "
                    "were these ids made by another tokenizer?"
                )

    @cached_property
    def missing_bytes(self) -> bytes:
        """Bytes that this vocabulary has no symbol for (and `tokenizers` drops in silence)."""
        of_byte = self.merger.atoms.of_byte
        have = of_byte != bpe.NONE
        if self.merger.atoms.characters:
            have = have | (self.merger.atoms.of_char[:256] != bpe.NONE) & (np.arange(256) < 128)
        return bytes(np.flatnonzero(~have).tolist())

    # -- text to ids ------------------------------------------------------------------------------

    def encode(self, text: str | bytes) -> list[int]:
        """The canonical ids of a whole text, specials disabled."""
        ids: list[int] = self.encode_array(text).tolist()
        return ids

    def encode_array(self, text: str | bytes) -> bpe.I32:
        """`encode` as an array."""
        spelled: list[bytes] = []
        after: list[int] = []  # the added token behind each segment, or NONE
        for part in self.segments(as_text(text)):
            if isinstance(part, str):
                spelled.append(self.spelling.spell(part).encode())
                after.append(bpe.NONE)
            elif after and after[-1] == bpe.NONE:
                after[-1] = part
            else:
                spelled.append(b"")
                after.append(part)
        return self._encode_spelled_segments(spelled, after)[0]

    def segments(self, text: str) -> Iterable[str | int]:
        """The text's segments, and the ids of the added tokens between them."""
        data = text.encode() if self.added else b""
        if not self.added.may_occur(data):
            yield text
            return
        at = 0
        for match in self.added.matches(data):
            if match.start > at:
                yield data[at : match.start].decode()
            yield match.token
            at = match.stop
        if at < len(data):
            yield data[at:].decode()

    def encode_segment(self, segment: str) -> tuple[bpe.I32, bpe.I64]:
        """Ids of a segment without added tokens, and where each ends in its spelled bytes."""
        return self._encode_spelled_segments([self.spelling.spell(segment).encode()], [bpe.NONE])

    def _encode_spelled_segments(
        self, spelled: list[bytes], after: list[int]
    ) -> tuple[bpe.I32, bpe.I64]:
        """Ids of all segments with the added tokens between them, and where each id ends."""
        text = b"".join(spelled)
        segment_ends = np.array(list(accumulate(map(len, spelled))), np.int64)
        ids = np.empty(len(text) + len(after), np.int32)
        stops = np.empty(len(ids), np.int64)
        data = np.frombuffer(text, np.uint8)
        behind = np.array(after, np.int32)
        count = _encode_segments(data, segment_ends, behind, *self._compiled, ids, stops)
        if count < 0:
            raise self.no_symbol(text)
        return ids[:count], stops[:count]

    @cached_property
    def _compiled(self) -> tuple[Cutting, bpe.Merger, bpe.Trie, bool]:
        """What `_encode_segments` needs of this vocabulary."""
        s = self.splitter
        cutting = Cutting(self.splits_by_cuts, self.glued, s.class_of, s.nxt, s.rec, s.rec_end)
        return cutting, self.merger, self.whole, self.ignore_merges

    def piece_ends(self, spelled: str) -> bpe.I64:
        """Byte offsets at which the pieces of a spelled segment end.

        Where no splitter cuts, a boundary that no token spans is one for ever (THEORY, Cuts).
        """
        points = np.frombuffer(spelled.encode("utf-32-le"), np.int32)
        byte_ends = np.cumsum(_utf8_lengths(points), dtype=np.int64)
        out = np.empty(len(points), np.int64)
        if self.splits_by_cuts:
            count = bpe.cut_ends(points, byte_ends, len(points), self.glued, out)
            return out[:count]
        splitter = self.splitter
        count = lex(splitter.class_of[points], splitter.nxt, splitter.rec, splitter.rec_end, out)
        return byte_ends[out[:count] - 1]

    @property
    def splits_by_cuts(self) -> bool:
        """Whether the text is one piece for the tokenizer, which cuts make many."""
        return self.splitter.name == "none"

    def encode_spelled(self, spelled: bytes, ends: bpe.I64) -> tuple[bpe.I32, bpe.I64]:
        """Merge the pieces of a spelled text; ids and their byte ends."""
        data = np.frombuffer(spelled, np.uint8)
        ids = np.empty(len(data), np.int32)
        stops = np.empty(len(data), np.int64)
        count = bpe.encode_pieces(
            data, ends, self.merger, self.whole, self.ignore_merges, ids, stops
        )
        if count < 0:
            raise self.no_symbol(spelled)
        return ids[:count], stops[:count]

    def no_symbol(self, spelled: bytes) -> BadInput:
        """The error for text that holds a byte without a symbol."""
        missing = sorted({byte for byte in spelled if byte in self.missing_bytes})
        listed = ", ".join(f"{byte:02x}" for byte in missing) or "?"
        return BadInput(
            f"{self.name} has no symbol for byte {listed}; `tokenizers` would drop it in silence. "
            "Remove it from the text, or use a tokenizer with all 256 bytes."
        )

    # -- ids to text ------------------------------------------------------------------------------

    def decode(self, ids: Sequence[int]) -> bytes:
        """The bytes that ids stand for; control tokens stand for none.

        A dummy prefix at the start is taken off again, as `tokenizers` does.
        """
        self.check_ids(ids)
        text = b"".join(self.token_bytes[token] for token in ids)
        if self.spelling.dummy_prefix and text.startswith(SPACE):
            return text[1:]
        return text


def as_text(text: str | bytes) -> str:
    """The text as ``str``; bytes that are not UTF-8 and lone surrogates are refused."""
    try:
        if isinstance(text, bytes):
            return text.decode()
        text.encode()
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise BadInput.explain(
            "text in valid UTF-8",
            f"{error.reason} at offset {error.start}",
            "decode it with the encoding it was written in, or replace what is damaged",
        ) from error
    return text


@njit(cache=True)
def _encode_segments(
    data: bpe.U8, segment_ends: bpe.I64, after: bpe.I32, cutting: Cutting,
    merger: bpe.Merger, whole: bpe.Trie, use_whole: bool, ids: bpe.I32, stops: bpe.I64,
) -> int:  # fmt: skip
    """`piece_ends` and `encode_spelled` of many segments in one call, since a call is what costs.

    Behind each segment comes the id in ``after``, unless that is NONE.
    """
    count = 0
    begin = np.int64(0)
    for k in range(len(segment_ends)):
        segment = data[begin : segment_ends[k]]
        pieces = _piece_ends(segment, cutting)
        added = bpe.encode_pieces(
            segment, pieces, merger, whole, use_whole, ids[count:], stops[count:]
        )
        if added < 0:
            return int(added)
        stops[count : count + added] += begin
        count += added
        begin = segment_ends[k]
        if after[k] != bpe.NONE:
            ids[count] = after[k]
            stops[count] = begin
            count += 1
    return count


@njit(cache=True)
def _piece_ends(segment: bpe.U8, cutting: Cutting) -> bpe.I64:
    points = np.empty(len(segment), np.int32)
    ends = np.empty(len(segment), np.int64)
    count = bpe.decode_characters(segment, points, ends)
    pieces = np.empty(count, np.int64)
    if cutting.by_cuts:
        return pieces[: bpe.cut_ends(points, ends, count, cutting.glued, pieces)]
    classes = np.empty(count, np.uint8)
    for k in range(count):
        classes[k] = cutting.class_of[points[k]]
    number = lex(classes, cutting.nxt, cutting.rec, cutting.rec_end, pieces)
    for k in range(number):
        pieces[k] = ends[pieces[k] - 1]
    return pieces[:number]


def _utf8_lengths(points: bpe.I32) -> bpe.I64:
    return 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
