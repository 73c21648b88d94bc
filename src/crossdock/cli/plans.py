"""`crossdock plans`: jobs that come again and again because a Resqu client, or `crossdock plan add`, said so."""

from typing import Any

import click

from crossdock.cli.control import OperatorCommand, print_json, server
from crossdock.cli.filters import Name
from crossdock.cli.show import age, columns

_EXAMPLES = """\b
Examples:
  crossdock plans
  crossdock plans --source shop --json
"""


@click.command("plans", cls=OperatorCommand, epilog=_EXAMPLES)
@click.option("--source", type=Name(), metavar="SOURCE", help="Of this source only (Resqu's sourceId).")
def plans(source: str | None, as_json: bool, **values: Any) -> None:
    """List the plans with their next run.

    A plan is a job that comes again and again, at an interval by the calendar in UTC. Recurring jobs of the settings
    file are listed by crossdock cron.
    """
    with server(values) as client:
        rows = list(client.rows("plans", source=source))
    if as_json:
        print_json({"plans": rows})
        return
    click.echo(
        columns(
            ("PLAN", "INTERVAL", "NEXT", ">IN", "QUEUE", "KIND"),
            [
                (row["plan"], row["interval"], row["next"] or "never", age(row["next_s"]), row["queue"], row["kind"])
                for row in rows
            ],
        )
    )
