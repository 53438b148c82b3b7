"""What an open text may become equals what all its continuations make of it.

The oracle cuts every text + continuation and looks.  Continuations are bounded (`REACH`), so in
general it only finds a part; the tests demand equality all the same, because in all these families
one character decides a white-space tail, two decide a contraction, and a run repeats itself: no
further character makes a new segmentation possible.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from numba import njit

from crosstok.splitting import PATTERNS, Splitter, lex

from .common import BUDGET, FAMILIES, class_strings

REACH = {name: 3 if Splitter.by_name(name).n_classes > 15 else 4 for name in PATTERNS}


@njit(cache=True)
def outcomes(classes, n_classes, reach, nxt, rec, rec_end):
    """By the first class that follows (the last row: none): cuts, and ends of the first piece.

    A set of cuts is one bit a boundary within the text; an end is at, before or after the text's.
    """
    n = len(classes)
    cuts = np.zeros((n_classes + 1, 1 << n), np.bool_)
    first_end = np.zeros((n_classes + 1, 3), np.bool_)
    text = np.empty(n + reach, np.uint8)
    text[:n] = classes
    ends = np.empty(n + reach, np.int64)
    for length in range(reach + 1):
        for number in range(n_classes**length):
            rest = number
            for i in range(length):
                text[n + i] = rest % n_classes
                rest //= n_classes
            count = lex(text[: n + length], nxt, rec, rec_end, ends)
            found = 0
            for end in ends[:count]:
                if end < n:
                    found |= 1 << end
            follower = text[n] if length else n_classes
            cuts[follower, found] = True
            first_end[follower, (ends[0] >= n) + (ends[0] > n)] = True
    return cuts, first_end


class Oracle:
    """All that bounded continuations of one open text can do."""

    def __init__(self, splitter: Splitter, classes: bytes) -> None:
        self._any = splitter.n_classes
        self._n = len(classes)
        array = np.frombuffer(classes, np.uint8)
        tables = (splitter.nxt, splitter.rec, splitter.rec_end)
        reach = REACH[splitter.name]
        self._cuts, self._first = outcomes(array, splitter.n_classes, reach, *tables)

    def _followers(self, first: int | None, end: bool) -> list[int]:
        return [k for k in range(self._any) if first is None or first >> k & 1] + [self._any] * end

    def segmentations(self, first: int | None, end: bool) -> set[tuple[int, ...]]:
        found = np.flatnonzero(self._cuts[self._followers(first, end)].any(axis=0))
        return {(0, *(i for i in range(1, self._n) if cuts >> i & 1)) for cuts in found.tolist()}

    def may_end(self, first: int | None, end: bool) -> bool:
        return bool(self._first[self._followers(first, end), 1].any())

    def may_go_on(self, first: int | None) -> int:
        return sum(1 << k for k in self._followers(first, end=False) if self._first[k, 2])


def open_texts(splitter: Splitter, longest: int = 5) -> list[bytes]:
    # The oracle's price is the number of continuations.
    price = splitter.n_classes ** REACH[splitter.name]
    return class_strings(splitter, longest, 3e6 / price * BUDGET)


def masks(splitter: Splitter, generator: random.Random) -> list[tuple[int | None, bool]]:
    anything = 1 << splitter.n_classes
    one = 1 << generator.randrange(splitter.n_classes)
    some = [(generator.randrange(anything), generator.random() < 0.5) for _ in range(3)]
    return [(None, True), (None, False), (0, True), (one, False), *some]


@pytest.mark.parametrize("family", FAMILIES)
def test_segmentations_are_those_of_all_continuations(family):
    splitter, generator = Splitter.by_name(family), random.Random(4)
    for classes in open_texts(splitter):
        oracle = Oracle(splitter, classes)
        for first, end in masks(splitter, generator):
            found = splitter.segmentations(classes, first, end)
            assert set(found) == oracle.segmentations(first, end), (classes, first, end)
            assert list(found) == sorted(set(found))


@pytest.mark.parametrize("family", FAMILIES)
def test_what_the_piece_at_hand_may_do(family):
    splitter, generator = Splitter.by_name(family), random.Random(5)
    for classes in open_texts(splitter):
        state = splitter.state_after(classes)
        if state < 0:
            continue
        oracle = Oracle(splitter, classes)
        for first, end in masks(splitter, generator):
            assert splitter.may_end(state, first, end=end) == oracle.may_end(first, end)
            assert splitter.may_go_on(state, first) == oracle.may_go_on(first)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_state_is_met_by_a_short_text(family):
    """So the tests on short texts say something about all states."""
    splitter = Splitter.by_name(family)
    states = {0}
    for _ in range(5):
        states |= set(splitter.nxt[sorted(states)].ravel().tolist()) - {-1}
    assert states == set(range(len(splitter.nxt)))


@pytest.mark.parametrize("family", FAMILIES)
def test_longer_open_texts_contain_what_their_continuations_do(family):
    splitter, generator = Splitter.by_name(family), random.Random(6)
    for _ in range(int(200 * BUDGET)):
        some = generator.sample(range(splitter.n_classes), k=generator.randint(1, 5))
        classes = bytes(generator.choices(some, k=generator.randint(6, 30)))
        found = set(splitter.segmentations(classes))
        met = {cut(splitter, classes, bytes(generator.choices(some, k=k))) for k in range(12)}
        assert met <= found, classes
        for starts in found:
            assert splitter.segmentations(classes[starts[-1] :])


def cut(splitter: Splitter, classes: bytes, continuation: bytes) -> tuple[int, ...]:
    """The piece starts within an open text that goes on in one certain way."""
    whole = np.frombuffer(classes + continuation, np.uint8)
    ends = np.empty(len(whole), np.int64)
    count = lex(whole, splitter.nxt, splitter.rec, splitter.rec_end, ends)
    return (0, *(end for end in ends[:count].tolist() if end < len(classes)))


@pytest.mark.parametrize("family", PATTERNS)
def test_settled_cuts_are_in_every_segmentation(family):
    splitter = Splitter.by_name(family)
    for classes in class_strings(splitter, 4, 200 * BUDGET):
        settled = splitter.settled_cut(classes)
        every = splitter.segmentations(classes)
        assert all(settled in starts for starts in every)
        assert not any(
            all(later in starts for starts in every) for later in range(settled + 1, len(classes))
        )


@pytest.mark.parametrize("family", PATTERNS)
def test_flags_say_what_they_say(family):
    splitter = Splitter.by_name(family)
    assert splitter.can.all()
    for state, sure in enumerate(splitter.sure.tolist()):
        if sure:
            assert splitter.rec_end[state]
            alive = ~splitter.rec[state]
            assert splitter.sure[splitter.nxt[state][alive]].all()


def test_nothing_that_may_follow():
    """No next character and no end is no continuation at all."""
    splitter = Splitter.by_name("qwen2")
    for text in ("", "a", "  ", "it'"):
        assert splitter.segmentations(splitter.classes(text), first=0, end=False) == ()


def test_an_empty_text_has_no_pieces():
    splitter = Splitter.by_name("none")
    assert splitter.segmentations(b"") == ((),)
    assert splitter.settled_cut(b"") == 0


@pytest.mark.parametrize(
    ("family", "text", "expected"),
    [
        ("gpt2", "a   ", {(0, 1), (0, 1, 3)}),
        ("qwen2", "a \n  ", {(0, 1), (0, 1, 3), (0, 1, 3, 4)}),
        ("qwen2", "12", {(0, 1)}),
        ("cl100k", "1234", {(0, 3)}),
        ("gpt2", "don't", {(0, 3)}),
        ("gpt2", "don'", {(0, 3)}),
        # The e of 're may yet arrive; if it does not, the apostrophe goes with the word.
        ("cl100k", "x'r", {(0, 1)}),
        ("gpt2", "x'r", {(0, 1), (0, 1, 2)}),
        ("o200k", "x'r", {(0,), (0, 1)}),
        ("none", "any  text \n at all", {(0,)}),
    ],
)
def test_examples(family, text, expected):
    splitter = Splitter.by_name(family)
    assert set(splitter.segmentations(splitter.classes(text))) == expected
