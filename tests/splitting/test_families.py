"""Pre-tokenizers are recognised by what they are; whatever else is refused by name."""

from __future__ import annotations

import copy

import pytest

from crosstok.errors import UnsupportedTokenizer
from crosstok.splitting import recognise

from .common import KNOWN


@pytest.mark.parametrize("name", KNOWN)
def test_known(name):
    entry = KNOWN[name]
    assert recognise(entry["pre_tokenizer"], entry["normalizer"]).name == entry["family"]


def altered(name: str, *path: str | int, **changes: object) -> object:
    """A known pre-tokenizer with some fields changed."""
    spec = copy.deepcopy(KNOWN[name]["pre_tokenizer"])
    step = spec
    for key in path:
        step = step[key]
    step.update(changes)
    return spec


REFUSED = {
    "a dummy space": altered("gpt2", add_prefix_space=True),
    "a dummy space behind a split": altered("llama3", "pretokenizers", 1, add_prefix_space=True),
    "grouped digits": altered("smollm2", "pretokenizers", 0, individual_digits=False),
    "another behaviour": altered("llama3", "pretokenizers", 0, behavior="MergedWithNext"),
    "what matches is dropped": altered("llama3", "pretokenizers", 0, behavior="Removed"),
    "isolated and inverted": altered("llama3", "pretokenizers", 0, invert=True),
    "gaps are dropped": altered("deepseek_v3", "pretokenizers", 1, behavior="Removed", invert=True),
    "another regex": altered("llama3", "pretokenizers", 0, pattern={"Regex": r"\w+|\W+"}),
    "a string": altered("llama3", "pretokenizers", 0, pattern={"String": "x"}),
    "another step": {"type": "Whitespace"},
    "no step": ["ByteLevel"],
    "two splits": {
        "type": "Sequence",
        "pretokenizers": [KNOWN["llama3"]["pre_tokenizer"]] * 2,
    },
    "a space that may be there": KNOWN["gemma2"]["pre_tokenizer"],
    "words before bytes are mapped": {
        "type": "Sequence",
        "pretokenizers": KNOWN["llama3"]["pre_tokenizer"]["pretokenizers"][::-1],
    },
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why):
    with pytest.raises(
        UnsupportedTokenizer, match=r"^expected a pre-tokenizer .*, found \S.*; use"
    ):
        recognise(REFUSED[why], None)


def test_a_refusal_names_the_step():
    with pytest.raises(UnsupportedTokenizer, match=r"\\\\w\+\|\\\\W\+.*Isolated"):
        recognise(REFUSED["another regex"], None)


def test_a_default_that_the_file_leaves_out():
    """`use_regex` is true where it is not said."""
    spec = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    assert recognise(spec, None).name == "gpt2"


def test_a_space_that_the_normalizer_brings_back():
    late = {"type": "Replace", "pattern": {"String": "x"}, "content": " "}
    for normalizer in (
        {"type": "Sequence", "normalizers": [KNOWN["gemma2"]["normalizer"], late]},
        {"type": "Replace", "pattern": {"String": " "}, "content": " _"},
    ):
        with pytest.raises(UnsupportedTokenizer, match="Split on a space"):
            recognise(KNOWN["gemma2"]["pre_tokenizer"], normalizer)
