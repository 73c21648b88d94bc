"""`crossdock recurring`: the jobs that come again at an interval."""

from typing import Any

import click

from crossdock.cli.control import OperatorCommand, print_json, server
from crossdock.cli.filters import Name
from crossdock.cli.show import age, clean, columns, cut, number

_EXAMPLES = """\b
Examples:
  crossdock recurring
  crossdock recurring sweep                        everything about one
  crossdock recur sweep --every 10m                change it
  crossdock recurring --json
"""


@click.command("recurring", cls=OperatorCommand, epilog=_EXAMPLES)
@click.argument("ident", type=Name(), required=False, metavar="[ID]")
def recurring(ident: str | None, as_json: bool, **values: Any) -> None:
    """List the recurring jobs of qless, or show one.

    A job is made when its time has come and somebody asks its queue for work. Those of the settings file are shown by
    crossdock cron.
    """
    with server(values) as client:
        rows = list(client.rows("recurring")) if ident is None else client.ask("recurring", id=ident)["recurring"]
    if as_json:
        print_json({"recurring": rows})
    elif ident is not None:
        click.echo(shown(rows[0]))
    else:
        heads = ("ID", ">EVERY", "NEXT", ">IN", ">MADE", ">PRIORITY", "QUEUE", "KIND")
        click.echo(columns(heads, [_cells(row) for row in rows]))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    figures = (age(row["next_s"]), number(row["made"]), str(row["priority"]))
    return (cut(row["jid"], 36), age(row["interval_s"]), row["next"] or "-", *figures, row["queue"], row["kind"])


def shown(row: dict[str, Any]) -> str:
    """One, with everything about it."""
    lines = [f"recurring job {clean(row['jid'])}, every {age(row['interval_s'])}", ""]
    names = ("queue", "kind", "next", "made", "priority", "retries", "backlog")
    lines += [f"  {name:9} {clean(str(row[name]))}" for name in names if row[name] is not None]
    if row["tags"]:
        lines.append(f"  tags      {clean(', '.join(row['tags']))}")
    lines.append(f"  payload   {clean(row['payload'])}")
    return "\n".join(lines)
