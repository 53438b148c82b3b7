"""Importing the core loads no heavy package and opens no socket."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from crosstok import assets

from .layers import CORE, PACKAGE, existing_modules

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = ("torch", "transformers", "huggingface_hub")

# Runs the code given and prints which heavy packages it loaded and which socket events the
# interpreter reported meanwhile.
WATCHER = """
import json, sys
heavy, code = json.loads(sys.argv[1])
sockets = []
sys.addaudithook(lambda event, _: sockets.append(event) if event.startswith("socket.") else None)
exec(compile(code, "watched", "exec"), {"__name__": "watched"})
print(json.dumps({"loaded": [name for name in heavy if name in sys.modules], "sockets": sockets}))
"""


def watch(code: str, decoys: Path) -> dict[str, list[str]]:
    """What running the code in a fresh interpreter loads and opens.

    Empty packages with the heavy names stand first on the path: a guarded import would
    succeed, and be seen, in an environment that lacks the real ones too.
    """
    for name in HEAVY:
        (decoys / name).mkdir(exist_ok=True)
        (decoys / name / "__init__.py").touch()
    path = os.pathsep.join([str(decoys), str(PACKAGE.parent)])
    done = subprocess.run(
        [sys.executable, "-c", WATCHER, json.dumps([HEAVY, code])],
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_importing_the_package_is_light(tmp_path):
    assert watch("import crosstok", tmp_path) == {"loaded": [], "sockets": []}


def test_importing_the_core_is_light(tmp_path):
    present = [name for name in existing_modules(PACKAGE) if name in CORE]
    assert present
    code = "\n".join(f"import crosstok.{name}" for name in present)
    assert watch(code, tmp_path) == {"loaded": [], "sockets": []}


@pytest.mark.assets
def test_using_the_core_is_light(tmp_path):
    folder = str(assets.path("gpt2"))
    code = f"from crosstok.loading import load\nassert load({folder!r}).encode('hello')"
    assert watch(code, tmp_path) == {"loaded": [], "sockets": []}


def test_the_errors_are_reached_without_anything_else(tmp_path):
    code = "import crosstok, sys; crosstok.BadInput; assert 'numpy' not in sys.modules"
    assert watch(code, tmp_path) == {"loaded": [], "sockets": []}


# These show that the tests above can fail.


@pytest.mark.parametrize("name", HEAVY)
def test_a_heavy_import_is_seen(name, tmp_path):
    assert watch(f"import crosstok, {name}", tmp_path)["loaded"] == [name]


def test_a_guarded_heavy_import_is_seen(tmp_path):
    code = "try:\n    import torch\nexcept ImportError:\n    torch = None"
    assert watch(code, tmp_path)["loaded"] == ["torch"]


def test_a_socket_is_seen(tmp_path):
    code = "import socket\nsocket.socket().close()"
    assert "socket.__new__" in watch(code, tmp_path)["sockets"]
