"""`crossdock version`."""

import click

from crossdock import __version__


@click.command("version")
def version() -> None:
    """Print the version."""
    click.echo(f"crossdock {__version__}")
