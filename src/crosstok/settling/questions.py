"""What is settled, and what must follow a target prefix."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from crosstok.settling.anchors import tail, to_anchor
from crosstok.settling.pieces import Reading
from crosstok.settling.readings import branches, script_of
from crosstok.settling.viability import Viability
from crosstok.settling.witness import find_witness
from crosstok.vocabulary import Vocabulary


class Verdict(Enum):
    """What a hypothesis says about the token after a target prefix."""

    TOKEN = "token"  # noqa: S105
    REJECT = "reject"
    SEVERAL = "several"


class Outcome(NamedTuple):
    """One next token, a rejection, or several possibilities."""

    verdict: Verdict
    token: int | None = None


REJECT = Outcome(Verdict.REJECT)


SEVERAL = Outcome(Verdict.SEVERAL)


@dataclass(frozen=True, slots=True)
class Settled:
    """The settled tokens of a text, and the raw byte offset where its open rest begins.

    ``witness``, if asked for, is two continuations whose encodings differ at the first token that
    is not settled; None where nothing is open or no such pair was found.
    """

    ids: list[int]
    offset: int
    open: bytes
    witness: tuple[bytes, bytes] | None = None


def settle(v: Vocabulary, text: str | bytes, *, witness: bool = False) -> Settled:
    """The tokens of a text that no continuation changes, and the raw offset of the open rest."""
    data = text.encode() if isinstance(text, str) else text
    found = tail(v, data)
    ids = [*found.ids, *found.settled]
    pair = find_witness(v, data, found) if witness else None
    return Settled(ids, found.offset, data[found.offset :], pair)


def outcomes(v: Vocabulary, text: str | bytes, prefix: Sequence[int]) -> Outcome:
    """What the continuations of a text say about the token that follows a target prefix.

    One token if the encodings of all continuations begin with ``prefix`` and that token; a
    rejection if none begins with ``prefix``; otherwise several.
    """
    data = text.encode() if isinstance(text, str) else text
    v.check_ids(prefix)
    ids, anchor, fresh = to_anchor(script_of(v, False), data, True)
    shared = min(len(ids), len(prefix))
    if tuple(prefix[:shared]) != ids[:shared]:
        return REJECT
    if len(ids) > len(prefix):
        return Outcome(Verdict.TOKEN, ids[len(prefix)])
    return open_outcomes(v, data[anchor:], tuple(prefix[shared:]), fresh=fresh)


def open_outcomes(
    v: Vocabulary, text: bytes, prefix: tuple[int, ...], *, fresh: bool = True
) -> Outcome:
    """`outcomes` for a text and a prefix that begin at an anchor."""
    verdict: Outcome | None = None
    beyond = _Beyond(v, text, prefix, fresh)
    for reading in branches(script_of(v, False), text, fresh):
        found = _outcome(reading, prefix, beyond)
        if verdict is None:
            verdict = found
        if found is SEVERAL or found != verdict:
            return SEVERAL
    assert verdict is not None, "every text has a reading"
    return verdict


def _outcome(reading: Reading, prefix: tuple[int, ...], beyond: "_Beyond") -> Outcome:
    tokens = reading.tokens
    shared = min(len(tokens), len(prefix))
    if tokens[:shared] != prefix[:shared]:
        return REJECT
    if len(tokens) > len(prefix):
        return Outcome(Verdict.TOKEN, tokens[len(prefix)])
    if len(tokens) < len(prefix):
        return SEVERAL if beyond.possible else REJECT
    if len(reading.following) == 1:
        return Outcome(Verdict.TOKEN, reading.following[0])
    return SEVERAL


class _Beyond:
    """Whether a target prefix that says more than the open text can still come true.

    It can exactly if it is viable itself and its text begins with the open text.
    """

    def __init__(self, v: Vocabulary, text: bytes, prefix: tuple[int, ...], fresh: bool) -> None:
        self._asked = v, text, prefix, fresh

    @cached_property
    def possible(self) -> bool:
        v, text, prefix, fresh = self._asked
        state = Viability(v, fresh=fresh)
        if not all(state.push(token) for token in prefix):
            return False
        spelled = b"".join(v.token_bytes[token] for token in prefix)
        if v.spelling.dummy_prefix and fresh:
            spelled = spelled[1:]
        return v.spelling.nfc or spelled.startswith(text)
