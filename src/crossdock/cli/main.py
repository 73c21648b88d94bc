"""The command line. Whatever goes wrong ends as one sentence on stderr: exit code 2 for usage, 1 for the rest."""

import difflib
import sys
from importlib import import_module
from keyword import iskeyword
from typing import Final

import click

from crossdock import __version__
from crossdock.cli.configure import BadSetting
from crossdock.model.errors import CrossdockError

#: In the order of the help. A verb's module, of the same name, is imported when it is called: a look at the queues
#: should not wait for the server's code to load.
VERBS: Final = (
    "up", "doctor",
    "push", "try", "queues", "jobs", "job", "retry", "kill", "move", "delete", "replay", "pause", "resume",
    "tags", "tag", "untag", "tracked", "track", "untrack", "failures", "unfail",
    "workers", "quiet", "terminate", "batches", "cron", "plans", "plan", "recurring", "recur", "unrecur", "top",
    "lake", "pipeline", "report", "backup", "restore", "check", "version",
)  # fmt: skip

_EXAMPLES = """\b
Examples:
  crossdock up                                     the server, data in ./crossdock-data
  crossdock up --data DIR --listen faktory=127.0.0.1:7419
  crossdock doctor --data DIR                      settings in effect, and warnings
  crossdock up --help                              every setting
  crossdock push mail welcome '[42]'               a job
  crossdock try mail                               take one, as a worker would
  crossdock queues                                 what waits
  crossdock top                                    what happens, live
"""


class Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            close = difflib.get_close_matches(cmd_name, VERBS, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else " crossdock --help lists all."
            raise click.UsageError(f"No such command {cmd_name!r}.{hint}")
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command = getattr(import_module(f"crossdock.cli.{name}"), name)
        return command if isinstance(command, click.Command) else None


@click.group(
    cls=Verbs,
    epilog=_EXAMPLES,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(__version__, prog_name="crossdock", message="%(prog)s %(version)s")
@click.pass_context
def crossdock(ctx: click.Context) -> None:
    """A durable job server that unmodified clients of other job servers use."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: list[str] | None = None) -> int:
    """Run a command line; the exit code."""
    try:
        return crossdock.main(arguments, prog_name="crossdock", standalone_mode=False) or 0
    except click.Abort:
        return _tell("interrupted", 130)
    except click.ClickException as error:
        return _tell(error.format_message() + _hint(error), 2)
    except BadSetting as error:
        return _tell(str(error), 2)
    except CrossdockError as error:
        return _tell(str(error), 1)
    except OSError as error:
        about = f" ({error.filename})" if error.filename else ""
        return _tell(f"the system refuses: {error.strerror or error}{about}", 1)


def _hint(error: click.ClickException) -> str:
    """Where to look, after words of click's own, which name no cure."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    own = isinstance(error, click.NoSuchOption | click.MissingParameter) or error.message.startswith("Got unexpected")
    return f" See {context.command_path} --help." if own and context is not None else ""


def _tell(sentence: str, code: int) -> int:
    print(f"crossdock: {sentence}", file=sys.stderr)
    return code
