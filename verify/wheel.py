"""The wheel installs without a compiler and works; the core passes on its oldest dependencies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

from crosstok import assets
from verify.common import ROOT, Suite

# What a wheel must hold besides the modules.
WANTED = ("crosstok/py.typed", "licenses/LICENSE")
COMPILERS = ("cc", "gcc", "clang", "c++", "g++")


def main() -> int:
    suite = Suite("wheel")
    with tempfile.TemporaryDirectory(prefix="crosstok-wheel-") as scratch:
        folder = Path(scratch)
        wheel = build(folder / "dist")
        check_contents(suite, wheel)
        check_empty_environment(suite, wheel, folder)
        check_lowest_versions(suite, wheel, folder)
    return suite.finish()


def build(folder: Path) -> Path:
    """The wheel of this checkout."""
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_contents(suite: Suite, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as bundle:
        names = bundle.namelist()
    suite.count("wheel", wheel.name)
    suite.count("files in the wheel", len(names))
    suite.require("the wheel is pure Python", wheel.name.endswith("-py3-none-any.whl"))
    here = {file.relative_to(ROOT / "src").as_posix() for file in package_files()}
    suite.violations("package files missing from the wheel", len(here - set(names)))
    for wanted in WANTED:
        suite.require(f"{wanted} is in the wheel", any(name.endswith(wanted) for name in names))


def package_files() -> list[Path]:
    files = (file for file in (ROOT / "src" / "crosstok").rglob("*") if file.is_file())
    return [file for file in files if "__pycache__" not in file.parts]


def check_empty_environment(suite: Suite, wheel: Path, folder: Path) -> None:
    """Install where nothing is, with no compiler to be found, and run the main job."""
    home = folder / "empty"
    python = environment(home)
    bare = bare_variables(home, folder)
    reachable = [name for name in COMPILERS if (home / "bin" / name).exists()]
    suite.violations("compilers within reach", len(reachable))
    pip(python, "install", str(wheel), variables=bare)
    pair = [str(assets.path("gpt2")), str(assets.path("qwen2_5"))]
    done = subprocess.run(
        [home / "bin" / "crosstok", "inspect", *pair, "--json"],
        env=bare,
        cwd=folder,
        stdout=subprocess.PIPE,
        check=False,
    )
    suite.require("`crosstok inspect` ends well in an empty environment", done.returncode == 0)
    suite.require("`crosstok inspect --json` prints JSON", is_json_object(done.stdout))


def check_lowest_versions(suite: Suite, wheel: Path, folder: Path) -> None:
    """Run the core's tests on the lower bounds that the package declares."""
    python = environment(folder / "lowest")
    lowest = ROOT / "constraints-lowest.txt"
    pip(python, "install", "--constraint", str(lowest), str(wheel), "pytest", "hypothesis")
    # Old releases may warn of what has long been repaired, so here warnings only print.
    # The source tree stays out of the run: what is tested is the wheel.
    command = [python, "-P", "-m", "pytest", "-q", "-m", "not extras", "-W", "default"]
    tests = ["--ignore", "tests/project", "tests"]
    status = subprocess.run([*command, *tests], cwd=ROOT, check=False).returncode
    suite.require("the core's tests pass on the lowest versions", status == 0)


def environment(home: Path) -> str:
    """A fresh virtual environment; its interpreter."""
    venv.create(home, with_pip=True)
    return str(home / "bin" / "python")


def bare_variables(home: Path, folder: Path) -> dict[str, str]:
    """The environment variables of a process that sees only its own programs."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX")}
    kept.pop("PYTHONPATH", None)
    # Compiled code of another run must not help either.
    cache = str(folder / "numba")
    return {**kept, "PATH": str(home / "bin"), "NUMBA_CACHE_DIR": cache}


def is_json_object(printed: bytes) -> bool:
    try:
        return isinstance(json.loads(printed), dict)
    except ValueError:
        return False


def pip(python: str, *words: str, variables: dict[str, str] | None = None) -> None:
    command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    subprocess.run(command, env=variables, check=True)


if __name__ == "__main__":
    raise SystemExit(main())
