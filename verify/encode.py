"""`Vocabulary.encode` against `tokenizers`, family by family, and against published ids.

Ours runs in a process of its own in which `tokenizers` cannot be imported: it reads the vocabulary
from the cache, makes the strings and encodes them.  This process encodes the same strings with
`tokenizers`, specials disabled, and compares.  Strings that hold a byte for which a vocabulary has
no symbol must be refused, and no others may be.
"""

from __future__ import annotations

import multiprocessing
import sys
from itertools import islice
from typing import TYPE_CHECKING

from crosstok import assets
from verify.common import Suite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from crosstok.vocabulary import Vocabulary

GENERATED = 100_000
ADVERSARIAL = 1_000
BATCH = 1_000
FAMILIES = (
    "gpt2",
    "smollm2",
    "qwen2_5",
    "qwen3",
    "llama3",
    "llama3_1",
    "llama3_2",
    "gpt4",
    "gpt4o",
    "deepseek_v3",
    "mistral_nemo",
    "gemma",
    "gemma2",
    "gemma3",
    "llama2",
    "mistral_v0_1",
)
# A tokenizer of ours -> the vocabulary of llama.cpp whose test strings it must encode as printed.
PUBLISHED = {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2_5": "qwen2", "llama2": "llama-spm"}
PUBLISHED_STRINGS = 46
SEPARATOR = "\n__ggml_vocab_test__\n"
SHOWN = 3


class Tally:
    """Strings compared, strings rightly refused, and differences."""

    def __init__(self) -> None:
        self.strings = 0
        self.refused = 0
        self.differences: list[str] = []

    def add(self, text: str, found: list[int] | None, wanted: list[int] | None) -> None:
        """One string more; None stands for a refusal."""
        self.strings += 1
        self.refused += wanted is None
        if found != wanted:
            self.differences.append(f"{text!a}: expected {wanted}, found {found}")


def main() -> int:
    suite = Suite("encode")
    counts = {
        "generated": suite.scaled(GENERATED, least=100),
        "adversarial": suite.scaled(ADVERSARIAL, least=50),
    }
    prepare()
    total = 0
    for family, tallies in compare_all(counts):
        for kind, tally in tallies.items():
            assert tally.strings == counts[kind], "the other process sent too few strings"
            total += tally.strings
            suite.count(f"{family}: {kind} strings", tally.strings)
            if tally.refused:
                suite.count(f"{family}: {kind} strings with a byte it lacks", tally.refused)
            suite.violations(f"{family}: {kind} differences", len(tally.differences))
            for difference in tally.differences[:SHOWN]:
                print(f"    {difference}")
    suite.count("strings compared", total)
    suite.count("languages of the declaration of human rights", languages())
    for family, name in PUBLISHED.items():
        differences = published_differences(family, name)
        suite.violations(f"{family}: differences in {PUBLISHED_STRINGS} published", differences)
    return suite.finish()


def prepare() -> None:
    """Have every vocabulary in the cache, since its self-check may only run here."""
    from crosstok.loading import load

    for family in FAMILIES:
        load(assets.path(family))


def compare_all(counts: dict[str, int]) -> Iterator[tuple[str, dict[str, Tally]]]:
    """For each family so many different strings of each kind, encoded with both."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=encode_alone, args=(sender, counts), daemon=True)
    process.start()
    sender.close()
    for family in FAMILIES:
        yield family, compare(family, counts, receiver)
    process.join()


def compare(family: str, counts: dict[str, int], receiver: Connection) -> dict[str, Tally]:
    """Compare what `encode_alone` sends of one family."""
    from tokenizers import Tokenizer

    oracle = Tokenizer.from_file(str(assets.path(family) / "tokenizer.json"))
    oracle.encode_special_tokens = True
    tallies = {kind: Tally() for kind in counts}
    missing = receiver.recv()  # an EOFError here is the death of that process
    while (sent := receiver.recv()) is not None:
        kind, batch = sent
        texts = [text for text, _ in batch]
        for (text, found), expected in zip(
            batch, oracle.encode_batch(texts, add_special_tokens=False), strict=True
        ):
            must_refuse = not missing.isdisjoint(text.encode())
            tallies[kind].add(text, found, None if must_refuse else expected.ids)
    return tallies


def encode_alone(sender: Connection, counts: dict[str, int]) -> None:
    """Send, for each family, the bytes it lacks, batches of strings with our ids, and None."""
    assert "tokenizers" not in sys.modules, "this process must never have seen tokenizers"
    sys.modules["tokenizers"] = None  # type: ignore[assignment]  # an import raises from now on
    from crosstok.loading import load

    for family in FAMILIES:
        vocabulary = load(assets.path(family))
        sender.send(set(vocabulary.missing_bytes))
        for kind, count in counts.items():
            source = different_strings(vocabulary, kind, count)
            while texts := list(islice(source, BATCH)):
                sender.send((kind, [(text, encode(vocabulary, text)) for text in texts]))
        sender.send(None)


def encode(vocabulary: Vocabulary, text: str) -> list[int] | None:
    """Our ids; None if the text is refused."""
    from crosstok.errors import BadInput

    try:
        return vocabulary.encode(text)
    except BadInput:
        return None


def different_strings(vocabulary: Vocabulary, kind: str, count: int) -> Iterator[str]:
    """Strings of which no two are equal."""
    from tests import texts

    if kind == "generated":
        drawn = {**texts.makers(vocabulary), **texts.HOSTILE}
        weights = {"tokens": 30.0, "language": 20.0, "source code": 15.0}
    else:
        drawn, weights = texts.adversarial(vocabulary), {}
    seen: set[str] = set()
    for text in texts.strings(drawn, 10 * count, seed=(kind, vocabulary.size), weights=weights):
        if text not in seen:
            seen.add(text)
            yield text
            if len(seen) == count:
                return
    raise AssertionError("the generators gave too few different strings")


def languages() -> int:
    """How many languages the generated strings draw from."""
    from tests import texts

    return sum(len(texts.declaration(language)) > 1_000 for language in texts.LANGUAGES)


def published_differences(family: str, name: str) -> int:
    """Differences from the ids that llama.cpp's own tests expect."""
    from crosstok.loading import load

    base = assets.path("llama_cpp_vocabularies") / f"ggml-vocab-{name}.gguf"
    # Every string is followed by the separator, the last one too.
    *texts, _nothing = base.with_name(base.name + ".inp").read_text("utf-8").split(SEPARATOR)
    lines = base.with_name(base.name + ".out").read_text("utf-8").splitlines()
    expected = [[int(word) for word in line.split()] for line in lines]
    assert len(texts) == PUBLISHED_STRINGS, "another set of test strings"
    vocabulary = load(assets.path(family))
    pairs = zip(texts, expected, strict=True)
    differences = [text for text, ids in pairs if vocabulary.encode(text) != ids]
    for text in differences[:SHOWN]:
        print(f"    {family}: {text!a}: {vocabulary.encode(text)}")
    return len(differences)


if __name__ == "__main__":
    raise SystemExit(main())
