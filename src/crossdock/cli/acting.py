"""What retry, kill, move, delete and unfail share: jobs by name, or by filter: their number, a question, progress."""

import sys
from typing import Any, NamedTuple

import click

from crossdock.cli.control import OperatorCommand, print_json, server, tell
from crossdock.cli.filters import Name, chosen, expect, filtered
from crossdock.cli.show import clean, some
from crossdock.client.admin import AdminClient
from crossdock.client.base import ClientError
from crossdock.model.errors import CrossdockError

#: Ids of one request.
_IDS = 1_000


class Verb(NamedTuple):
    do: str
    done: str  #: its past
    states: tuple[str, ...]  #: which it reaches
    about: str
    examples: str
    options: tuple[click.Option, ...] = ()  #: besides those that choose jobs; members of the request


class NothingDone(CrossdockError):
    """It was not done, or not to all; the text says why."""


def acting(verb: Verb) -> click.Command:
    """The command of a verb that changes jobs."""

    @click.command(verb.do, cls=OperatorCommand, help=verb.about, epilog=verb.examples)
    @click.argument("ids", type=Name(), nargs=-1, metavar="[ID]...")
    @filtered(*verb.states)
    @click.option("--all", "everything", is_flag=True, help="All jobs, whatever they are.")
    @click.option("--yes", is_flag=True, help="Do not ask.")
    def command(ids: tuple[str, ...], everything: bool, yes: bool, as_json: bool, **values: Any) -> None:
        more = {str(option.name): values.pop(str(option.name)) for option in verb.options}
        filters = chosen(values)
        if ids and (filters or everything):
            raise click.UsageError("give either ids or filters")
        if not ids and not filters and not everything:
            raise click.UsageError(
                "say which jobs: ids, or --state, --queue, --kind, --tag, --failure, --older-than, or --all"
            )
        with server(values) as client:
            if ids:
                _by_id(client, verb, ids, more, as_json)
            else:
                _by_filter(client, verb, filters | more | ({"all": True} if everything else {}), yes, as_json)

    command.params = [*verb.options, *command.params]
    return command


def _by_id(client: AdminClient, verb: Verb, ids: tuple[str, ...], more: dict[str, Any], as_json: bool) -> None:
    done, unknown, refused = 0, [], []
    cut: NothingDone | None = None
    try:
        for first in range(0, len(ids), _IDS):
            answer = client.ask(verb.do, ids=ids[first : first + _IDS], **more)
            done += answer["done"]
            unknown += answer["unknown"]
            refused += answer["refused"]
    except (ClientError, KeyboardInterrupt) as error:
        if not done:
            raise
        cut = _cut(verb, done, len(ids), error)
    if as_json:
        print_json({"done": done, "unknown": unknown, "refused": refused})
    elif cut is None:
        click.echo(f"{verb.done} {some(done, 'job')}")
    if cut is not None:
        raise cut
    words = [f"no job {clean(name)} is here" for name in map(str, unknown)]
    reach = f"not {' or '.join(verb.states)}"
    words += [f"job {each['number']} is {each['state']}, {each.get('why') or reach}" for each in refused]
    if words:
        raise NothingDone("; ".join(words[:10]) + (f"; and {len(words) - 10} more" if len(words) > 10 else ""))


def _by_filter(client: AdminClient, verb: Verb, filters: dict[str, Any], yes: bool, as_json: bool) -> None:
    """Acts on those alone that were counted: what comes meanwhile is left for another time."""
    steps = list(client.steps(verb.do, dry=True, **filters))
    matched, as_of = sum(step["count"] for step in steps), steps[0]["as_of"]
    expect(matched, steps[0], filters)
    done, cut = 0, None
    if matched:
        tell(f"{some(matched, 'job')} to {verb.do}")
        if not yes and not agreed(f"{verb.do} {'it' if matched == 1 else 'them'}?"):
            raise NothingDone("nothing was changed")
        done, cut = _act(client, verb, filters, matched, as_of)
    if as_json:
        print_json({"matched": matched, "done": done})
    elif cut is None:
        click.echo(f"{verb.done} {some(done, 'job')}")
    if cut is not None:
        raise cut


def agreed(question: str) -> bool:
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise NothingDone("nothing was changed: there is nobody to ask; say --yes") from None


def _act(
    client: AdminClient, verb: Verb, filters: dict[str, Any], matched: int, as_of: float | None
) -> tuple[int, NothingDone | None]:
    """How many jobs were acted on, and what ended it before all were."""
    done = 0
    try:
        with click.progressbar(
            length=matched, label=verb.do, file=sys.stderr, hidden=not sys.stderr.isatty(), show_pos=True
        ) as bar:
            for step in client.steps(verb.do, as_of=as_of, **filters):
                done += step["done"]
                bar.update(step["done"])
    except (ClientError, KeyboardInterrupt) as error:
        return done, _cut(verb, done, matched, error)
    return done, None


def _cut(verb: Verb, done: int, of: int, error: BaseException) -> NothingDone:
    """The server acts on some thousand jobs for one request. What it did for the last one nobody reported."""
    why = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
    return NothingDone(
        f"{why}; {verb.done} at least {done:,} of {some(of, 'job')} before that. Run the same command again for the "
        "rest: jobs that are done are not touched twice"
    )
