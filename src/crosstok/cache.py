"""The content-addressed cache of compiled vocabularies.

An entry is named by the tokenizer's hash, the format below and the version of `tokenizers`, since
a vocabulary in the cache has passed the comparison with that version.  Entries are written aside
and moved into place, so that two processes and an interrupted one do no harm; one that cannot be
read is made again.
"""

import contextlib
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = 1
META = "meta"


def folder() -> Path:
    """Where entries lie: ``$CROSSTOK_CACHE``, else the user's cache folder."""
    own = os.environ.get("CROSSTOK_CACHE")
    if own:
        return Path(own) / "vocabularies"
    shared = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(shared) / "crosstok" / "vocabularies"


def _entry(digest: str) -> Path:
    from importlib.metadata import version

    return folder() / f"{digest[:40]}-{FORMAT}-{version('tokenizers')}.npz"


def fetch(digest: str) -> dict[str, Any] | None:
    """The arrays kept for a tokenizer, or None where there are none that can be read."""
    path = _entry(digest)
    try:
        with np.load(path, allow_pickle=False) as entry:
            arrays: dict[str, Any] = {key: entry[key] for key in entry.files}
        arrays[META] = json.loads(arrays[META].tobytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        with contextlib.suppress(OSError):
            path.unlink()  # cut short or damaged: it is made again
        return None
    return arrays


def keep(digest: str, arrays: dict[str, Any]) -> None:
    """Keep the arrays; a cache that cannot be written is no error."""
    path = _entry(digest)
    stored = {key: value for key, value in arrays.items() if key != META}
    stored[META] = np.frombuffer(json.dumps(arrays[META]).encode(), np.uint8)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **stored)
            os.replace(aside, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(aside)
            raise
