"""Reading tokenizers: from a file, a `tokenizers` or transformers object, a hub id, or ranks.

Everything becomes the text of a ``tokenizer.json`` first, and that text is read here.  What cannot
be reproduced exactly is refused by name.  A vocabulary that was read is compared with `tokenizers`
on a stress text before anyone may use it; the outcome is cached with the arrays, by content and by
the version of `tokenizers`.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosstok import bpe, cache
from crosstok.added import AddedTokens
from crosstok.errors import BadInput, UnsupportedTokenizer
from crosstok.selfcheck import check_against_tokenizers
from crosstok.splitting import Splitter, recognise
from crosstok.unicode import nfc
from crosstok.vocabulary import LOW_LINE, Kind, Spelling, Vocabulary

Json = dict[str, Any]
CODE_POINTS = 0x110000


@dataclass(frozen=True, slots=True)
class Special:
    """Which ids begin and end a text; None means: as the tokenizer's own files say."""

    bos: tuple[int, ...] | None = None
    eos: frozenset[int] | None = None


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
    `tokenizers.Tokenizer`, or a transformers fast tokenizer.  `load_tiktoken` reads rank files.
    """
    if isinstance(source, Vocabulary):
        return source
    text, found_name, config = _json_of(source)
    special = _special(text, config, bos, eos)
    return read_json(text, name=name or found_name, special=special, use_cache=use_cache)


def read_json(
    text: bytes, *, name: str, special: Special = Special(), use_cache: bool = True
) -> Vocabulary:
    """Read the text of a ``tokenizer.json``."""
    digest = hashlib.sha256(text).hexdigest()
    arrays = cache.fetch(digest) if use_cache else None
    if arrays is None:
        arrays = compile_json(_parse(text, name), name)
        vocabulary = _assemble(arrays, text, digest, name, special)
        check_against_tokenizers(vocabulary)
        if use_cache:
            cache.keep(digest, arrays)
        return vocabulary
    return _assemble(arrays, text, digest, name, special)


# -- where the JSON comes from --------------------------------------------------------------------


def _json_of(source: Any) -> tuple[bytes, str, Json]:
    if isinstance(source, (str, Path)):
        return _json_at(source)
    backend = getattr(source, "backend_tokenizer", source)
    if not hasattr(backend, "to_str"):
        raise UnsupportedTokenizer(
            f"expected a fast tokenizer (one with a tokenizer.json), found {type(source).__name__}; "
            "load it with use_fast=True, or give the path of its tokenizer.json"
        )
    config: Json = {}
    if backend is not source:
        config = {
            "eos_token_id": getattr(source, "eos_token_id", None),
            "name_or_path": getattr(source, "name_or_path", ""),
        }
    name = str(config.get("name_or_path") or type(source).__name__)
    return backend.to_str().encode(), Path(name).name or name, config


def _json_at(source: str | Path) -> tuple[bytes, str, Json]:
    path = Path(source)
    if path.suffix in {".tiktoken", ".model"} and path.is_file():
        raise UnsupportedTokenizer(
            f"expected a tokenizer.json, found {path.name}; "
            "read rank files with load_tiktoken(path, splitter=...), and convert SentencePiece "
            "models with transformers first"
        )
    if path.is_dir():
        path = path / "tokenizer.json"
        if not path.is_file():
            raise BadInput(
                f"expected a tokenizer.json in the folder, found none at {path}; "
                "save the tokenizer with save_pretrained of a fast tokenizer"
            )
    if path.is_file():
        return path.read_bytes(), path.parent.name or path.name, _config_beside(path)
    return _from_hub(str(source))


def _from_hub(name: str) -> tuple[bytes, str, Json]:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_pretrained(name)
    except Exception as error:  # tokenizers raises a bare Exception for every cause
        raise BadInput(
            f"expected a path or a hub id, found {name!r}: no such file here, and the hub answered: "
            f"{error}; check the spelling, log in for gated models, or give a local path"
        ) from error
    return tokenizer.to_str().encode(), name.rsplit("/", 1)[-1], {}


def _config_beside(path: Path) -> Json:
    config: Json = {}
    for name in ("tokenizer_config.json", "generation_config.json"):
        beside = path.with_name(name)
        if beside.is_file():
            config.update(json.loads(beside.read_bytes()))
    return config


def _special(text: bytes, config: Json, bos: Any, eos: Any) -> Special:
    ids = _added_ids(text)
    if eos is None:
        eos = _eos_from(config, ids)
    return Special(None if bos is None else tuple(bos), None if eos is None else frozenset(eos))


def _added_ids(text: bytes) -> dict[str, int]:
    """Contents of the added tokens, cut out of the JSON without parsing the rest."""
    at = text.find(b'"added_tokens"')
    if at < 0:
        return {}
    start = text.index(b"[", at)
    found, _ = json.JSONDecoder().raw_decode(text[start:].decode())
    return {token["content"]: token["id"] for token in found}


def _eos_from(config: Json, ids: Mapping[str, int]) -> set[int] | None:
    by_id = config.get("eos_token_id")
    if by_id is not None:
        return set(by_id) if isinstance(by_id, list) else {int(by_id)}
    token = config.get("eos_token")
    content = token.get("content") if isinstance(token, dict) else token
    return {ids[content]} if content in ids else None


# -- what the JSON says ---------------------------------------------------------------------------


def _parse(text: bytes, name: str) -> Json:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise BadInput(f"expected a tokenizer.json for {name}, found no JSON: {error}") from error
    if not isinstance(data, dict) or "model" not in data:
        raise BadInput(f"expected a tokenizer.json for {name}, found JSON without a model")
    return data


def _refuse(name: str, what: str) -> UnsupportedTokenizer:
    return UnsupportedTokenizer(
        f"{name}: {what}. crosstok refuses what it cannot reproduce exactly; "
        "see docs/THEORY.md for what is supported"
    )


def check_model(model: Json, name: str) -> None:
    """The model must be plain BPE."""
    kind = model.get("type") or ("BPE" if "merges" in model else "an untyped model")
    if kind != "BPE":
        raise _refuse(name, f"expected a BPE model, found {kind}")
    for key in ("continuing_subword_prefix", "end_of_word_suffix", "dropout"):
        if model.get(key):
            raise _refuse(name, f"{key}={model[key]!r} is not supported")


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
            raise _refuse(name, f"unknown normalizer step {json.dumps(step)[:200]}")
    if prefix and not low_line:
        raise _refuse(name, "a dummy prefix without spaces written as ▁")
    return Spelling(nfc_step, low_line, prefix)


def _steps(step: Any, key: str) -> list[Json]:
    if step is None:
        return []
    if step.get("type") == "Sequence":
        return [inner for part in step[key] for inner in _steps(part, key)]
    return [step]


def check_decoder(decoder: Any, spelling: Spelling, byte_level: bool, name: str) -> None:
    """The decoder must undo the spelling, or ids would not mean the bytes they seem to."""
    kinds = [step.get("type") for step in _steps(decoder, "decoders")]
    expected = ["ByteLevel"] if byte_level else ["Replace", "ByteFallback", "Fuse"]
    if spelling.dummy_prefix:
        expected.append("Strip")
    if kinds != expected:
        raise _refuse(name, f"expected decoder steps {expected}, found {kinds}")


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
        raise _refuse(name, "neither byte-level nor with byte fallback: text could be lost")
    if byte_level and spelling.low_line:
        raise _refuse(name, "byte-level with spaces written as ▁")
    check_decoder(data.get("decoder"), spelling, byte_level, name)
    recognise(data.get("pre_tokenizer"), data.get("normalizer"))
    tokens = _read_tokens(data, byte_level, spelling, name)
    arrays = _compile_tokens(tokens, model, byte_level, spelling.nfc, name)
    arrays["meta"] = {
        "normalizer": data.get("normalizer"),
        "pre_tokenizer": data.get("pre_tokenizer"),
        "ignore_merges": bool(model.get("ignore_merges")),
        "added": tokens.text_added,
        "control": tokens.control,
        "bos": _bos(data.get("post_processor")),
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


def _read_tokens(data: Json, byte_level: bool, spelling: Spelling, name: str) -> Tokens:
    vocab: dict[str, int] = data["model"]["vocab"]
    added: list[Json] = data.get("added_tokens") or []
    size = 1 + max([*vocab.values(), *(token["id"] for token in added)])
    spelled = [b""] * size
    kinds = np.zeros(size, np.uint8)
    write = byte_level_spelling if byte_level else plain_spelling
    for content, token in vocab.items():
        spelled[token], kinds[token] = write(content)
    text_added, control = _read_added(added, byte_level, spelling, name)
    for content, token in control.items():
        spelled[token], kinds[token] = b"", Kind.CONTROL
    for content, token in text_added.items():
        spelled[token], kinds[token] = content.encode(), Kind.TEXT
    unk = data["model"].get("unk_token")
    if unk is not None and unk in vocab:
        spelled[vocab[unk]], kinds[vocab[unk]] = b"", Kind.CONTROL
    return Tokens(spelled, kinds, vocab, text_added, control)


def byte_level_spelling(content: str) -> tuple[bytes, Kind]:
    """Bytes of a byte-level token; a content with other characters can never be produced."""
    try:
        return bytes([BYTE_OF_CHARACTER[character] for character in content]), Kind.TEXT
    except KeyError:
        return b"", Kind.ABSENT


def plain_spelling(content: str) -> tuple[bytes, Kind]:
    """Spelling of a SentencePiece-type token; ``<0x0A>`` is the byte 0A."""
    if len(content) == 6 and content.startswith("<0x") and content.endswith(">"):
        return bytes([int(content[3:5], 16)]), Kind.BYTE
    return content.encode(), Kind.TEXT


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
                raise _refuse(name, f"added token {inner!r} lies inside the special {outer!r}")
    if len({bool(token["normalized"]) for token in added if not token["special"]}) > 1:
        raise _refuse(name, "added tokens matched before and after normalisation together")
    return text, control


def _check_text_added(token: Json, byte_level: bool, spelling: Spelling, name: str) -> None:
    content = token["content"]
    for flag in ("single_word", "lstrip", "rstrip"):
        if token.get(flag):
            raise _refuse(name, f"added token {content!r} with {flag}")
    if token.get("normalized") and spelling != Spelling():
        raise _refuse(name, f"added token {content!r} is matched after normalisation")
    if spelling.nfc and nfc(content) != content:
        raise _refuse(name, f"added token {content!r} is not in normal form")
    odd = byte_level and not content.isascii()
    if odd and all(character in BYTE_OF_CHARACTER for character in content):
        raise _refuse(name, f"added token {content!r} decodes to other bytes than it matches")


def _bos(post_processor: Any) -> list[int]:
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
    blob = np.frombuffer(b"".join(tokens.spelled), np.uint8)
    at = np.zeros(len(tokens.spelled) + 1, np.int64)
    np.cumsum([len(spelled) for spelled in tokens.spelled], out=at[1:])
    left, right, result = _read_merges(model, tokens.ids, name)
    return compile_arrays(blob, at, tokens.kinds, left, right, result, byte_level, normalised, name)


def _read_merges(model: Json, ids: Mapping[str, int], name: str) -> tuple[bpe.I32, bpe.I32, bpe.I32]:
    pairs = [rule.split(" ") if isinstance(rule, str) else rule for rule in model["merges"]]
    try:
        left = [ids[pair[0]] for pair in pairs]
        right = [ids[pair[1]] for pair in pairs]
        result = [ids[pair[0] + pair[1]] for pair in pairs]
    except (KeyError, IndexError) as error:
        raise BadInput(
            f"{name}: expected merges between tokens of the vocabulary, found {error} in none; "
            "the file is damaged"
        ) from error
    return (np.array(left, np.int32), np.array(right, np.int32), np.array(result, np.int32))


def compile_arrays(
    blob: bpe.U8,
    at: bpe.I64,
    kinds: bpe.U8,
    left: bpe.I32,
    right: bpe.I32,
    result: bpe.I32,
    byte_level: bool,
    normalised: bool,
    name: str,
    rank: bpe.I32 | None = None,
) -> dict[str, Any]:
    """Derivations, spines, tries and cuts from spellings and merges."""
    if np.any(kinds[np.concatenate([left, right, result])] == Kind.BYTE):
        raise _refuse(name, "merges of byte-fallback tokens")
    rank = np.arange(len(left), dtype=np.int32) if rank is None else rank
    merges = bpe.MergeTable(*bpe.hash_pairs(left, right), rank, result)
    atoms = read_atoms(blob, at, kinds, byte_level)
    parts = bpe.derive(blob, at, kinds == Kind.TEXT, atoms, merges)
    part_left, part_right, left_seg, right_seg, reachable = parts
    reachable = _producible(reachable, blob, at, normalised)
    _check_control(reachable, kinds, name)
    spines = bpe.build_spines(part_left, part_right, left_seg, right_seg)
    order = spelling_order(blob, at, np.flatnonzero(reachable))
    whole = spelling_order(blob, at, np.flatnonzero((kinds == Kind.TEXT) & (np.diff(at) > 0)))
    arrays: dict[str, Any] = {
        "blob": blob, "at": at, "kinds": kinds, "reachable": reachable,
        "merge_left": left, "merge_right": right, "rank": rank, "result": result,
        "left": part_left, "right": part_right,
        "of_byte": atoms.of_byte, "characters": np.array([not byte_level]),
    }  # fmt: skip
    arrays.update({f"spine_{k}": array for k, array in enumerate(spines)})
    arrays.update(zip(TRIE_KEYS, (*bpe.build_trie(blob, at, order), order), strict=True))
    arrays["whole_order"] = whole
    arrays["glued"] = np.empty(0, np.int64) if byte_level else bpe.glued_pairs(blob, at, order)
    return arrays


TRIE_KEYS = ("child", "label", "token", "low", "high", "sorted")


def read_atoms(blob: bpe.U8, at: bpe.I64, kinds: bpe.U8, byte_level: bool) -> bpe.Atoms:
    """The first symbol of every byte, and of every character where characters are the atoms."""
    lengths = np.diff(at)
    of_byte = np.full(256, bpe.NONE, np.int32)
    single = np.flatnonzero((lengths == 1) & (kinds == (Kind.TEXT if byte_level else Kind.BYTE)))
    of_byte[blob[at[single]]] = single
    if byte_level:
        return bpe.Atoms(False, of_byte, np.full(1, bpe.NONE, np.int32))
    of_char = np.full(CODE_POINTS, bpe.NONE, np.int32)
    for token in np.flatnonzero((lengths > 0) & (lengths <= 4) & (kinds == Kind.TEXT)).tolist():
        spelled = blob[at[token] : at[token + 1]].tobytes().decode("utf-8")
        if len(spelled) == 1:
            of_char[ord(spelled)] = token
    return bpe.Atoms(True, of_byte, of_char)


def _producible(reachable: bpe.Bool, blob: bpe.U8, at: bpe.I64, normalised: bool) -> bpe.Bool:
    """Where text is normalised first, a token whose own text is not normal never occurs."""
    if not normalised:
        return reachable
    data, offsets = blob.tobytes(), at.tolist()
    reachable = reachable.copy()
    for token in np.flatnonzero(reachable).tolist():
        spelled = data[offsets[token] : offsets[token + 1]]
        if not spelled.isascii() and not _is_normal(spelled):
            reachable[token] = False
    return reachable


def _is_normal(spelled: bytes) -> bool:
    text = spelled.decode("utf-8", errors="ignore")
    return nfc(text) == text


def _check_control(reachable: bpe.Bool, kinds: bpe.U8, name: str) -> None:
    clash = np.flatnonzero(reachable & (kinds == Kind.CONTROL))
    if len(clash):
        raise _refuse(name, f"special ids {clash[:5].tolist()} can also come out of merges")


def spelling_order(blob: bpe.U8, at: bpe.I64, tokens: np.ndarray[Any, Any]) -> bpe.I32:
    """Tokens in the order of their spellings, one for each spelling (the lowest id)."""
    data, offsets = blob.tobytes(), at.tolist()
    spelled = {}
    for token in reversed(tokens.tolist()):
        spelled[data[offsets[token] : offsets[token + 1]]] = token
    return np.array([spelled[key] for key in sorted(spelled)], np.int32)


def _assemble(
    arrays: dict[str, Any], text: bytes, digest: str, name: str, special: Special
) -> Vocabulary:
    meta = arrays["meta"]
    splitter: Splitter = recognise(meta["pre_tokenizer"], meta["normalizer"])
    spelling = read_spelling(meta["normalizer"], name)
    merger = assemble_merger(arrays)
    whole = _whole_trie(arrays) if meta["ignore_merges"] else EMPTY_TRIE
    names = {token: content for content, token in {**meta["added"], **meta["control"]}.items()}
    eos = special.eos if special.eos is not None else frozenset()
    bos = special.bos if special.bos is not None else tuple(meta["bos"])
    vocabulary = Vocabulary(
        name=name, digest=digest, spelling=spelling, splitter=splitter,
        added=AddedTokens(
            {content.encode(): token for content, token in meta["added"].items()},
            [content.encode() for content in meta["control"]],
        ),
        merger=merger, whole=whole, ignore_merges=meta["ignore_merges"],
        kinds=arrays["kinds"], reachable=arrays["reachable"], glued=arrays["glued"],
        left=arrays["left"], right=arrays["right"],
        bos=bos, eos=eos, names=names, notes=(), source=text,
    )  # fmt: skip
    object.__setattr__(vocabulary, "notes", _notes(vocabulary))
    return vocabulary


def assemble_merger(arrays: dict[str, Any]) -> bpe.Merger:
    """The kernels' view of the arrays; the hash table and character table are made anew."""
    merges = bpe.MergeTable(
        *bpe.hash_pairs(arrays["merge_left"], arrays["merge_right"]),
        arrays["rank"], arrays["result"],
    )  # fmt: skip
    byte_level = not bool(arrays["characters"][0])
    atoms = read_atoms(arrays["blob"], arrays["at"], arrays["kinds"], byte_level)
    spines = bpe.Spines(*(arrays[f"spine_{k}"] for k in range(6)))
    trie = bpe.Trie(*(arrays[key] for key in TRIE_KEYS))
    longest = int(np.diff(arrays["at"]).max(initial=1))
    return bpe.Merger(merges, atoms, spines, trie, arrays["blob"], arrays["at"], longest)


def _whole_trie(arrays: dict[str, Any]) -> bpe.Trie:
    order = arrays["whole_order"]
    return bpe.Trie(*bpe.build_trie(arrays["blob"], arrays["at"], order), order)


def _empty_trie() -> bpe.Trie:
    zero, byte = np.zeros(1, np.int32), np.zeros(1, np.uint8)
    return bpe.Trie(np.ones(2, np.int32), byte, zero - 1, zero, zero, np.empty(0, np.int32))


EMPTY_TRIE = _empty_trie()


def _notes(vocabulary: Vocabulary) -> tuple[str, ...]:
    missing = vocabulary.missing_bytes
    if not missing:
        return ()
    return (f"no symbol for {len(missing)} bytes ({missing.hex(' ')}): text with them is refused",)
