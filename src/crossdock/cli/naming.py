"""What pause, resume, quiet and terminate share: they act on things by their names, or on all of them."""

from typing import Any, NamedTuple

import click

from crossdock.cli.control import OperatorCommand, print_json, server
from crossdock.cli.show import clean, some
from crossdock.client.errors import Refused


class Verb(NamedTuple):
    do: str
    done: str  #: its past
    thing: str  #: queue or worker
    about: str
    examples: str


def naming(verb: Verb) -> click.Command:
    @click.command(verb.do, cls=OperatorCommand, help=verb.about, epilog=verb.examples)
    @click.argument("names", nargs=-1, metavar=f"[{verb.thing.upper()}]...")
    @click.option("--all", "everything", is_flag=True, help=f"Every {verb.thing} there is.")
    def command(names: tuple[str, ...], everything: bool, as_json: bool, **values: Any) -> None:
        if bool(names) is everything:
            raise click.UsageError(f"say which {verb.thing}s: their names, or --all")
        things = f"{verb.thing}s"
        with server(values) as client:
            answer = client.ask(verb.do, all=True) if everything else client.ask(verb.do, **{things: names})
        if as_json:
            print_json(answer)
        else:
            click.echo(f"{verb.done} {some(len(answer['done']), verb.thing)}")
        if answer["unknown"]:
            missing = ", ".join(map(clean, answer["unknown"]))
            raise Refused(f"there is no {verb.thing} {missing}; crossdock {things} lists them")

    return command
