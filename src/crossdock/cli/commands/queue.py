"""`crossdock queue`: list, show, pause and resume queues."""

from typing import Any, Final

import click

from crossdock.cli import completion
from crossdock.cli.actions import NamedAction, named_action
from crossdock.cli.options import AdminCommand, server
from crossdock.cli.output import print_json, width
from crossdock.cli.parameters import Name
from crossdock.cli.render import times
from crossdock.cli.render.tables import age, clean, columns, cut, lasting, number, rate, some

#: Headings of the columns that need a wide terminal.
_RATES: Final = (">IN", ">OUT")

_LIST_EXAMPLES = """\b
Examples:
  crossdock queue list
  crossdock queue list --data /var/lib/crossdock
  crossdock queue list --json
"""


@click.command("list", cls=AdminCommand, epilog=_LIST_EXAMPLES)
def list_queues(as_json: bool, **values: Any) -> None:
    """List the queues with their jobs by state.

    OLDEST is the age of the oldest ready job. IN and OUT are the rates of jobs pushed and processed in the last minute,
    of the 200 busiest queues; a narrow terminal does not show them. A dash stands for a number that would take a walk
    over too many jobs; job list --count counts them.
    """
    with server(values) as client:
        rows = list(client.rows("queues", by_state=True))
    if as_json:
        print_json({"queues": rows})
        return
    heads = ("QUEUE", ">READY", ">OLDEST", *_RATES, ">LEASED", ">RETRYING", ">SCHEDULED", ">DEAD", "PAUSED")
    click.echo(columns(heads, [_cells(row) for row in rows], width(), _RATES))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    counts = (number(row[state]) for state in ("leased", "retrying", "scheduled", "dead"))
    moved = in_and_out(row["rates"])
    return (row["queue"], number(row["ready"]), age(row["oldest_s"]), *moved, *counts, _pause(row["pause"]))


def _pause(pause: dict[str, Any] | None) -> str:
    if pause is None:
        return ""
    return f"paused: {cut(pause['reason'], 40)}" if pause["reason"] else "paused"


_SHOW_EXAMPLES = """\b
Examples:
  crossdock queue show mail
  crossdock queue show mail --json
"""


@click.command("show", cls=AdminCommand, epilog=_SHOW_EXAMPLES)
@click.argument("name", type=Name(), metavar="QUEUE", shell_complete=completion.queues)
def show(name: str, as_json: bool, **values: Any) -> None:
    """Show one queue with its jobs by state, its rates, waits and run times.

    Rates are those of the last minute. Waits and run times are those of the last hour. A dash stands for a number that
    would take a walk over too many jobs; job list --queue QUEUE --count counts them.
    """
    with server(values) as client:
        found = client.ask("queue", name=name)["queue"]
    if as_json:
        print_json({"queue": found})
        return
    lines = [f"queue {clean(found['queue'])}{', paused' if found['paused'] else ''}", ""]
    if found["pause"] is not None:
        lines.append(f"  {'paused':11} {_in_full(found['pause'])}")
    lines += [f"  {'first seen':11} {times.stamp(found['first_seen'])}", f"  {'oldest':11} {age(found['oldest_s'])}"]
    lines += [f"  {state:11} {number(count)}" for state, count in found["states"].items()]
    lines += ["", f"  {'asked':11} {asked(found['askers'], found['asked_s'])}"]
    lines += [f"  {'rates':11} {rates(found['rates'])}"]
    lines += [f"  {name:11} {quantiles(found[name])}" for name in ("wait", "run")]
    click.echo("\n".join(lines))


def _in_full(pause: dict[str, Any]) -> str:
    by = f" by {clean(pause['by'])}" if pause["by"] else ""
    return f"since {times.stamp(pause['since'])}{by}" + (f": {clean(pause['reason'])}" if pause["reason"] else "")


pause = named_action(
    NamedAction(
        "pause",
        "paused",
        "queue",
        """Pause queues: pushes are accepted, fetches return nothing.

A pause holds for all protocols, and over a restart. Leased jobs are not affected. queue list and queue show print the
reason. queue resume ends the pause.
""",
        """\b
Examples:
  crossdock queue pause mail
  crossdock queue pause mail reports --reason "the mail server is down"
  crossdock queue pause --all
""",
        "queue list",
        completion.queues,
        options=(click.Option(["--reason"], metavar="TEXT", help="Why, for other operators. At most 500 characters."),),
    )
)

resume = named_action(
    NamedAction(
        "resume",
        "resumed",
        "queue",
        """Resume paused queues.

Waiting workers get jobs at once.
""",
        """\b
Examples:
  crossdock queue resume mail
  crossdock queue resume --all
""",
        "queue list",
        completion.queues,
    )
)


# Figures that the server measures: requests that wait on a queue, rates, waits and run times.


def asked(askers: int, asked_s: float | None) -> str:
    """Whether workers ask for jobs of the queue."""
    if askers:
        return f"{some(askers, 'request')} {'waits' if askers == 1 else 'wait'} for a job"
    if asked_s is None:
        return "no worker has asked for a job since the server started"
    return f"no request waits for a job; a worker last asked {age(asked_s)} ago"


def rates(found: dict[str, float] | None) -> str:
    """Only the busiest queues have rates, after their first ten seconds."""
    if found is None:
        return "-"
    return ", ".join(f"{name} {rate(found[name])}" for name in ("pushed", "leased", "processed", "failed"))


def in_and_out(found: dict[str, float] | None) -> tuple[str, str]:
    """The rates of jobs pushed and processed."""
    return ("-", "-") if found is None else (rate(found["pushed"]), rate(found["processed"]))


def quantiles(found: dict[str, Any]) -> str:
    if not found["count"]:
        return "-"
    shown = ", ".join(f"{name} {lasting(found[f'{name}_s'])}" for name in ("p50", "p95", "p99"))
    return f"{shown}, of {some(found['count'], 'job')}"
