"""Compiled functions whose files on disk never outlive what they were compiled from.

numba's own cache looks at the file of a function alone, so that a change in another file that the
function calls into would go unnoticed, and old code would run.  Here the folder of a function's
compiled files is named by the sources of its module and of every module of this package that it
can reach.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numba

PACKAGE = __name__.partition(".")[0]


def njit(**options: Any) -> Callable[[Any], Any]:
    """`numba.njit(cache=True, **options)`, with a cache that knows what it depends on."""

    def compiled(function: Any) -> Any:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(folder(function.__module__))
        try:
            return numba.njit(**{**options, "cache": True})(function)
        finally:
            numba.config.CACHE_DIR = before

    return compiled


def folder(module: str) -> Path:
    """Where the compiled functions of a module lie."""
    own = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("CROSSTOK_CACHE")
    shared = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    base = Path(own) if own else Path(shared) / PACKAGE
    return base / "compiled" / digest(module)


def digest(module: str) -> str:
    """A fingerprint of the sources that decide about the module's compiled functions."""
    hashed = hashlib.sha256()
    for name in sorted(reachable(module)):
        file = getattr(sys.modules[name], "__file__", None)
        hashed.update(f"{name}\n".encode())
        if file is not None:
            hashed.update(Path(file).read_bytes())
    return hashed.hexdigest()[:16]


def reachable(module: str) -> set[str]:
    """The module and all modules of its package that its names lead to."""
    found = {module}
    waiting = [module]
    while waiting:
        new = set(_named(sys.modules[waiting.pop()])) - found
        found |= new
        waiting += new
    return found


def _named(module: ModuleType) -> Iterator[str]:
    package = module.__name__.partition(".")[0]
    for value in list(vars(module).values()):
        name = value.__name__ if isinstance(value, ModuleType) else _home(value)
        if name.partition(".")[0] == package and name in sys.modules:
            yield name


def _home(value: Any) -> str:
    name = getattr(value, "__module__", None)
    return name if isinstance(name, str) else ""
