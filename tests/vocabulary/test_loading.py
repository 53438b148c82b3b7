"""Where vocabularies come from, and what is refused by name."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tokenizers import Tokenizer

from crosstok import bpe, hub
from crosstok.errors import BadInput, UnsupportedTokenizer
from crosstok.loading import load
from crosstok.selfcheck import check_against_tokenizers
from crosstok.vocabulary import Kind, as_text

from .toys import added, by_characters, byte_level, expected_ids, read, text_of, tokenizer

MERGES = [(b"a", b"b"), (b"ab", b"ab"), (b" ", b"ab")]


@pytest.fixture
def folder(tmp_path):
    there = tmp_path / "toy"
    there.mkdir()
    specials = [added("<s>", 259, special=True), added("</s>", 260, special=True)]
    data = byte_level(MERGES, added_tokens=specials)
    (there / "tokenizer.json").write_bytes(text_of(data))
    return there


def configure(folder, file="tokenizer_config.json", **content):
    (folder / file).write_text(json.dumps(content), "utf-8")


# -- sources ---------------------------------------------------------------------------------------


def test_a_path_a_folder_and_an_object_are_the_same(folder):
    file = folder / "tokenizer.json"
    sources = [file, str(file), folder, str(folder), Tokenizer.from_file(str(file))]
    found = [load(source, use_cache=False) for source in sources]
    assert len({tuple(v.encode("abab ab<s>")) for v in found}) == 1
    assert [v.name for v in found] == ["toy"] * 4 + ["Tokenizer"]
    assert load(found[0]) is found[0]
    assert load(file, name="mine", use_cache=False).name == "mine"


def test_the_home_folder_is_found(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    assert load("~/toy", use_cache=False).size == 261


def test_a_transformers_tokenizer(folder):
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), eos_token="</s>", bos_token="<s>"
    )
    v = load(fast, use_cache=False)
    assert v.eos == {260}
    assert v.encode("abab ab") == fast.encode("abab ab", add_special_tokens=False)


def test_a_slow_tokenizer_is_refused():
    with pytest.raises(UnsupportedTokenizer, match="use_fast=True"):
        load(object())


def test_truncation_and_padding_of_an_object_change_nothing(folder):
    theirs = Tokenizer.from_file(str(folder / "tokenizer.json"))
    plain = load(theirs, use_cache=False).encode("abab " * 20)
    theirs.enable_truncation(4)
    theirs.enable_padding(length=8)
    assert load(theirs, use_cache=False).encode("abab " * 20) == plain


@pytest.mark.parametrize("missing", ["nowhere/at/all", "./nowhere", "nowhere/tokenizer.json"])
def test_a_path_that_is_not_there(missing):
    with pytest.raises(BadInput, match="nothing at"):
        load(missing)


def test_a_folder_without_a_tokenizer(tmp_path):
    with pytest.raises(BadInput, match="save_pretrained"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["ranks.tiktoken", "tokenizer.model"])
def test_other_files_name_the_way(tmp_path, name):
    (tmp_path / name).write_bytes(b"IQ== 0\n")
    with pytest.raises(UnsupportedTokenizer, match="load_tiktoken"):
        load(tmp_path / name)


def test_a_hub_id_without_a_hub(monkeypatch):
    def unreachable(*_):
        raise OSError("no route to the hub\nmore")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", unreachable)
    with pytest.raises(BadInput, match=r"'owner/name': no such file here.*no route to the hub;"):
        load("owner/name")


def test_a_hub_id(monkeypatch, folder):
    """What is not in the repository besides the tokenizer does not matter."""
    configure(folder, eos_token="</s>")
    asked = []

    def download(name, file):
        asked.append((name, file))
        if not (folder / file).is_file():
            raise OSError("not there")
        return str(folder / file)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    v = load("owner/name", use_cache=False)
    assert (v.name, v.eos) == ("name", {260})
    assert {name for name, _ in asked} == {"owner/name"}
    assert hub.may_be_an_id("gpt2")


# -- what begins and ends a text -------------------------------------------------------------------


def test_nothing_is_known_without_files(folder):
    v = load(folder, use_cache=False)
    assert (v.bos, v.eos) == ((), frozenset())


@pytest.mark.parametrize("written", ["</s>", {"content": "</s>", "lstrip": False}])
def test_the_end_is_named_in_the_config(folder, written):
    configure(folder, eos_token=written)
    assert load(folder, use_cache=False).eos == {260}


def test_generation_may_end_in_several_ways(folder):
    configure(folder, eos_token="</s>")
    configure(folder, "generation_config.json", eos_token_id=[259, 260])
    assert load(folder, use_cache=False).eos == {259, 260}
    configure(folder, "generation_config.json", eos_token_id=0)
    assert load(folder, use_cache=False).eos == {0}


def test_the_beginning_is_in_the_template_or_the_config(folder):
    configure(folder, bos_token="<s>", add_bos_token=True)
    assert load(folder, use_cache=False).bos == (259,)
    configure(folder, bos_token="<s>", add_bos_token=False)
    assert load(folder, use_cache=False).bos == ()
    file = folder / "tokenizer.json"
    data = json.loads(file.read_bytes())
    data["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "</s>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"</s>": {"id": "</s>", "ids": [260], "tokens": ["</s>"]}},
    }
    file.write_bytes(text_of(data))
    assert load(folder, use_cache=False).bos == (260,)


def test_what_is_said_wins(folder):
    configure(folder, eos_token="</s>", bos_token="<s>", add_bos_token=True)
    v = load(folder, bos=(), eos={0}, use_cache=False)
    assert (v.bos, v.eos) == ((), {0})


@pytest.mark.parametrize("wrong", [{"eos": {261}}, {"bos": (-1,)}])
def test_ids_that_are_not_there(folder, wrong):
    with pytest.raises(BadInput, match=r"expected ids of toy \(0 to 260\)"):
        load(folder, use_cache=False, **wrong)


def test_a_damaged_config(folder):
    (folder / "tokenizer_config.json").write_text("{")
    with pytest.raises(BadInput, match=r"tokenizer_config.json beside tokenizer.json"):
        load(folder, use_cache=False)


# -- refusals --------------------------------------------------------------------------------------


def special(content, token=259):
    return added(content, token, special=True)


def changed(data, path, value):
    *way, last = (int(key) if key.isdigit() else key for key in path.split("/"))
    here = data
    for key in way:
        here = here[key]
    here[last] = value
    return data


def with_vocab(data, **contents):
    data["model"]["vocab"].update(contents)
    return data


SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False, "pattern": {"Regex": "x+"}}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
REPLACE = {"type": "Replace", "pattern": {"String": "x"}, "content": "y"}
NFC = {"type": "NFC"}
REFUSED = {
    "Unigram": (changed(byte_level(), "model/type", "Unigram"), "found Unigram"),
    "WordPiece": (changed(byte_level(), "model/type", "WordPiece"), "found WordPiece"),
    "dropout": (byte_level(dropout=0.1), "dropout=0.1"),
    "prefix": (byte_level(continuing_subword_prefix="##"), "continuing_subword_prefix='##'"),
    "suffix": (byte_level(end_of_word_suffix="</w>"), "end_of_word_suffix"),
    "splitter": (
        changed(
            byte_level(), "pre_tokenizer", {"type": "Sequence", "pretokenizers": [SPLIT, BYTES]}
        ),
        r"Split\('x\+', Isolated\)",
    ),
    "prefix space": (changed(byte_level(), "pre_tokenizer/add_prefix_space", True), "add_prefix"),
    "normalizer": (changed(byte_level(), "normalizer", {"type": "NFKC"}), "NFKC"),
    "replacement": (changed(byte_level(), "normalizer", REPLACE), "Replace"),
    "dummy prefix alone": (
        by_characters(normalizer={"type": "Prepend", "prepend": "▁"}),
        "dummy prefix",
    ),
    "no bytes": (changed(by_characters(), "model/byte_fallback", False), "text could be lost"),
    "decoder": (changed(byte_level(), "decoder", None), "decoder steps"),
    "other decoder": (
        changed(by_characters(), "decoder/decoders/0", {**REPLACE, "content": " "}),
        "unknown decoder step",
    ),
    "lstrip": (byte_level(added_tokens=[added("<a>", 256, lstrip=True)]), "'<a>' with lstrip"),
    "rstrip": (byte_level(added_tokens=[added("<a>", 256, rstrip=True)]), "'<a>' with rstrip"),
    "single word": (byte_level(added_tokens=[added("ab", 256, single_word=True)]), "single_word"),
    "inside a special": (
        byte_level(added_tokens=[added("tool", 256), special("<tool>", 257)]),
        "'tool' lies inside the special '<tool>'",
    ),
    "both times": (
        byte_level(added_tokens=[added("<a>", 256), added("<b>", 257, normalized=True)]),
        "before and after normalisation",
    ),
    "after NFC": (
        changed(byte_level(added_tokens=[added("<a>", 256, normalized=True)]), "normalizer", NFC),
        "matched after normalisation",
    ),
    "not normal": (
        changed(byte_level(added_tokens=[added("e\u0301", 256)]), "normalizer", NFC),
        "not in normal form",
    ),
    "two readings": (byte_level(added_tokens=[added("é", 256)]), "decodes to other bytes"),
    "special symbol": (byte_level(added_tokens=[special("a", 66)]), "also a symbol of text"),
    "special character": (by_characters(added_tokens=[special("a", 257)]), "also a symbol"),
    "special merge": (byte_level(MERGES, added_tokens=[special("ab", 256)]), "come out of merges"),
    "special piece": (
        with_vocab(byte_level(added_tokens=[special("end", 256)], ignore_merges=True), end=256),
        "'end' is also a whole piece",
    ),
    "whole text": (
        changed(byte_level(ignore_merges=True), "pre_tokenizer/use_regex", False),
        "ignore_merges without a splitter",
    ),
    "two contents": (with_vocab(byte_level(), ab=0), "two contents with the same id"),
    "merged bytes": (by_characters([("<0x41>", "<0x42>")]), "byte-fallback tokens"),
    "other numbers": (byte_level(added_tokens=[added("<a>", 300)]), "id 256 for the added token"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_reproduced_is_refused_by_name(reason):
    data, said = REFUSED[reason]
    with pytest.raises(UnsupportedTokenizer, match=said):
        read(data)


DAMAGED = {
    "no JSON": (b"{", "no JSON"),
    "not UTF-8": (b'{"model": "\xff"}', "no JSON"),
    "a list": (b"[]", "without a model"),
    "no model": (b'{"version": "1.0"}', "without a model"),
    "a model of text": (b'{"model": "BPE"}', "without a model"),
    "no vocabulary": (changed(byte_level(), "model", {"type": "BPE", "merges": []}), "'vocab'"),
    "no merges": (changed(byte_level(), "model/merges", None), "the file is damaged"),
    "strange merges": (changed(byte_level(), "model/merges", [["a"]]), "the file is damaged"),
    "unknown part": (changed(byte_level(), "model/merges", [["a", "zz"]]), "'zz'"),
    "unknown result": (changed(byte_level(), "model/merges", [["a", "b"]]), "'ab'"),
    "ids of text": (with_vocab(byte_level(), a="x"), "the file is damaged"),
    "negative ids": (with_vocab(byte_level(), ab=-1), "damaged|cannot read"),
    "a flag that is missing": (changed(byte_level(), "added_tokens", [{"id": 1}]), "'content'"),
    "only tokenizers objects": (changed(byte_level(), "version", "9.9"), "cannot read"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_named(damage, tmp_path):
    content, said = DAMAGED[damage]
    (tmp_path / "tokenizer.json").write_bytes(
        content if isinstance(content, bytes) else text_of(content)
    )
    with pytest.raises(BadInput, match=said):
        load(tmp_path, use_cache=False)


def test_specials_searched_apart_hide_nothing():
    """Which specials hide text depends on `normalized`, which splits the search in two."""
    for late in (False, True):
        specials = [added("<ab", 256, special=True, normalized=late)]
        data = byte_level(added_tokens=[*specials, added("b>", 257)])
        assert read(data).encode("<ab>") == expected_ids(tokenizer(data), "<ab>")


def test_bytes_without_a_symbol_are_named_and_refused():
    v = read(byte_level(MERGES, symbols=[byte for byte in range(256) if byte not in {7, 0xF1}]))
    assert v.missing_bytes == b"\x07\xf1"
    assert v.notes == ("no symbol for 2 bytes (07 f1): text with them is refused",)
    with pytest.raises(BadInput, match="no symbol for byte 07;"):
        v.encode("a\x07")
    assert v.encode("ab") == [254]


def test_contents_that_look_like_bytes_but_are_not():
    v = read(by_characters(characters=["▁", "<", "0", "x", "g", ">"]))
    assert v.encode("<0xgg>") == [v.encode(c)[0] for c in "<0xgg>"]
    assert sum(v.kinds == Kind.BYTE) == 256


# -- the self-check --------------------------------------------------------------------------------


@pytest.mark.parametrize("harm", ["another id", "no id"])
def test_a_vocabulary_that_encodes_otherwise_is_refused(harm):
    v = read(byte_level())
    check_against_tokenizers(v)
    ids = v.merger.trie.token
    ids[ids == v.encode("l")[0]] = 3 if harm == "another id" else bpe.NONE
    with pytest.raises(UnsupportedTokenizer, match="please report this tokenizer"):
        check_against_tokenizers(v)


# -- the object ------------------------------------------------------------------------------------


def test_texts_are_strings_or_utf8():
    assert as_text("é".encode()) == as_text("é") == "é"
    for broken in (b"a\xff", "a\udc80"):
        with pytest.raises(BadInput, match="offset 1"):
            as_text(broken)


def test_ids_of_another_tokenizer_are_refused():
    v = read(byte_level(added_tokens=[special("<s>", 256)]))
    for wrong in (257, -1):
        with pytest.raises(BadInput, match=f"found {wrong}"):
            v.decode([0, wrong])
    with pytest.raises(BadInput, match="control token"):
        v.bytes_of(256)
    assert v.decode([256, *v.encode("ab")]) == b"ab"


def test_the_empty_text():
    for v in (read(byte_level()), read(by_characters())):
        assert v.encode("") == []
        assert v.encode_array("").dtype == np.int32
        assert v.decode([]) == b""
        ids, stops = v.encode_segment("")
        assert (len(ids), len(stops)) == (0, 0)
