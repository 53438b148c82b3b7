"""What the words of a command line stand for: tokenizers and texts."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from crosstok.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crosstok.vocabulary import Vocabulary

ASSET = "asset:"
STDIN = "-"
BYTES = "bytes"


def read_tokenizer(word: str) -> Vocabulary:
    """The tokenizer that a word names: ``asset:NAME``, ``bytes``, a path, or a hub id."""
    with working(f"reading {word}"):
        from crosstok.loading import load

        if word.startswith(ASSET):
            return _read_asset(word.removeprefix(ASSET))
        if word == STDIN:
            raise BadInput.explain("a tokenizer", "'-'", "only texts are read from standard input")
        if word == BYTES:
            from crosstok.conversion import byte_vocabulary

            return byte_vocabulary()
        return load(word)


def _read_asset(name: str) -> Vocabulary:
    from crosstok.loading import load

    return load(_asset_folder(name), name=name)


def _asset_folder(name: str) -> Path:
    from crosstok import assets

    if name not in assets.names():
        raise BadInput.explain(
            f"asset:NAME with one of {', '.join(assets.names())}",
            f"asset:{name}",
            "choose one of these, or give a path or a hub id",
        )
    return assets.path(name)


def folder_of(word: str) -> Path | None:
    """The folder with a tokenizer's other files, if it lies on this machine."""
    if word.startswith(ASSET):
        return _asset_folder(word.removeprefix(ASSET))
    path = Path(word)
    if path.is_dir():
        return path
    return path.parent if path.is_file() else None


def read_text(file: str) -> str:
    """The text of a file, or of standard input for ``-``; it must be UTF-8."""
    from crosstok.vocabulary import as_text

    return as_text(_bytes_of(file))


def _bytes_of(file: str) -> bytes:
    if file == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise BadInput.explain(
            "a file of text", f"{file!r}: {error.strerror}", "check the path"
        ) from error


def write_text(file: str, text: str) -> None:
    """Write a file, or say in one line why it cannot be written."""
    try:
        Path(file).write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise BadInput.explain(
            "a file to write to", f"{file!r}: {error.strerror}", "choose another path"
        ) from error


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say what takes a while, where somebody may be watching."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        yield
