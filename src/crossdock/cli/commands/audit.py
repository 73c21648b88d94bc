"""`crossdock audit list`: what operators changed."""

from itertools import islice
from typing import Any

import click

from crossdock.cli.options import AdminCommand, server
from crossdock.cli.output import print_json
from crossdock.cli.render import times
from crossdock.cli.render.tables import columns, cut, number

_EXAMPLES = """\b
Examples:
  crossdock audit list
  crossdock audit list --limit 10
  crossdock audit list --json
"""


@click.command("list", cls=AdminCommand, epilog=_EXAMPLES)
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, metavar="N", help="How many changes to list. [50]")
def list_changes(limit: int, as_json: bool, **values: Any) -> None:
    """List the last changes by operators, newest first.

    A change is one command, or one action in the dashboard or the HTTP API. USER is the login name of the process that
    sent the request, or the name of the sign-in. COUNT is the number of jobs, queues, workers, schedules or settings
    that were changed. The server keeps the last 1,000 changes, over a restart, too; the lake has all of them.
    """
    with server(values) as client:
        rows = list(islice(client.rows("audit"), limit))
    if as_json:
        print_json({"audit": rows})
        return
    click.echo(columns(("AT", "USER", "ADDRESS", "ACTION", ">COUNT", "TARGET"), [_cells(row) for row in rows]))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        times.stamp(row["at"], seconds=True),
        cut(row["user"] or "-", 36),
        row["address"],
        row["action"],
        number(row["count"]),
        cut(row["target"], 80),
    )
