"""Compiled functions on disk are not used after what they call has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOWER = """
from crosstok.jit import njit

@njit()
def number():
    return {number}
"""
UPPER = """
from {package} import lower
from crosstok.jit import njit

@njit()
def twice():
    return 2 * lower.number()
"""
MAIN = "from toys.upper import twice; print(twice(), sum(twice.stats.cache_hits.values()))"


@pytest.fixture
def run(tmp_path):
    package = tmp_path / "toys"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "upper.py").write_text(UPPER.format(package="toys"))

    def with_number(number):
        (package / "lower.py").write_text(LOWER.format(number=number))
        path = os.pathsep.join([str(tmp_path), *sys.path])
        env = {**os.environ, "PYTHONPATH": path, "CROSSTOK_CACHE": str(tmp_path / "cache")}
        env.pop("NUMBA_CACHE_DIR", None)
        command = [sys.executable, "-c", MAIN]
        done = subprocess.run(
            command, check=False, env=env, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return with_number


def test_a_change_below_is_noticed_and_no_change_is_not(run):
    assert run(1) == ["2", "0"]
    assert run(1) == ["2", "1"]
    assert run(3) == ["6", "0"]
    assert run(1) == ["2", "1"]


def test_every_compiled_function_has_this_cache():
    package = Path(__file__).resolve().parents[2] / "src" / "crosstok"
    plain = [
        file.name
        for file in package.rglob("*.py")
        if file.name != "jit.py" and "from numba import" in file.read_text("utf-8")
    ]
    assert plain == []
