"""docs/cli.md says what the commands are and what the JSON holds."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from crosstok.inspection import inspect
from tests.inspection.toys import byte_level, toy

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def maker():
    tool = ROOT / "tools" / "make_cli_reference.py"
    if not tool.is_file():
        pytest.skip("this is not a checkout")
    spec = importlib.util.spec_from_file_location("make_cli_reference", tool)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(maker):
    written = maker.TARGET.read_text("utf-8")
    assert written == maker.reference(), "run python tools/make_cli_reference.py"


def test_every_key_is_described_and_exists(maker):
    found = inspect(toy(byte_level("a·b")), toy(byte_level()), "ab").to_dict()
    assert isinstance(found.pop("target"), dict)
    assert {*keys(found), "target"} == set(maker.KEYS)


def keys(value, before=""):
    """The dotted names of everything that is no dictionary."""
    for key, part in value.items():
        if isinstance(part, dict):
            yield from keys(part, f"{before}{key}.")
        else:
            yield before + key
