"""The command line: groups built from the catalog, suggestions for unknown names, and errors as one sentence.

An error is one sentence on stderr. The exit code is 2 for wrong usage, a bad setting or a package that is not
installed, 1 for every other error.
"""

import difflib
import signal
import sys
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from crossdock import __version__
from crossdock.cli.catalog import COMMANDS, SYNONYMS, Entry, Noun
from crossdock.cli.extras import cure
from crossdock.model.errors import BadSetting, CrossdockError

_EXAMPLES = """\b
Examples:
  crossdock up                                     the server, data in ./crossdock-data
  crossdock up --data DIR --listen faktory=127.0.0.1:7419
  crossdock doctor --data DIR                      settings in effect, and warnings
  crossdock up --help                              every setting
  crossdock push mail welcome '[42]'               push a job
  crossdock job take mail                          take one, as a worker does
  crossdock queue list                             queues and their jobs
  crossdock top                                    a live view
  crossdock --server https://host:7420 --token-file F queue list
"""


class CatalogGroup(click.Group):
    """A group whose commands are those of the catalog. A command is imported when it is called."""

    def __init__(self, *args: Any, entries: dict[str, Entry | Noun] | dict[str, Entry], **kwargs: Any) -> None:
        kwargs["invoke_without_command"] = True
        super().__init__(*args, **kwargs)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.entries.items()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None:
            if ctx.resilient_parsing:  # tab completion of an invalid line
                return None
            path = " ".join([*_path(ctx), cmd_name])
            raise click.UsageError(f"No such command {path!r}.{_hint_for(_path(ctx), cmd_name)}")
        if isinstance(entry, Noun):
            return CatalogGroup(
                cmd_name, callback=_show_help, help=entry.help, epilog=entry.examples, entries=entry.verbs
            )
        module, _, name = entry.where.partition(":")
        try:
            command = getattr(import_module(f"crossdock.cli.commands.{module}"), name)
        except ModuleNotFoundError as error:
            sentence = cure(error, [*_path(ctx), cmd_name][0])
            if sentence is None:
                raise
            raise click.ClickException(sentence) from error
        return command if isinstance(command, click.Command) else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete from the catalog, because click would import every command."""
        names = [name for name in self.entries if name.startswith(incomplete)]
        found = [CompletionItem(name, help=self.entries[name].help) for name in names]
        return found + click.Command.shell_complete(self, ctx, incomplete)


@click.pass_context
def _show_help(ctx: click.Context, /, **options: object) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _path(ctx: click.Context) -> list[str]:
    """The words that lead to this group, without the program's name."""
    return ctx.command_path.split()[1:]


def _hint_for(path: list[str], name: str) -> str:
    """A suggestion for a name that is not in this group."""
    found = _meant(path, name)
    if found:
        return f" Did you mean {' or '.join(repr(each) for each in found)}?"
    return f" {' '.join(['crossdock', *path])} --help lists all."


def _meant(path: list[str], name: str) -> list[str]:
    """Full commands that are like this one, the best first."""
    if path:
        noun = COMMANDS[path[0]]
        verbs = noun.verbs if isinstance(noun, Noun) else {}
        close = difflib.get_close_matches(SYNONYMS.get(name, name), verbs, n=1)
        if close:
            return [f"{path[0]} {close[0]}"]
    elif name in SYNONYMS:
        return [SYNONYMS[name]]
    for noun_name in (name, name.removesuffix("s"), name.removesuffix("es")):
        group = COMMANDS.get(noun_name)
        if isinstance(group, Noun):
            return [f"{noun_name} {next(iter(group.verbs))}"]
    known = {each: each for each in COMMANDS} | {
        f"{noun_name} {verb}": verb
        for noun_name, noun in COMMANDS.items()
        if isinstance(noun, Noun)
        for verb in noun.verbs
    }
    close = difflib.get_close_matches(name, set(known.values()), n=1, cutoff=0.7)
    return [command for command, last in known.items() if close and last == close[0]][:3]


crossdock = CatalogGroup(
    "crossdock",
    entries=COMMANDS,
    callback=_show_help,
    help="A durable job server for clients of Faktory, Workq, Masenko, qless and Resqu.",
    epilog=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    params=[
        click.Option(
            ["--server"],
            envvar="CROSSDOCK_SERVER",
            metavar="URL",
            help="A server on another machine, such as https://host:7420. Default: $CROSSDOCK_SERVER, else the server "
            "on this machine.",
        ),
        click.Option(
            ["--local"],
            is_flag=True,
            envvar="CROSSDOCK_LOCAL",
            help="Show times in the zone of this machine, with its offset. Default: UTC, unless $CROSSDOCK_LOCAL is 1.",
        ),
        click.Option(
            ["--token-file"],
            envvar="CROSSDOCK_TOKEN_FILE",
            metavar="FILE",
            help="File with the token for --server, readable by its owner only. Default: $CROSSDOCK_TOKEN_FILE.",
        ),
        click.Option(
            ["--ca"],
            envvar="CROSSDOCK_CA",
            metavar="FILE",
            help="Certificates that --server is verified with (PEM). Default: $CROSSDOCK_CA, else those of the system.",
        ),
    ],
)
crossdock = click.version_option(__version__, prog_name="crossdock", message="%(prog)s %(version)s")(crossdock)


def main(arguments: list[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    if (sys.argv[1:] if arguments is None else arguments)[:1] == ["up"] and hasattr(signal, "SIGHUP"):
        # Loading the server's code takes a while. server/app.py handles the signal afterwards.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        return crossdock.main(arguments, prog_name="crossdock", standalone_mode=False) or 0
    except click.Abort:
        return _fail("interrupted", 130)
    except click.ClickException as error:
        return _fail(error.format_message() + _see_help(error), 2)
    except BadSetting as error:
        return _fail(str(error), 2)
    except CrossdockError as error:
        return _fail(str(error), 1)
    except ModuleNotFoundError as error:
        sentence = cure(error)
        if sentence is None:
            raise
        return _fail(sentence, 2)
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error), 1)


def _see_help(error: click.ClickException) -> str:
    """A pointer to --help, which click's own messages lack."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    own = isinstance(error, click.NoSuchOption | click.MissingParameter) or error.message.startswith("Got unexpected")
    return f" See {context.command_path} --help." if own and context is not None else ""


def _fail(sentence: str, code: int) -> int:
    print(f"crossdock: {sentence}", file=sys.stderr)
    return code
