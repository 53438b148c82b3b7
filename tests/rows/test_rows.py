"""`Rows`: made from dense rows, checked, cut and joined, stored more coarsely."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosstok.errors import BadInput
from crosstok.rows import NOTHING, Rows, Status


def dense(n=6, size=40, seed=0, sharp=3.0):
    logits = sharp * np.random.default_rng(seed).standard_normal((n, size))
    p = np.exp(logits)
    return p / p.sum(1, keepdims=True)


def wide_bounds(p, width=0.02):
    return np.maximum(p - width, 0), np.minimum(p + width, 1)


def changed(rows, name, at, value):
    array = getattr(rows, name).copy()
    array[at] = value
    return replace(rows, **{name: array})


@given(
    st.integers(0, 1000), st.integers(1, 40), st.sampled_from([np.float64, np.float32, np.float16])
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_dense_rows_pass_the_check_in_every_precision(seed, k, dtype):
    rows = Rows.from_dense(dense(seed=seed), k).astype(dtype)
    rows.check(1e-9)
    assert rows.ids.shape == (6, k)


def test_the_likeliest_come_first_and_ties_by_id():
    rows = Rows.from_dense(np.array([[0.2, 0.3, 0.2, 0.3]]), 3)
    assert rows.ids.tolist() == [[1, 3, 0]]
    assert rows.tail.tolist() == [0.2]


def test_the_tail_is_summed_and_not_inferred():
    p = dense()
    p[:, -1] *= 0.5
    rows = Rows.from_dense(p, 40)
    assert np.all(rows.tail == 0)
    with pytest.raises(BadInput, match=r"a sum of 1 within 0\.001, found otherwise at position 0"):
        rows.check(1e-3)


def test_the_sum_of_half_precision_may_exceed_one_within_its_rounding():
    rows = Rows.from_dense(dense(n=300, size=200, sharp=4.0), 20).astype(np.float16)
    totals = np.exp(rows.logp.astype(np.float64)).sum(1)
    assert np.any(totals + rows.tail > 1 + 1e-5)
    rows.check(1e-9)


BROKEN = {
    "a token dropped": ("ids", (3, 0), NOTHING, "probability 0 where nothing"),
    "its mass too": ("logp", (3, 0), -np.inf, "lower ≤ p"),
    "a token twice": ("ids", (3, 0), 7, "listed once"),
    "more tail": ("tail", 3, 0.5, "a sum of 1"),
    "no tail": ("tail", 3, np.nan, "a tail unless partial"),
    "negative tail": ("tail", 3, -0.01, "tail of 0 or more"),
    "lower above p": ("lower", (3, 1), 0.9, "lower ≤ p"),
    "upper below p": ("upper", (3, 0), 0.0, "lower ≤ p"),
    "upper above 1": ("upper", (3, 1), 1.001, "lower ≤ p"),
    "negative lower": ("lower", (3, 1), -1e-9, "lower ≤ p"),
    "p not a number": ("logp", (3, 1), np.nan, "lower ≤ p"),
    "control not in leak": ("control", 3, 0.1, "within the leak"),
    "leak above 1": ("leak", 3, 1.2, "masses from 0"),
    "unknown status": ("status", 3, 17, "known status"),
    "impossible with tokens": ("status", 3, Status.IMPOSSIBLE, "exactly where there is a row"),
    "partial with a tail": ("status", 3, Status.PARTIAL, "a tail unless partial"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_the_check_names_the_first_bad_position(case):
    name, at, value, what = BROKEN[case]
    rows = Rows.from_dense(dense(), 5)
    if case == "a token twice":
        value = rows.ids[3, 1]
    with pytest.raises(BadInput, match=what) as caught:
        changed(rows, name, at, value).check(1e-6)
    assert "position 3" in str(caught.value)


def test_dropped_mass_fails_with_bounds_that_allow_it():
    p = dense()
    low, high = wide_bounds(p, 1.0)
    rows = Rows.from_dense(p, 5, lower=low, upper=high)
    rows.check(1e-6)
    with pytest.raises(BadInput, match="a sum of 1 within 1e-06, found otherwise at position 2"):
        changed(rows, "logp", (2, 4), -np.inf).check(1e-6)


def test_under_raw_control_and_undecodable_mass_belong_to_the_sum():
    p = dense() * 0.9
    raw = Rows.from_dense(p, 5, control=0.07, undecodable=0.03, law="raw")
    raw.check(1e-9)
    with pytest.raises(BadInput, match="a sum of 1"):
        replace(raw, law="canonical", leak=np.full(6, 0.2)).check(1e-9)
    with pytest.raises(BadInput, match="a sum of 1"):
        changed(raw, "undecodable", 1, 0.0).check(1e-9)


def test_partial_rows_have_no_tail_and_sum_to_one_at_most():
    rows = Rows.from_dense(dense(), 5)
    partial = replace(rows, status=np.full(6, Status.PARTIAL, np.uint8), tail=np.full(6, np.nan))
    partial.check(1e-9)
    with pytest.raises(BadInput, match="a sum of 1"):
        changed(replace(partial, upper=np.ones((6, 5))), "logp", (2, 1), -0.1).check(1e-9)


def test_positions_without_a_row_are_empty():
    rows = Rows.without_row(3, 4, Status.UNDEFINED)
    rows.check(0)
    assert np.all(rows.ids == NOTHING)
    both = Rows.concat([replace(Rows.from_dense(dense(), 4), rest=None), rows])
    both.check(1e-9)
    assert both.status.tolist() == [0] * 6 + [Status.UNDEFINED] * 3


# -- precision -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_bounds_are_rounded_outward(dtype):
    p = dense(n=50)
    low, high = wide_bounds(p)
    rows = Rows.from_dense(p, 10, lower=low, upper=high)
    coarse = rows.astype(dtype)
    assert np.all(coarse.lower <= rows.lower)
    assert np.all(coarse.upper >= rows.upper)
    assert np.all(coarse.rest >= rows.rest)
    assert np.any(coarse.lower < rows.lower)
    assert coarse.upper.max() <= 1
    assert coarse.lower.dtype == dtype
    coarse.check(1e-9)


def test_exact_values_stay_as_they_are():
    rows = Rows.from_dense(np.array([[0.5, 0.25, 0.25, 0.0]]), 4).astype(np.float16)
    assert rows.lower.tolist() == rows.upper.tolist() == [[0.5, 0.25, 0.25, 0.0]]


# -- certain membership ----------------------------------------------------------------------------


def brute_certain(low, high, ids, k, dice):
    """Membership in the k likeliest of every distribution tried between the bounds."""
    found = np.ones(ids.shape, bool)
    for _ in range(300):
        sides = dice.random(low.shape) < dice.random()
        p = np.where(sides, low, high) if dice.random() < 0.5 else dice.uniform(low, high)
        place = np.argsort(np.argsort(-p, axis=1, kind="stable"), axis=1)
        found &= np.take_along_axis(place, ids, 1) < k
    return found


@pytest.mark.parametrize("seed", range(12))
def test_certain_members_are_members_of_every_distribution_between_the_bounds(seed):
    dice = np.random.default_rng(seed)
    p = dense(n=8, size=12, seed=seed, sharp=1.5)
    low, high = wide_bounds(p, 0.01)
    rows = Rows.from_dense(p, 6, lower=low, upper=high)
    for k in (1, 3, 6):
        certain = rows.certain(k)
        assert not np.any(certain & ~brute_certain(low, high, rows.ids, k, dice))
        assert not np.any(replace(rows, rest=None).certain(k) & ~certain)


def test_exact_rows_are_certain_throughout():
    rows = Rows.from_dense(dense(n=20), 8)
    assert rows.certain(8).all()
    assert np.array_equal(rows.certain(3), np.arange(8) < np.full((20, 1), 3))


def test_without_the_highest_unlisted_bound_the_mass_limits_the_rivals():
    rows = replace(Rows.from_dense(np.array([[0.5, 0.3, 0.1, 0.1]]), 2), rest=None)
    assert rows.certain(2).tolist() == [[True, True]]
    flat = replace(Rows.from_dense(np.full((1, 10), 0.1), 2), rest=None)
    assert not flat.certain(2).any()


# -- parts -----------------------------------------------------------------------------------------


def equal(one, two):
    a, b = one.to_dict(), two.to_dict()
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def test_slices_join_to_the_whole():
    rows = Rows.from_dense(dense(), 5, error=np.arange(6.0), law="raw")
    assert equal(Rows.concat([rows[:2], rows[2], rows[3:]]), rows)
    assert len(rows[np.array([True, False] * 3)]) == 3
    assert rows[-1].error.tolist() == [5.0]
    with pytest.raises(IndexError, match="below 6"):
        rows[6]


def test_only_rows_of_a_kind_are_joined():
    rows = Rows.from_dense(dense(), 5)
    others = [Rows.from_dense(dense(), 4), replace(rows, law="raw"), replace(rows, error=rows.tail)]
    for other in others:
        with pytest.raises(BadInput, match="the same fields"):
            Rows.concat([rows, other])
    with pytest.raises(BadInput, match="at least one"):
        Rows.concat([])


def test_dictionaries_hold_everything():
    rows = Rows.from_dense(dense(), 5, leak=0.25, law="raw").astype(np.float32)
    again = Rows.from_dict(rows.to_dict())
    assert equal(again, rows)
    assert again.law == "raw"
    assert again.error is None
    lacking = {name: value for name, value in rows.to_dict().items() if name != "tail"}
    with pytest.raises(BadInput, match="tail missing or unknown"):
        Rows.from_dict(lacking)
    with pytest.raises(BadInput, match="more missing or unknown"):
        Rows.from_dict({**rows.to_dict(), "more": rows.tail})


def test_shapes_and_k_are_checked():
    rows = Rows.from_dense(dense(), 5)
    with pytest.raises(BadInput, match=r"tail of shape \(6,\)"):
        replace(rows, tail=rows.tail[:5])
    with pytest.raises(BadInput, match="k from 1 to 40, found 41"):
        Rows.from_dense(dense(), 41)
