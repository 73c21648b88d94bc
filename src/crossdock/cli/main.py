"""The command line. Whatever goes wrong ends as one sentence on stderr: exit code 2 for usage, 1 for the rest."""

import difflib
import signal
import sys
from importlib import import_module
from keyword import iskeyword
from typing import Final

import click

from crossdock import __version__
from crossdock.model.errors import BadSetting, CrossdockError

#: In the order of the help, and what it says of each. A verb's module, of the same name, is imported when it is called:
#: neither a look at the queues nor the help should wait for the code of server and lake to load.
VERBS: Final = {
    "up": "Run the server in the foreground.",
    "doctor": "Show the settings in effect and warn of what endangers jobs.",
    "push": "Push one job and print its jid once it is on disk.",
    "try": "Take one job of these queues, show it, and settle it.",
    "queues": "List the queues with their jobs.",
    "jobs": "List jobs by state, queue, kind, tag and age.",
    "job": "Show everything known of one job.",
    "retry": "Make jobs ready now, by ID or filter.",
    "kill": "Move waiting jobs to the dead, by ID or filter.",
    "move": "Take waiting jobs to another queue, by ID or filter.",
    "release": "End leases whose workers are gone, by ID or filter.",
    "delete": "Delete jobs for good, by ID or filter.",
    "replay": "Choose jobs from the lake's history and push them again, each exactly once.",
    "pause": "Let no more jobs out of queues.",
    "resume": "End the pause of queues.",
    "tags": "List the tags with the number of their jobs.",
    "tag": "Give a job tags, by ID, and print all that it has.",
    "untag": "Take tags off a job, by ID, and print all that it has left.",
    "tracked": "List the tracked jobs with their state.",
    "track": "Follow jobs, by ID.",
    "untrack": "Follow jobs no more, by ID.",
    "failures": "List failed and dead jobs by group.",
    "unfail": "Bring failed and dead jobs back to a queue, by ID or filter.",
    "workers": "List the workers that are connected.",
    "quiet": "Give workers no more jobs.",
    "terminate": "Tell workers to end.",
    "batches": "List batches, and how far they are.",
    "cron": "List the recurring jobs with their next run.",
    "plans": "List the plans with their next run.",
    "plan": "Add or remove a plan: a job that comes again and again.",
    "recurring": "List the recurring jobs of qless, or show one.",
    "recur": "Make or change a recurring job.",
    "unrecur": "Remove recurring jobs.",
    "top": "Show live what the server does.",
    "lake": "Every transition of every job, in Parquet files by date.",
    "pipeline": "Statistics, attempts, failures and more, made by Spark of every transition in the lake.",
    "report": "Queues, failures, workers and slow jobs over days, from the pipeline's tables.",
    "backup": "Copy the data to DEST, a new folder, and verify the copy.",
    "restore": "Verify BACKUP, copy it to the data folder, and verify that.",
    "check": "Verify the data folder: every batch, the snapshots, that they make a state, and every page of the lake.",
    "salvage": "Copy what can be read of a damaged data folder into a new one, and list what was lost.",
    "version": "Print the version.",
}

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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

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
    if (sys.argv[1:] if arguments is None else arguments)[:1] == ["up"]:
        # Before the server's code is loaded, which takes a while; from then on server/app.py logs it.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
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
