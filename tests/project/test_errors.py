"""The error tree is the one its docstring draws, and is caught as it promises."""

from __future__ import annotations

import re

import pytest

from crosstok import errors

BRANCHES = [getattr(errors, name) for name in errors.__all__ if name != "CrosstokError"]


def test_the_drawing_shows_every_error():
    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__)
    assert sorted(drawn) == sorted(error.__name__ for error in BRANCHES)


@pytest.mark.parametrize("error", BRANCHES)
def test_every_error_hangs_in_the_tree(error):
    with pytest.raises(errors.CrosstokError, match="expected bread, found a stone; ask again"):
        raise error.explain("bread", "a stone", "ask again")


def test_bad_input_is_a_value_error():
    assert issubclass(errors.BadInput, ValueError)
    assert [error for error in BRANCHES if issubclass(error, ValueError)] == [errors.BadInput]
