"""Commands that act on many things: on jobs by ID or filter, and on queues and workers by name."""

import sys
from typing import Any, Final, NamedTuple

import click

from crossdock.cli import completion
from crossdock.cli.filters import FilterCommand, chosen, expect, flags
from crossdock.cli.options import AdminCommand, server
from crossdock.cli.output import NothingDone, agreed, note, print_json
from crossdock.cli.parameters import Name
from crossdock.cli.render.tables import clean, some
from crossdock.client.admin import AdminClient
from crossdock.client.errors import ClientError, Refused
from crossdock.protocols.admin.filter_language import is_word, near_field

#: IDs in one request.
_IDS: Final = 1_000

#: Sentences about single jobs in one error.
_SENTENCES: Final = 10


class JobAction(NamedTuple):
    """A command that changes jobs. `do` is its verb, here and in the admin protocol."""

    do: str
    done: str  #: past tense
    states: tuple[str, ...]  #: which it can act on
    help: str
    examples: str
    options: tuple[click.Option, ...] = ()  #: besides those that choose jobs; they are members of the request


def job_action(action: JobAction) -> click.Command:
    @click.command(action.do, cls=FilterCommand, help=action.help, epilog=action.examples)
    @click.argument("given", type=Name(), nargs=-1, metavar="[ID|FILTER]...", shell_complete=completion.jobs)
    @flags(*action.states)
    @click.option("--all", "everything", is_flag=True, help="All jobs that this command can act on.")
    @click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
    def command(given: tuple[str, ...], everything: bool, yes: bool, as_json: bool, **values: Any) -> None:
        ids = tuple(each for each in given if not is_word(each))
        more = {str(option.name): values.pop(str(option.name)) for option in action.options}
        filters = chosen(values, filter(is_word, given))
        if ids and (filters or everything):
            raise click.UsageError("give either IDs or filters, not both")
        if not ids and not filters and not everything:
            raise click.UsageError(
                "choose jobs: IDs, a filter such as queue:mail, --state, --queue, --kind, --tag, --failure, "
                "--older-than, or --all"
            )
        with server(values) as client:
            if ids:
                _by_id(client, action, ids, more, as_json)
            else:
                _by_filter(client, action, filters | more | ({"all": True} if everything else {}), yes, as_json)

    command.params = [*action.options, *command.params]
    return command


def _by_id(client: AdminClient, action: JobAction, ids: tuple[str, ...], more: dict[str, Any], as_json: bool) -> None:
    done, unknown, refused = 0, [], []
    cut: NothingDone | None = None
    try:
        for first in range(0, len(ids), _IDS):
            answer = client.ask(action.do, ids=ids[first : first + _IDS], **more)
            done += answer["done"]
            unknown += answer["unknown"]
            refused += answer["refused"]
    except (ClientError, KeyboardInterrupt) as error:
        if not done:
            raise
        cut = _interrupted(action, done, len(ids), error)
    if as_json:
        print_json({"done": done, "unknown": unknown, "refused": refused})
    elif cut is None:
        click.echo(f"{action.done} {some(done, 'job')}")
    if cut is not None:
        raise cut
    sentences = [_not_found(str(name)) for name in unknown]
    reach = f"not {' or '.join(action.states)}"
    sentences += [f"job {each['number']} is {each['state']}, {each.get('why') or reach}" for each in refused]
    if sentences:
        more_of_them = f"; and {len(sentences) - _SENTENCES} more" if len(sentences) > _SENTENCES else ""
        raise NothingDone("; ".join(sentences[:_SENTENCES]) + more_of_them)


def _not_found(name: str) -> str:
    field = near_field(name)
    return f"job {clean(name)} not found" + (f"; for a filter, did you mean {field}:?" if field else "")


def _by_filter(client: AdminClient, action: JobAction, filters: dict[str, Any], yes: bool, as_json: bool) -> None:
    """Counts first, and acts on the counted jobs only: jobs that arrive in between are not touched."""
    steps = list(client.steps(action.do, dry_run=True, **filters))
    matched, as_of = sum(step["count"] for step in steps), steps[0]["as_of"]
    expect(matched, steps[0], filters)
    done, cut = 0, None
    if matched:
        note(f"{some(matched, 'job')} to {action.do}")
        if not yes and not agreed(f"{action.do} {'it' if matched == 1 else 'them'}?"):
            raise NothingDone("nothing was changed")
        done, cut = _act(client, action, filters, matched, as_of)
    if as_json:
        print_json({"matched": matched, "done": done})
    elif cut is None:
        click.echo(f"{action.done} {some(done, 'job')}")
    if cut is not None:
        raise cut


def _act(
    client: AdminClient, action: JobAction, filters: dict[str, Any], matched: int, as_of: float | None
) -> tuple[int, NothingDone | None]:
    """How many jobs were acted on, and what ended it before all were."""
    done = 0
    try:
        with click.progressbar(
            length=matched, label=action.do, file=sys.stderr, hidden=not sys.stderr.isatty(), show_pos=True
        ) as bar:
            for step in client.steps(action.do, as_of=as_of, **filters):
                done += step["done"]
                bar.update(step["done"])
    except (ClientError, KeyboardInterrupt) as error:
        return done, _interrupted(action, done, matched, error)
    return done, None


def _interrupted(action: JobAction, done: int, of: int, error: BaseException) -> NothingDone:
    """A request acts on some thousand jobs. The result of the last request is not known."""
    why = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
    return NothingDone(
        f"{why}; {action.done} at least {done:,} of {some(of, 'job')} before that. Run the same command again for the "
        "rest: jobs that are done are not touched twice"
    )


class NamedAction(NamedTuple):
    """A command that acts on things by name, or on all of them."""

    do: str
    done: str  #: past tense
    thing: str  #: queue, worker, …
    help: str
    examples: str
    listed_by: str  #: the command that lists these things
    complete: completion.Completer
    member: str = "names"  #: of the request that holds the names
    has_all: bool = True
    options: tuple[click.Option, ...] = ()  #: members of the request


def named_action(action: NamedAction) -> click.Command:
    def command(names: tuple[str, ...], as_json: bool, everything: bool = False, **values: Any) -> None:
        if bool(names) is everything:
            how = "IDs" if action.member == "ids" else "names"
            raise click.UsageError(f"choose {action.thing}s: their {how}{', or --all' if action.has_all else ''}")
        more = {str(option.name): values.pop(str(option.name)) for option in action.options}
        selected = {"all": True} if everything else {action.member: names}
        with server(values) as client:
            answer = client.ask(action.do, **selected, **more)
        if as_json:
            print_json(answer)
        else:
            click.echo(f"{action.done} {some(len(answer['done']), action.thing)}")
        if answer["unknown"]:
            missing = ", ".join(map(clean, answer["unknown"]))
            raise Refused(f"{action.thing} {missing} not found; crossdock {action.listed_by} shows all")

    word = "ID" if action.member == "ids" else action.thing.upper()
    params: list[click.Parameter] = [
        click.Argument(["names"], type=Name(), nargs=-1, metavar=f"[{word}]...", shell_complete=action.complete),
        *action.options,
    ]
    if action.has_all:
        params.append(click.Option(["--all", "everything"], is_flag=True, help=f"Every {action.thing}."))
    return AdminCommand(action.do, callback=command, params=params, help=action.help, epilog=action.examples)
