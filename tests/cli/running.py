"""Running the command line inside the test's own process."""

from __future__ import annotations

import io
import sys
from typing import NamedTuple

from crosstok.cli import main


class Done(NamedTuple):
    """How a run ended, and what it wrote."""

    status: int
    out: str
    err: str


class Stream(io.TextIOWrapper):
    """Standard output, as bytes to be looked at."""

    def __init__(self, data=b""):
        super().__init__(io.BytesIO(data), encoding="utf-8", newline="")

    def text(self):
        self.flush()
        return self.buffer.getvalue().decode()


def run(monkeypatch, *words, stdin=b""):
    """Run ``crosstok WORDS`` and catch what comes out; errors that are not caught go through."""
    streams = {"stdin": Stream(stdin), "stdout": Stream(), "stderr": Stream()}
    status = 0
    with monkeypatch.context() as patched:
        patched.setattr(sys, "argv", ["crosstok", *map(str, words)])
        for name, stream in streams.items():
            patched.setattr(sys, name, stream)
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
    return Done(status, streams["stdout"].text(), streams["stderr"].text())
