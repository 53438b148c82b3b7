"""A vocabulary is compared with `tokenizers` on a stress text before it may be used."""

import json
from functools import cache
from typing import Any

from crosstok.errors import BadInput, UnsupportedTokenizer
from crosstok.vocabulary import Vocabulary


@cache
def stress_texts() -> tuple[str, ...]:
    """Short texts, each with something that tokenizers are known to disagree about."""
    return (
        "",
        " ",
        "Hello, world! It's the cat's 3rd day; WE'LL see, they'd've known 12345 things.",
        "  leading, trailing  \n\n\n  and \t tabs\t\t\r\n mixed \r\r\n   ",
        "x = [i**2 for i in range(10)]\n\n\tif x != None:\n\t\treturn {'a': 0.5e-3}\n",
        "Zażółć gęślą jaźń — naïve café, ﬁn, Ⅷ ½ ² ٣ १२३",
        "日本語のテキスト、漢字とカタカナ・ー。中文文本测试，你好！ 한국어 텍스트",
        "مرحبا بالعالم שלום עולם Привет мир γειά σου नमस्ते दुनिया สวัสดี",
        "👩‍👩‍👧‍👦🏳️‍🌈👍🏽 e\u0301 a\u0301\u0323 =\u0338 \u0958\u0338 \u1100\u1161\u11a8",
        "\u00a0\u2009\u3000\u200b\u2028\u0085 \ufeff\u00ad",
        "<|endoftext|><s></s><bos><unk>[INST]<think></think><tool_call> <|im_start|>",
        "▁▁low▁line ▁ ▁▁▁ a▁",
        "'S 'Ll 'ſ ''s '",
        "a" * 70 + " " * 40 + "-" * 70 + "\n" * 40 + "0" * 20,
        "\U0001f9d1\U000e0067 \U00010400\U0001d4d0 𠀀𪛖",
    )


def check_against_tokenizers(vocabulary: Vocabulary) -> None:
    """Refuse the vocabulary where it and `tokenizers` do not say the same."""
    oracle = _oracle(vocabulary)
    for token, content in vocabulary.names.items():
        if oracle.token_to_id(content) != token:
            raise UnsupportedTokenizer.explain(
                f"id {oracle.token_to_id(content)} for the added token {content!r} of "
                f"{vocabulary.name}, as `tokenizers` numbers it",
                f"id {token} in the file",
                "mend the file's ids",
            )
    for text in (*stress_texts(), *_spelled_names(vocabulary)):
        if _lacks_a_byte_of(vocabulary, text):
            continue  # named in the notes, refused in texts
        expected = oracle.encode(text, add_special_tokens=False).ids
        found = _encoded(vocabulary, text)
        if found != expected:
            raise UnsupportedTokenizer.explain(
                f"{_short(expected)} for {json.dumps(text)}, as `tokenizers` encodes it",
                f"{_short(found)} by crosstok's reading of {vocabulary.name}",
                "please report this tokenizer",
            )


def _lacks_a_byte_of(vocabulary: Vocabulary, text: str) -> bool:
    spelled = vocabulary.spelling.spell(text).encode()
    return not set(vocabulary.missing_bytes).isdisjoint(spelled)


def _encoded(vocabulary: Vocabulary, text: str) -> list[int] | None:
    try:
        return vocabulary.encode(text)
    except BadInput:
        return None


def _oracle(vocabulary: Vocabulary) -> Any:
    from tokenizers import Tokenizer

    try:
        oracle = Tokenizer.from_str(vocabulary.source.decode())
    except Exception as error:  # tokenizers raises a bare Exception for every cause
        raise BadInput.explain(
            f"a tokenizer.json for {vocabulary.name}",
            f"one that `tokenizers` cannot read: {error}",
            "the file is damaged, or needs another version of tokenizers",
        ) from error
    oracle.encode_special_tokens = True
    # Files may ask for these, which act on finished encodings.
    oracle.no_truncation()
    oracle.no_padding()
    return oracle


def _spelled_names(vocabulary: Vocabulary) -> tuple[str, ...]:
    """The added tokens in a row, whole and half-typed; Gemma 3 has 6,415, hence the cut."""
    names = sorted(vocabulary.names.values(), key=lambda name: (len(name), name))
    few = [*names[:100], *names[-100:]]
    return ("".join(few), " ".join(name[:-1] + name for name in few))


def _short(ids: list[int] | None) -> str:
    return str(ids if ids is None or len(ids) < 40 else [*ids[:40], "…"])
