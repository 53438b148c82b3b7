"""The command line: `crosstok --help` lists the commands, docs/cli.md describes them."""

from __future__ import annotations

from crosstok.cli.app import app, main

__all__ = ["app", "main"]
