"""The commands and their manners.

Nothing heavy is imported before a command needs it, so that ``--help`` and mistakes are answered at
once.  Whatever goes wrong on purpose (`CrosstokError`) is printed as one message without traceback.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, NoReturn

import typer

from crosstok import __version__
from crosstok.cli.sources import folder_of, read_text, read_tokenizer, working, write_text
from crosstok.errors import AssetError, CrosstokError, ModelError, StoreError

FAILED, BAD_INPUT = 1, 2
# What lies outside the command line's words: no other words would have helped.
NOT_THE_WORDS = (AssetError, ModelError, StoreError)

TOKENIZERS = (
    "A tokenizer is named by the path of a tokenizer.json or of a folder that holds one, by a hub "
    "id (Qwen/Qwen2.5-7B), by asset:NAME for one that package registries hold (python -m "
    "crosstok.assets lists them), or by bytes, which means the 256 bytes."
)

app = typer.Typer(
    name="crosstok",
    rich_markup_mode=None,  # plain help reads the same in every terminal and in docs/cli.md
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def examples(*lines: str) -> str:
    """Lines to try, for the end of a help page, with the mark that keeps them from being joined."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


class _State:
    """What options decide for the whole run."""

    debug = False


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"crosstok {__version__}")
        raise typer.Exit


def _set_debug(asked: bool) -> None:
    _State.debug = _State.debug or asked


Debug = Annotated[
    bool,
    typer.Option("--debug", callback=_set_debug, help="Show the traceback of an error."),
]
Tokenizer = Annotated[
    str, typer.Argument(metavar="TOKENIZER", help="Path, hub id, asset:NAME or bytes.")
]


@app.callback(
    help=f"One tokenizer's text in the tokens of another.\n\n{TOKENIZERS}",
    epilog=examples(
        "crosstok inspect asset:gpt2 asset:qwen2_5",
        'crosstok settle asset:gpt2 "The cat\'s"',
        "crosstok COMMAND --help",
    ),
)
def _crosstok(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Debug = False,
) -> None:
    """One tokenizer's text in the tokens of another."""


@app.command(
    epilog=examples(
        "crosstok inspect asset:gpt2 asset:qwen2_5",
        "crosstok inspect teacher/tokenizer.json student/ --text corpus.txt",
        "crosstok inspect asset:gpt2 asset:gemma2 --html picture.html",
        "cat notes.md | crosstok inspect asset:gpt2 asset:llama3 --text - --json",
    )
)
def inspect(
    native: Annotated[
        str, typer.Argument(metavar="A", help="The native tokenizer: a model was trained on it.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="B", help="The target: probabilities are wanted over it.")
    ],
    text: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-",
            help="Try both on this text (- is standard input). Without it, on a short sample of "
            "prose, code and numbers in many languages.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of tables (keys: docs/cli.md).")
    ] = False,
    html: Annotated[
        str | None,
        typer.Option(
            metavar="OUT.html", help="Also draw the text under both tokenizers: one HTML file."
        ),
    ] = None,
    html_bytes: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Draw at most so many bytes of the text; the page says so."
        ),
    ] = 20_000,
    debug: Debug = False,  # noqa: ARG001 - its callback takes it
) -> None:
    """Say what separates two tokenizers, in seconds.

    Sizes and families, shared tokens, normalizer and splitter differences, special tokens, the kind
    of conversion and why; and on a text: tokens per byte, shared boundaries, tokens that stay open.
    """
    given = None if text is None else read_text(text)
    pair = read_tokenizer(native), read_tokenizer(target)
    with working("comparing"):
        from crosstok.inspection import inspect as compare

        found = compare(*pair, given)
    if html is not None:
        from crosstok.cli.picture import picture

        write_text(html, picture(*pair, given, found, html_bytes))
    if as_json:
        _print_json(found.to_dict())
    else:
        from crosstok.cli.tables import print_inspection

        print_inspection(found)
        if html is not None:
            typer.echo(f"The picture is in {html}.")


@app.command(
    epilog=examples(
        'crosstok settle asset:gpt2 "The cat\'s"',
        'crosstok settle asset:qwen2_5 "x = 12345  "',
        "printf 'over and ov' | crosstok settle asset:gemma2 - --json",
    )
)
def settle(
    tokenizer: Tokenizer,
    text: Annotated[str, typer.Argument(metavar="TEXT|-", help="The text; - is standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    debug: Debug = False,  # noqa: ARG001 - its callback takes it
) -> None:
    """Show what is certain about a text that may go on.

    Settled tokens are those that no continuation of the text changes; the rest is open.
    """
    given = read_text(text) if text == "-" else text
    vocabulary = read_tokenizer(tokenizer)
    from crosstok.cli.settled import settled_dict, settled_lines

    if as_json:
        _print_json(settled_dict(vocabulary, given))
    else:
        for line in settled_lines(vocabulary, given):
            typer.echo(line)


@app.command(
    epilog=examples(
        "crosstok truncate asset:gpt2 --tokens 16000 gpt2-16k",
        "crosstok truncate teacher/tokenizer.json --merges 32000 teacher-small",
    )
)
def truncate(
    tokenizer: Tokenizer,
    out: Annotated[str, typer.Argument(metavar="OUT", help="The folder to write to.")],
    tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Keep at most N tokens, base and added tokens included."
        ),
    ] = None,
    merges: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Keep what the first N lines of merges make."),
    ] = None,
    debug: Debug = False,  # noqa: ARG001 - its callback takes it
) -> None:
    """Cut a tokenizer to the first of its merges and write it.

    The folder can be loaded by tokenizers and transformers. Give either --tokens or --merges: the
    first N merges are not N tokens, and what is printed says both.
    """
    from crosstok.cli.truncated import write_truncation

    vocabulary = read_tokenizer(tokenizer)
    typer.echo(write_truncation(vocabulary, out, folder_of(tokenizer), tokens, merges))


def _print_json(value: dict[str, Any]) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def main() -> None:
    """Run the command line; this is what the program ``crosstok`` calls."""
    _State.debug = False
    # The output is for other programs too: the same bytes whatever the locale says.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        typer.main.get_command(app).main(prog_name="crosstok")
    except CrosstokError as error:
        if _State.debug:
            raise
        _fail(error)


def _fail(error: CrosstokError) -> NoReturn:
    typer.echo(f"crosstok: {error}", err=True)
    raise SystemExit(FAILED if isinstance(error, NOT_THE_WORDS) else BAD_INPUT)
