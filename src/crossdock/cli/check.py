"""`crossdock check`: is the data sound, and what to do if not."""

from typing import Any

import click
import msgspec

from crossdock.cli.control import OperatorCommand, print_json, settings_of
from crossdock.cli.meter import meter
from crossdock.cli.show import size
from crossdock.journal.check import Report
from crossdock.journal.check import check as look_at

_EXAMPLES = """\b
Examples:
  crossdock check
  crossdock check --data /var/lib/crossdock --json
  crossdock check --data /mnt/backups/monday        a backup, too
"""


@click.command("check", cls=OperatorCommand, epilog=_EXAMPLES)
def check(as_json: bool, **values: Any) -> int:
    """Verify the data folder: every batch, the snapshots, and that they make a state.

    Changes nothing; the server may run. Exit code 0: all is sound, 1: it is not, and what to do is told.
    """
    with meter() as progress:
        report = look_at(settings_of(values).settings.server.data, progress)
    if as_json:
        print_json({"sound": not report.faults, **msgspec.to_builtins(report)})
    else:
        click.echo(_text(report))
    return 1 if report.faults else 0


def _text(report: Report) -> str:
    states = ", ".join(f"{count:,} {state}" for state, count in report.states.items())
    lines = [
        f"folder     {report.folder}" + (f", in use by process {report.server}" if report.server else ""),
        f"journal    batches {report.first:,} to {report.last:,}, {size(report.bytes)}",
        f"snapshots  {', '.join(f'batch {seq:,}' for seq in report.snapshots) or 'none'}",
        f"events     {report.events:,} behind the newest snapshot",
        f"jobs       {report.jobs:,}" + (f": {states}" if states else ""),
        *(f"fault: {fault}" for fault in report.faults),
        ("sound: " if not report.faults else "what to do: ") + report.cure,
    ]
    return "\n".join(lines)
