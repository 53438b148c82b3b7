"""Settling on real tokenizers, judged by `tokenizers`: sound, tight, and viable where it must be.

* **Sound**: what is settled of a text begins the encoding of every continuation, and the open rest
  begins where it is said to.  Texts are cut at any byte, continuations are as hostile as they.
* **Tight**: at positions of prose, sums, code and Chinese either nothing is open, or two
  continuations are known whose encodings differ at the first token that is not settled.
* **Viable**: every prefix of an encoding is; what is called viable among sequences that were cut
  otherwise has a continuation whose encoding begins with it.
* **Quick**: the compiled common case gives what the careful path gives, and a text fed bit by bit
  what it gives whole.

``--gsm8k`` and ``--wikitext`` (or the variables CROSSTOK_GSM8K and CROSSTOK_WIKITEXT) name files
that stand in for the bundled English.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import unicodedata
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crosstok import assets
from crosstok.covers import character_range
from crosstok.errors import BadInput
from crosstok.loading import load
from crosstok.quick import quick_tail
from crosstok.settling import (
    Settler,
    Viability,
    careful_tail,
    continuations,
    settle,
    viable,
)
from crosstok.unicode import nfc
from crosstok.vocabulary import LOW_LINE, Kind
from tests import texts
from verify.common import Suite, scaled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from crosstok.settling import Settled
    from crosstok.vocabulary import Vocabulary

FAMILIES = (
    "gpt2", "smollm2", "qwen2_5", "qwen3", "llama3", "llama3_1", "llama3_2", "gpt4", "gpt4o",
    "deepseek_v3", "mistral_nemo", "gemma2", "gemma3", "llama2", "mistral_v0_1",
)  # fmt: skip
PARTS = ("sound", "tight", "viable", "resplit", "quick")
SOUND = 4_000
POSITIONS = 2_000
PREFIXES = 1_000_000
RESPLIT = 3_000
AGREE = 4_000
BATCH = 500
PASSAGE = 600  # bytes of the passages in which positions are drawn
SHOWN = 3
LEAST_TIGHT = {"English": 0.99, "sums": 0.99, "Python": 0.99, "Chinese": 0.98}
SUMS = """\
Natalia baked 48 rolls on Monday, and half as many on Tuesday. How many rolls did she bake in both
days? On Tuesday she baked 48/2 = <<48/2=24>>24 rolls. Together that is 48+24 = <<48+24=72>>72.
#### 72
A pump fills 12.5 litres in 1 minute. How long does it take for a tank of 1,500 litres? One litre
takes 60/12.5 = <<60/12.5=4.8>>4.8 seconds, so that the tank takes 1500*4.8 = <<1500*4.8=7200>>7200
seconds, or 7200/60 = <<7200/60=120>>120 minutes.
#### 120
Ken's 3 sisters each have $15.75; he's got twice what they've got together. If he spends 40% of it,
what's left? The sisters have 3*$15.75 = $<<3*15.75=47.25>>47.25. Ken has 2*47.25 =
$<<2*47.25=94.5>>94.50. He keeps 100-40 = <<100-40=60>>60%, which is 94.5*.6 =
$<<94.5*.6=56.7>>56.70.
#### 56.70
There are 111 pupils in grade 7, 98 in grade 8 and 1023 in the whole school. How many are in other
grades? 111 + 98 = <<111+98=209>>209. 1023 - 209 = <<1023-209=814>>814.
#### 814
"""


NOT_UTF8 = (
    b"\xff", b"a\x80", b"\xc0\x80", b"\xed\xa0\x80", b"\xe4\xbdx", b"\xf4\x90\x80\x80",
    b"\xe4\xbd\xff", b"\xf0\x80", b"\xed\xa0", b"\xf5", b"  \xc1",
)  # fmt: skip


class Oracle:
    """`tokenizers`, specials disabled."""

    def __init__(self, family: str) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(assets.path(family) / "tokenizer.json"))
        self._tokenizer.encode_special_tokens = True

    def encode(self, batch: Sequence[str]) -> list[list[int]]:
        """The ids of many texts."""
        found = self._tokenizer.encode_batch(list(batch), add_special_tokens=False)
        return [encoding.ids for encoding in found]


def encodable(v: Vocabulary, text: str) -> bool:
    """Whether the vocabulary has symbols for all bytes of a text."""
    written = nfc(text).encode() + text.encode()
    return not v.missing_bytes or set(v.missing_bytes).isdisjoint(written)


def hostile(v: Vocabulary, count: int, seed: object) -> Iterator[str]:
    """Strings of every maker, those that hold bytes without a symbol left out."""
    drawn = {**texts.makers(v), **texts.adversarial(v)}
    weights = {"tokens": 4.0, "language": 2.0, "long runs": 0.1}
    made = 0
    for text in texts.strings(drawn, 100 * count, seed, weights):
        if encodable(v, text):
            yield text
            made += 1
            if made == count:
                return


# -- sound ----------------------------------------------------------------------------------------


def begun_at_end(text: bytes) -> bytes:
    """The bytes of the incomplete character at the end of a text that was valid before the cut."""
    for size in range(1, 4):
        if len(text) >= size and text[-size] >= 0xC0:
            tail = text[-size:]
            try:
                tail.decode()
            except UnicodeDecodeError:
                return tail
            return b""
    return b""


def completion(begun: bytes, random: Random) -> bytes:
    """What some character that begins with these bytes goes on with."""
    if not begun:
        return b""
    first, last = character_range(np.frombuffer(begun, np.uint8))
    while True:
        point = random.randint(first, last)
        if random.random() < 0.5:
            point = min(first + random.randrange(64), last)
        if not 0xD800 <= point < 0xE000 and point < 0x110000:
            return chr(point).encode()[len(begun) :]


ENDINGS = [
    "", " ", "  ", "\n", " \n", "\t", "'", "'s", "'S", "'l", "'ll", "s", "e", "E", "a", "1", "12",
    ".", "/", "-", "(", "<", "=", "\u00a0", "\u0301", "\u0338", "\u0327", "\u20dd", "\u3099",
    "\u11a8", "\u1161", "你", "é", "😀", "\u200d", "▁", " a", "  a", " 1", "\n\n", "\r", "\r\n",
    "ing",
]  # fmt: skip


def continuation(v: Vocabulary, text: bytes, cut: int, random: Random, other: str) -> bytes:
    """Something that may follow text[:cut]."""
    kind = random.randrange(5)
    if kind == 0:
        return text[cut:]
    more = completion(begun_at_end(text[:cut]), random)
    if kind == 1:
        return more + other.encode()
    if kind == 2 and not more and v.names:
        return half_completed(v, text[:cut], random)
    chosen = random.choice(ENDINGS) + (random.choice(ENDINGS) if random.random() < 0.4 else "")
    return more + chosen.encode()


def half_completed(v: Vocabulary, text: bytes, random: Random) -> bytes:
    """The rest of an added token whose beginning the text ends with, or a whole one."""
    contents = [name.encode() for name in v.names.values()]
    fitting = [
        content[size:]
        for content in contents
        for size in range(1, len(content))
        if text.endswith(content[:size])
    ]
    return random.choice(fitting or contents)


class Sound(NamedTuple):
    """One question: what settles of ``text``, and what follows."""

    text: bytes
    more: bytes
    found: Settled


def sound_cases(v: Vocabulary, count: int, family: str) -> Iterator[Sound]:
    random = Random(family)
    others = list(hostile(v, 300, ("continuations", family)))
    for whole in hostile(v, count, ("sound", family)):
        text = whole.encode()
        cut = random.randint(0, len(text))
        found = settle(v, text[:cut])
        more = continuation(v, text, cut, random, random.choice(others))
        if encodable(v, (text[:cut] + more).decode()):
            yield Sound(text[:cut], more, found)


def check_sound(suite: Notes, family: str, v: Vocabulary, oracle: Oracle, count: int) -> None:
    wrong: list[str] = []
    cases = ids = 0
    for batch in batches(sound_cases(v, count, family)):
        encodings = oracle.encode([(case.text + case.more).decode() for case in batch])
        for case, expected in zip(batch, encodings, strict=True):
            cases += 1
            ids += len(case.found.ids)
            if expected[: len(case.found.ids)] != case.found.ids:
                wrong.append(f"ids of {case.text!r} + {case.more!r}: {case.found}, {expected}")
            elif not offset_is_right(v, case.text, case.found):
                wrong.append(f"offset of {case.text!r}: {case.found}")
    suite.count(f"{family}: settled texts continued", cases)
    suite.count(f"{family}: tokens settled in them", ids)
    report(suite, f"{family}: unsound", wrong)


def batches(source: Iterable[Sound]) -> Iterator[list[Sound]]:
    batch: list[Sound] = []
    for item in source:
        batch.append(item)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def report(suite: Notes, what: str, wrong: list[str]) -> None:
    suite.violations(what, len(wrong))
    for line in wrong[:SHOWN]:
        print(f"    {line[:1000]}", flush=True)


def offset_is_right(v: Vocabulary, text: bytes, found: Settled) -> bool:
    """Whether the settled ids stand for exactly the text before the offset.

    Where normalisation changes characters, the text before the offset must be the longest whose
    normal form the ids surely hold.
    """
    if found.open != text[found.offset :]:
        return False
    written = raw_text(v, found.ids)
    if not v.spelling.nfc:
        raw = text[: found.offset]
        if v.spelling.low_line:
            raw = raw.replace(LOW_LINE.encode(), b" ")
        return written == raw
    before = normal(v, text[: found.offset])
    if before == written:
        return True
    # A token ends inside what a changed chunk has become: no longer text may be covered.
    complete = text.decode(errors="ignore").encode()
    ends = [at for at in range(found.offset + 1, len(complete) + 1) if is_end(complete, at)]
    return written.startswith(before) and not any(
        written.startswith(normal(v, text[:end])) for end in ends
    )


def is_end(text: bytes, at: int) -> bool:
    return at == len(text) or text[at] & 0xC0 != 0x80


def normal(v: Vocabulary, text: bytes) -> bytes:
    """The normal form, added tokens left alone; a cut character stays as it is."""
    begun = begun_at_end(text)
    complete = text[: len(text) - len(begun)].decode()
    parts = v.segments(complete)
    return "".join(v.names[p] if isinstance(p, int) else nfc(p) for p in parts).encode() + begun


def raw_text(v: Vocabulary, ids: Sequence[int]) -> bytes:
    """What ids stand for, without the prefixes that segments begin with."""
    out = b""
    fresh = True
    for token in ids:
        content = v.names.get(token, "").encode()
        if content in v.added.text:
            out += content.replace(LOW_LINE.encode(), b" ") if v.spelling.low_line else content
            fresh = True
            continue
        spelled = v.token_bytes[token]
        out += spelled[1:] if fresh and v.spelling.dummy_prefix else spelled
        fresh = False
    return out


def check_refusals(suite: Notes, family: str, v: Vocabulary) -> None:
    """Bytes that are not UTF-8: an error for `settle`, no text for `viable`."""
    wrong = []
    for text in NOT_UTF8:
        with suppress(BadInput):
            wrong.append(f"{text!r}: {settle(v, text)}")
        ids = [int(v.merger.atoms.of_byte[byte]) for byte in text]
        if -1 not in ids and viable(v, ids):
            wrong.append(f"{text!r} is viable")
    report(suite, f"{family}: bytes that are not UTF-8 taken for text", wrong)


# -- tight ----------------------------------------------------------------------------------------


def english(options: argparse.Namespace) -> str:
    if options.wikitext:
        return gzip.decompress(Path(options.wikitext).read_bytes()).decode()
    return texts.declaration("eng")


def sums(options: argparse.Namespace) -> str:
    if not options.gsm8k:
        return SUMS
    lines = gzip.decompress(Path(options.gsm8k).read_bytes()).decode().splitlines()
    rows = [json.loads(line) for line in lines]
    return "\n\n".join(f"{row['question']}\n{row['answer']}" for row in rows)


def prefixes(source: str, count: int, seed: object) -> Iterator[bytes]:
    """Passages of a text, cut at any byte."""
    text = source.encode()
    random = Random(repr(seed))
    for _ in range(count):
        start = random.randrange(max(1, len(text) - PASSAGE))
        while not is_end(text, start):
            start += 1
        end = start + random.randint(1, PASSAGE)
        yield text[start:end]


def check_tight(
    suite: Notes, family: str, v: Vocabulary, oracle: Oracle, sources: dict[str, str], count: int
) -> None:
    for name, source in sources.items():
        causes: Counter[str] = Counter()
        closed, unsettled, examples, wrong = 0, 0, [], []
        asked: list[tuple[bytes, Settled]] = []
        for text in prefixes(source, count, (family, name)):
            found = settle(v, text, witness=True)
            if found.witness is None and found.open:
                causes[cause(v, text, found)] += 1
                examples.append(f"{found.open!r} after {text[: found.offset][-40:]!r}")
                continue
            closed += not found.open
            unsettled += len(found.open)
            if found.open:
                asked.append((text, found))
        for text, found in asked:
            pair = found.witness
            assert pair is not None
            one, other = oracle.encode([(text + more).decode() for more in pair])
            here = len(found.ids)
            if one[:here] != found.ids or other[:here] != found.ids:
                wrong.append(f"{text!r}: {pair}")
            elif one[here : here + 1] == other[here : here + 1]:
                wrong.append(f"{text!r}: {pair} agree")
        share = 1 - causes.total() / count
        suite.count(f"{family}: {name}: positions with a witness or nothing open", round(share, 5))
        suite.count(f"{family}: {name}: positions with nothing open", round(closed / count, 4))
        suite.count(f"{family}: {name}: open bytes on average", round(unsettled / count, 2))
        if causes:
            suite.count(f"{family}: {name}: positions without a witness", dict(causes))
            for line in examples[:SHOWN]:
                print(f"    {line}", flush=True)
        report(suite, f"{family}: {name}: witnesses that are none", wrong)
        if count >= 100:
            suite.require(f"{family}: {name}: {share:.4f} >= {LEAST_TIGHT[name]}",
                          share >= LEAST_TIGHT[name])  # fmt: skip


def cause(v: Vocabulary, text: bytes, found: Settled) -> str:
    """A name for what is open without a witness."""
    if begun_at_end(text):
        return "inside a character"
    rest = found.open.decode()
    if v.spelling.nfc and rest != nfc(rest):
        return "not in normal form"
    return f"after {unicodedata.category(rest[-1])}"


# -- viable ---------------------------------------------------------------------------------------


def decodable(v: Vocabulary, count: int, seed: object) -> Iterator[tuple[str, list[int]]]:
    """Texts that decoding produces, with their ids."""
    for whole in hostile(v, count, seed):
        text = whole[:400]
        for _ in range(4):
            ids = v.encode(text)
            again = v.decode(ids).decode()
            if again == text:
                yield text, ids
                break
            text = again  # a literal ▁ is read as a space, and marks find their order
            if not encodable(v, text):
                break


def check_prefixes(suite: Notes, family: str, v: Vocabulary, oracle: Oracle, count: int) -> None:
    wrong: list[str] = []
    seen = 0
    for text, ids in decodable(v, count, ("viable", family)):
        if oracle.encode([text])[0] != ids:
            wrong.append(f"encoding of {text!r}")
        state = Viability(v)
        for k, token in enumerate(ids):
            seen += 1
            if not state.push(token):
                wrong.append(f"{ids[: k + 1]} of {text!r}")
                break
        if seen >= count:
            break
    suite.count(f"{family}: prefixes of encodings", seen)
    report(suite, f"{family}: prefixes called not viable", wrong)


def resplit(
    v: Vocabulary, ids: list[int], ids_of: dict[bytes, list[int]], random: Random
) -> list[int]:
    """The ids with a place of them written otherwise, cut behind it."""
    at = random.randrange(len(ids))
    wide = random.choice((1, 1, 2, 2, 3))
    span = b"".join(v.spelled(token) for token in ids[at : at + wide])
    other: list[int] = []
    while span:
        lengths = [k for k in range(1, min(len(span), v.merger.longest) + 1) if span[:k] in ids_of]
        if not lengths:
            return ids[: at + 1]
        length = random.choice(lengths)
        other.append(random.choice(ids_of[span[:length]]))
        span = span[length:]
        if random.random() < 0.3:
            return ids[:at] + other
    behind = random.choice((0, 0, 0, 1, 2))
    return ids[:at] + other + ids[at + wide : at + wide + behind]


def check_resplit(suite: Notes, family: str, v: Vocabulary, oracle: Oracle, count: int) -> None:
    random = Random(family)
    ids_of: dict[bytes, list[int]] = {}
    for token in range(v.size):
        if v.kinds[token] in (Kind.TEXT, Kind.BYTE) and len(v.spelled(token)):
            ids_of.setdefault(v.spelled(token), []).append(token)
    asked = called = 0
    causes: Counter[str] = Counter()
    examples = []
    for _, ids in decodable(v, count, ("resplit", family)):
        if not ids:
            continue
        other = resplit(v, ids, ids_of, random)
        if other == ids[: len(other)]:
            continue
        asked += 1
        if not viable(v, other):
            continue
        called += 1
        if not has_witness(v, oracle, other):
            text = v.decode(other)
            causes["inside a character" if begun_at_end(text) else "at a character"] += 1
            examples.append(f"{other[-6:]} {[v.token_bytes[t] for t in other[-6:]]}")
    suite.count(f"{family}: sequences written otherwise", asked)
    suite.count(f"{family}: of these viable", called)
    suite.count(f"{family}: viable without a witness", causes.total())
    if causes:
        suite.count(f"{family}: viable without a witness, by place", dict(causes))
    for line in examples[:SHOWN]:
        print(f"    {line}", flush=True)
    suite.require(f"{family}: at most 1 % of viable sequences without a witness",
                  causes.total() <= 0.01 * called)  # fmt: skip


def has_witness(v: Vocabulary, oracle: Oracle, ids: list[int]) -> bool:
    """Whether some continuation's encoding, by `tokenizers`, begins with these ids."""
    text = v.decode(ids)
    batch: list[str] = []
    for more in continuations(v, text):
        whole = (text + more).decode()
        if not encodable(v, whole):
            continue
        batch.append(whole)
        if len(batch) == 40:
            if any(found[: len(ids)] == ids for found in oracle.encode(batch)):
                return True
            batch = []
    batch += every_character(text)
    return any(found[: len(ids)] == ids for found in oracle.encode(batch))


def every_character(text: bytes) -> list[str]:
    """The text with its cut character completed in every way, unless these are too many."""
    begun = begun_at_end(text)
    if not begun:
        return []
    first, last = character_range(np.frombuffer(begun, np.uint8))
    if last - first > 4096:
        return []
    points = [cp for cp in range(first, last + 1) if not 0xD800 <= cp < 0xE000]
    return [(text + chr(cp).encode()[len(begun) :]).decode() for cp in points]


# -- quick ----------------------------------------------------------------------------------------


def check_quick(suite: Notes, family: str, v: Vocabulary, count: int) -> None:
    wrong: list[str] = []
    random = Random(family)
    quick = 0
    for whole in hostile(v, count, ("quick", family)):
        data = whole.encode()[:400]
        text = data[: random.randint(0, len(data))]
        fresh = random.random() < 0.5
        found = quick_tail(v, text, fresh)
        if found is None:
            continue
        quick += 1
        careful = careful_tail(v, text, fresh=fresh)
        tokens = tuple(found.ids.tolist())
        if (tokens, found.offset) != (careful.ids + careful.settled, careful.offset):
            wrong.append(f"{text!r} ({fresh=}): {found} {careful}")
    suite.count(f"{family}: texts that are quick", quick)
    report(suite, f"{family}: quick answers that are wrong", wrong)


def check_feeding(suite: Notes, family: str, v: Vocabulary, count: int) -> None:
    """Fed bit by bit, a text settles as it does whole, and finishes with its encoding.

    Between marks that normalisation may reorder a text may have settled more before than it is
    known to as a whole: what settled stays so.
    """
    wrong: list[str] = []
    random = Random(family)
    fed = more = 0
    for whole in hostile(v, count, ("feeding", family)):
        data = whole[:200].encode()
        expected = v.encode(data)
        found = settle(v, data)
        for parts in cut_up(v, data, random):
            fed += 1
            settler = Settler(v)
            got = [token for part in parts for token in settler.feed(part)]
            before = v.spelling.nfc and len(got) > len(found.ids) and len(parts) > 1
            more += before
            same = got[: len(found.ids)] == found.ids and (before or len(got) == len(found.ids))
            if not same or settler.open != found.open:
                wrong.append(f"{data!r} in {len(parts)}: {got} {found}")
            elif got + settler.finish() != expected:
                wrong.append(f"{data!r} finished in {len(parts)}")
    suite.count(f"{family}: texts fed", fed)
    if more:
        suite.count(f"{family}: texts fed that had settled more before", more)
        suite.require(f"{family}: these are few", more <= max(1, fed // 200))
    report(suite, f"{family}: texts fed that end otherwise", wrong)


def cut_up(v: Vocabulary, data: bytes, random: Random) -> Iterator[list[bytes]]:
    yield [data]
    yield [data[k : k + 1] for k in range(len(data))]
    cuts = sorted({0, len(data), *(random.randint(0, len(data)) for _ in range(8))})
    yield [data[a:b] for a, b in pairwise(cuts)]
    if not v.spelling.nfc and not v.spelling.low_line:
        yield [v.token_bytes[token] for token in v.encode(data)]


# -- all ------------------------------------------------------------------------------------------


class Notes:
    """What one family's checks report; they run in a process of their own."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, object]] = []

    def count(self, what: str, figure: object) -> None:
        self.lines.append(("count", what, figure))

    def violations(self, what: str, number: int) -> None:
        self.lines.append(("violations", what, number))

    def require(self, what: str, holds: bool) -> None:
        self.lines.append(("require", what, holds))


def check_family(
    family: str, parts: Sequence[str], sources: dict[str, str], budget: float
) -> list[tuple[str, str, object]]:
    """All checks of one family."""
    notes = Notes()
    v, oracle = load(assets.path(family), name=family), Oracle(family)
    if "sound" in parts:
        check_sound(notes, family, v, oracle, scaled(SOUND, budget, least=200))
        check_refusals(notes, family, v)
    if "tight" in parts:
        check_tight(notes, family, v, oracle, sources, scaled(POSITIONS, budget, least=50))
    if "viable" in parts:
        count = scaled(PREFIXES // len(FAMILIES) + 1, budget, least=1_000)
        check_prefixes(notes, family, v, oracle, count)
    if "resplit" in parts:
        check_resplit(notes, family, v, oracle, scaled(RESPLIT, budget, least=100))
    if "quick" in parts:
        check_quick(notes, family, v, scaled(AGREE, budget, least=100))
        check_feeding(notes, family, v, scaled(AGREE // 10, budget, least=20))
    return notes.lines


def main() -> int:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--gsm8k", default=os.environ.get("CROSSTOK_GSM8K"))
    parser.add_argument("--wikitext", default=os.environ.get("CROSSTOK_WIKITEXT"))
    parser.add_argument("--families", nargs="*", default=FAMILIES)
    parser.add_argument("--parts", nargs="*", default=PARTS)
    options, others = parser.parse_known_args()
    suite = Suite("settle", others)
    given = [Path(file).name for file in (options.wikitext, options.gsm8k) if file]
    suite.count("texts given", ", ".join(given) or "none: the bundled ones")
    sources = {
        "English": english(options),
        "sums": sums(options),
        "Python": "\n".join(texts.python_sources()),
        "Chinese": texts.declaration("cmn_hans"),
    }
    prefixes = 0
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        jobs = [
            pool.submit(check_family, family, options.parts, sources, suite.budget)
            for family in options.families
        ]
        for job in jobs:
            for kind, what, figure in job.result():
                getattr(suite, kind)(what, figure)
                if what.endswith("prefixes of encodings"):
                    assert isinstance(figure, int)
                    prefixes += figure
    suite.count("prefixes of encodings, all families", prefixes)
    return suite.finish()


if __name__ == "__main__":
    raise SystemExit(main())
