"""`crossdock batch`: list and show batches."""

from typing import Any

import click

from crossdock.cli import completion
from crossdock.cli.options import AdminCommand, server
from crossdock.cli.output import print_json
from crossdock.cli.parameters import Name
from crossdock.cli.render import times
from crossdock.cli.render.tables import clean, columns, cut, number

_LIST_EXAMPLES = """\b
Examples:
  crossdock batch list
  crossdock batch list --json
"""


@click.command("list", cls=AdminCommand, epilog=_LIST_EXAMPLES)
def list_batches(as_json: bool, **values: Any) -> None:
    """List the batches with their progress.

    A Faktory batch is open until it is committed, then running, complete when every job was executed, and a success
    when every job succeeded. It is kept for half an hour after that. A Resqu batch is open until its commit makes all
    of its jobs visible at once. Then it is committed, in the backlog behind another batch of its source, or running;
    PENDING are its jobs that have not started.
    """
    with server(values) as client:
        rows = list(client.rows("batches"))
    if as_json:
        print_json({"batches": rows})
        return
    heads = ("BATCH", "PROTOCOL", "STATE", ">TOTAL", ">PENDING", ">FAILED", "COMPLETE", "SUCCESS", "PARENT")
    click.echo(columns((*heads, "DESCRIPTION"), [_cells(row) for row in rows]))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["batch"],
        row["protocol"],
        row["state"],
        *(number(row[count]) for count in ("total", "pending", "failed")),
        *(row[name] or "-" for name in ("complete", "success", "parent")),
        cut(row["description"], 60),
    )


_SHOW_EXAMPLES = """\b
Examples:
  crossdock batch show b-KzJg9lop_mF3Bw
  crossdock batch show b-KzJg9lop_mF3Bw --json
"""


@click.command("show", cls=AdminCommand, epilog=_SHOW_EXAMPLES)
@click.argument("name", type=Name(), metavar="BATCH", shell_complete=completion.batches)
def show(name: str, as_json: bool, **values: Any) -> None:
    """Show one batch.

    Shown are its state, its counts, its parent and children, its callbacks, and when it expires.
    """
    with server(values) as client:
        found = client.ask("batch", name=name)["batch"]
    if as_json:
        print_json({"batch": found})
        return
    lines = [f"batch {clean(found['batch'])}, {found['state']}", ""]
    for key, value in found.items():
        if key not in ("batch", "state") and value not in (None, "", []):
            text = (
                ", ".join(map(str, value))
                if isinstance(value, list)
                else f"{value:,}"
                if isinstance(value, int)
                else times.field(key, value)
            )
            lines.append(f"  {key:12} {clean(text)}")
    click.echo("\n".join(lines))
