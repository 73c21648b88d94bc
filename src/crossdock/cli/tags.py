"""`crossdock tags`: which tags there are, and how many jobs have each."""

from typing import Any

import click

from crossdock.cli.control import OperatorCommand, print_json, server
from crossdock.cli.show import columns, cut, number

_EXAMPLES = """\b
Examples:
  crossdock tags
  crossdock tags --top 10
  crossdock jobs --tag urgent                      the jobs of one
  crossdock tags --json
"""


@click.command("tags", cls=OperatorCommand, epilog=_EXAMPLES)
@click.option("--top", type=click.IntRange(1, 200), metavar="N", help="Only those of the most jobs, these first.")
def tags(top: int | None, as_json: bool, **values: Any) -> None:
    """List the tags with the number of their jobs."""
    with server(values) as client:
        rows = list(client.rows("tags")) if top is None else client.ask("tags", by="jobs", limit=top)["tags"]
    if as_json:
        print_json({"tags": rows})
        return
    click.echo(columns(("TAG", ">JOBS"), [(cut(row["tag"], 80), number(row["jobs"])) for row in rows]))
