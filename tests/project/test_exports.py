"""The public names: one table, what it loads, and what type checkers see, all the same."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import crosstok


def seen_by_type_checkers() -> dict[str, str]:
    tree = ast.parse(Path(crosstok.__file__).read_text("utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module for node in imports for alias in node.names}


def test_the_table_is_what_type_checkers_see():
    assert seen_by_type_checkers() == crosstok._HOME


def test_the_table_is_what_a_star_import_gives():
    assert set(crosstok.__all__) == {*crosstok._HOME, "__version__"}


@pytest.mark.parametrize("name", sorted(crosstok._HOME))
def test_every_name_leads_to_its_home(name):
    assert getattr(crosstok, name) is getattr(import_module(crosstok._HOME[name]), name)
    assert name in dir(crosstok)


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = crosstok.Nonsense
