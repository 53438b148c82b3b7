"""NFC, and what may still change, as the normalizer of `tokenizers` has it."""

from __future__ import annotations

import itertools
import os
import random
import unicodedata
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers.normalizers import NFC

from crosstok import unicode

BUDGET = float(os.environ.get("CROSSTOK_BUDGET", "1"))
SCALARS = [cp for cp in range(unicode.N_CODE_POINTS) if not 0xD800 <= cp <= 0xDFFF]
theirs = NFC().normalize_str
# A character that takes part in nothing, to hold probes apart in one long text.
APART = "|"


def python_is_active(cp: int) -> bool:
    """Whether this Python's table lets a character take part in normalization on its own."""
    return bool(unicodedata.combining(chr(cp)) or unicodedata.decomposition(chr(cp)))


@cache
def active() -> list[int]:
    """What either table knows as more than inert, without most of the Hangul syllables."""
    firsts = [cp for cp in SCALARS if unicode.nfc_composites(cp)]
    joining = [cp for cp in SCALARS if not unicode.nfc_boundary_before(cp)]
    here = [cp for cp in SCALARS if python_is_active(cp)]
    return sorted({*firsts, *joining, *here} - set(range(0xAC20, 0xD780)))


@cache
def marks() -> list[int]:
    return [cp for cp in active() if not unicode.nfc_boundary_before(cp)]


def newer() -> list[int]:
    """Marks that Python knows and the old table does not."""
    return [cp for cp in marks_of_python() if unicode.nfc_boundary_before(cp)]


@cache
def marks_of_python() -> list[int]:
    return [cp for cp in SCALARS if unicodedata.combining(chr(cp))]


def assert_equal(probes: list[str]) -> None:
    """Compare all at once; if they differ, say where."""
    text = APART.join(probes)
    if unicode.nfc(text) != theirs(text):
        for probe in probes:
            assert ascii(unicode.nfc(probe)) == ascii(theirs(probe)), ascii(probe)
        raise AssertionError("the probes differ only together")


def sample(probes: list[tuple[int, ...]], most: float, seed: int = 0) -> list[str]:
    few = int(most * BUDGET)
    chosen = probes if len(probes) <= few else random.Random(seed).sample(probes, few)
    return ["".join(map(chr, probe)) for probe in chosen]


def test_every_code_point():
    assert_equal([chr(cp) for cp in SCALARS if chr(cp) != APART])


def test_every_pair_of_a_starter_and_a_mark():
    behind = sorted({*marks(), *marks_of_python()})
    assert_equal(sample([(a, b) for a in active() for b in behind], 150_000))


def test_marks_in_threes_behind_a_letter():
    behind = sorted({*marks(), *marks_of_python()})
    choose = random.Random(2).choice
    count = int(50_000 * BUDGET)
    firsts = [cp for cp in active() if unicode.nfc_composites(cp)]
    probes = [
        (choose(firsts), choose(behind), choose(behind), choose(behind)) for _ in range(count)
    ]
    assert_equal(["".join(map(chr, probe)) for probe in probes])


def test_this_python_would_be_wrong():
    """The reason for all this: newer marks are reordered by Python and not by `tokenizers`."""
    assert len(newer()) >= 98
    for cp in newer():
        text = "a" + chr(cp) + "\u0338"
        assert unicode.nfc(text) == theirs(text) == text
    assert unicodedata.normalize("NFC", "a\u1ac4\u0338") != "a\u1ac4\u0338"


tricky = st.text(st.sampled_from([*"aeoAKqΥυ가한|\n", *map(chr, active())]), max_size=8)


@settings(max_examples=int(500 * BUDGET))
@given(text=st.one_of(st.text(max_size=12), tricky))
def test_any_text(text):
    assert ascii(unicode.nfc(text)) == ascii(theirs(text))


@settings(max_examples=int(500 * BUDGET))
@given(before=tricky, after=tricky)
def test_a_boundary_cuts_nfc_in_two(before, after):
    if after and unicode.nfc_boundary_before(ord(after[0])):
        assert unicode.nfc(before + after) == unicode.nfc(before) + unicode.nfc(after)


def test_every_boundary_before_an_active_character_holds_behind_every_other():
    choose = random.Random(5).choice
    sharp = [cp for cp in active() if unicode.nfc_boundary_before(cp)]
    for _ in range(int(50_000 * BUDGET)):
        a, b = chr(choose(active())), chr(choose(sharp))
        assert theirs(a + b) == theirs(a) + theirs(b), ascii(a + b)


def test_where_there_is_no_boundary_something_changes():
    """No character is called joining that is not."""
    before = [cp for cp in active() if unicode.nfc_composites(cp)]
    # Marks of class 240, 230 and 1, and the Hangul parts, in order of likelihood.
    usual = [0x345, 0x301, 0x334, 0x1100, 0xAC00]
    for cp in marks():
        assert any(
            unicode.nfc(chr(a) + chr(cp)) != unicode.nfc(chr(a)) + unicode.nfc(chr(cp))
            for a in (*usual, *before)
        ), hex(cp)


def first_of(texts: list[str]) -> list[str]:
    return [text[0] for text in theirs(APART.join(texts)).split(APART)]


@cache
def seconds() -> list[str]:
    """What composes with something before it."""
    found = {unicodedata.normalize("NFD", chr(c))[-1] for a in active() for c in composites(a)}
    return sorted(found)


def composites(cp: int) -> tuple[int, ...]:
    return unicode.nfc_composites(cp)


# Latin and Greek, whose letters bear several marks, and some others of each kind.
BASES = [*range(0x20, 0x250), *range(0x391, 0x3CA), *range(0x1E00, 0x2000)]
BASES += [
    0x915,
    0x9C7,
    0x958,
    0xCC6,
    0xCCA,
    0xDD9,
    0xDDA,
    0xDDC,
    0x3042,
    0x304B,
    0x4E00,
    0x11099,
    0x2ADC,
]
BASES += [0x1100, 0xAC00, 0xAC01, 0x11A8]


def test_no_continuation_makes_another_composite():
    tails = ["".join(p) for n in (1, 2) for p in itertools.product(seconds(), repeat=n)]
    choose = random.Random(3).choice
    tails += ["".join(choose(seconds()) for _ in range(n)) for n in (3, 4) for _ in range(2_000)]
    for a in random.Random(4).sample(BASES, min(len(BASES), int(60 * BUDGET))):
        stays = theirs(chr(a))[0]
        found = set(first_of([chr(a) + tail for tail in tails])) - {stays}
        assert found <= set(map(chr, composites(a))), hex(a)


def test_every_composite_is_made_by_some_continuation():
    for a in BASES:
        for c in map(chr, composites(a)):
            own, marks = (unicodedata.normalize("NFD", x)[1:] for x in (chr(a), c))
            missing = [mark for mark in marks if mark not in own]
            assert theirs(chr(a) + "".join(missing))[0] == c != theirs(chr(a))[0], hex(a)


def test_what_is_inert_stays_what_it_is():
    inert = [cp for cp in active() if unicode.nfc_inert_after(cp)]
    choose = random.Random(6).choice
    for _ in range(int(50_000 * BUDGET)):
        a, b = chr(choose(inert)), chr(choose(marks()))
        probe = a + b
        # What was there is still there, behind a reordering at most.
        assert sorted(theirs(probe)) == sorted(theirs(a) + theirs(b)), ascii(probe)


def test_masks_say_the_same_as_single_questions():
    active_mask, plain = unicode.nfc_active(), unicode.nfc_plain()
    for cp in [*range(0x3200), *active(), *range(0xABFF, 0xAC40)]:
        assert active_mask[cp] == (not unicode.nfc_inert_after(cp)), hex(cp)
        alone = unicode.nfc_boundary_before(cp) and unicode.nfc(chr(cp)) == chr(cp)
        assert plain[cp] == alone, hex(cp)


def test_a_plain_text_is_its_own_normal_form():
    choose = random.Random(7).choice
    plain = [cp for cp in active() if unicode.nfc_plain()[cp]]
    for _ in range(int(20_000 * BUDGET)):
        text = "".join(chr(choose(plain)) for _ in range(4))
        assert theirs(text) == text, ascii(text)


def test_a_mark_that_belongs_before_its_own():
    """The composed letter is taken apart, though no composite begins with it."""
    assert theirs("\u00e9\u0327") == "\u0229\u0301"
    assert 0x229 in composites(0xE9)
    assert theirs("\u00c2\u0323") == "\u1eac"
    assert 0x1EAC in composites(0xC2)
    assert theirs("\u00c2\u0328") == "\u0104\u0302"
    assert 0x104 in composites(0xC2)


def test_a_singleton_may_become_what_its_normal_form_may():
    """U+212B, the sign for angstrom, is the letter A with a ring."""
    assert 0x1FA in composites(0x212B)
    assert composites(0x212B) == composites(0xC5)


def test_a_jamo_may_become_every_syllable_that_begins_with_it():
    assert unicode.nfc_composites(0x1100) == tuple(range(0xAC00, 0xAC00 + 588))
    assert unicode.nfc_composites(0xAC00) == tuple(range(0xAC01, 0xAC1C))
    assert unicode.nfc_composites(0xAC01) == ()
