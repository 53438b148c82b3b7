"""`crosstok inspect` for readers: tables that fit into 80 columns and do without colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from crosstok.cli.picture import percent
from crosstok.cli.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from crosstok.inspection import End, Inspection, Match, OnText, Side, Special

WIDEST = 110  # columns; longer lines are hard to read
LABEL = 24
MOST_NAMES = 5  # of special tokens in a list; --json has them all

Row = tuple[str, str, str]


def print_inspection(found: Inspection, console: Console | None = None) -> None:
    """Print everything, section by section."""
    console = console or Console(highlight=False)
    names = [("", found.native.name, found.target.name)]
    _print_rows(console, "", names, ("", "native", "target"))
    _print_rows(console, "Sizes", _sizes(found.native, found.target))
    _print_rows(console, "Families", _families(found.native, found.target))
    _print_rows(console, "Shared tokens, counted by their bytes", _shared(found))
    _print_rows(console, _text_title(found.text), _on_text(found.text))
    conversion = found.conversion
    _print_list(console, "Conversion", [f"{conversion.kind}: {conversion.why}"])
    _print_list(console, "Normalizer differences", found.normalizer_differences)
    _print_rows(console, "Splitter differences", _split_rows(found))
    _print_list(console, "Special tokens", list(_specials(found)))
    if notes := _notes(found):
        _print_list(console, "Notes", notes)


def _print_rows(
    console: Console, title: str, rows: Iterable[Row], heads: Row | None = None
) -> None:
    """Three columns, as wide in every section."""
    wide = (min(console.width, WIDEST) - LABEL - 4) // 2
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=heads is not None)
    for head, width in zip(heads or ("", "", ""), (LABEL, wide, wide), strict=True):
        table.add_column(head, width=width, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    if title:
        console.print(f"\n[bold]{escape(title)}[/bold]")
    console.print(table)


def _print_list(console: Console, title: str, lines: Sequence[str]) -> None:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_header=False)
    table.add_column(width=1)
    table.add_column(max_width=min(console.width, WIDEST) - 3, overflow="fold")
    for line in lines or ["none"]:
        table.add_row("-" if lines else "", escape(line))
    console.print(f"\n[bold]{escape(title)}[/bold]")
    console.print(table)


# -- the sections ---------------------------------------------------------------------------------


def _sizes(native: Side, target: Side) -> Iterator[Row]:
    mine, other = native.sizes, target.sizes
    for what, field in (
        ("ids", "ids"),
        ("text tokens", "text"),
        ("byte-fallback tokens", "byte_fallback"),
        ("control tokens", "control"),
        ("text-added tokens", "added"),
        ("ids without a token", "absent"),
        ("never produced", "unreachable"),
        ("lines of merges", "merge_lines"),
        ("tokens they make", "merge_results"),
    ):
        yield what, f"{getattr(mine, field):,}", f"{getattr(other, field):,}"


def _families(native: Side, target: Side) -> Iterator[Row]:
    yield "splitter", native.splitter, target.splitter
    yield "atoms", _atoms(native), _atoms(target)
    yield "normalizer", _steps(native), _steps(target)
    yield "pieces taken whole", _whole(native), _whole(target)
    yield "begins a text (BOS)", _listed(native.bos), _listed(target.bos)
    yield "ends a text (EOS)", _listed(native.eos), _listed(target.eos)
    if native.missing_bytes or target.missing_bytes:
        yield "bytes without a token", _bytes(native), _bytes(target)


def _atoms(side: Side) -> str:
    return "bytes" if side.atoms == "bytes" else "characters, else bytes"


def _steps(side: Side) -> str:
    return "; ".join(side.normalizer) or "none"


def _whole(side: Side) -> str:
    return "yes (ignore_merges)" if side.ignore_merges else "no"


def _bytes(side: Side) -> str:
    return bytes(side.missing_bytes).hex(" ") or "none"


def _shared(found: Inspection) -> Iterator[Row]:
    native, target = found.native.sizes.byte_strings, found.target.sizes.byte_strings
    yield "distinct texts", f"{native:,}", f"{target:,}"
    yield (
        f"shared: {found.shared.count:,}",
        percent(found.shared.of_native),
        percent(found.shared.of_target),
    )


def _text_title(text: OnText) -> str:
    what = "built-in sample" if text.source == "sample" else "given text"
    return f"On the {what}: {text.bytes:,} bytes, {text.characters:,} characters"


def _on_text(text: OnText) -> Iterator[Row]:
    yield "tokens", f"{text.native_tokens:,}", f"{text.target_tokens:,}"
    per_byte = text.native_tokens_per_byte, text.target_tokens_per_byte
    yield "tokens per byte", f"{per_byte[0]:.3f}", f"{per_byte[1]:.3f}"
    yield (
        "boundaries, and shared",
        f"{text.native_boundaries:,}, {percent(text.of_native_boundaries)}",
        f"{text.target_boundaries:,}, {percent(text.of_target_boundaries)}",
    )
    open_tokens = text.unsettled
    yield "tokens open on average", f"{open_tokens.native:.2f}", f"{open_tokens.target:.2f}"


def _split_rows(found: Inspection) -> Iterator[Row]:
    if not found.split_differences:
        yield "none", "", ""
    for difference in found.split_differences:
        yield difference.what, difference.native, difference.target
        yield (
            f"  {quoted(difference.text)}",
            _pieces(difference.native_pieces),
            _pieces(difference.target_pieces),
        )


def _pieces(pieces: Iterable[str]) -> str:
    return "|".join(quoted(piece, mark="") for piece in pieces)


def _specials(found: Inspection) -> Iterator[str]:
    specials = found.specials
    yield from map(_end, specials.ends)
    yield f"both have: {_mapped(specials.shared)}"
    yield f"only the native: {_listed(specials.native_only)}"
    yield f"only the target: {_listed(specials.target_only)}"
    if specials.text_in_target:
        yield f"control in the native, text in the target: {_mapped(specials.text_in_target)}"
    if specials.text_in_native:
        yield f"text in the native, control in the target: {_mapped(specials.text_in_native)}"
    if specials.shared_added:
        yield f"text-added tokens that both have: {specials.shared_added:,}"


def _end(end: End) -> str:
    becomes = f"{end.target.name} ({end.target.id})" if end.target else "nothing: name one"
    return f"end of text: {end.native.name} ({end.native.id}) becomes {becomes}"


def _listed(tokens: Sequence[Special]) -> str:
    return _some([f"{token.name} ({token.id})" for token in tokens])


def _mapped(matches: Sequence[Match]) -> str:
    return _some([f"{match.name} ({match.native} = {match.target})" for match in matches])


def _some(names: Sequence[str]) -> str:
    rest = len(names) - MOST_NAMES
    more = [f"and {rest:,} more (--json lists them)"] if rest > 1 else names[MOST_NAMES:]
    return ", ".join([*names[:MOST_NAMES], *more]) or "none"


def _notes(found: Inspection) -> list[str]:
    return [f"{side.name}: {note}" for side in (found.native, found.target) for note in side.notes]
