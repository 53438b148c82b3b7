"""What separates two tokenizers, as data, before anyone spends an hour of computing on them.

`inspect` gathers it: sizes and families, the tokens they share, how they normalise and split,
which special tokens correspond, of which kind the conversion is and why, and, on a text, how many
tokens each needs, how many boundaries they share and how much of the text stays open at a time.

Everything is an immutable record; `Inspection.to_dict` gives the same as plain lists and
dictionaries, ready for JSON, under keys that stay.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from crosstok.alignment import Placed, boundaries, place_tokens
from crosstok.conversion import Conversion, byte_vocabulary
from crosstok.errors import BadInput
from crosstok.loading import load
from crosstok.settling import Settler
from crosstok.splitting import Splitter
from crosstok.vocabulary import Kind, Vocabulary, as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

FORMAT = 1  # of to_dict; grows when a key changes its meaning or goes
MOST_POSITIONS = 4000  # text positions at which the open tokens are counted


@dataclass(frozen=True, slots=True)
class Special:
    """A control token: an id without text, and its name."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many ids of each sort a vocabulary has, and how many merges."""

    ids: int  # one more than the highest
    text: int  # tokens of text, text-added ones included
    byte_fallback: int  # tokens for single bytes of characters that the vocabulary lacks
    control: int
    added: int  # text that is matched before everything else
    absent: int  # holes in the numbering
    byte_strings: int  # distinct ones among the tokens of text and bytes
    unreachable: int  # tokens of text that no merging and no matching produces
    merge_lines: int
    merge_results: int  # distinct tokens that the merges make


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two tokenizers."""

    name: str
    digest: str  # SHA-256 of its tokenizer.json
    sizes: Sizes
    splitter: str
    atoms: str  # "bytes", or "characters" with bytes as a fallback
    normalizer: tuple[str, ...]  # its steps, in words
    ignore_merges: bool  # whether a piece that is a token is taken whole
    bos: tuple[Special, ...]
    eos: tuple[Special, ...]
    missing_bytes: tuple[int, ...]  # bytes without a symbol: text with them is refused
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Converted:
    """What `crosstok.conversion.Conversion` says of the way from native to target."""

    kind: str  # same, padded, bytes, subset or general
    why: str


@dataclass(frozen=True, slots=True)
class Shared:
    """Tokens that both have, counted by the bytes that they stand for."""

    count: int
    of_native: float
    of_target: float


@dataclass(frozen=True, slots=True)
class SplitDifference:
    """Something that the two splitters do differently, and a text that shows it."""

    what: str
    text: str
    native: str  # in words
    target: str
    native_pieces: tuple[str, ...]
    target_pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """A special token that both have, by name."""

    name: str
    native: int
    target: int


@dataclass(frozen=True, slots=True)
class End:
    """A native token that ends a text, and the target's that it becomes."""

    native: Special
    target: Special | None  # None where the target names none


@dataclass(frozen=True, slots=True)
class Specials:
    """Which special tokens correspond."""

    ends: tuple[End, ...]
    shared: tuple[Match, ...]
    native_only: tuple[Special, ...]
    target_only: tuple[Special, ...]
    text_in_target: tuple[Match, ...]  # control tokens of the native, added text of the target
    text_in_native: tuple[Match, ...]  # the other way round
    shared_added: int  # added texts that both have


@dataclass(frozen=True, slots=True)
class Unsettled:
    """Tokens of the text so far that its continuation may still change.

    Averages over the places in the text at which a native token ends together with a character.
    """

    positions: int
    native: float
    target: float


@dataclass(frozen=True, slots=True)
class OnText:
    """Both tokenizers on one text."""

    source: str  # "given" or "sample"
    bytes: int
    characters: int
    native_tokens: int
    target_tokens: int
    native_tokens_per_byte: float
    target_tokens_per_byte: float
    native_boundaries: int  # places between tokens, the text's two ends left out
    target_boundaries: int
    shared_boundaries: int
    of_native_boundaries: float | None  # shared ones; None where there is no boundary
    of_target_boundaries: float | None
    unsettled: Unsettled


@dataclass(frozen=True, slots=True)
class Inspection:
    """Everything `inspect` found out about two tokenizers."""

    native: Side
    target: Side
    conversion: Converted
    shared: Shared
    normalizer_differences: tuple[str, ...]
    split_differences: tuple[SplitDifference, ...]
    specials: Specials
    text: OnText

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries and lists, under the names of the fields."""
        plain: dict[str, Any] = _plain({"format": FORMAT, **asdict(self)})
        return plain


def inspect(native: Any, target: Any, text: str | None = None) -> Inspection:
    """Compare two tokenizers; whatever `crosstok.loading.load` reads will do for each.

    The target may also be ``"bytes"``, the 256 of them.  ``text`` is what they are tried on;
    without one, a short sample of prose, code and numbers in many languages.
    """
    native, target = load(native), _target(target)
    conversion = Conversion(native, target)
    return Inspection(
        native=_side(native),
        target=_side(target),
        conversion=Converted(str(conversion.kind), conversion.why),
        shared=_shared(native, target),
        normalizer_differences=tuple(_normalizer_differences(native, target)),
        split_differences=tuple(_split_differences(native, target)),
        specials=_specials(conversion),
        text=_on_text(native, target, text),
    )


def _target(target: Any) -> Vocabulary:
    return byte_vocabulary() if isinstance(target, str) and target == "bytes" else load(target)


@cache
def sample() -> str:
    """The text that tokenizers are tried on where none is given."""
    return resources.files("crosstok").joinpath("data", "sample.txt").read_text("utf-8")


def _plain(value: Any) -> Any:
    """Tuples become lists, so that what is printed and what is read back are equal."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    return value


# -- one tokenizer --------------------------------------------------------------------------------


def _side(v: Vocabulary) -> Side:
    return Side(
        name=v.name,
        digest=v.digest,
        sizes=_sizes(v),
        splitter=v.splitter.name,
        atoms="characters" if v.merger.atoms.characters else "bytes",
        normalizer=_normalizer(v),
        ignore_merges=v.ignore_merges,
        bos=tuple(_named(v, token) for token in v.bos),
        eos=tuple(_named(v, token) for token in sorted(v.eos)),
        missing_bytes=tuple(v.missing_bytes),
        notes=v.notes,
    )


def _sizes(v: Vocabulary) -> Sizes:
    count = {kind: int((v.kinds == kind).sum()) for kind in Kind}
    produced = v.reachable.copy()
    produced[list(v.added.text.values())] = True
    if v.ignore_merges:
        produced |= v.kinds == Kind.TEXT
    return Sizes(
        ids=v.size,
        text=count[Kind.TEXT],
        byte_fallback=count[Kind.BYTE],
        control=count[Kind.CONTROL],
        added=len(v.added.text),
        absent=count[Kind.ABSENT],
        byte_strings=len(_byte_strings(v)),
        unreachable=int(((v.kinds == Kind.TEXT) & ~produced).sum()),
        merge_lines=len(v.merger.merges.result),
        merge_results=len(np.unique(v.merger.merges.result)),
    )


def _byte_strings(v: Vocabulary) -> set[bytes]:
    return set(v.token_bytes) - {b""}


def _normalizer(v: Vocabulary) -> tuple[str, ...]:
    steps = {
        "composes characters (NFC)": v.spelling.nfc,
        "puts ▁ before every segment": v.spelling.dummy_prefix,
        "writes spaces as ▁": v.spelling.low_line,
    }
    return tuple(words for words, taken in steps.items() if taken)


def _named(v: Vocabulary, token: int) -> Special:
    return Special(token, v.names.get(token, "?"))


# -- both -----------------------------------------------------------------------------------------


def _shared(native: Vocabulary, target: Vocabulary) -> Shared:
    a, b = _byte_strings(native), _byte_strings(target)
    count = len(a & b)
    return Shared(count, count / len(a), count / len(b))


def _normalizer_differences(native: Vocabulary, target: Vocabulary) -> Iterator[str]:
    """What each does to a text before it is split, where the other does not."""
    mine, other = native.spelling, target.spelling
    consequences = (
        (mine.nfc, other.nfc, "composes characters first (NFC: e + U+0301 becomes é)",
         "takes them as they are"),
        (mine.low_line, other.low_line,
         "writes spaces as ▁, so that a literal ▁ in a text reads as a space",
         "keeps the two apart"),
        (mine.dummy_prefix, other.dummy_prefix,
         "puts a space before the text's start and behind every added token", "does not"),
    )  # fmt: skip
    for in_native, in_target, does, does_not in consequences:
        if in_native != in_target:
            doer, other_one = ("native", "target") if in_native else ("target", "native")
            yield f"the {doer} {does}; the {other_one} {does_not}"


def _specials(conversion: Conversion) -> Specials:
    native, target = conversion.native, conversion.target
    mine, other = _control(native), _control(target)
    my_text, other_text = _added_text(native), _added_text(target)
    return Specials(
        ends=tuple(_ends(conversion)),
        shared=_matches(mine, other),
        native_only=_others(mine, {*other, *other_text}),
        target_only=_others(other, {*mine, *my_text}),
        text_in_target=_matches(mine, other_text),
        text_in_native=_matches(my_text, other),
        shared_added=len(my_text.keys() & other_text.keys()),
    )


def _ends(conversion: Conversion) -> Iterator[End]:
    for token, becomes in conversion.ends.of.items():
        other = None if becomes is None else _named(conversion.target, becomes)
        yield End(_named(conversion.native, token), other)


def _control(v: Vocabulary) -> dict[str, int]:
    return {v.names[token]: token for token in np.flatnonzero(v.kinds == Kind.CONTROL).tolist()
            if token in v.names}  # fmt: skip


def _added_text(v: Vocabulary) -> dict[str, int]:
    return {content.decode(): token for content, token in v.added.text.items()}


def _matches(mine: dict[str, int], other: dict[str, int]) -> tuple[Match, ...]:
    return tuple(Match(name, token, other[name]) for name, token in mine.items() if name in other)


def _others(mine: dict[str, int], known: Iterable[str]) -> tuple[Special, ...]:
    known = set(known)
    return tuple(Special(token, name) for name, token in mine.items() if name not in known)


# -- how texts are split --------------------------------------------------------------------------

# What splitters differ in, a text that shows it, and words for the ways in which it is cut; the
# cuts are written as bars.  The words are looked up by what a splitter does, never by its name.
PROBES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("digits", "1234567", {
        "1234567": "runs of any length", "123|456|7": "groups of up to three from the left",
        "1|2|3|4|5|6|7": "one by one",
    }),
    ("space before digits", " 12", {
        " 12": "belongs to the number", " |12": "apart", " |1|2": "apart",
    }),
    ("contractions", "it'sme", {
        "it|'s|me": "cut off the word", "it's|me": "belong to the word",
        "it|'sme": "not known: ' begins a word",
    }),
    ("contractions in capitals", "IT'SME", {
        "IT|'S|ME": "cut off the word", "IT'S|ME": "belong to the word", "IT|'|SME": "not known",
        "IT|'SME": "not known: ' begins a word",
    }),
    ("sign before a word", "(word", {"(|word": "apart", "(word": "belongs to the word"}),
    ("tab before a word", "\tx", {"\t|x": "apart", "\tx": "belongs to the word"}),
    ("capitals inside words", "helloWorld", {
        "helloWorld": "no cut", "hello|World": "a word begins",
    }),
    ("breaks in white space", "a \n\n  b", {
        "a| \n\n | b": "like other white space", "a| \n\n| | b": "end a piece of white space",
    }),
    ("break behind signs", ";\nx", {";|\n|x": "apart", ";\n|x": "belongs to the signs"}),
    ("slash behind a break", ";\n/x", {
        ";|\n|/|x": "apart", ";\n|/x": "begins a piece", ";\n/|x": "belongs to the signs before",
    }),
    ("combining marks", "e\u0301a", {
        "e|\u0301|a": "apart from letters", "e|\u0301a": "begin a word",
        "e\u0301a": "belong to the word",
    }),
    ("Latin behind kana", "かなABC", {"かなABC": "no cut", "かな|ABC": "a cut"}),
    ("Han behind Latin", "ABC漢字", {"ABC漢字": "no cut", "ABC|漢字": "a cut"}),
)  # fmt: skip


def _split_differences(one: Vocabulary, other: Vocabulary) -> Iterator[SplitDifference]:
    native, target = one.splitter, other.splitter
    if native.name == target.name or not (_merges(one) and _merges(other)):
        return
    if "none" in (native.name, target.name):
        yield _difference("splitting", "two words", native, target, _splits_at_all)
        return
    for what, text, words in PROBES:
        found = _difference(what, text, native, target, partial(_worded, words))
        if found.native != found.target:
            yield found


def _merges(v: Vocabulary) -> bool:
    """Whether there are merges at all: without any it does not matter how a text is split."""
    return len(v.merger.merges.result) > 0


def _worded(words: dict[str, str], cut: str) -> str:
    return words.get(cut, cut)


def _splits_at_all(cut: str) -> str:
    return "splits before merging" if "|" in cut else "merges the text as one piece"


def _difference(
    what: str, text: str, native: Splitter, target: Splitter, words: Callable[[str], str]
) -> SplitDifference:
    mine, other = pieces(native, text), pieces(target, text)
    return SplitDifference(what, text, words("|".join(mine)), words("|".join(other)), mine, other)


def pieces(splitter: Splitter, text: str) -> tuple[str, ...]:
    """The pieces of a text."""
    ends = splitter.pieces(text)
    return tuple(text[a:b] for a, b in zip([0, *ends], ends, strict=False))


# -- on a text ------------------------------------------------------------------------------------


def _on_text(native: Vocabulary, target: Vocabulary, given: str | None) -> OnText:
    text = sample() if given is None else as_text(given)
    if not text:
        raise BadInput.explain("a text to try the tokenizers on", "an empty one", "give some text")
    size = len(text.encode())
    mine, other = place_tokens(native, text), place_tokens(target, text)
    my_ends, other_ends = boundaries(mine, size), boundaries(other, size)
    shared = len(my_ends & other_ends)
    return OnText(
        source="sample" if given is None else "given",
        bytes=size,
        characters=len(text),
        native_tokens=len(mine),
        target_tokens=len(other),
        native_tokens_per_byte=len(mine) / size,
        target_tokens_per_byte=len(other) / size,
        native_boundaries=len(my_ends),
        target_boundaries=len(other_ends),
        shared_boundaries=shared,
        of_native_boundaries=shared / len(my_ends) if my_ends else None,
        of_target_boundaries=shared / len(other_ends) if other_ends else None,
        unsettled=_unsettled(native, target, text, mine),
    )


def _unsettled(
    native: Vocabulary, target: Vocabulary, text: str, tokens: Iterable[Placed]
) -> Unsettled:
    """Feed the text token by token to both, and count what stays open after each."""
    data = text.encode()
    ends = list(_character_ends(tokens, data))[:MOST_POSITIONS]
    mean = [sum(_open_tokens(v, data, ends)) / len(ends) for v in (native, target)]
    return Unsettled(len(ends), *mean)


def _character_ends(tokens: Iterable[Placed], data: bytes) -> Iterator[int]:
    """Where tokens end together with a character: elsewhere the text so far has no encoding."""
    at = 0
    for token in tokens:
        stop = token.stop.offset
        inside = token.stop.inside or (stop < len(data) and data[stop] & 0xC0 == 0x80)
        if stop > at and not inside:
            yield stop
            at = stop


def _open_tokens(v: Vocabulary, data: bytes, ends: Iterable[int]) -> Iterator[int]:
    """How many tokens of the text up to each end are not settled there."""
    settler = Settler(v)
    at = 0
    for end in ends:
        settler.feed(data[at:end])
        at = end
        yield len(settler.finish())
