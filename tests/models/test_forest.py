"""Forests, plans and their refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crosstok.errors import BadInput
from crosstok.models import Forest, Handle, Plan
from crosstok.models.conformance import path_to

# A busy machine is no failure.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def forests(draw):
    roots = draw(st.lists(st.sampled_from([None, Handle(3), Handle(8)]), min_size=1, max_size=3))
    count = draw(st.integers(1, 12))
    parents = [draw(st.integers(-len(roots), node - 1)) for node in range(count)]
    tokens = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    return Forest(tokens, parents, tuple(roots))


def climb(forest, node):
    """A node's depth and root, one step at a time."""
    depth = 0
    while node >= 0:
        depth, node = depth + 1, int(forest.parents[node])
    return depth, -1 - node


@PATIENT
@given(forests())
def test_depths_and_roots_are_those_of_a_climb(forest):
    climbed = [climb(forest, node) for node in range(len(forest))]
    assert list(zip(forest.depths.tolist(), forest.root_of.tolist(), strict=True)) == climbed
    for node, (depth, root) in enumerate(climbed):
        under = forest.roots[root].length if forest.roots[root] else 0
        assert forest.lengths[node] == depth + under


def test_a_forest_may_have_more_roots_than_nodes():
    forest = Forest([0, 0], [-3, 0], (None, None, None))
    assert forest.root_of.tolist() == [2, 2]
    assert forest.depths.tolist() == [1, 2]


@PATIENT
@given(st.lists(forests(), min_size=1, max_size=4))
def test_joined_forests_keep_their_paths_and_roots(parts):
    joined = Forest.join(parts)
    node = 0
    for part in parts:
        for inner in range(len(part)):
            assert path_to(joined, node) == path_to(part, inner)
            assert joined.roots[joined.root_of[node]] is part.roots[part.root_of[inner]]
            node += 1
    assert node == len(joined)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Forest.path([]), "at least one node"),
        (lambda: Forest.join([]), "at least one forest"),
        (lambda: Forest([1, 2], [1, -1]), "node 0 under 1"),
        (lambda: Forest([1, 2], [-1, 1]), "node 1 under 1"),
        (lambda: Forest([1], [-2]), "node 0 under -2"),
        (lambda: Forest([1, 2], [-1]), "equal length"),
        (lambda: Forest([0.5], [-1]), "whole numbers"),
        (lambda: Forest([[1]], [[-1]]), "whole numbers"),
        (lambda: Forest([2**31], [-1]), "32 bits"),
    ],
)
def test_what_is_no_forest_is_refused(make, message):
    with pytest.raises(BadInput, match=message):
        make()


ZERO, MAPS = np.zeros(1, np.int32), np.zeros((1, 4), np.int32)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weight": np.array([-0.5])}, "not negative"),
        ({"weight": np.array([np.nan])}, "finite"),
        ({"weight": np.ones(2)}, "equal length"),
        ({"group": ZERO + 1}, "groups from 0 to 0"),
        ({"maps": MAPS}, "maps, through and size together"),
        ({"maps": MAPS, "through": ZERO + 1, "size": 3}, "maps from 0 to 0"),
        ({"maps": MAPS + 3, "through": ZERO, "size": 3}, "tokens 0 to 2 or -1"),
        ({"maps": MAPS - 2, "through": ZERO, "size": 3}, "tokens 0 to 2 or -1"),
    ],
)
def test_what_is_no_plan_is_refused(arguments, message):
    good = {"row": ZERO, "weight": np.ones(1), "group": ZERO, "groups": 1}
    assert Plan(**good).groups == 1
    with pytest.raises(BadInput, match=message):
        Plan(**{**good, **arguments})
