"""What the commands print, and their manners."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import crosstok
from crosstok import assets
from crosstok.errors import AssetError, BadInput
from crosstok.inspection import inspect
from tests.inspection.toys import byte_level, low_line
from tests.pages.reading import read

from .running import run

COMMANDS = ["inspect", "settle", "truncate"]


@pytest.fixture
def cli(monkeypatch, tmp_path):
    """Runs the command line, with its cache in a folder of the test."""
    monkeypatch.setenv("CROSSTOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(tmp_path)
    return lambda *words, stdin=b"": run(monkeypatch, *words, stdin=stdin)


@pytest.fixture
def files(tmp_path):
    """Two tokenizers in folders named one and two."""
    found = []
    one = byte_level("a·b ab·c G·a", control=["<|end|>", "<|user|>"])
    for name, text in (("one", one), ("two", low_line("b·c ▁·a", dummy=True))):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "tokenizer.json"
        file.write_text(text)
        found.append(file)
    return found


# -- manners --------------------------------------------------------------------------------------


def test_version(cli):
    assert cli("--version") == (0, f"crosstok {crosstok.__version__}\n", "")


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_has_examples(cli, command):
    done = cli(*command, "--help")
    assert done.status == 0
    examples = done.out.split("Examples:")[1]
    assert f"crosstok {' '.join(command)}".strip() in examples
    assert max(map(len, done.out.splitlines())) <= 80


def test_no_words_show_the_help(cli):
    done = cli()
    assert "Commands:" in done.out + done.err
    assert all(name in done.out + done.err for name in COMMANDS)


BAD_LINES = {
    "a missing word": "inspect ONE",
    "an unknown command": "inspekt ONE TWO",
    "an unknown option": "inspect ONE TWO --jason",
    "no such file": "inspect ONE nowhere/tokenizer.json",
    "no such asset": "inspect ONE asset:nothing",
    "a tokenizer from stdin": "inspect - ONE",
    "no such text": "inspect ONE TWO --text nowhere.txt",
    "a text that is empty": "inspect ONE TWO --text -",
    "a picture into a folder": "inspect ONE TWO --html .",
    "no size": "truncate ONE out",
    "two sizes": "truncate ONE out --tokens 300 --merges 1",
    "a size that is no number": "truncate ONE out --tokens many",
    "a size of nothing": "truncate ONE out --tokens 0",
}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES)
def test_bad_input_is_one_message(cli, files, line):
    named = dict(zip(("ONE", "TWO"), files, strict=True))
    done = cli(*(named.get(word, word) for word in line.split()))
    assert done.status == 2
    assert done.out == ""
    assert done.err.strip()
    assert "Traceback" not in done.err
    assert len(done.err.strip().splitlines()) <= 4


def test_messages_say_what_was_expected_and_found(cli, files):
    done = cli("inspect", files[0], "asset:gtp2")
    assert done.err.startswith("crosstok: expected asset:NAME")
    assert "asset:gtp2" in done.err
    assert "gpt2" in done.err


def test_text_that_is_not_utf8_is_refused(cli, files):
    done = cli("inspect", *files, "--text", "-", stdin=b"a\xffb")
    assert done.status == 2
    assert "offset 1" in done.err


def test_other_files_are_explained(cli, tmp_path, files):
    (tmp_path / "notes.json").write_text("[1, 2]")
    done = cli("inspect", files[0], tmp_path / "notes.json")
    assert (done.status, "expected" in done.err) == (2, True)


@pytest.mark.parametrize("words", [["--debug", "settle"], ["settle", "--debug"]])
def test_debug_lets_the_error_through(cli, files, words):
    with pytest.raises(BadInput):
        cli(*words, files[0], "-", stdin=b"\xff")
    assert cli("settle", files[0], "-", stdin=b"\xff").status == 2


def test_what_fails_outside_has_another_status(cli, files, monkeypatch):
    def fail(name):
        raise AssetError("no network")

    monkeypatch.setattr(assets, "path", fail)
    done = cli("inspect", files[0], "asset:gpt2")
    assert (done.status, done.err) == (1, "crosstok: no network\n")


def test_mistakes_and_help_are_answered_without_anything_heavy():
    code = (
        "import sys; import crosstok.cli; "
        "print([m for m in ('numpy', 'numba', 'tokenizers', 'torch', 'crosstok.vocabulary') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


# -- inspect --------------------------------------------------------------------------------------


def test_json_is_the_library_s_data(cli, files, tmp_path):
    (tmp_path / "text").write_text("abc ab\nc")
    done = cli("inspect", *files, "--text", "text", "--json")
    assert done.status == 0
    assert json.loads(done.out) == inspect(*files, "abc ab\nc").to_dict()
    again = cli("inspect", *files, "--text", "-", "--json", stdin=b"abc ab\nc")
    assert again.out == done.out


def test_the_table_fits_and_has_no_colour(cli, files):
    done = cli("inspect", *files)
    assert done.status == 0
    assert max(map(len, done.out.splitlines())) <= 80
    assert "\x1b" not in done.out
    for section in ("Sizes", "Families", "Shared tokens", "Conversion", "Normalizer differences",
                    "Splitter differences", "Special tokens"):  # fmt: skip
        assert f"\n{section}" in done.out
    assert cli("inspect", *files).out == done.out


def test_the_table_says_what_the_data_says(cli, files):
    found = inspect(*files)
    words = " ".join(cli("inspect", *files).out.split())
    assert f"tokens {found.text.native_tokens:,} {found.text.target_tokens:,}" in words
    assert f"{100 * found.shared.of_native:.1f} % {100 * found.shared.of_target:.1f} %" in words
    assert f"{found.conversion.kind}: {found.conversion.why}" in words
    assert f"{found.text.unsettled.native:.2f} {found.text.unsettled.target:.2f}" in words


def test_many_special_tokens_are_counted(cli, tmp_path, files):
    names = [f"<|{k}|>" for k in range(300)]
    (tmp_path / "many.json").write_text(byte_level(control=names))
    out = cli("inspect", files[0], tmp_path / "many.json").out
    assert "295 more" in " ".join(out.split())
    assert "<|299|>" not in out


def test_markup_in_names_is_text(cli, tmp_path, files):
    (tmp_path / "odd.json").write_text(byte_level(control=["[bold]", "[/red]"]))
    assert "[bold]" in cli("inspect", files[0], tmp_path / "odd.json").out


def test_the_picture(cli, files, tmp_path):
    done = cli("inspect", *files, "--text", "-", "--html", "picture.html", stdin=b"abc ab<i>")
    assert done.out.endswith("The picture is in picture.html.\n")
    found = read((tmp_path / "picture.html").read_text("utf-8"))
    assert found.text_of("native") == found.text_of("target") == b"abc ab<i>"
    assert "tokens per byte" in found.texts["th"]


def test_the_picture_of_a_long_text_is_cut(cli, files, tmp_path):
    words = ["--text", "-", "--html", "p.html", "--html-bytes", "20", "--json"]
    done = cli("inspect", *files, *words, stdin=b"ab c " * 20)
    assert json.loads(done.out)["text"]["bytes"] == 100
    html = (tmp_path / "p.html").read_text("utf-8")
    assert "of the text’s 100 bytes" in html
    assert len(read(html).text_of("native")) <= 20


def test_bytes_are_a_target(cli, files):
    done = cli("inspect", files[0], "bytes", "--json")
    assert json.loads(done.out)["conversion"]["kind"] == "bytes"


@pytest.mark.assets
def test_assets_by_name(monkeypatch):
    # With everybody's cache, so that nothing is downloaded twice.
    done = run(monkeypatch, "inspect", "asset:gpt2", "asset:qwen2_5", "--json")
    found = json.loads(done.out)
    assert [found[side]["name"] for side in ("native", "target")] == ["gpt2", "qwen2_5"]


# -- settle and truncate --------------------------------------------------------------------------


def test_settle_shows_what_is_certain(cli, files):
    # ab may still become abc, and what stands before it is certain.
    assert cli("settle", files[0], "cab").out == (
        'settled       66  "c"\nopen         256  "ab"\nopen from byte 1 on: "ab"\n'
    )
    assert cli("settle", files[0], "").out == "nothing is open\n"


def test_settle_as_data(cli, files):
    done = json.loads(cli("settle", files[0], "-", "--json", stdin=b"cc abc ab").out)
    assert done["tokenizer"] == "one"
    assert b"cc abc ab"[done["offset"] :].decode() == done["open"] != ""
    assert done["if_it_ended_here"][: len(done["settled"])] == done["settled"]


def test_truncate_writes_a_tokenizer(cli, files, tmp_path):
    done = cli("truncate", files[0], "small", "--merges", "1")
    assert done.status == 0, done.err
    assert "1 of 3 merges" in done.out
    found = json.loads(cli("inspect", files[0], "small", "--json").out)
    assert found["target"]["sizes"]["merge_lines"] == 1
    assert found["conversion"]["kind"] == "subset"
    assert (tmp_path / "small" / "tokenizer_config.json").is_file()
