"""`crossdock jobs`: a page of jobs, by state, queue, kind, tag and age."""

from typing import Any

import click

from crossdock.cli.control import OperatorCommand, print_json, server, tell
from crossdock.cli.filters import STATES, chosen, expect, filtered
from crossdock.cli.show import age, columns, cut, number, some
from crossdock.client.admin import AdminClient

_EXAMPLES = """\b
Examples:
  crossdock jobs
  crossdock jobs --state dead --kind invoice
  crossdock jobs --state ready --queue mail --older-than 10m --count
  crossdock jobs --tag customer-42
  crossdock jobs --failure Timeout
  crossdock jobs --state retrying --limit 1000 --json
"""

#: The server's own limit of a page.
_PAGE = 200


@click.command("jobs", cls=OperatorCommand, epilog=_EXAMPLES)
@filtered(*STATES)
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=50, metavar="N", help="Show so many. [50]")
@click.option("--after", metavar="CURSOR", help="Go on where a page before ended.")
@click.option("--count", is_flag=True, help="Only tell how many there are.")
def jobs(as_json: bool, limit: int, after: str | None, count: bool, **values: Any) -> None:
    """List jobs by state, queue, kind, tag and age.

    First what is leased, then ready jobs, queue by queue in the order they will be leased, then the others by their due
    time; with --tag in the order they got it, with --failure newest first. FOR is how long a job has been in its state.
    """
    filters = chosen(values)
    with server(values) as client:
        if count:
            steps = list(client.steps("count", **filters))
            counted = sum(step["count"] for step in steps)
            expect(counted, steps[0], filters)
            if as_json:
                print_json({"count": counted})
            else:
                click.echo(some(counted, "job"))
            return
        rows, after = _page(client, limit, after, filters)
    if as_json:
        print_json({"jobs": rows, "after": after})
        return
    click.echo(
        columns(
            (">NUMBER", "JID", "QUEUE", "KIND", "STATE", ">FOR", ">TRIES", "WHAT"),
            [
                (
                    str(row["number"]),
                    cut(row["jid"], 36),
                    row["queue"],
                    row["kind"],
                    row["state"],
                    age(row["age_s"]),
                    number(row["attempts"]),
                    cut(_what(row), 60),
                )
                for row in rows
            ],
        )
    )
    if after is not None:
        tell(f"there are more; the next page: --after {after}")


def _page(
    client: AdminClient, limit: int, after: str | None, filters: dict[str, Any]
) -> tuple[list[dict[str, Any]], str | None]:
    """So many rows, however many requests they take: the server looks at a bounded number of jobs for each."""
    rows: list[dict[str, Any]] = []
    first: dict[str, Any] | None = None
    while True:
        page = client.ask("jobs", limit=min(_PAGE, limit - len(rows)), after=after, **filters)
        first = page if first is None else first
        rows += page["jobs"]
        after = page["after"]
        if after is None or len(rows) == limit:
            expect(len(rows), first, filters)
            return rows, after


def _what(row: dict[str, Any]) -> str:
    """What there is to say of a job in its state."""
    if row["state"] == "leased":
        return f"by {row['worker'] or 'a nameless worker'}"
    if row["state"] == "scheduled":
        return f"due {row['due']}"
    return str(row["error"] or row["payload"])
