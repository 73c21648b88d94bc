"""`crossdock batches`: groups of jobs, and how far they are."""

from typing import Any

import click

from crossdock.cli.control import OperatorCommand, print_json, server
from crossdock.cli.show import columns, cut, number

_EXAMPLES = """\b
Examples:
  crossdock batches
  crossdock batches --json
"""


@click.command("batches", cls=OperatorCommand, epilog=_EXAMPLES)
def batches(as_json: bool, **values: Any) -> None:
    """List batches, and how far they are.

    A Faktory batch is open until it is committed, then running, complete when every job was executed, and a success
    when every one succeeded; it is kept for half an hour after that. A Resqu batch is open until all of it becomes
    visible at once: then it is committed, in the backlog behind its source's other one, or running; its pending jobs
    are those that nobody has begun.
    """
    with server(values) as client:
        rows = list(client.rows("batches"))
    if as_json:
        print_json({"batches": rows})
        return
    click.echo(
        columns(
            ("BATCH", "DOOR", "STATE", ">TOTAL", ">PENDING", ">FAILED", "COMPLETE", "SUCCESS", "PARENT", "DESCRIPTION"),
            [
                (
                    row["batch"],
                    row["door"],
                    row["state"],
                    *(number(row[count]) for count in ("total", "pending", "failed")),
                    *(row[name] or "-" for name in ("complete", "success", "parent")),
                    cut(row["description"], 60),
                )
                for row in rows
            ],
        )
    )
