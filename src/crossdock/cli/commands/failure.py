"""`crossdock failure list`: failed and dead jobs by failure group."""

from typing import Any

import click

from crossdock.cli.options import AdminCommand, server
from crossdock.cli.output import print_json
from crossdock.cli.render.tables import age, columns, cut, number

_EXAMPLES = """\b
Examples:
  crossdock failure list
  crossdock failure list --top 5
  crossdock job list --failure Timeout             the jobs of one group, newest first
  crossdock job retry --failure Timeout            retry them
  crossdock failure list --json
"""


@click.command("list", cls=AdminCommand, epilog=_EXAMPLES)
@click.option("--top", type=click.IntRange(1, 200), metavar="N", help="Only the N largest groups.")
def list_failures(top: int | None, as_json: bool, **values: Any) -> None:
    """List failure groups with their number of jobs and the newest of each.

    The group is the name the worker gave the error: errtype in Faktory, group in qless. If Faktory's errtype is empty,
    missing or "undefined", as Node clients send it, the group is the beginning of the message with N for numbers.
    Workq and Masenko have no such name: their groups are "failed" and ''. LAST is how long ago the newest job failed.
    """
    with server(values) as client:
        rows = (
            list(client.rows("failures")) if top is None else client.ask("failures", by="jobs", limit=top)["failures"]
        )
    if as_json:
        print_json({"failures": rows})
        return
    heads = ("GROUP", ">JOBS", ">LAST", ">NUMBER", "QUEUE", "KIND", "ERROR")
    click.echo(columns(heads, [_cells(row) for row in rows]))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    newest = row["newest"]
    return (
        cut(row["failure"], 60) or "''",
        number(row["jobs"]),
        age(newest["age_s"]),
        str(newest["number"]),
        newest["queue"],
        newest["kind"],
        cut(newest["error"] or "-", 60),
    )
