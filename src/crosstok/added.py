"""Added tokens: contents that are matched in the text before anything else is done to it.

`tokenizers` finds them leftmost first, longest first, without overlap.  Control (special) tokens
take part in the search even where they are disabled: such a match is dropped, but what it covered
is not searched again.  Everything here works on bytes; a match of UTF-8 contents in UTF-8 text
always begins and ends between characters.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Node: TypeAlias = dict[int, "Node | int"]
TERMINAL = -1


@dataclass(frozen=True, slots=True)
class Match:
    """A text-added token found at text[start:stop]."""

    start: int
    stop: int
    token: int


@dataclass(frozen=True, slots=True)
class Half:
    """Text that may still become an added token: the text ends inside one that begins at start.

    ``tokens`` are the ids of the text-added tokens (longer than what is there) that it may become.
    """

    start: int
    tokens: tuple[int, ...]


class AddedTokens:
    """The added tokens of one vocabulary, as a trie over their contents."""

    def __init__(self, text: Mapping[bytes, int], control: Iterable[bytes] = ()) -> None:
        self.text = dict(text)
        self.control = frozenset(control)
        self._trie: Node = {}
        for content in (*self.text, *self.control):
            self._insert(content)
        firsts = {content[:1] for content in self.text}
        self._first = re.compile(
            b"[" + b"".join(map(re.escape, sorted(firsts))) + b"]" if firsts else b"(?!)"
        )
        # Control contents only matter by hiding a text-added token that begins inside them.
        every = firsts | {content[:1] for content in self.control}
        self._any_first = re.compile(
            b"[" + b"".join(map(re.escape, sorted(every))) + b"]" if firsts else b"(?!)"
        )

    def _insert(self, content: bytes) -> None:
        node = self._trie
        for byte in content:
            node = node.setdefault(byte, {})  # type: ignore[assignment]
        node[TERMINAL] = self.text.get(content, TERMINAL)

    def __bool__(self) -> bool:
        return bool(self.text)

    def may_occur(self, text: bytes) -> bool:
        """False only if no text-added token begins, wholly or in part, in the text."""
        return self._first.search(text) is not None

    def matches(self, text: bytes) -> Iterator[Match]:
        """The text-added tokens of a whole text, as the encoder finds them."""
        at = 0
        while found := self._any_first.search(text, at):
            start = found.start()
            stop, token, _ = self._longest(text, start)
            if stop == start:
                at = start + 1
                continue
            if token != TERMINAL:
                yield Match(start, stop, token)
            at = stop

    def _longest(self, text: bytes, start: int) -> tuple[int, int, Node | None]:
        """(end, id, node) of the longest content at ``start``; the node is None unless the text
        ends while longer contents are still possible.
        """
        node = self._trie
        stop, token = start, TERMINAL
        for at in range(start, len(text)):
            child = node.get(text[at])
            if child is None:
                return stop, token, None
            assert isinstance(child, dict)
            node = child
            if TERMINAL in node:
                stop, token = at + 1, int(node[TERMINAL])  # type: ignore[arg-type]
        return stop, token, node

    def halves(self, text: bytes) -> tuple[list[Match], list[Half]]:
        """What is matched in a text that may go on, and what may still become a match.

        The matches are those of the text as it stands.  A half may begin at a match's own start
        (a longer content is possible) or anywhere outside the matches; where it comes true, it
        replaces every match that does not end before it.
        """
        found: list[Match] = []
        halves: list[Half] = []
        at = 0
        while hit := self._any_first.search(text, at):
            start = hit.start()
            stop, token, node = self._longest(text, start)
            longer = () if node is None else tuple(sorted(_tokens_below(node)))
            if longer:
                halves.append(Half(start, longer))
            if stop == start:
                at = start + 1
                continue
            if token != TERMINAL:
                found.append(Match(start, stop, token))
            at = stop
        return found, halves


def _tokens_below(node: Node) -> Iterator[int]:
    for key, child in node.items():
        if key == TERMINAL:
            continue
        assert isinstance(child, dict)
        token = child.get(TERMINAL, TERMINAL)
        if token != TERMINAL:
            yield int(token)  # type: ignore[arg-type]
        yield from _tokens_below(child)
