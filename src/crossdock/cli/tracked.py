"""`crossdock tracked`: the jobs that somebody follows, and how they are."""

from typing import Any

import click

from crossdock.cli.control import OperatorCommand, print_json, server
from crossdock.cli.show import age, columns, cut

_EXAMPLES = """\b
Examples:
  crossdock tracked
  crossdock tracked --json
"""


@click.command("tracked", cls=OperatorCommand, epilog=_EXAMPLES)
def tracked(as_json: bool, **values: Any) -> None:
    """List the tracked jobs with their state.

    One that is gone stays until crossdock untrack. FOR is how long a job has been in its state.
    """
    with server(values) as client:
        rows = list(client.rows("tracked"))
    if as_json:
        print_json({"tracked": rows})
        return
    click.echo(
        columns(("JID", "TRACKED SINCE", "STATE", ">FOR", ">NUMBER", "QUEUE", "KIND"), [_cells(row) for row in rows])
    )


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    head = (cut(row["jid"], 36), row["since"] or "-")
    job = row["job"]
    if job is None:
        return (*head, "gone", "-", "-", "-", "-")
    return (*head, job["state"], age(job["age_s"]), str(job["number"]), job["queue"], job["kind"])
