"""The files of a tokenizer that is named by its hub id.

This is the only module of the core's neighbourhood that may reach for a network, and it does so
only when a name is no path of this machine.
"""

from __future__ import annotations

import re
from pathlib import Path

from crosstok.errors import BadInput

_ID = re.compile(r"(?:[\w.-]+/)?[\w.-]+")
_OPTIONAL = ("tokenizer_config.json", "generation_config.json")


def may_be_an_id(source: str) -> bool:
    """Whether a string could be a hub id, such as ``gpt2`` or ``owner/name``.

    >>> may_be_an_id("owner/name"), may_be_an_id("./name"), may_be_an_id("a/b/tokenizer.json")
    (True, False, False)
    """
    return bool(_ID.fullmatch(source)) and not source.startswith(".") and source[-5:] != ".json"


def tokenizer_json(name: str) -> Path:
    """The path of the ``tokenizer.json`` of a hub id; what names its special ids lies beside it."""
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError
    except ImportError as error:
        raise _explained(name, "the package huggingface_hub is missing", "install it") from error
    try:
        path = Path(hf_hub_download(name, "tokenizer.json"))
    except Exception as error:  # every HTTP library below raises its own
        said = str(error).strip().splitlines() or [type(error).__name__]
        fix = "check the spelling, log in for gated repositories, or give a local path"
        raise _explained(name, f"the hub answered: {said[0]}", fix) from error
    for beside in _OPTIONAL:
        try:
            hf_hub_download(name, beside)
        except (EntryNotFoundError, OSError):
            continue  # not every repository has one
    return path


def _explained(name: str, found: str, fix: str) -> BadInput:
    return BadInput.explain(
        "the path of a tokenizer.json or a hub id", f"{name!r}: no such file here, and {found}", fix
    )
