"""The files of a truncation: what `tokenizers` and transformers make of them."""

import json
import shutil

import pytest
from tokenizers import Tokenizer

from crosstok import assets
from crosstok.errors import BadInput
from crosstok.loading import load
from crosstok.truncation import truncate
from tests.conversion.toys import toy

FAMILIES = (
    "gpt2", "smollm2", "qwen2_5", "qwen3", "llama3", "llama3_1", "llama3_2", "gpt4", "gpt4o",
    "deepseek_v3", "mistral_nemo", "gemma2", "gemma3", "llama2", "mistral_v0_1",
)  # fmt: skip
TEXTS = (
    "Hello, world! It's   the cat's 3rd day; naïve café.\n\n\n def f(x):\n\t\treturn x+12345  \n",
    "你好世界 日本語テキスト 한국어 👩‍👩‍👧‍👦 नमस्ते ≠ é e\u0301",
    " a",
    "<think>x</think>\n\n<table> <|endoftext|>",
    "",
)


def cut_family(name):
    folder = assets.path(name)
    return folder, truncate(load(folder, name=name), merges=5_000)


@pytest.mark.assets
@pytest.mark.parametrize("name", FAMILIES)
def test_tokenizers_reads_the_file_as_we_do(name, tmp_path):
    _, cut = cut_family(name)
    cut.write(tmp_path)
    oracle = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert oracle.get_vocab_size() == cut.tokens
    oracle.encode_special_tokens = True
    again = load(tmp_path)
    assert again.digest == cut.vocabulary.digest
    assert (again.eos, again.bos) == (cut.vocabulary.eos, cut.vocabulary.bos)
    for text in TEXTS:
        try:
            expected = cut.vocabulary.encode(text)
        except BadInput:
            assert name == "smollm2"
            continue
        assert oracle.encode(text, add_special_tokens=False).ids == expected
        assert oracle.encode(text).ids == [*cut.vocabulary.bos, *expected]
    for token, content in cut.vocabulary.names.items():
        assert oracle.token_to_id(content) == token


@pytest.mark.assets
@pytest.mark.extras
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", FAMILIES)
def test_transformers_reads_the_folder_as_we_do(name, tmp_path):
    transformers = pytest.importorskip("transformers")
    folder, cut = cut_family(name)
    cut.write(tmp_path, like=folder)
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path)
    source = json.loads((folder / "tokenizer_config.json").read_bytes())
    assert len(loaded) == cut.tokens
    assert bool(loaded.chat_template) == ("chat_template" in source)
    for role in ("bos_token", "eos_token", "unk_token", "pad_token"):
        content = getattr(loaded, role)
        if content is not None:
            assert cut.vocabulary.names[getattr(loaded, f"{role}_id")] == content
    for text in TEXTS[:3]:
        if name == "smollm2" and not text.isascii():
            continue
        expected = cut.vocabulary.encode(text)
        assert loaded.encode(text, add_special_tokens=False) == expected
        assert loaded.encode(text) == [*cut.vocabulary.bos, *expected]
        assert loaded.decode(expected) == cut.vocabulary.decode(expected).decode()


def test_the_configuration_names_the_new_ids(tmp_path):
    native = toy("a·b, b·c", added=["<x>"])
    cut = truncate(native, merges=1, use_cache=False)
    like = tmp_path / "source"
    (like / "additional_chat_templates").mkdir(parents=True)
    (like / "chat_template.jinja").write_text("{{ messages }}")
    (like / "additional_chat_templates" / "tool.jinja").write_text("{{ tools }}")
    config = {
        "eos_token": "<|end|>",
        "eos_token_id": native.size - 1,
        "suppress_ids": [0, native.size - 1],
        "model_max_length": 77,
        "tokenizer_class": "LlamaTokenizer",
        "add_bos_token": True,
        "vocab_file": "vocab.json",
        "added_tokens_decoder": {str(native.size - 1): {"content": "<|end|>"}},
    }
    (like / "tokenizer_config.json").write_text(json.dumps(config))
    cut.write(tmp_path / "out", like=like)
    written = json.loads((tmp_path / "out" / "tokenizer_config.json").read_bytes())
    end = cut.tokens - 1
    assert written["eos_token_id"] == end
    assert written["suppress_ids"] == [0, end]
    assert written["model_max_length"] == 77
    assert written["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert not {"add_bos_token", "vocab_file"} & written.keys()
    assert written["added_tokens_decoder"][str(end)]["content"] == "<|end|>"
    assert written["added_tokens_decoder"][str(end - 1)]["special"] is False
    special = json.loads((tmp_path / "out" / "special_tokens_map.json").read_bytes())
    assert special == {"eos_token": "<|end|>"}
    assert (tmp_path / "out" / "chat_template.jinja").read_text() == "{{ messages }}"
    assert (tmp_path / "out" / "additional_chat_templates" / "tool.jinja").is_file()


def test_files_of_another_tokenizer_are_not_left_beside_ours(tmp_path):
    cut = truncate(toy("a·b"), merges=1, use_cache=False)
    (tmp_path / "merges.txt").write_text("a b")
    with pytest.raises(BadInput, match=r"without another tokenizer, found merges\.txt"):
        cut.write(tmp_path)
    assert not (tmp_path / "tokenizer.json").exists()
    shutil.rmtree(tmp_path)
    cut.write(tmp_path)
    cut.write(tmp_path)  # over our own files


@pytest.mark.assets
def test_bos_that_only_a_class_of_transformers_adds_is_written_into_the_file():
    _, cut = cut_family("deepseek_v3")
    assert "TemplateProcessing" not in cut.source.source.decode()
    oracle = Tokenizer.from_str(cut.vocabulary.source.decode())
    assert oracle.encode("a").ids[:1] == [0] == list(cut.vocabulary.bos)
    assert oracle.encode("a", "b").ids.count(0) == 1
