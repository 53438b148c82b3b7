"""A text under two tokenizers, one above the other, as a page."""

from __future__ import annotations

from html import escape
from importlib import resources
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from crosstok.alignment import place_tokens
from crosstok.pages.blocks import Block, Cell, blocks
from crosstok.pages.glyphs import markup, spoken, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from crosstok.alignment import Place, Placed
    from crosstok.vocabulary import Vocabulary

BYTES_SHOWN = 20_000  # of a text, unless told otherwise: some 3 MB of HTML


class Fact(NamedTuple):
    """A row of the table above the picture: what it is, and what it is for each side."""

    what: str
    native: str
    target: str


def comparison(
    native: Vocabulary,
    target: Vocabulary,
    text: str,
    *,
    facts: Sequence[Fact] = (),
    remarks: Sequence[str] = (),
    most_bytes: int = BYTES_SHOWN,
) -> str:
    """The page: one HTML file that needs nothing else.

    Both sides encode the whole text; a long one is shown up to the last boundary that they share
    within ``most_bytes``, and the page says so.
    """
    data = text.encode()
    every = list(blocks(place_tokens(native, text), place_tokens(target, text)))
    shown = list(_shown(every, most_bytes))
    end = shown[-1].stop.offset if shown else 0
    notice = _notice(end, len(data))
    names = escape(f"{native.name} and {target.name}")
    summary = _agreement(every)
    return _fill(
        "comparison.html",
        title=f"{names}: one text, two tokenizers",
        names=names,
        native=escape(native.name),
        target=escape(target.name),
        style=_resource("comparison.css"),
        script=_resource("comparison.js"),
        facts="\n".join(map(_fact, facts)),
        remarks="\n".join(f"<p>{escape(remark)}</p>" for remark in (*remarks, summary)),
        notice=notice,
        lines="\n".join(_lines(shown, data)),
    )


def _shown(every: Iterable[Block], most_bytes: int) -> Iterator[Block]:
    """The blocks that lie within so many bytes; the first in any case."""
    for count, block in enumerate(every):
        if count and block.stop.offset > most_bytes:
            return
        yield block


def _notice(end: int, size: int) -> str:
    if end == size:
        return ""
    return (
        f'<p class="notice" role="note">Only the first {end:,} of the text’s {size:,} bytes are '
        "shown. The figures above are those of the whole text.</p>"
    )


def _agreement(every: Sequence[Block]) -> str:
    same = sum(block.agrees for block in every)
    return (
        f"The text falls into {len(every):,} blocks at shared boundaries; in {same:,} of them both "
        "sides have a single token."
    )


def _fact(fact: Fact) -> str:
    what, native, target = map(escape, fact)
    return f'<tr><th scope="row">{what}</th><td>{native}</td><td>{target}</td></tr>'


# -- the picture ----------------------------------------------------------------------------------


def _lines(shown: Iterable[Block], data: bytes) -> Iterator[str]:
    """The text's lines as list items; a block that reaches over a line's end joins two."""
    line, number = [], 1
    for block in shown:
        line.append(_block(block, data))
        breaks = data.count(b"\n", block.start.offset, block.stop.offset)
        if breaks:
            yield _line(line, number)
            number += breaks
            line = []
    if line:
        yield _line(line, number)


def _line(shown: list[str], number: int) -> str:
    return f'<li value="{number}">{"".join(shown)}</li>'


def _block(block: Block, data: bytes) -> str:
    edges = block.edges()
    column = {edge: number for number, edge in enumerate(edges, 1)}
    cells = [
        *(_cell(cell, "native", column, data) for cell in block.native),
        *(_cell(cell, "target", column, data) for cell in block.target),
    ]
    same = " same" if block.agrees else ""
    return f'<span class="block{same}"{_widths(edges, data)}>{"".join(cells)}</span>'


def _widths(edges: Sequence[Place], data: bytes) -> str:
    """At least the text's own width for each column, so that they stand where the text has them."""
    if len(edges) == 2:
        return ""
    sizes = [width(data[a.offset : b.offset]) for a, b in pairwise(edges)]
    tracks = " ".join(f"minmax({max(size, 1)}ch,auto)" for size in sizes)
    return f' style="grid-template-columns:{tracks}"'


def _cell(cell: Cell, side: str, column: dict[Place, int], data: bytes) -> str:
    first, behind = column[cell.start], column[cell.stop]
    place = f' style="grid-column:{first}/{behind}"' if len(column) > 2 else ""
    shown = "".join(_token(token, side, data) for token in cell.tokens)
    return f'<span class="cell {side}"{place}>{shown}</span>'


def _token(token: Placed, side: str, data: bytes) -> str:
    raw = data[token.start.offset : token.stop.offset]
    label = escape(_label(token, raw, side))
    return (
        f'<span class="token" role="img" tabindex="0" aria-label="{label}">'
        f"{_beyond(token.content, raw)}{markup(raw)}</span>"
    )


def _beyond(content: bytes, raw: bytes) -> str:
    """What a token stands for beyond its text: a dummy prefix, or a part of what was composed."""
    if raw == content or not content.endswith(raw):
        return ""
    return f"<s>{markup(content.removesuffix(raw))}</s>"


def _label(token: Placed, raw: bytes, side: str) -> str:
    stretch = f"bytes {token.start.offset} to {token.stop.offset}"
    if not raw:
        return f"{side} token {token.token}: {spoken(token.content)}; no text of its own"
    said = f"{side} token {token.token}: {spoken(raw)}; {stretch}"
    return said if raw == token.content else f"{said}; stands for {spoken(token.content)}"


# -- templates ------------------------------------------------------------------------------------


def _resource(name: str) -> str:
    return resources.files("crosstok.pages").joinpath(name).read_text("utf-8")


def _fill(template: str, **parts: str) -> str:
    """The template with its {{names}} replaced, in one pass: no part is searched again."""
    out = []
    for number, piece in enumerate(_resource(template).replace("}}", "{{").split("{{")):
        out.append(parts[piece] if number % 2 else piece)
    return "".join(out)
