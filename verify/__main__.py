"""Run every suite, each in a process of its own, and say at the end which ones failed.

``python -m verify`` runs all; names after it choose some; ``--out FOLDER`` has each write
its result there as ``NAME.json``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from verify.common import ROOT, budget


def suites() -> list[str]:
    """The names of all suites: the modules of this folder but the shared ones."""
    modules = sorted(file.stem for file in Path(__file__).parent.glob("*.py"))
    return [name for name in modules if name != "common" and not name.startswith("_")]


def run(name: str, out: Path | None) -> bool:
    """Run one suite; whether it passed."""
    command = [sys.executable, "-m", f"verify.{name}"]
    if out is not None:
        command += ["--out", str(out / f"{name}.json")]
    print(f"\n-- verify.{name}", flush=True)
    began = time.monotonic()
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    print(f"-- verify.{name}: exit status {status} after {time.monotonic() - began:.0f} s")
    return status == 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m verify", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*suites(), []], metavar="NAME")
    parser.add_argument("--out", type=lambda text: Path(text).resolve())
    options = parser.parse_args()
    names = options.names or suites()
    print(f"{len(names)} suites at budget {budget():g}: {', '.join(names)}")
    failed = [name for name in names if not run(name, options.out)]
    print(f"\n{len(names) - len(failed)} suites passed, {len(failed)} failed", *failed)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
