"""The page of `crosstok inspect --html`: the picture of a text, with the figures above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosstok.inspection import Inspection, sample
from crosstok.pages import Fact, comparison

if TYPE_CHECKING:
    from crosstok.vocabulary import Vocabulary


def picture(
    native: Vocabulary, target: Vocabulary, given: str | None, found: Inspection, most_bytes: int
) -> str:
    """The HTML of the text that was inspected."""
    return comparison(
        native,
        target,
        sample() if given is None else given,
        facts=_facts(found),
        remarks=_remarks(found),
        most_bytes=most_bytes,
    )


def _facts(found: Inspection) -> list[Fact]:
    text = found.text
    return [
        Fact("tokens", f"{text.native_tokens:,}", f"{text.target_tokens:,}"),
        Fact(
            "tokens per byte",
            f"{text.native_tokens_per_byte:.3f}",
            f"{text.target_tokens_per_byte:.3f}",
        ),
        Fact(
            "boundaries that the other has too",
            percent(text.of_native_boundaries),
            percent(text.of_target_boundaries),
        ),
        Fact(
            "tokens open on average",
            f"{text.unsettled.native:.2f}",
            f"{text.unsettled.target:.2f}",
        ),
        Fact("splitter", found.native.splitter, found.target.splitter),
    ]


def _remarks(found: Inspection) -> list[str]:
    what = "the built-in sample" if found.text.source == "sample" else "the given text"
    return [
        f"On {what}, {found.text.bytes:,} bytes.",
        f"Conversion: {found.conversion.kind}. Why: {found.conversion.why}.",
    ]


def percent(share: float | None) -> str:
    """A share for readers."""
    return "none there" if share is None else f"{100 * share:.1f} %"
