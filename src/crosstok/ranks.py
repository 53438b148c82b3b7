"""Reading rank files: ``.tiktoken``, one token in base 64 and its rank a line.

Such a tokenizer takes a piece that is a token whole, and otherwise merges the two neighbours whose
concatenation has the lowest rank, leftmost first.  Written as a ``tokenizer.json`` that is
``ignore_merges`` and, rank by rank, every split of a token into two tokens as a merge of its own.

Their order within one token does not matter.  Suppose that at some moment two pairs of neighbours
both spell the token x and no merge of lower rank is possible.  What happened inside either pair
depends on its bytes alone, so both pairs stand where the run over the bytes of x stood before its
last event.  Hence they are the same pair, and of equal pairs both rules take the leftmost.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from crosstok.errors import BadInput
from crosstok.loading import BYTE_OF_CHARACTER, Special, read_json
from crosstok.splitting import PATTERNS
from crosstok.splitting.families import pre_tokenizer

if TYPE_CHECKING:
    from crosstok.vocabulary import Vocabulary

CHARACTER_OF_BYTE = {byte: character for character, byte in BYTE_OF_CHARACTER.items()}
END_OF_TEXT = "<|endoftext|>"
NO_SPECIAL: Mapping[str, int] = MappingProxyType({})


def load_tiktoken(
    path: str | Path,
    *,
    splitter: str,
    special: Mapping[str, int] = NO_SPECIAL,
    name: str | None = None,
    bos: Iterable[int] | None = None,
    eos: Iterable[int] | None = None,
    use_cache: bool = True,
) -> Vocabulary:
    """Read a rank file, which holds neither the pattern nor the special tokens.

    ``splitter`` is a family by name: ``"gpt2"`` for r50k and p50k, ``"cl100k"``, ``"o200k"``, …;
    ``special`` gives the special tokens' ids.  Without ``eos`` a text ends with
    ``<|endoftext|>``, if that is among them.  Pieces follow the Unicode tables of `tokenizers`,
    which are older than tiktoken's.
    """
    path = Path(path)
    if splitter not in PATTERNS:
        raise BadInput.explain(f"one of {', '.join(PATTERNS)}", repr(splitter), "name a family")
    if not path.is_file():
        raise BadInput.explain("a rank file", f"nothing at {path}", "check the path")
    text = tokenizer_json(read_ranks(path), splitter, special)
    ends = Special(
        () if bos is None else tuple(bos),
        None if eos is None else frozenset(eos),
        {"eos_token": END_OF_TEXT},
    )
    return read_json(text, name=name or path.stem, special=ends, use_cache=use_cache)


def read_ranks(path: Path) -> dict[bytes, int]:
    """The tokens of a rank file and their ranks, lowest first."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line:
            continue
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise BadInput.explain(
                f"a token in base 64 and its rank in line {number} of {path.name}",
                repr(line[:60].decode(errors="replace")),
                "give a .tiktoken file; a tokenizer.json is read by Vocabulary.load",
            ) from error
    if not ranks or len(set(ranks.values())) < len(ranks) or min(ranks.values()) < 0:
        raise BadInput.explain(
            f"different ranks for different tokens in {path.name}",
            f"{len(set(ranks.values()))} ranks for {len(ranks)} tokens",
            "the file is damaged; fetch it again",
        )
    return dict(sorted(ranks.items(), key=lambda item: item[1]))


def tokenizer_json(
    ranks: Mapping[bytes, int], splitter: str, special: Mapping[str, int] = NO_SPECIAL
) -> bytes:
    """The ``tokenizer.json`` that encodes as the ranks do."""
    taken = set(ranks.values())
    for content, token in special.items():
        if token in taken or content.encode() in ranks:
            raise BadInput.explain(
                "special tokens beside the ranks",
                f"{content!r} = {token}, which is a token of text",
                "give each special token an id and a content of its own",
            )
    written = {token: spell(token) for token in ranks}
    merges = [
        [written[left], written[right]] for token in ranks for left, right in splits(token, ranks)
    ]
    data: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(content, token) for content, token in special.items()],
        "normalizer": None,
        "pre_tokenizer": pre_tokenizer(splitter),
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
        "model": {
            "type": "BPE",
            "ignore_merges": True,
            # `tokenizers` numbers an added token itself unless the model knows its id.
            "vocab": {**{written[token]: rank for token, rank in ranks.items()}, **special},
            "merges": merges,
        },
    }
    return json.dumps(data, ensure_ascii=False).encode()


def spell(token: bytes) -> str:
    """A token's bytes in the printable characters of byte-level tokenizers.

    >>> spell(b" a")
    'Ġa'
    """
    return "".join(CHARACTER_OF_BYTE[byte] for byte in token)


def splits(token: bytes, ranks: Mapping[bytes, int]) -> Iterable[tuple[bytes, bytes]]:
    """The ways to make a token of two others."""
    for at in range(1, len(token)):
        if token[:at] in ranks and token[at:] in ranks:
            yield token[:at], token[at:]


def _added(content: str, token: int) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": token, "content": content, **flags, "special": True}
