"""The cache of compiled vocabularies: never wrong, whatever is done to its files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crosstok import cache
from crosstok.loading import load, read_json

from .toys import byte_level, text_of

TEXT = "abc abab cab"


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSTOK_CACHE", str(tmp_path / "own"))
    return tmp_path / "own"


@pytest.fixture
def toy(tmp_path):
    file = tmp_path / "toy" / "tokenizer.json"
    file.parent.mkdir()
    file.write_bytes(text_of(byte_level([(b"a", b"b"), (b"ab", b"ab"), (b"c", b"ab")])))
    return file


@pytest.fixture
def compilations(monkeypatch):
    """Counts how often a vocabulary is compiled instead of read."""
    from crosstok import loading

    seen = []
    compile_json = loading.compile_json

    def counting(data, name):
        seen.append(name)
        return compile_json(data, name)

    monkeypatch.setattr(loading, "compile_json", counting)
    return seen


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.npz"))


def test_the_second_load_reads_what_the_first_one_kept(own, toy, compilations):
    first, second = load(toy), load(toy)
    assert len(compilations) == 1
    assert len(entries(own)) == 1
    assert second.encode(TEXT) == first.encode(TEXT)
    for name in ("kinds", "reachable", "left", "right"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
    assert (first.digest, first.names, first.bos) == (second.digest, second.names, second.bos)


def test_a_kept_vocabulary_is_not_checked_again(own, toy, monkeypatch):
    load(toy)
    monkeypatch.setattr("crosstok.loading.check_against_tokenizers", lambda _: pytest.fail("again"))
    load(toy)
    with pytest.raises(pytest.fail.Exception):
        load(toy, use_cache=False)


def test_without_the_cache_nothing_is_written(own, toy):
    load(toy, use_cache=False)
    assert entries(own) == []


@pytest.mark.parametrize("tenth", range(10))
def test_a_file_cut_short_is_made_again(own, toy, compilations, tenth):
    expected = load(toy).encode(TEXT)
    (file,) = entries(own)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) * tenth // 10])
    assert load(toy).encode(TEXT) == expected
    assert len(compilations) == 2
    assert len(file.read_bytes()) == len(whole)


def test_a_flipped_byte_is_noticed(own, toy, compilations):
    expected = load(toy).encode(TEXT)
    (file,) = entries(own)
    whole = file.read_bytes()
    for at in range(0, len(whole), len(whole) // 40):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert load(toy).encode(TEXT) == expected
    assert len(compilations) > 20


def foreign_contents(folder):
    yield "text", b"not an archive"
    yield "nothing", b""
    np.save(folder / "alone.npy", np.arange(3))
    yield "one array", (folder / "alone.npy").read_bytes()
    np.savez(folder / "other.npz", a=np.arange(3))
    yield "other arrays", (folder / "other.npz").read_bytes()
    np.savez(folder / "meta.npz", meta=np.frombuffer(b"[]", np.uint8))
    yield "a meta that says nothing", (folder / "meta.npz").read_bytes()
    np.savez(folder / "objects.npz", meta=np.array([{}], object))
    yield "pickled objects", (folder / "objects.npz").read_bytes()


@pytest.mark.parametrize("kind", range(6))
def test_foreign_content_is_made_again(own, toy, tmp_path, compilations, kind):
    expected = load(toy).encode(TEXT)
    (file,) = entries(own)
    _, content = list(foreign_contents(tmp_path))[kind]
    file.write_bytes(content)
    assert load(toy).encode(TEXT) == expected
    assert len(compilations) == 2
    assert load(toy).encode(TEXT) == expected
    assert len(compilations) == 2


def test_an_entry_of_another_tokenizer_is_not_taken(own, toy, compilations):
    load(toy)
    (file,) = entries(own)
    other = text_of(byte_level([(b"b", b"a")]))
    expected = read_json(other, name="other", use_cache=False).encode(TEXT)
    mine = read_json(other, name="other")
    (its_file,) = set(entries(own)) - {file}
    its_file.write_bytes(file.read_bytes())
    again = read_json(other, name="other")
    assert again.encode(TEXT) == mine.encode(TEXT) == expected


def test_arrays_that_lost_a_member_are_not_taken(own):
    cache.keep("d" * 64, {"a": np.arange(3), "b": np.arange(4), "meta": {"k": 1}})
    assert cache.fetch("d" * 64)["meta"] == {"k": 1}
    with np.load(cache.entry("d" * 64)) as stored:
        kept = {key: stored[key] for key in stored.files if key != "b"}
    np.savez(cache.entry("d" * 64), **kept)
    assert cache.fetch("d" * 64) is None


def test_another_version_of_tokenizers_is_another_entry(own, toy, compilations, monkeypatch):
    load(toy)
    monkeypatch.setattr("importlib.metadata.version", lambda _: "999.0")
    load(toy)
    assert len(compilations) == 2
    assert len(entries(own)) == 2


@pytest.mark.parametrize("obstacle", ["denied", "a file"])
def test_a_folder_that_cannot_be_written_is_no_error(own, toy, compilations, monkeypatch, obstacle):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    if obstacle == "a file":
        own.write_text("in the way")
    else:
        monkeypatch.setattr("tempfile.mkstemp", denied)
    expected = load(toy, use_cache=False).encode(TEXT)
    assert load(toy).encode(TEXT) == expected
    assert len(compilations) == 2
    assert entries(own) == []


def test_a_full_disk_leaves_no_part_behind(own, toy, monkeypatch):
    def full(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    load(toy)
    assert [path for path in own.rglob("*") if path.is_file()] == []


def test_an_interruption_leaves_no_part_behind(own, toy, monkeypatch):
    def interrupted(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load(toy)
    assert [path for path in own.rglob("*") if path.is_file()] == []


ANOTHER_PROCESS = """
import sys
from pathlib import Path
from crosstok import cache
from crosstok.loading import load
found = set()
for _ in range(20):
    found.add(tuple(load(Path(sys.argv[1])).encode(sys.argv[2])))
    for entry in cache.folder().glob("*.npz"):
        entry.unlink(missing_ok=True)
print(found)
"""


def test_two_processes_at_once(own, toy):
    """Both compile, keep, read and delete the same entry, many times over."""
    command = [sys.executable, "-c", ANOTHER_PROCESS, str(toy), TEXT]
    workers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(2)
    ]
    said = [worker.communicate(timeout=300)[0].strip() for worker in workers]
    assert said == [str({tuple(load(toy).encode(TEXT))})] * 2
    assert list(own.rglob("*.tmp")) == []


def test_where_entries_lie(monkeypatch, tmp_path):
    monkeypatch.setenv("CROSSTOK_CACHE", str(tmp_path / "own"))
    assert cache.folder() == tmp_path / "own" / "vocabularies"
    monkeypatch.delenv("CROSSTOK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    assert cache.folder() == tmp_path / "shared" / "crosstok" / "vocabularies"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.folder() == Path.home() / ".cache" / "crosstok" / "vocabularies"


def test_what_is_kept_says_what_it_holds(own, toy):
    v = load(toy)
    with np.load(cache.entry(v.digest)) as stored:
        meta = json.loads(stored["meta"].tobytes())
    digest, shapes = meta["holds"]
    assert digest == v.digest
    assert ["blob", "|u1", [len(v.merger.blob)]] in shapes
