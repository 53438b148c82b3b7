"""A reader of the page: what a browser would take from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input"}


@dataclass
class Token:
    """A token of the picture."""

    side: str
    attributes: dict[str, str]
    raw: bytes = b""


@dataclass
class Cell:
    """The columns that a cell takes."""

    side: str
    first: int
    behind: int


@dataclass
class Page(HTMLParser):
    """The picture's tokens, cells and lines, and every element of the page."""

    tokens: list[Token] = field(default_factory=list)
    blocks: list[list[Cell]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self):
        super().__init__(convert_charrefs=True)
        self._open = []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.elements.append((tag, found))
        if tag not in VOID:
            self._open.append((tag, found))
        if not self._in("ol"):
            return
        classes = found.get("class", "").split()
        if tag == "li":
            self.lines.append(int(found["value"]))
        if "block" in classes:
            self.blocks.append([])
        if "cell" in classes:
            place = found.get("style", "grid-column:1/2").removeprefix("grid-column:")
            first, behind = map(int, place.split("/"))
            self.blocks[-1].append(Cell(classes[1], first, behind))
        if "token" in classes:
            self.tokens.append(Token(self.blocks[-1][-1].side, found))

    def handle_endtag(self, tag):
        assert self._open, f"</{tag}> ends nothing"
        assert self._open[-1][0] == tag, f"</{tag}> inside <{self._open[-1][0]}>"
        self._open.pop()

    def handle_data(self, data):
        if not self._open:
            assert not data.strip()
            return
        tag = self._open[-1][0]
        self.texts.setdefault(tag, []).append(data)
        shown = any("token" in a.get("class", "") for _, a in self._open)
        if self._in("ol") and shown and not self._in("s"):
            self.tokens[-1].raw += bytes.fromhex(data) if tag == "b" else data.encode()

    def _in(self, tag):
        return any(name == tag for name, _ in self._open)

    def close(self):
        super().close()
        assert self._open == [], "elements are left open"

    def text_of(self, side):
        """The text that the tokens of one side show."""
        return b"".join(token.raw for token in self.tokens if token.side == side)


def read(html):
    """The page, read to its end; wrongly nested elements are errors."""
    page = Page()
    page.feed(html)
    page.close()
    return page
