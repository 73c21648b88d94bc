"""`crossdock workers`: who is connected to work, and how it is."""

from typing import Any

import click

from crossdock.cli.control import OperatorCommand, print_json, server
from crossdock.cli.show import age, columns, cut, number, size

_EXAMPLES = """\b
Examples:
  crossdock workers
  crossdock workers --json
"""


@click.command("workers", cls=OperatorCommand, epilog=_EXAMPLES)
def workers(as_json: bool, **values: Any) -> None:
    """List the workers that are connected.

    BEAT is how long ago a worker was last heard; after a minute of silence it is dropped. Resqu's workers and
    allocators are listed while they have a job, connected or not; BEAT is how long a worker has had it.
    """
    with server(values) as client:
        rows = list(client.rows("workers"))
    if as_json:
        print_json({"workers": rows})
        return
    click.echo(
        columns(
            ("WORKER", "HOST", ">PID", "STATE", ">LEASES", ">CONNECTIONS", ">BEAT", ">MEMORY", "LABELS"),
            [
                (
                    cut(row["worker"], 36),
                    row["hostname"],
                    str(row["pid"]),
                    row["state"],
                    number(row["leases"]),
                    number(row["connections"]),
                    age(row["beat_s"]),
                    size(row["rss_kib"] * 1_024) if row["rss_kib"] else "-",
                    ", ".join(row["labels"]),
                )
                for row in rows
            ],
        )
    )
