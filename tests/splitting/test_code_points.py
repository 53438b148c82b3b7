"""Every code point's class is right: in many contexts it is cut as `tokenizers` cuts it."""

from __future__ import annotations

import random

import pytest
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from .common import BUDGET, LAST, SPLITTING, Pair

# `_` is the code point under test.
CONTEXTS = ["_", "a_a", "A_", " _b", "  _", "'_a", "'r_x", "x'_e", "'l_", "1_2", "!_!", "\n_\n"]
CONTEXTS += ["\t_", "!_\n", "一_一", "ー_、", "́_́", "x_'s", "/_/", "\u3040_"]
CHUNK = 128
# A default run takes all code points below this, and one chunk in so many of the rest.
COMMON = 0x1000
EVERY = 400


def chunks() -> list[list[str]]:
    """All scalar values, or the common ones and a part of the rest."""
    scalars = [chr(cp) for cp in range(LAST + 1) if not 0xD800 <= cp <= 0xDFFF]
    parts = [scalars[i : i + CHUNK] for i in range(0, len(scalars), CHUNK)]
    common = COMMON // CHUNK
    share = min(1.0, BUDGET / EVERY)
    rest = random.Random(3).sample(parts[common:], int(share * (len(parts) - common)))
    return parts[:common] + rest


@pytest.mark.parametrize("name", SPLITTING)
def test_every_code_point_in_context(name):
    pair = Pair(name)
    for part in chunks():
        for context in CONTEXTS:
            text = "".join(context.replace("_", c) for c in part)
            if pair.splitter.pieces(text) != pair.expected(text):
                for c in part:
                    pair.assert_equal(context.replace("_", c))
                pair.assert_equal(text)


@pytest.mark.parametrize(
    ("contraction", "at", "also"),
    [("'s", 1, "ſ")]
    + [(c, at, "") for c in ("'t", "'m", "'d") for at in (1,)]
    + [(c, at, "") for c in ("'re", "'ve", "'ll") for at in (1, 2)]
    + [(c, 0, "") for c in ("'s", "'re", "'ll")],
)
def test_what_a_contraction_matches_without_regard_to_case(contraction, at, also):
    """Over all code points that have case at all: the letter in both cases, and the long s."""
    remover = Split(Regex(f"(?i:{contraction})"), "removed")
    letter = contraction[at]
    probes = [
        contraction[:at] + chr(cp) + contraction[at + 1 :]
        for cp in range(LAST + 1 if BUDGET >= EVERY else 0x20000)
        if not 0xD800 <= cp <= 0xDFFF
    ]
    found = set()
    for i in range(0, len(probes), 1 << 14):
        text = "|".join(probes[i : i + (1 << 14)]) + "|"
        kept = [text[a:b] for _, (a, b) in remover.pre_tokenize_str(text)]
        left = {probe for piece in kept for probe in piece.split("|")}
        found |= {p[at] for p in probes[i : i + (1 << 14)] if p not in left and p[at] != "|"}
    assert found == {letter, letter.upper()} | set(also)
