"""`crossdock failures`: what went wrong for good, by the type of error."""

from typing import Any

import click

from crossdock.cli.control import OperatorCommand, print_json, server
from crossdock.cli.show import age, columns, cut, number

_EXAMPLES = """\b
Examples:
  crossdock failures
  crossdock failures --top 5
  crossdock jobs --failure Timeout                 the jobs of one group, newest first
  crossdock unfail --failure Timeout               and back with them
  crossdock failures --json
"""


@click.command("failures", cls=OperatorCommand, epilog=_EXAMPLES)
@click.option("--top", type=click.IntRange(1, 200), metavar="N", help="Only the largest groups, these first.")
def failures(top: int | None, as_json: bool, **values: Any) -> None:
    """List failed and dead jobs by group.

    Jobs of all doors, and of each group the newest. The group is what the worker called it: Faktory's errtype, qless'
    group. If the errtype is empty, missing or undefined, as Node clients send it, the group is the first words of the
    message, with N for numbers. Workers of Workq and Masenko name none: failed, and ''. LAST is how long ago the newest
    one failed.
    """
    with server(values) as client:
        rows = (
            list(client.rows("failures")) if top is None else client.ask("failures", by="jobs", limit=top)["failures"]
        )
    if as_json:
        print_json({"failures": rows})
        return
    click.echo(
        columns(
            ("GROUP", ">JOBS", ">LAST", ">NUMBER", "QUEUE", "KIND", "ERROR"),
            [
                (
                    cut(row["failure"], 60) or "''",
                    number(row["jobs"]),
                    age(row["newest"]["age_s"]),
                    str(row["newest"]["number"]),
                    row["newest"]["queue"],
                    row["newest"]["kind"],
                    cut(row["newest"]["error"] or "-", 60),
                )
                for row in rows
            ],
        )
    )
