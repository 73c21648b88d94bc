"""The command line. Whatever goes wrong ends as one sentence on stderr: exit code 2 for usage, 1 for the rest."""

import sys

import click

from crossdock import __version__
from crossdock.cli.configure import BadSetting
from crossdock.cli.doctor import doctor
from crossdock.cli.up import up
from crossdock.model.errors import CrossdockError

_EXAMPLES = """\b
Examples:
  crossdock up                                     the server, data in ./crossdock-data
  crossdock up --data DIR --listen faktory=127.0.0.1:7419
  crossdock doctor --data DIR                      settings in effect, and warnings
  crossdock up --help                              every setting
"""


@click.group(
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


@crossdock.command()
def version() -> None:
    """Print the version."""
    click.echo(f"crossdock {__version__}")


crossdock.add_command(up)
crossdock.add_command(doctor)


def main(arguments: list[str] | None = None) -> int:
    """Run a command line; the exit code."""
    try:
        return crossdock.main(arguments, prog_name="crossdock", standalone_mode=False) or 0
    except click.Abort:
        return _tell("interrupted", 130)
    except click.ClickException as error:
        return _tell(error.format_message(), 2)
    except BadSetting as error:
        return _tell(str(error), 2)
    except CrossdockError as error:
        return _tell(str(error), 1)
    except OSError as error:
        about = f" ({error.filename})" if error.filename else ""
        return _tell(f"the system refuses: {error.strerror or error}{about}", 1)


def _tell(sentence: str, code: int) -> int:
    print(f"crossdock: {sentence}", file=sys.stderr)
    return code
