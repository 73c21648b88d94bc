"""`crossdock cron`: the recurring jobs of the settings file, and when each comes next."""

from typing import Any

import click

from crossdock.cli.control import OperatorCommand, print_json, server
from crossdock.cli.show import age, columns

_EXAMPLES = """\b
Examples:
  crossdock cron
  crossdock cron --json
"""


@click.command("cron", cls=OperatorCommand, epilog=_EXAMPLES)
def cron(as_json: bool, **values: Any) -> None:
    """List the recurring jobs with their next run."""
    with server(values) as client:
        rows = list(client.rows("cron"))
    if as_json:
        print_json({"cron": rows})
        return
    click.echo(
        columns(
            ("NAME", "SCHEDULE", "ZONE", "NEXT", ">IN", "QUEUE", "KIND"),
            [
                (
                    row["cron"],
                    row["schedule"],
                    row["zone"],
                    row["next"] or "never",
                    age(row["next_s"]),
                    row["queue"],
                    row["kind"],
                )
                for row in rows
            ],
        )
    )
