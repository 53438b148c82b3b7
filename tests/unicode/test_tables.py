"""The masks equal what `tokenizers` answers, and differ from Python's where they must."""

from __future__ import annotations

import random
import unicodedata

import pytest
from tokenizers import Regex
from tokenizers.pre_tokenizers import Digits, Split

from crosstok import unicode

CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co"
SCALARS = [cp for cp in range(unicode.N_CODE_POINTS) if not 0xD800 <= cp <= 0xDFFF]
# All that is assigned for long, and a part of the rest: `tools/make_unicode_tables.py --check`
# compares every code point.
SAMPLE = SCALARS[:0x3200] + sorted(random.Random(1).sample(SCALARS[0x3200:0x20000], 20_000))


@pytest.mark.parametrize(
    ("pattern", "mask"),
    [(rf"\p{{{name}}}", unicode.category(name)) for name in [*CATEGORIES.split(), *"LMNPSZ"]]
    + [(r"\s", unicode.white_space())],
    ids=[*CATEGORIES.split(), *"LMNPSZ", "space"],
)
def test_what_the_regular_expressions_match(pattern, mask):
    text = "".join(map(chr, SAMPLE))
    kept = Split(Regex(pattern), "removed").pre_tokenize_str(text)
    left = {cp for _, (a, b) in kept for cp in SAMPLE[a:b]}
    assert left == {cp for cp in SAMPLE if not mask[cp]}


def test_what_digits_isolates():
    text = "".join("aa" + chr(cp) for cp in SAMPLE) + "aa"
    pieces = Digits(individual_digits=True).pre_tokenize_str(text)
    found = {ord(piece) for piece, (a, b) in pieces if b - a == 1}
    assert found == {cp for cp in SAMPLE if unicode.numeric()[cp]}


def test_sizes():
    assert unicode.category("L").sum() == 141_028
    assert unicode.category("N").sum() == 1_911
    assert unicode.numeric().sum() == 1_924
    assert unicode.white_space().sum() == 25


def test_every_category_is_apart_from_the_others():
    names = CATEGORIES.split()
    assert (
        sum(int(unicode.category(name).sum()) for name in names) == unicode.category(*names).sum()
    )


def test_what_was_assigned_has_the_category_that_python_knows():
    """Categories of old characters hardly change: the tables are no nonsense."""
    names = CATEGORIES.split()
    masks = {name: unicode.category(name) for name in names}
    theirs = {cp: unicodedata.category(chr(cp)) for cp in SAMPLE}
    assigned = [cp for cp in SAMPLE if theirs[cp] in masks]
    same = sum(masks[theirs[cp]][cp] for cp in assigned)
    assert same > 0.99 * len(assigned)


def test_an_unknown_category_is_refused():
    with pytest.raises(KeyError, match="Xx"):
        unicode.category("Xx")


def test_masks_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        unicode.white_space()[0] = True
