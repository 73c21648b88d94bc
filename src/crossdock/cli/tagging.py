"""What tag and untag share: tags of one job."""

from typing import Any, NamedTuple

import click

from crossdock.cli.control import OperatorCommand, print_json, server
from crossdock.cli.filters import Name
from crossdock.cli.show import clean


class Verb(NamedTuple):
    do: str
    about: str
    examples: str


def tagging(verb: Verb) -> click.Command:
    @click.command(verb.do, cls=OperatorCommand, help=verb.about, epilog=verb.examples)
    @click.argument("ident", type=Name(), metavar="ID")
    @click.argument("texts", type=Name(), nargs=-1, required=True, metavar="TAG...")
    def command(ident: str, texts: tuple[str, ...], as_json: bool, **values: Any) -> None:
        with server(values) as client:
            answer = client.ask(verb.do, id=ident, tags=texts)
        if as_json:
            print_json(answer)
        else:
            shown = clean(", ".join(answer["tags"])) or "no tags"
            click.echo(f"job {answer['number']}: {shown}")

    return command
