"""`crossdock rate list`: the rate limits."""

from typing import Any

import click

from crossdock.cli.options import AdminCommand, server
from crossdock.cli.output import print_json
from crossdock.cli.render import times
from crossdock.cli.render.tables import columns, cut, number

_EXAMPLES = """\b
Examples:
  crossdock rate list
  crossdock rate list --json
"""


@click.command("list", cls=AdminCommand, epilog=_EXAMPLES)
def list_rates(as_json: bool, **values: Any) -> None:
    """List the rate limits with what is left of them.

    A limit allows a number of leases in a time, for the jobs of a queue, of a kind, or with a name that the jobs carry.
    LEFT is the number of jobs that may start now. NEXT is the time at which the next one may start. WAITING is the
    number of jobs that wait for it. SOURCE is the settings file, an application, or the jobs.
    """
    with server(values) as client:
        rows = list(client.rows("rate_limits"))
    if as_json:
        print_json({"rate_limits": rows})
        return
    heads = ("RATE", "SOURCE", "OF", "ALLOWS", ">LEFT", "NEXT", ">WAITING")
    click.echo(columns(heads, [_cells(row) for row in rows]))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    counted = next((f"{scope} {row[scope]}" for scope in ("queue", "kind") if row[scope] is not None), "name")
    return (
        cut(row["rate"], 60),
        cut(row["source"], 36),
        cut(counted, 60),
        row["allows"],
        number(row["left"]),
        times.stamp(row["next_at"], seconds=True) if row["next_at"] is not None else "-",
        number(row["waiting"]),
    )
