"""What the operator's verbs share: how they find the server, and how they tell what it said."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from crossdock.cli.options import loaded
from crossdock.client.admin import AdminClient
from crossdock.client.base import NoServer
from crossdock.journal.data_dir import in_use_by
from crossdock.settings.loading import Loaded


class OperatorCommand(click.Command):
    """A verb that asks a running server: where its data folder is, and whether a program reads the answer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [
            *self.params,
            click.Option(
                ["--data"], metavar="DIR", help="The server's data folder; without it the one that the settings name."
            ),
            click.Option(
                ["--config"],
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="The server's settings. Without it CROSSDOCK_CONFIG, or crossdock.toml in this folder.",
            ),
            click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object instead."),
        ]


def settings_of(values: dict[str, Any]) -> Loaded:
    """The settings as the server on that folder has them, if it was given the same file and variables."""
    return loaded({"listen": (), **values})


@contextmanager
def server(values: dict[str, Any]) -> Iterator[AdminClient]:
    """The running server these flags mean. Raises NoServer with what to do."""
    folder = settings_of(values).settings.server.data
    try:
        client = AdminClient(folder)
    except NoServer as error:
        holder = in_use_by(folder)
        if holder:
            raise NoServer(
                f"process {holder} has {folder} open and does not answer yet; it may still be starting: try again"
            ) from error
        raise
    with client:
        yield client


def print_json(answer: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(answer)).decode())


def tell(sentence: str) -> None:
    """Beside what the verb prints: programs that read its output do not see it."""
    print(sentence, file=sys.stderr)
