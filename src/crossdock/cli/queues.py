"""`crossdock queues`: what waits where, and for how long."""

from typing import Any

import click

from crossdock.cli.control import OperatorCommand, print_json, server
from crossdock.cli.show import age, columns, number

_EXAMPLES = """\b
Examples:
  crossdock queues
  crossdock queues --data /var/lib/crossdock
  crossdock queues --json
"""


@click.command("queues", cls=OperatorCommand, epilog=_EXAMPLES)
def queues(as_json: bool, **values: Any) -> None:
    """List the queues with their jobs.

    OLDEST is how long the job has waited that waits longest. A dash stands for a figure that would take a walk over
    too many jobs; crossdock jobs --count counts them.
    """
    with server(values) as client:
        rows = list(client.rows("queues", by_state=True))
    if as_json:
        print_json({"queues": rows})
        return
    click.echo(
        columns(
            ("QUEUE", ">READY", ">OLDEST", ">LEASED", ">RETRYING", ">SCHEDULED", ">DEAD", "PAUSED"),
            [
                (
                    row["queue"],
                    number(row["ready"]),
                    age(row["oldest_s"]),
                    *(number(row[state]) for state in ("leased", "retrying", "scheduled", "dead")),
                    "paused" if row["paused"] else "",
                )
                for row in rows
            ],
        )
    )
