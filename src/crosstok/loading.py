"""Reading tokenizers: from a file, a `tokenizers` or transformers object, a hub id, or ranks.

Everything becomes the text of a ``tokenizer.json`` first, and that text is read here.  What cannot
be reproduced exactly is refused by name.  A vocabulary that was read is compared with `tokenizers`
on a stress text before anyone may use it; the outcome is cached with the arrays, by content and by
the version of `tokenizers`.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from crosstok import bpe, cache, hub
from crosstok.added import AddedTokens
from crosstok.compiling import (
    EMPTY_TRIE,
    assemble_merger,
    compile_arrays,
    refuse,
    spelling_order,
    whole_trie,
)
from crosstok.errors import BadInput, CrosstokError, UnsupportedTokenizer
from crosstok.selfcheck import check_against_tokenizers
from crosstok.splitting import Splitter, recognise
from crosstok.unicode import nfc
from crosstok.vocabulary import LOW_LINE, Kind, Spelling, Vocabulary

Json = dict[str, Any]
TOKENIZER = "tokenizer.json"
# Files beside it that name the tokens which end a text; the later one knows more of them.
CONFIGS = ("tokenizer_config.json", "generation_config.json")
BYTE_CONTENT = re.compile(r"<0x([0-9A-F]{2})>")  # as `tokenizers` spells a byte fallback


@dataclass(frozen=True, slots=True)
class Special:
    """Which ids begin and end a text; None means: as the tokenizer's own files say.

    ``config`` holds what the files beside the ``tokenizer.json`` say.
    """

    bos: tuple[int, ...] | None = None
    eos: frozenset[int] | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


def load(
    source: Any,
    *,
    name: str | None = None,
    bos: tuple[int, ...] | None = None,
    eos: frozenset[int] | set[int] | None = None,
    use_cache: bool = True,
) -> Vocabulary:
    """Read a tokenizer.

    ``source`` is a ``tokenizer.json``, a folder that holds one, a hub id (``"gpt2"``), a
    `tokenizers.Tokenizer`, or a transformers fast tokenizer; `crosstok.ranks` reads rank files.
    What begins and ends a text is taken from the files unless ``bos`` and ``eos`` say it.
    """
    if isinstance(source, Vocabulary):
        return source
    text, found_name, config = _json_of(source)
    special = Special(
        None if bos is None else tuple(bos), None if eos is None else frozenset(eos), config
    )
    return read_json(text, name=name or found_name, special=special, use_cache=use_cache)


def read_json(
    text: bytes, *, name: str, special: Special = Special(), use_cache: bool = True
) -> Vocabulary:
    """Read the text of a ``tokenizer.json``."""
    digest = hashlib.sha256(text).hexdigest()
    arrays = cache.fetch(digest) if use_cache else None
    if arrays is None:
        arrays = _compile_text(text, name)
        vocabulary = _assemble(arrays, text, digest, name, special)
        check_against_tokenizers(vocabulary)
        if use_cache:
            cache.keep(digest, arrays)
        return vocabulary
    return _assemble(arrays, text, digest, name, special)


def _compile_text(text: bytes, name: str) -> dict[str, Any]:
    data = _parse(text, name)
    try:
        return compile_json(data, name)
    except CrosstokError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise BadInput.explain(
            f"the parts of a tokenizer.json in {name}",
            f"{type(error).__name__}: {error}",
            "the file is damaged; fetch or save it again",
        ) from error


# -- where the JSON comes from --------------------------------------------------------------------


def _json_of(source: Any) -> tuple[bytes, str, Json]:
    if isinstance(source, (str, Path)):
        return _json_at(source)
    backend = getattr(source, "backend_tokenizer", source)
    if not hasattr(backend, "to_str"):
        raise UnsupportedTokenizer.explain(
            "a fast tokenizer, one with a tokenizer.json",
            f"an object of type {type(source).__name__}",
            "load it with use_fast=True, or give the path of its tokenizer.json",
        )
    config: Json = {}
    if backend is not source:
        wanted = ("eos_token_id", "bos_token", "add_bos_token", "name_or_path")
        config = {key: getattr(source, key, None) for key in wanted}
    name = Path(str(config.get("name_or_path") or "")).name or type(source).__name__
    return backend.to_str().encode(), name, config


def _json_at(source: str | Path) -> tuple[bytes, str, Json]:
    path = Path(source).expanduser()
    if path.suffix in {".tiktoken", ".model"} and path.is_file():
        raise UnsupportedTokenizer.explain(
            "a tokenizer.json",
            path.name,
            "read rank files with crosstok.ranks.load_tiktoken(path, splitter=...), and convert "
            "SentencePiece models with transformers first",
        )
    if path.is_dir():
        path = path / TOKENIZER
        if not path.is_file():
            raise BadInput.explain(
                "a tokenizer.json in the folder",
                f"none at {path}",
                "save the tokenizer with save_pretrained of a fast tokenizer",
            )
    if path.is_file():
        return path.read_bytes(), path.parent.name or path.name, _config_beside(path)
    if isinstance(source, Path) or not hub.may_be_an_id(source):
        raise BadInput.explain(
            "a tokenizer.json or a folder that holds one",
            f"nothing at {source}",
            "check the path; a hub id looks like owner/name",
        )
    path = hub.tokenizer_json(source)
    return path.read_bytes(), source.rsplit("/", 1)[-1], _config_beside(path)


def _config_beside(path: Path) -> Json:
    config: Json = {}
    for name in CONFIGS:
        beside = path.with_name(name)
        if beside.is_file():
            try:
                config.update(json.loads(beside.read_bytes()))
            except (ValueError, TypeError) as error:
                raise BadInput.explain(
                    f"a JSON object in {name} beside {path.name}",
                    str(error),
                    "mend the file, or move it away and say bos and eos yourself",
                ) from error
    return config


def _eos(special: Special, ids: Mapping[str, int]) -> frozenset[int]:
    """The ids that end a text: those that were given, or those that the files name."""
    if special.eos is not None:
        return special.eos
    by_id = special.config.get("eos_token_id")
    if by_id is not None:
        return frozenset(by_id if isinstance(by_id, list | tuple | set) else {by_id})
    content = _content(special.config.get("eos_token"))
    return frozenset({ids[content]} if content in ids else ())


def _bos(special: Special, template: list[int], ids: Mapping[str, int]) -> tuple[int, ...]:
    """The ids that begin a text: those that were given, or those that the files name."""
    if special.bos is not None:
        return special.bos
    content = _content(special.config.get("bos_token"))
    if not template and special.config.get("add_bos_token") is True and content in ids:
        return (ids[content],)
    return tuple(template)


def _content(token: Any) -> str:
    """The content of a token in a tokenizer_config.json: a string, or an object that holds it."""
    return str(token.get("content") if isinstance(token, dict) else token)


# -- what the JSON says ---------------------------------------------------------------------------


def _parse(text: bytes, name: str) -> Json:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise BadInput.explain(
            f"a tokenizer.json for {name}",
            f"what is no JSON: {error}",
            "the file is damaged; fetch or save it again",
        ) from error
    if not isinstance(data, dict) or not isinstance(data.get("model"), dict):
        raise BadInput.explain(
            f"a tokenizer.json for {name}",
            "JSON without a model",
            "give the tokenizer.json itself, not one of the files beside it",
        )
    return data


def check_model(model: Json, name: str) -> None:
    """The model must be plain BPE."""
    kind = model.get("type") or ("BPE" if "merges" in model else "an untyped model")
    if kind != "BPE":
        raise refuse(name, f"expected a BPE model, found {kind}")
    for key in ("continuing_subword_prefix", "end_of_word_suffix", "dropout"):
        if model.get(key):
            raise refuse(name, f"{key}={model[key]!r} is not supported")


def read_spelling(normalizer: Any, name: str) -> Spelling:
    """The normalizer steps that are understood: NFC, Prepend ▁, Replace space by ▁."""
    steps = _steps(normalizer, "normalizers")
    nfc_step = low_line = prefix = False
    for step in steps:
        kind = step.get("type")
        if kind == "NFC" and len(steps) == 1:
            nfc_step = True
        elif kind == "Prepend" and step.get("prepend") == LOW_LINE and not low_line:
            prefix = True
        elif (
            kind == "Replace"
            and step.get("pattern") == {"String": " "}
            and step.get("content") == LOW_LINE
        ):
            low_line = True
        else:
            raise refuse(name, f"unknown normalizer step {json.dumps(step)[:200]}")
    if prefix and not low_line:
        raise refuse(name, "a dummy prefix without spaces written as ▁")
    return Spelling(nfc_step, low_line, prefix)


def _steps(step: Any, key: str) -> list[Json]:
    if step is None:
        return []
    if step.get("type") == "Sequence":
        return [inner for part in step[key] for inner in _steps(part, key)]
    return [step]


def check_decoder(decoder: Any, spelling: Spelling, byte_level: bool, name: str) -> None:
    """The decoder must undo the spelling, or ids would not mean the bytes they seem to."""
    steps = _steps(decoder, "decoders")
    kinds = [step.get("type") for step in steps]
    expected = ["ByteLevel"] if byte_level else ["Replace", "ByteFallback", "Fuse"]
    if spelling.dummy_prefix:
        expected.append("Strip")
    if kinds != expected:
        raise refuse(name, f"expected decoder steps {expected}, found {kinds}")
    for step in steps:
        wanted = DECODER_STEPS.get(step["type"], {})
        if not wanted.items() <= step.items():
            raise refuse(name, f"unknown decoder step {json.dumps(step)[:200]}")


DECODER_STEPS: Mapping[str, Json] = {
    "Replace": {"pattern": {"String": LOW_LINE}, "content": " "},
    "Strip": {"content": " ", "start": 1, "stop": 0},
}


def compile_json(data: Json, name: str) -> dict[str, Any]:
    """All arrays of a vocabulary, from its JSON: what the cache keeps."""
    model = data["model"]
    check_model(model, name)
    spelling = read_spelling(data.get("normalizer"), name)
    byte_level = any(
        step.get("type") == "ByteLevel"
        for step in _steps(data.get("pre_tokenizer"), "pretokenizers")
    )
    if not byte_level and not model.get("byte_fallback"):
        raise refuse(name, "neither byte-level nor with byte fallback: text could be lost")
    if byte_level and spelling.low_line:
        raise refuse(name, "byte-level with spaces written as ▁")
    check_decoder(data.get("decoder"), spelling, byte_level, name)
    splitter = recognise(data.get("pre_tokenizer"), data.get("normalizer"))
    tokens = _read_tokens(data, byte_level, spelling, name)
    if model.get("ignore_merges"):
        if splitter.name == "none":
            raise refuse(name, "ignore_merges without a splitter: a whole text may be one token")
        for content in tokens.control.keys() & tokens.ids.keys():
            if len(splitter.pieces(content)) == 1:
                raise refuse(name, f"the special token {content!r} is also a whole piece of text")
    arrays = _compile_tokens(tokens, model, byte_level, spelling.nfc, name)
    arrays["meta"] = {
        "normalizer": data.get("normalizer"),
        "pre_tokenizer": data.get("pre_tokenizer"),
        "ignore_merges": bool(model.get("ignore_merges")),
        "added": tokens.text_added,
        "control": tokens.control,
        "hiding": tokens.hiding,
        "bos": _template_bos(data.get("post_processor")),
    }
    return arrays


@dataclass(slots=True)
class Tokens:
    """The vocabulary's ids as lists: spelling and kind of each, and the added tokens by content."""

    spelled: list[bytes]
    kinds: np.ndarray[Any, np.dtype[np.uint8]]
    ids: dict[str, int]
    text_added: dict[str, int]
    control: dict[str, int]
    hiding: list[str]  # the control tokens that are searched together with the text-added ones


def _read_tokens(data: Json, byte_level: bool, spelling: Spelling, name: str) -> Tokens:
    vocab: dict[str, int] = data["model"]["vocab"]
    # `tokenizers` passes over added tokens without content.
    added: list[Json] = [token for token in data.get("added_tokens") or [] if token["content"]]
    if len(set(vocab.values())) < len(vocab):
        raise refuse(name, "two contents with the same id")
    size = 1 + max([*vocab.values(), *(token["id"] for token in added)])
    spelled = [b""] * size
    kinds = np.zeros(size, np.uint8)
    write = byte_level_spelling if byte_level else plain_spelling
    for content, token in vocab.items():
        spelled[token], kinds[token] = write(content)
    text_added, control = _read_added(added, byte_level, spelling, name)
    for token in control.values():
        spelled[token], kinds[token] = b"", Kind.CONTROL
    for content, token in text_added.items():
        spelled[token], kinds[token] = content.encode(), Kind.TEXT
    unk = data["model"].get("unk_token")
    if unk is not None and unk in vocab:
        spelled[vocab[unk]], kinds[vocab[unk]] = b"", Kind.CONTROL
    _check_control(control, vocab, byte_level, name)
    return Tokens(spelled, kinds, vocab, text_added, control, _hiding(added))


def _check_control(
    control: Mapping[str, int], vocab: Mapping[str, int], byte_level: bool, name: str
) -> None:
    """A special token that is a symbol of text would be control and text at once."""
    write = byte_level_spelling if byte_level else plain_spelling
    for content in control.keys() & vocab.keys():
        spelled, kind = write(content)
        single = len(spelled if byte_level else content) == 1
        if kind == Kind.BYTE or (kind == Kind.TEXT and single):
            raise refuse(name, f"the special token {content!r} is also a symbol of text")


def _hiding(added: list[Json]) -> list[str]:
    """`tokenizers` searches what is matched before normalisation apart from what is after."""
    searched = {bool(token["normalized"]) for token in added if not token["special"]}
    return [
        token["content"]
        for token in added
        if token["special"] and bool(token["normalized"]) in searched
    ]


def byte_level_spelling(content: str) -> tuple[bytes, Kind]:
    """Bytes of a byte-level token; a content with other characters can never be produced."""
    try:
        return bytes([BYTE_OF_CHARACTER[character] for character in content]), Kind.TEXT
    except KeyError:
        return b"", Kind.ABSENT


def plain_spelling(content: str) -> tuple[bytes, Kind]:
    """Spelling of a SentencePiece-type token; ``<0x0A>`` is the byte 0A."""
    byte = BYTE_CONTENT.fullmatch(content)
    return (bytes.fromhex(byte[1]), Kind.BYTE) if byte else (content.encode(), Kind.TEXT)


def _byte_characters() -> dict[str, int]:
    """The characters that GPT-2 writes for bytes: printable ones for themselves, others shifted."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in set(printable))
    table.update({chr(256 + shift): byte for shift, byte in enumerate(others)})
    return table


BYTE_OF_CHARACTER = _byte_characters()


def _read_added(
    added: list[Json], byte_level: bool, spelling: Spelling, name: str
) -> tuple[dict[str, int], dict[str, int]]:
    text = {token["content"]: token["id"] for token in added if not token["special"]}
    control = {token["content"]: token["id"] for token in added if token["special"]}
    for token in added:
        if not token["special"]:
            _check_text_added(token, byte_level, spelling, name)
    for inner in text:
        for outer in control:
            if inner in outer:
                raise refuse(name, f"added token {inner!r} lies inside the special {outer!r}")
    if len({bool(token["normalized"]) for token in added if not token["special"]}) > 1:
        raise refuse(name, "added tokens matched before and after normalisation together")
    return text, control


def _check_text_added(token: Json, byte_level: bool, spelling: Spelling, name: str) -> None:
    content = token["content"]
    for flag in ("single_word", "lstrip", "rstrip"):
        if token.get(flag):
            raise refuse(name, f"added token {content!r} with {flag}")
    if token.get("normalized") and spelling != Spelling():
        raise refuse(name, f"added token {content!r} is matched after normalisation")
    if spelling.nfc and nfc(content) != content:
        raise refuse(name, f"added token {content!r} is not in normal form")
    odd = byte_level and not content.isascii()
    if odd and all(character in BYTE_OF_CHARACTER for character in content):
        raise refuse(name, f"added token {content!r} decodes to other bytes than it matches")


def _template_bos(post_processor: Any) -> list[int]:
    """The special ids that a template puts before a text."""
    for step in _steps(post_processor, "processors"):
        if step.get("type") == "TemplateProcessing":
            found: list[int] = []
            for part in step["single"]:
                if "SpecialToken" not in part:
                    return found
                found += step["special_tokens"][part["SpecialToken"]["id"]]["ids"]
    return []


# -- compiling ------------------------------------------------------------------------------------


def _compile_tokens(
    tokens: Tokens, model: Json, byte_level: bool, normalised: bool, name: str
) -> dict[str, Any]:
    # Writable like arrays from the cache, or every kernel would be compiled once for each.
    blob = np.frombuffer(bytearray(b"".join(tokens.spelled)), np.uint8)
    at = np.zeros(len(tokens.spelled) + 1, np.int64)
    np.cumsum([len(spelled) for spelled in tokens.spelled], out=at[1:])
    left, right, result = _read_merges(model, tokens.ids, name)
    clash = result[tokens.kinds[result] == Kind.CONTROL]
    if len(clash):
        raise refuse(name, f"the special ids {set(clash[:5].tolist())} also come out of merges")
    arrays = compile_arrays(
        blob, at, tokens.kinds, left, right, result, byte_level, normalised, name
    )
    # A piece can only be found whole in the model itself, not among the added tokens.
    inside = np.array(sorted(tokens.ids.values()))
    spelled = (tokens.kinds[inside] == Kind.TEXT) & (np.diff(at)[inside] > 0)
    arrays["whole_order"] = spelling_order(blob, at, inside[spelled])
    return arrays


def _pairs(model: Json) -> list[list[str]]:
    return [rule.split(" ") if isinstance(rule, str) else rule for rule in model["merges"]]


def _read_merges(
    model: Json, ids: Mapping[str, int], name: str
) -> tuple[bpe.I32, bpe.I32, bpe.I32]:
    pairs = _pairs(model)
    try:
        left = [ids[pair[0]] for pair in pairs]
        right = [ids[pair[1]] for pair in pairs]
        result = [ids[pair[0] + pair[1]] for pair in pairs]
    except (KeyError, IndexError) as error:
        raise BadInput.explain(
            f"merges between tokens of the vocabulary in {name}",
            f"{error}, which is none",
            "the file is damaged; fetch or save it again",
        ) from error
    return (np.array(left, np.int32), np.array(right, np.int32), np.array(result, np.int32))


def _assemble(
    arrays: dict[str, Any], text: bytes, digest: str, name: str, special: Special
) -> Vocabulary:
    meta = arrays["meta"]
    splitter: Splitter = recognise(meta["pre_tokenizer"], meta["normalizer"])
    spelling = read_spelling(meta["normalizer"], name)
    merger = assemble_merger(arrays)
    whole = whole_trie(arrays) if meta["ignore_merges"] else EMPTY_TRIE
    names = {token: content for content, token in {**meta["added"], **meta["control"]}.items()}
    ids = {content: token for token, content in names.items()}
    vocabulary = Vocabulary(
        name=name, digest=digest, spelling=spelling, splitter=splitter,
        added=AddedTokens(
            {content.encode(): token for content, token in meta["added"].items()},
            [content.encode() for content in meta["hiding"]],
        ),
        merger=merger, whole=whole, ignore_merges=meta["ignore_merges"],
        kinds=arrays["kinds"], reachable=arrays["reachable"],
        glued=bpe.Glue(not bool(arrays["characters"][0]), arrays["glued"]),
        left=arrays["left"], right=arrays["right"],
        bos=_bos(special, meta["bos"], ids), eos=_eos(special, ids), names=names,
        notes=(), source=text,
    )  # fmt: skip
    vocabulary.check_ids([*vocabulary.bos, *vocabulary.eos])
    object.__setattr__(vocabulary, "notes", _notes(vocabulary))
    return vocabulary


def _notes(vocabulary: Vocabulary) -> tuple[str, ...]:
    missing = vocabulary.missing_bytes
    if not missing:
        return ()
    return (f"no symbol for {len(missing)} bytes ({missing.hex(' ')}): text with them is refused",)
