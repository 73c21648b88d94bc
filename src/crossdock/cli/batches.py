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

    A batch is open until it is committed, then running, complete when every job was executed, and a success when every
    one succeeded; it is kept for half an hour after that.
    """
    with server(values) as client:
        rows = list(client.rows("batches"))
    if as_json:
        print_json({"batches": rows})
        return
    click.echo(
        columns(
            ("BATCH", "STATE", ">TOTAL", ">PENDING", ">FAILED", "COMPLETE", "SUCCESS", "PARENT", "DESCRIPTION"),
            [
                (
                    row["batch"],
                    row["state"],
                    *(number(row[count]) for count in ("total", "pending", "failed")),
                    *(row[name] or "-" for name in ("complete", "success", "parent")),
                    cut(row["description"], 60),
                )
                for row in rows
            ],
        )
    )
