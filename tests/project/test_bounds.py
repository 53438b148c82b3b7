"""The lower bounds that the package declares are the versions that `make verify` runs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def pins(file: str) -> dict[str, str]:
    lines = (ROOT / file).read_text("utf-8").splitlines()
    named = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {plain(name): version for name, version in named}


def bounds(requirements: list[str]) -> dict[str, str]:
    split = (re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement) for requirement in requirements)
    return {plain(found[1]): found[2] for found in split if found}


def plain(name: str) -> str:
    """A package's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_base_dependency_has_a_tested_lower_bound():
    declared = bounds(METADATA["dependencies"])
    assert len(declared) == len(METADATA["dependencies"])
    lowest = pins("constraints-lowest.txt")
    for name, bound in declared.items():
        assert lowest[name].startswith(bound), name


def test_the_hub_extra_is_at_its_lowest_too():
    (bound,) = bounds(METADATA["optional-dependencies"]["hub"]).items()
    assert pins("constraints-lowest.txt")[bound[0]].startswith(bound[1])


def test_development_pins_what_the_package_asks_for():
    extras = METADATA["optional-dependencies"]
    wanted = bounds(
        [*METADATA["dependencies"], *(line for extra in extras.values() for line in extra)]
    )
    assert set(wanted) <= set(pins("constraints.txt"))
