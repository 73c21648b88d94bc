"""Write docs/reference/command-line.md from the commands' own help: `python -m crossdock.cli.reference FILE`."""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from crossdock.cli.catalog import COMMANDS, Noun
from crossdock.cli.main import CatalogGroup, crossdock
from crossdock.cli.options import PARAMETERS, SettingsCommand

_HEAD: Final = """# Command line

<!-- Written by `make docs` from the help of each command. A test compares the two. -->

`crossdock` and `python -m crossdock` are the same program. Commands about one subject are grouped under a noun, for
example `crossdock job list`. `--help` works on every command and noun.
[Work with the command line](../how-to/command-line.md) shows the commands in use.

Exit codes: 0 success; 1 an error, or a warning of `doctor`; 2 wrong usage or a bad setting. An error is one sentence on
stderr.

Options before the command select a server on another machine ([HTTP API](http-api.md#6-admin-requests)). They apply to
the commands that ask a running server:
"""


def page() -> str:
    """The whole page."""
    root = click.Context(crossdock, info_name="crossdock")
    rows = "\n".join(f"| [`{path}`](#{_anchor(path)}) | {text} |" for path, text in _summaries())
    parts = [_HEAD, _table(list(_options(crossdock, root)))]
    parts.append(f"| Command | Description |\n|---|---|\n{rows}\n")
    parts += [_section(path, command, context) for path, command, context in _commands(crossdock, root, "")]
    return "\n".join(parts)


def _summaries() -> Iterator[tuple[str, str]]:
    for name, entry in COMMANDS.items():
        if isinstance(entry, Noun):
            yield from ((f"{name} {verb}", each.help) for verb, each in entry.verbs.items())
        else:
            yield name, entry.help


def _commands(
    group: CatalogGroup, context: click.Context, path: str
) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        full = f"{path} {name}".strip()
        if isinstance(command, CatalogGroup):
            yield from _commands(command, inner, full)
        else:
            yield full, command, inner


def _section(path: str, command: click.Command, context: click.Context) -> str:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"## {path}\n", f"```text\n{usage}\n```\n", _text(command.help or "")]
    options = list(_options(command, context))
    if options:
        parts.append(_table(options))
    if isinstance(command, SettingsCommand):
        parts.append("Every [setting](settings.md) is a flag too.\n")
    if command.epilog:
        parts.append(_examples(command.epilog))
    return "\n".join(parts)


def _table(options: list[tuple[str, str]]) -> str:
    rows = "\n".join(f"| `{flag}` | {text} |" for flag, text in options)
    return f"| Option | Description |\n|---|---|\n{rows}\n"


def _options(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1] and "--help" not in parameter.opts and parameter.name not in PARAMETERS:
            flag, text = record
            yield flag.replace("|", "\\|"), text.replace("|", "\\|")


def _text(text: str) -> str:
    """Help text as Markdown. A paragraph that begins with `\\b`, which click does not wrap, becomes a code block."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return (
        "\n\n".join(
            f"```text\n{inspect.cleandoc(each[2:])}\n```" if each.startswith("\b\n") else each for each in paragraphs
        )
        + "\n"
    )


def _examples(epilog: str) -> str:
    """`\\b` begins a block that click does not wrap. Each block becomes a code block under its first line."""
    parts = []
    for block in epilog.split("\b\n"):
        title, _, lines = block.strip("\n").partition("\n")
        if lines:
            parts.append(f"{title}\n\n```text\n{inspect.cleandoc(lines)}\n```\n")
    return "\n".join(parts)


def _anchor(path: str) -> str:
    return path.replace(" ", "-")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), "utf-8")
