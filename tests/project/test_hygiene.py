"""The repository names no machine and no registry."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Written in pieces, so that this file passes its own test.
HOSTS = ["registry." + "npmjs", "registry." + "yarnpkg", "pypi" + ".org", "python" + "hosted"]
HOSTS += ["npm" + "mirror", "index" + "-url", "debian" + ".org"]
FOLDERS = ["home", "root", "work", "Users", "mnt", "tmp"]
FORBIDDEN = {
    "a registry's host": re.compile("|".join(map(re.escape, HOSTS))),
    "a resolved address": re.compile(r'"resolved":\s*"http'),
    "a path of one machine": re.compile(rf"(?<![\w.~/\-{{}}])/(?:{'|'.join(FOLDERS)})/\w"),
}


def files_of_the_repository() -> list[Path]:
    """What is committed, or would be: ignored files are nobody's business."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    files = [ROOT / name for name in listed.decode().split("\0") if name]
    return [file for file in files if file.is_file()]


def offences(text: str) -> list[str]:
    """What a text holds that it must not."""
    return [
        f"{what}: {found.group()!r}"
        for what, pattern in FORBIDDEN.items()
        for found in pattern.finditer(text)
    ]


def test_no_file_names_a_machine_or_a_registry():
    found = []
    for file in files_of_the_repository():
        text = file.read_bytes().decode("utf-8", errors="ignore")
        found += [f"{file.relative_to(ROOT)}: {offence}" for offence in offences(text)]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "https://registry." + "npmjs.example/x",
        '"resolved": ' + '"https://somewhere"',
        "see /ho" + "me/someone/file",
        'open("/wo' + 'rk/file")',
    ],
)
def test_an_offence_is_seen(text):
    assert offences(text)


def test_ordinary_text_passes():
    assert offences("~/.cache/crosstok, src/root/file and https://example.com/home/page") == []
