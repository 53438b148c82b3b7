r"""The pre-tokenizers that are known, each as one pattern, and how to recognise them.

A `tokenizer.json` names its pre-tokenizer by regular expressions, often several, one applied inside
the pieces of another.  Here each family is one pattern that matches from every place on.  Where
pre-tokenizers are nested, the characters that an outer one isolates are *barriers* to the inner
one: it sees the text's end there.  So every set of the inner pattern, those of look-aheads too, is
restricted to what is `inside` the barriers; docs/theory/splitting.md proves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosstok import unicode
from crosstok.errors import UnsupportedTokenizer
from crosstok.splitting.pattern import (
    CharSet,
    NotAhead,
    Pattern,
    alt,
    any_of,
    chars,
    many,
    maybe,
    seq,
    some,
    up_to,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _CL100K.replace("{1,3}", "")
_O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_MISTRAL_NEMO = _O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")
_DEEPSEEK_V3 = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|".replace(r"\"", '"')
    + "[^\r\n"
    + r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+["
    + "\r\n"
    + r"]*|\s*["
    + "\r\n"
    + r"]+|\s+(?!\S)|\s+",
)


def _category(*names: str) -> CharSet:
    return CharSet(unicode.category(*names))


def _white() -> CharSet:
    return CharSet(unicode.white_space())


def _everything() -> CharSet:
    return ~any_of("")


def _contraction(*, any_case: bool) -> Pattern:
    """`'s|'t|'re|'ve|'m|'ll|'d`.

    The options exclude each other, so their order does not matter.  Without regard to case the
    engine lets U+017F (long s) be an s too.
    """

    def letter(small: str) -> CharSet:
        return any_of(small + small.upper() + "\u017f" * ("s" in small) if any_case else small)

    double_l = seq(letter("l"), letter("l"))
    return seq(any_of("'"), alt(letter("stmd"), seq(letter("rv"), letter("e")), double_l))


def _white_space(inside: CharSet) -> Pattern:
    r"""`\s+(?!\S)|\s+`: a run gives its last character to what follows, unless it has but one."""
    white = _white() & inside
    return alt(seq(some(white), NotAhead(inside - white)), some(white))


def gpt2(inside: CharSet) -> Pattern:
    r"""`'s|…| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`, between barriers."""
    letter, digit = _category("L") & inside, _category("N") & inside
    other = inside - letter - digit - _white()
    blank = maybe(any_of(" "))
    return alt(
        _contraction(any_case=False),
        seq(blank, some(letter)),
        seq(blank, some(digit)),
        seq(blank, some(other)),
        _white_space(inside),
    )


def smollm2() -> Pattern:
    """Single digits (as Rust knows them), and GPT-2's pattern between them."""
    digit = CharSet(unicode.numeric())
    return alt(digit, gpt2(~digit))


def cl100k(digits: int) -> Pattern:
    """The pattern of GPT-4 and Llama 3, or with `digits` 1 of Qwen 2 and 3."""
    letter, digit = _category("L"), _category("N")
    return alt(
        _contraction(any_case=True),
        seq(maybe(~(letter | digit | any_of("\r\n"))), some(letter)),
        _modern_rest(digits, any_of("\r\n")),
    )


def o200k(digits: int, *, contractions: bool) -> Pattern:
    """The pattern of GPT-4o, or with one digit and without contractions of Mistral Nemo."""
    before = maybe(~(_category("L", "N") | any_of("\r\n")))
    upper, lower = _category("Lu", "Lt", "Lm", "Lo", "M"), _category("Ll", "Lm", "Lo", "M")
    after = maybe(_contraction(any_case=True)) if contractions else seq()
    return alt(
        seq(before, many(upper), some(lower), after),
        seq(before, some(upper), many(lower), after),
        _modern_rest(digits, any_of("\r\n/")),
    )


def _modern_rest(digits: int, trailing: CharSet) -> Pattern:
    r"""`\p{N}{1,…}| ?[^\s\p{L}\p{N}]+[…]*|\s*[\r\n]+|\s+(?!\S)|\s+`."""
    white, letter, digit = _white(), _category("L"), _category("N")
    return alt(
        up_to(digits, digit),
        seq(maybe(any_of(" ")), some(~(white | letter | digit)), many(trailing)),
        seq(many(white), some(any_of("\r\n"))),
        _white_space(_everything()),
    )


def deepseek_v3() -> Pattern:
    """Digit groups; runs of Han and kana; words inside those runs, and words between them."""
    digit = _category("N")
    han_kana = chars("一-龥", "\u3040-ヿ") - digit
    between = ~(digit | han_kana)
    return alt(up_to(3, digit), _deepseek_words(han_kana), _deepseek_words(between))


def _deepseek_words(inside: CharSet) -> Pattern:
    """The third of DeepSeek's patterns, and the gaps that it leaves.

    A gap goes on as long as no match starts; only characters that are nothing of all this can be in
    one, and before a letter or a mark they start a match.
    """
    letter, sign = _category("L") & inside, _category("P", "S") & inside
    word, white, newline = _category("L", "M") & inside, _white() & inside, any_of("\r\n") & inside
    ascii_sign = chars("!-/", ":-@", "[-`", "{-~") & inside
    return alt(
        seq(ascii_sign, some(chars("A-Z", "a-z") & inside)),
        seq(maybe(inside - letter - sign - newline), some(word)),
        seq(maybe(any_of(" ") & inside), some(sign), many(newline)),
        seq(many(white), some(newline)),
        _white_space(inside),
        some(seq(inside - word - sign - white, NotAhead(word))),
    )


PATTERNS: dict[str, Callable[[], Pattern]] = {
    "gpt2": lambda: gpt2(_everything()),
    "smollm2": smollm2,
    "cl100k": lambda: cl100k(3),
    "qwen2": lambda: cl100k(1),
    "o200k": lambda: o200k(3, contractions=True),
    "mistral_nemo": lambda: o200k(1, contractions=False),
    "deepseek_v3": deepseek_v3,
    "none": lambda: some(_everything()),
}

_BYTES = "ByteLevel without its regex"
_GPT2 = "ByteLevel with its regex"
_DIGITS = "Digits(individual_digits=True)"
_SPACE = "Split on a space"


def _isolated(regex: str) -> str:
    return f"Split({regex!r}, Isolated)"


def _kept(regex: str) -> str:
    return f"Split({regex!r}, Removed, inverted)"


# What is kept and what is isolated is the same for a pattern that matches everywhere.
_KNOWN: dict[tuple[str, ...], str] = {
    (): "none",
    (_GPT2,): "gpt2",
    (_DIGITS, _GPT2): "smollm2",
    tuple(map(_isolated, _DEEPSEEK_V3)): "deepseek_v3",
}
for _regex, _name in (
    (_CL100K, "cl100k"),
    (_QWEN2, "qwen2"),
    (_O200K, "o200k"),
    (_MISTRAL_NEMO, "mistral_nemo"),
):
    _KNOWN[(_isolated(_regex),)] = _KNOWN[(_kept(_regex),)] = _name


def family(pre_tokenizer: object, normalizer: object) -> str:
    """The name of the family that these parts of a tokenizer.json spell, or a refusal."""
    steps = [_spelled(step) for step in _flattened(pre_tokenizer)]
    if steps == [_SPACE] and _removes_spaces(normalizer):
        return "none"
    if steps[-1:] == [_BYTES]:
        steps.pop()
    name = _KNOWN.get(tuple(steps))
    if name is None:
        raise _refusal(" then ".join(steps))
    return name


def pre_tokenizer(name: str) -> dict[str, object]:
    """The part of a tokenizer.json that spells a family, for a byte-level tokenizer.

    >>> family(pre_tokenizer("cl100k"), None)
    'cl100k'
    """
    plain = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    regexes = {
        "cl100k": (_CL100K,),
        "qwen2": (_QWEN2,),
        "o200k": (_O200K,),
        "mistral_nemo": (_MISTRAL_NEMO,),
        "deepseek_v3": _DEEPSEEK_V3,
        "none": (),
    }
    steps: list[dict[str, object]] = [
        {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
        for regex in regexes.get(name, ())
    ]
    if name == "smollm2":
        steps.append({"type": "Digits", "individual_digits": True})
    steps.append({**plain, "use_regex": name not in regexes})
    return {"type": "Sequence", "pretokenizers": steps}


def _refusal(found: str) -> UnsupportedTokenizer:
    known = ", ".join(sorted(set(_KNOWN.values())))
    return UnsupportedTokenizer.explain(
        f"a pre-tokenizer of a known family ({known})",
        found,
        "use a tokenizer of one of these families",
    )


def _flattened(step: object) -> list[dict[str, object]]:
    """The steps of a pre-tokenizer, those of sequences in their place."""
    if step is None:
        return []
    if not isinstance(step, dict):
        raise _refusal(repr(step))
    parts = step.get("pretokenizers")
    if step.get("type") != "Sequence" or not isinstance(parts, list):
        return [step]
    return [inner for part in parts for inner in _flattened(part)]


def _spelled(step: dict[str, object]) -> str:
    """A step in words; steps that are spelled the same split the same."""
    match step:
        case {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}:
            return _BYTES
        case {"type": "ByteLevel", "add_prefix_space": False}:
            return _GPT2
        case {"type": "Digits", "individual_digits": True}:
            return _DIGITS
        case {"type": "Split", "pattern": {"String": " "}}:
            return _SPACE
        case {"type": "Split", "pattern": {"Regex": str(regex)}, **rest}:
            return _spelled_split(regex, rest.get("behavior"), inverted=bool(rest.get("invert")))
    return repr(step)


def _spelled_split(regex: str, behavior: object, *, inverted: bool) -> str:
    if behavior == "Isolated" and not inverted:
        return _isolated(regex)
    if behavior == "Removed" and inverted:
        return _kept(regex)
    return f"Split({regex!r}, {behavior}{', inverted' * inverted})"


def _removes_spaces(normalizer: object) -> bool:
    """Whether the last thing a normalizer does is to replace every space."""
    match normalizer:
        case {"type": "Replace", "pattern": {"String": " "}, "content": str(content)}:
            return " " not in content
        case {"type": "Sequence", "normalizers": [*_, last]}:
            return _removes_spaces(last)
    return False
