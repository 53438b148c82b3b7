"""Small tokenizers of several families, as the text of a tokenizer.json."""

from __future__ import annotations

import json

from crosstok.loading import BYTE_OF_CHARACTER, read_json

BYTE_LEVEL = {
    "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True,
}  # fmt: skip
DIGITS = {"type": "Digits", "individual_digits": True}
FLAGS = {"normalized": False, "single_word": False, "lstrip": False, "rstrip": False}
LOW_LINE_DECODER = [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "ByteFallback"},
    {"type": "Fuse"},
]

# White space, scripts, marks in an order that NFC changes, cut characters, what HTML must escape.
NASTY = (
    "ab  cab\tc\r\n\n a=\u0338b e\u0301\u0323 a\u200db \u202eab <script>alert('x')</script> &amp; "
    "\u00a0▁ ▁a 你好 👩‍🔬 \x1b[0m \x00 \u0915\u094d\u0928 ab12 123\n   ab"
)
NASTY_WITHOUT_LOW_LINE = NASTY.replace("▁", "_")


def rules(written):
    """``"a·b ab·c"`` as merges; G is a byte-level space."""
    return [rule.replace("G", "Ġ").split("·") for rule in written.split()]


def added_tokens(first, added, control):
    words = [(word, False) for word in added] + [(word, True) for word in control]
    return [
        {**FLAGS, "id": first + k, "content": word, "special": special}
        for k, (word, special) in enumerate(words)
    ]


def model(contents, merges, **settings):
    vocab = {content: k for k, content in enumerate(contents)}
    return {"type": "BPE", "vocab": vocab, "merges": merges, **settings}


def document(contents, merges, added, control, **parts):
    tokens = added_tokens(len(contents), added, control)
    settings = parts.pop("settings", {})
    whole = {"version": "1.0", "added_tokens": tokens, "post_processor": None, **parts}
    return json.dumps({**whole, "model": model(contents, merges, **settings)})


def byte_level(merges="", *, nfc=False, digits=False, added=(), control=("<|end|>",)):
    """Byte-level with GPT-2's splitter, or SmolLM2's if digits are split off."""
    merges = rules(merges)
    contents = [*BYTE_OF_CHARACTER, *dict.fromkeys(a + b for a, b in merges)]
    step = {"type": "Sequence", "pretokenizers": [DIGITS, BYTE_LEVEL]} if digits else BYTE_LEVEL
    return document(
        contents, merges, added, control,
        normalizer={"type": "NFC"} if nfc else None, pre_tokenizer=step, decoder=BYTE_LEVEL,
    )  # fmt: skip


def low_line(merges="", *, dummy=False, control=("<s>", "</s>")):
    """Characters with byte fallback, spaces written ▁, no splitter."""
    merges = rules(merges)
    contents = [*(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"abcdefgh"]
    contents += dict.fromkeys(a + b for a, b in merges)
    steps = [{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]
    undo = list(LOW_LINE_DECODER)
    if dummy:
        steps.insert(0, {"type": "Prepend", "prepend": "▁"})
        undo.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return document(
        contents, merges, (), control,
        normalizer={"type": "Sequence", "normalizers": steps}, pre_tokenizer=None,
        decoder={"type": "Sequence", "decoders": undo},
        settings={"byte_fallback": True, "fuse_unk": True},
    )  # fmt: skip


def toy(text, name="toy"):
    """The vocabulary that a tokenizer.json describes."""
    return read_json(text.encode(), name=name, use_cache=False)


def families():
    """One tokenizer of each way to write a text."""
    return {
        "bytes": toy(byte_level("a·b G·a ab·c", added=["<tool>"]), "bytes"),
        "nfc": toy(byte_level("b·c G·a", nfc=True, digits=True), "nfc"),
        "low line": toy(low_line("a·b ▁·a ▁·▁ ab·c"), "low line"),
        "dummy": toy(low_line("b·c ▁·a", dummy=True), "dummy"),
    }
