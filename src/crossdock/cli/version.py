"""`crossdock version`."""

import click

from crossdock import __version__

_EXAMPLES = """\b
Examples:
  crossdock version
"""


@click.command("version", epilog=_EXAMPLES)
def version() -> None:
    """Print the version."""
    click.echo(f"crossdock {__version__}")
