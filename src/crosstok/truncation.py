"""The first merges of a vocabulary as a vocabulary of its own: a **rank prefix**.

A prefix of the merge list makes a smaller tokenizer of the same text: its encoding is a stage of
the longer run, so that every token of the source stands for fixed tokens of the result (proof:
docs/theory/conversion.md).  Two things decide what is kept.

* A token is **made** when the last of the merges that build it is reached (`Derivations.birth`).
  Merges and tokens are not the same number: many merges of a file never fire, and parts may come
  later than their use.
* `ignore_merges` is written off, and tokens that only it could reach are dropped, for with it the
  proof fails.

>>> from crosstok.loading import load
>>> t = truncate(load(folder), tokens=16_000)  # doctest: +SKIP
>>> print(t)  # doctest: +SKIP
>>> t.write("small", like=folder)  # doctest: +SKIP
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crosstok import bpe
from crosstok.errors import BadInput
from crosstok.jit import njit
from crosstok.loading import Special, read_json
from crosstok.vocabulary import Kind, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    Json = dict[str, Any]

# Files that describe a tokenizer beside tokenizer.json: with ours they would contradict it.
STALE = (
    "tokenizer.model", "vocab.json", "merges.txt", "added_tokens.json", "vocab.txt",
    "tekken.json", "spiece.model", "sentencepiece.bpe.model", "tiktoken.model",
)  # fmt: skip
TEMPLATES = ("chat_template.jinja", "chat_template.json", "additional_chat_templates")


class Derivations(NamedTuple):
    """Which merge makes each token, and when (docs/theory/conversion.md, The merges that fire)."""

    rank: bpe.I32  # of a token's last merge; NONE for atoms and for tokens that merging cannot make
    birth: bpe.I32  # the highest rank among all merges of the token's own run, likewise
    tokens: bpe.I32  # the merged tokens in the order of their last merges


def derivations(vocabulary: Vocabulary) -> Derivations:
    """The merges that ever fire: one for each token that merging can make."""
    merger = vocabulary.merger
    rank, birth = _derivations(vocabulary.left, vocabulary.right, merger.spines, merger.merges)
    made = np.flatnonzero(rank != bpe.NONE)
    return Derivations(rank, birth, made[np.argsort(rank[made])].astype(np.int32))


@njit(cache=True)
def _derivations(
    left: bpe.I32, right: bpe.I32, spines: bpe.Spines, merges: bpe.MergeTable
) -> tuple[bpe.I32, bpe.I32]:
    rank = np.full(len(left), bpe.NONE, np.int32)
    birth = np.full(len(left), bpe.NONE, np.int32)
    for token in range(len(left)):
        if left[token] == bpe.NONE:
            continue
        rank[token] = merges.rank[bpe.find_merge(merges, left[token], right[token])]
        # The segments of a spine, from its atom to the token, hold every event of the run.
        for k in range(spines.right_at[token], spines.right_at[token + 1] - 1):
            birth[token] = max(birth[token], spines.right_seg[k])
    return rank, birth


def base_tokens(vocabulary: Vocabulary) -> bpe.I64:
    """The ids of atoms: single bytes, characters, and the bytes that characters fall back to."""
    atoms = vocabulary.merger.atoms
    found = np.unique(np.concatenate([atoms.of_byte, atoms.of_char]))
    return np.array(found[found != bpe.NONE], np.int64)


def relative_decoding(native: Vocabulary, target: Vocabulary) -> tuple[bpe.I64, bpe.I32] | None:
    """The target tokens of each native token as merging alone makes them, as (at, ids).

    Ids that stand for no text have none.  The result is None where the target has no symbol for
    some native token.
    """
    whole = untouched(native, target)
    merged = np.flatnonzero((native.kinds == Kind.TEXT) & (np.diff(native.merger.at) > 0))
    merged = np.array([t for t in merged.tolist() if t not in whole], np.int64)
    found = _merge_each(native, merged, target)
    if found is None or bpe.NONE in whole.values():
        return None
    counts = np.zeros(native.size + 1, np.int64)
    counts[merged + 1] = found[0]
    alone = np.array(sorted(whole), np.int64)
    counts[alone + 1] = 1
    at = np.cumsum(counts)
    ids = np.empty(at[-1], np.int32)
    ids[at[alone]] = [whole[token] for token in alone.tolist()]
    ids[np.setdiff1d(np.arange(len(ids)), at[alone], assume_unique=True)] = found[1]
    return at, ids


def untouched(native: Vocabulary, target: Vocabulary) -> dict[int, int]:
    """Tokens that no merging touches: fallback bytes, and text-added tokens as they match.

    An added token written with ▁ matches text that no decoding gives; it counts as its merges.
    """
    blob, at = native.merger.blob, native.merger.at
    fallback = np.flatnonzero(native.kinds == Kind.BYTE).tolist()
    found = {token: int(target.merger.atoms.of_byte[blob[at[token]]]) for token in fallback}
    for content, token in native.added.text.items():
        if native.spelling.read(content) == content and content in target.added.text:
            found[token] = target.added.text[content]
    return found


def _merge_each(
    native: Vocabulary, tokens: bpe.I64, target: Vocabulary
) -> tuple[bpe.I64, bpe.I32] | None:
    """How many target tokens each native token merges into, and all of them in a row."""
    blob, at = native.merger.blob, native.merger.at
    counts, ids = np.empty(len(tokens), np.int64), np.empty(len(blob), np.int32)
    merger = target.merger
    total = _merge_tokens(blob, at, tokens, merger.atoms, merger.merges, counts, ids)
    return None if total == bpe.NONE else (counts, ids[:total].copy())


@njit(cache=True)
def _merge_tokens(
    blob: bpe.U8, at: bpe.I64, tokens: bpe.I64, atoms: bpe.Atoms, merges: bpe.MergeTable,
    counts: bpe.I64, ids: bpe.I32,
) -> int:  # fmt: skip
    """Merge the spellings one by one; returns the number of ids, NONE where an atom is missing.

    This is the merge run itself and not the tree of prefixes, which knows only tokens that a
    normalised text can hold.
    """
    total = 0
    scratch = np.empty((3, 1 + np.max(at[1:] - at[:-1])), np.int32)
    symbols = scratch[0]
    for k in range(len(tokens)):
        text = blob[at[tokens[k]] : at[tokens[k] + 1]]
        count = bpe.to_atoms(text, atoms, symbols)
        for i in range(count):
            if symbols[i] == bpe.NONE:
                return bpe.NONE
        count, _ = bpe.merge_run(symbols, count, merges, scratch[1], scratch[2])
        ids[total : total + count] = symbols[:count]
        counts[k] = count
        total += count
    return total


# -- truncating -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Truncation:
    """A vocabulary cut to a rank prefix, and how its ids relate to those it was cut from."""

    source: Vocabulary
    vocabulary: Vocabulary
    merges: int  # how many lines of the source's merge list
    lines: int  # of how many
    kept: bpe.I32  # the old id of each new one
    new_ids: bpe.I32 = field(repr=False)  # the new id of each old one; NONE where dropped

    @property
    def tokens(self) -> int:
        """How many tokens the vocabulary has, base and added tokens included."""
        return len(self.kept)

    def __str__(self) -> str:
        made = len(derivations(self.vocabulary).tokens)
        return (
            f"{self.vocabulary.name}: {self.tokens:,} tokens, from the first {self.merges:,} of "
            f"{self.lines:,} merges, which make {made:,} of them"
        )

    @cached_property
    def _relative(self) -> tuple[bpe.I64, bpe.I32]:
        found = relative_decoding(self.source, self.vocabulary)
        assert found is not None, "a truncation keeps every atom"
        return found

    def decode_relative(self, token: int) -> tuple[int, ...]:
        """The new tokens that an old one stands for, wherever it occurs."""
        self.source.check_ids((token,))
        at, ids = self._relative
        return tuple(ids[at[token] : at[token + 1]].tolist())

    def encode_relative(self, ids: Sequence[int]) -> tuple[int, ...]:
        """The old tokens into which new ones of one piece merge, by the merges that were cut off.

        For the new encoding of a piece these are its old encoding (but for `ignore_merges`, which
        takes a piece whole that is an old token).
        """
        self.vocabulary.check_ids(ids)
        symbols = self.kept[np.array(ids, np.int64)] if len(ids) else np.empty(0, np.int32)
        ranks, births = np.empty_like(symbols), np.empty_like(symbols)
        merges = self.source.merger.merges
        count, _ = bpe.merge_run(symbols, len(symbols), merges, ranks, births)
        return tuple(symbols[:count].tolist())

    def write(self, folder: str | Path, *, like: str | Path | None = None) -> None:
        """Write the files that `tokenizers` and transformers load.

        ``like`` is the folder of the source: settings, special tokens and chat template are taken
        from there, with ids put right.
        """
        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        _refuse_stale(out)
        (out / "tokenizer.json").write_bytes(self.vocabulary.source)
        config = _config(self, None if like is None else Path(like))
        _write_json(out / "tokenizer_config.json", config)
        _write_json(out / "special_tokens_map.json", _special_map(config))
        if like is not None:
            _copy_templates(Path(like), out)


def truncate(
    vocabulary: Vocabulary,
    *,
    tokens: int | None = None,
    merges: int | None = None,
    use_cache: bool = True,
) -> Truncation:
    """Cut a vocabulary to a rank prefix of its merges: exactly one of the two sizes is given.

    ``merges`` counts lines of the merge list; ``tokens`` asks for the largest prefix with at most
    so many tokens, base and added tokens included.
    """
    data = json.loads(vocabulary.source)
    lines = len(data["model"]["merges"])
    made, fixed = derivations(vocabulary), _fixed(vocabulary)
    merges = _lines_for(made, fixed, lines, tokens, merges)
    early = (made.birth != bpe.NONE) & (made.birth < merges)
    kept = _kept(data, vocabulary, fixed | early)
    new_ids = np.full(vocabulary.size, bpe.NONE, np.int32)
    new_ids[kept] = np.arange(len(kept), dtype=np.int32)
    fire = [token for token in made.tokens.tolist() if early[token]]
    text = _rewrite(data, vocabulary, fire, new_ids)
    special = Special(
        tuple(int(new_ids[token]) for token in vocabulary.bos),
        frozenset(int(new_ids[token]) for token in vocabulary.eos),
    )
    name = f"{vocabulary.name}-{len(kept)}"
    result = read_json(text, name=name, special=special, use_cache=use_cache)
    return Truncation(vocabulary, result, merges, lines, kept, new_ids)


def _fixed(vocabulary: Vocabulary) -> bpe.Bool:
    """What every truncation keeps: atoms, control tokens, text-added tokens, BOS and EOS."""
    fixed = np.asarray(vocabulary.kinds == Kind.CONTROL)
    fixed[base_tokens(vocabulary)] = True
    fixed[[*vocabulary.added.text.values(), *vocabulary.bos, *vocabulary.eos]] = True
    return fixed


def _lines_for(
    made: Derivations, fixed: bpe.Bool, lines: int, tokens: int | None, merges: int | None
) -> int:
    """How many lines of the merge list the request means."""
    if (tokens is None) == (merges is None):
        given = "neither" if tokens is None else "both"
        raise BadInput.explain("one of tokens= and merges=", given, "give exactly one of them")
    if merges is not None:
        if not 0 <= merges <= lines:
            raise BadInput.explain(f"merges= from 0 to {lines}", str(merges), "lower it")
        return merges
    assert tokens is not None
    room = tokens - int(fixed.sum())
    if room < 0:
        raise BadInput.explain(
            f"tokens= of at least {fixed.sum()}, the base and added tokens",
            str(tokens),
            "raise it: they cannot be dropped",
        )
    births = np.sort(made.birth[(made.birth != bpe.NONE) & ~fixed])
    return int(births[room]) if room < len(births) else lines


def _kept(data: Json, vocabulary: Vocabulary, keep: bpe.Bool) -> bpe.I32:
    """Old ids in the order of the new ones.

    `tokenizers` numbers added tokens that the model does not hold behind those that it does, so
    they come last; apart from this the order is the old one.
    """
    in_model = np.zeros(vocabulary.size, np.bool_)
    in_model[list(data["model"]["vocab"].values())] = True
    order = [np.flatnonzero(keep & in_model), np.flatnonzero(keep & ~in_model)]
    return np.concatenate(order).astype(np.int32)


def _rewrite(data: Json, vocabulary: Vocabulary, fire: Sequence[int], new_ids: bpe.I32) -> bytes:
    """The tokenizer.json of the kept tokens: the same parts, other ids, only merges that fire."""
    model = dict(data["model"])
    content = {token: text for text, token in model["vocab"].items()}
    as_text = bool(model["merges"]) and isinstance(model["merges"][0], str)
    left, right = vocabulary.left, vocabulary.right
    pairs = [[content[int(left[token])], content[int(right[token])]] for token in fire]
    kept = sorted((int(new_ids[t]), text) for text, t in model["vocab"].items() if new_ids[t] >= 0)
    model["vocab"] = {text: token for token, text in kept}
    model["merges"] = [" ".join(pair) for pair in pairs] if as_text else pairs
    model["ignore_merges"] = False
    added = [{**token, "id": int(new_ids[token["id"]])} for token in data.get("added_tokens") or []]
    result = {
        **data,
        "model": model,
        "added_tokens": sorted(added, key=lambda token: token["id"]),
        "post_processor": _with_bos(
            _renumber(data.get("post_processor"), new_ids), vocabulary, new_ids
        ),
        "padding": _renumber(data.get("padding"), new_ids),
    }
    return json.dumps(result, ensure_ascii=False).encode()


def _with_bos(post_processor: Any, vocabulary: Vocabulary, new_ids: bpe.I32) -> Any:
    """The post-processor, with a template for BOS where only a class of transformers added it."""
    if not vocabulary.bos or "TemplateProcessing" in json.dumps(post_processor):
        return post_processor
    names = [vocabulary.names[token] for token in vocabulary.bos]
    special = {
        name: {"id": name, "ids": [int(new_ids[token])], "tokens": [name]}
        for name, token in zip(names, vocabulary.bos, strict=True)
    }
    before = [{"SpecialToken": {"id": name, "type_id": 0}} for name in names]
    first = [*before, {"Sequence": {"id": "A", "type_id": 0}}]
    template = {
        "type": "TemplateProcessing",
        "single": first,
        "pair": [*first, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": special,
    }
    return {
        "type": "Sequence",
        "processors": [step for step in (post_processor, template) if step is not None],
    }


def _renumber(part: Any, new_ids: bpe.I32) -> Any:
    """A part of a tokenizer.json or of a configuration, with the ids that it names put right."""
    if isinstance(part, list):
        return [_renumber(inner, new_ids) for inner in part]
    if not isinstance(part, dict):
        return part
    return {key: _renumber_entry(key, value, new_ids) for key, value in part.items()}


def _renumber_entry(key: str, value: Any, new_ids: bpe.I32) -> Any:
    if key in {"sep", "cls"} and isinstance(value, list):
        return [value[0], int(new_ids[value[1]])]
    if (key in {"id", "ids"} or key.endswith(("_id", "_ids"))) and key != "type_id":
        if isinstance(value, list) and all(type(token) is int for token in value):
            return [int(new_ids[token]) for token in value]
        if type(value) is int and not key.endswith("type_id"):
            return int(new_ids[value])
    return _renumber(value, new_ids)


# -- the files beside tokenizer.json --------------------------------------------------------------


def _refuse_stale(folder: Path) -> None:
    stale = [name for name in STALE if (folder / name).exists()]
    if stale:
        raise BadInput.explain(
            "a folder without another tokenizer",
            f"{', '.join(stale)} in {folder.name}",
            "write to an empty folder, or remove these files",
        )


def _config(truncation: Truncation, like: Path | None) -> Json:
    """The tokenizer_config.json: the source's, for the class that takes tokenizer.json as it is."""
    config = _read_json(like / "tokenizer_config.json") if like else {}
    vocabulary = truncation.vocabulary
    data = json.loads(vocabulary.source)
    for key in ("vocab_file", "merges_file", "tokenizer_file", "auto_map", "name_or_path", *ALTERS):
        config.pop(key, None)
    config = {
        key: _renumber_entry(key, value, truncation.new_ids)
        for key, value in config.items()
        if key != "added_tokens_decoder"
    }
    config.setdefault("clean_up_tokenization_spaces", False)
    for role, content in _roles(vocabulary, data).items():
        config.setdefault(role, content)
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    config["added_tokens_decoder"] = {
        str(token["id"]): {key: value for key, value in token.items() if key != "id"}
        for token in data["added_tokens"]
    }
    return config


# Settings by which transformers would change what tokenizer.json says.
ALTERS = ("add_bos_token", "add_eos_token", "add_prefix_space", "legacy", "split_special_tokens")


def _roles(vocabulary: Vocabulary, data: Json) -> dict[str, str]:
    """The special tokens that the vocabulary itself knows."""
    roles = {}
    if vocabulary.bos:
        roles["bos_token"] = vocabulary.names[vocabulary.bos[0]]
    if vocabulary.eos:
        roles["eos_token"] = vocabulary.names[min(vocabulary.eos)]
    if data["model"].get("unk_token") is not None:
        roles["unk_token"] = data["model"]["unk_token"]
    return roles


ROLES = (
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token",
    "additional_special_tokens",
)  # fmt: skip


def _special_map(config: Json) -> Json:
    return {role: config[role] for role in ROLES if config.get(role)}


def _copy_templates(like: Path, out: Path) -> None:
    for name in TEMPLATES:
        if (like / name).is_dir():
            shutil.copytree(like / name, out / name, dirs_exist_ok=True)
        elif (like / name).is_file():
            shutil.copy(like / name, out / name)


def _read_json(path: Path) -> Json:
    content: Json = json.loads(path.read_bytes()) if path.is_file() else {}
    return content


def _write_json(path: Path, content: Json) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
