"""`crossdock worker`: list workers, quiet them, terminate them."""

from typing import Any

import click

from crossdock.cli import completion
from crossdock.cli.actions import NamedAction, named_action
from crossdock.cli.options import AdminCommand, server
from crossdock.cli.output import print_json
from crossdock.cli.render.tables import age, columns, cut, number, size

_LIST_EXAMPLES = """\b
Examples:
  crossdock worker list
  crossdock worker list --json
"""


@click.command("list", cls=AdminCommand, epilog=_LIST_EXAMPLES)
def list_workers(as_json: bool, **values: Any) -> None:
    """List the workers.

    Faktory workers are listed while they are connected. BEAT is the time since a worker's last heartbeat; after a
    minute without one it is removed. Resqu's workers and allocators are listed while they have a job, connected or not;
    BEAT is how long a worker has had it. QUEUES are those that the worker asked for last.
    """
    with server(values) as client:
        rows = list(client.rows("workers"))
    if as_json:
        print_json({"workers": rows})
        return
    heads = ("WORKER", "HOST", ">PID", "STATE", ">LEASES", ">CONNECTIONS", ">BEAT", ">MEMORY", "PROTOCOL", "QUEUES")
    click.echo(columns((*heads, "LABELS"), [_cells(row) for row in rows]))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        cut(row["worker"], 36),
        row["hostname"],
        str(row["pid"]),
        row["state"],
        number(row["leases"]),
        number(row["connections"]),
        age(row["beat_s"]),
        size(row["rss_kib"] * 1_024) if row["rss_kib"] else "-",
        row["protocol"],
        cut(", ".join(row["queues"]) or "-", 60),
        ", ".join(row["labels"]),
    )


quiet = named_action(
    NamedAction(
        "quiet",
        "quieted",
        "worker",
        """Give workers no new jobs.

A worker learns it from the reply to its next BEAT, within seconds. It finishes its jobs and stays connected. Only a
restart of the worker ends this state.
""",
        """\b
Examples:
  crossdock worker quiet 4qpc2443vpvai
  crossdock worker quiet --all
""",
        "worker list",
        completion.workers,
    )
)

terminate = named_action(
    NamedAction(
        "terminate",
        "terminating",
        "worker",
        """Tell workers to stop.

A worker learns it from the reply to its next BEAT, within seconds, and stops by itself. Most workers wait up to 30 s
for their jobs. An unfinished job is retried when the worker fails it, or when its lease expires.

Resqu workers do not send BEAT, and --all does not include them. A Resqu worker that is named is treated as dead, as if
its host had reported it, and its job returns to its queue.
""",
        """\b
Examples:
  crossdock worker terminate 4qpc2443vpvai
  crossdock worker terminate --all
  crossdock worker terminate node1~main~s~4711
""",
        "worker list",
        completion.workers,
    )
)
