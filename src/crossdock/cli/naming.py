"""What pause, quiet, track and their like share: they act on things by their names, or on all of them."""

from typing import Any, NamedTuple

import click

from crossdock.cli.control import OperatorCommand, print_json, server
from crossdock.cli.filters import Name
from crossdock.cli.show import clean, some
from crossdock.client.base import Refused


class Verb(NamedTuple):
    do: str
    done: str  #: its past
    thing: str  #: queue, worker, …
    about: str
    examples: str
    member: str = ""  #: that holds their names in the request, if it is not called as they are
    listed_by: str = ""  #: the verb that lists them, if it is not called as they are
    has_all: bool = True


def naming(verb: Verb) -> click.Command:
    def command(names: tuple[str, ...], as_json: bool, everything: bool = False, **values: Any) -> None:
        if bool(names) is everything:
            how = "ids" if verb.member == "ids" else "names"
            raise click.UsageError(f"say which {verb.thing}s: their {how}{', or --all' if verb.has_all else ''}")
        member = verb.member or f"{verb.thing}s"
        with server(values) as client:
            answer = client.ask(verb.do, all=True) if everything else client.ask(verb.do, **{member: names})
        if as_json:
            print_json(answer)
        else:
            click.echo(f"{verb.done} {some(len(answer['done']), verb.thing)}")
        if answer["unknown"]:
            missing = ", ".join(map(clean, answer["unknown"]))
            raise Refused(f"there is no {verb.thing} {missing}; crossdock {verb.listed_by or member} lists them")

    word = "ID" if verb.member == "ids" else verb.thing.upper()
    params: list[click.Parameter] = [click.Argument(["names"], type=Name(), nargs=-1, metavar=f"[{word}]...")]
    if verb.has_all:
        about_all = f"Every {verb.thing} there is."
        params.append(click.Option(["--all", "everything"], is_flag=True, help=about_all))
    return OperatorCommand(verb.do, callback=command, params=params, help=verb.about, epilog=verb.examples)
