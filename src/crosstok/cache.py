"""The content-addressed cache of compiled vocabularies.

An entry is named by the tokenizer's hash, the format below and the versions of this package and of
`tokenizers`, since a vocabulary in the cache has passed the comparison with that version.  Entries
are written aside and moved into place, so that two processes and an interrupted one do no harm.
Each says what it must hold; one that is cut short, damaged or foreign is made again.
"""

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = 3
META = "meta"


def folder() -> Path:
    """Where entries lie: ``$CROSSTOK_CACHE``, else the user's cache folder."""
    own = os.environ.get("CROSSTOK_CACHE")
    if own:
        return Path(own) / "vocabularies"
    shared = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(shared) / "crosstok" / "vocabularies"


def entry(digest: str) -> Path:
    """The file for a tokenizer."""
    from importlib.metadata import version

    from crosstok import __version__

    return folder() / f"{digest[:40]}-{FORMAT}-{__version__}-{version('tokenizers')}.npz"


def fetch(digest: str) -> dict[str, Any] | None:
    """The arrays kept for a tokenizer, or None where there are none that can be read."""
    try:
        # Opened here, because numpy leaves a damaged archive's file open.
        with entry(digest).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays: dict[str, Any] = {key: stored[key] for key in stored.files}
        meta = json.loads(arrays.pop(META).tobytes())
        expected = meta.pop("holds")
    except Exception:  # noqa: BLE001 - however an entry is damaged, it is made again
        return None
    if expected != _holds(digest, arrays):
        return None
    return {**arrays, META: meta}


def keep(digest: str, arrays: dict[str, Any]) -> None:
    """Keep the arrays; a cache that cannot be written is no error."""
    path = entry(digest)
    stored = {key: value for key, value in arrays.items() if key != META}
    meta = {**arrays[META], "holds": _holds(digest, stored)}
    stored[META] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **stored)
            Path(aside).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(aside).unlink()
            raise


def _holds(digest: str, arrays: dict[str, Any]) -> list[Any]:
    """What an entry must hold: the tokenizer it belongs to, and the shape of each array."""
    shapes = sorted([key, array.dtype.str, list(array.shape)] for key, array in arrays.items())
    return [digest, shapes]
