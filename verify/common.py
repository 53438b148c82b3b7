"""What every suite shares: the budget, what was run where, and the result file.

A suite looks like this::

    from verify.common import Suite

    def main() -> int:
        suite = Suite("encode")
        for family in FAMILIES:
            differences = ...                            # over suite.scaled(100_000) strings
            suite.count(f"{family}: strings", strings)
            suite.violations(f"{family}: differences", differences)
        return suite.finish()

    if __name__ == "__main__":
        raise SystemExit(main())
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("crosstok", "numpy", "numba", "tokenizers", "transformers", "torch")


class Suite:
    """Collects the counts of one suite, and says at the end how it went."""

    def __init__(self, name: str, arguments: list[str] | None = None) -> None:
        parser = argparse.ArgumentParser(prog=f"python -m verify.{name}")
        parser.add_argument("--out", type=Path, help="write the result to this JSON file")
        self.name = name
        self.budget = budget()
        self._out: Path | None = parser.parse_args(arguments).out
        self._figures: dict[str, object] = {}
        self._violations: dict[str, int] = {}
        self._began = time.monotonic()
        self._circumstances = circumstances()  # of the start: the checkout may move on meanwhile

    def scaled(self, full: int, least: int = 1) -> int:
        """The share of a full-scale count that the budget allows, but not below ``least``."""
        return scaled(full, self.budget, least)

    def count(self, what: str, figure: object) -> None:
        """Record and print a figure that is worth reading."""
        self._figures[what] = figure
        print(f"{self.name}: {what}: {_shown(figure)}", flush=True)

    def violations(self, what: str, number: int) -> None:
        """Record and print a number that must be 0."""
        self._violations[what] = number
        verdict = "" if number == 0 else "   <- must be 0"
        print(f"{self.name}: {what}: {number}{verdict}", flush=True)

    def require(self, what: str, holds: bool) -> None:
        """Record and print a condition that must hold."""
        self.violations(f"failures of: {what}", int(not holds))

    def finish(self) -> int:
        """Print the verdict, write the result file if one was asked for; the exit status."""
        seconds = time.monotonic() - self._began
        broken = sum(self._violations.values())
        print(f"{self.name}: {broken} violations, budget {self.budget:g}, {seconds:.1f} s")
        if not self._violations:
            print(f"{self.name}: checked nothing, which counts as a failure")
        if self._out is not None:
            write_result(self._out, self._result(seconds))
        return 1 if broken or not self._violations else 0

    def _result(self, seconds: float) -> dict[str, object]:
        return {
            "suite": self.name,
            "command": f"CROSSTOK_BUDGET={self.budget:g} python -m verify.{self.name}",
            "figures": self._figures,
            "violations": self._violations,
            "seconds": round(seconds, 1),
            **self._circumstances,
        }


def budget() -> float:
    """The scale of the run, from the environment: 1 is full, CI takes a small part of it."""
    written = os.environ.get("CROSSTOK_BUDGET", "1")
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        sys.exit(f"expected a number above 0 in CROSSTOK_BUDGET, found {written!r}; 1 is full")
    return value


def scaled(full: int, scale: float, least: int = 1) -> int:
    """A full-scale count at another scale, but not below ``least``.

    >>> scaled(100_000, 0.01), scaled(10, 0.01), scaled(1_000, 0.01, least=100)
    (1000, 1, 100)
    """
    return max(least, round(full * scale))


def circumstances() -> dict[str, object]:
    """What a figure depends on: the commit, the machine, the versions, the date."""
    return {
        "commit": commit(),
        "hardware": hardware(),
        "versions": versions(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def commit() -> str:
    """The commit checked out, marked where tracked files differ from it."""
    try:
        head = _git("rev-parse", "HEAD")
        # Result files are what a run adds: they do not change what was run.
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":!results")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}, with local changes" if changed else head


def hardware() -> dict[str, object]:
    """The processor, its cores and the memory, as far as the system tells."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that results depend on, where installed."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def write_result(file: Path, content: dict[str, object]) -> None:
    """Write a result file, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    draft.replace(file)


def _shown(figure: object) -> str:
    if isinstance(figure, int) and not isinstance(figure, bool):
        return f"{figure:,}"
    return f"{figure:.4g}" if isinstance(figure, float) else str(figure)


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    return done.stdout.decode().strip()


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _memory_gib() -> float | None:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal"):
            return round(int(line.split()[1]) / 2**20, 1)
    return None


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text("utf-8").splitlines()
    except OSError:
        return []
