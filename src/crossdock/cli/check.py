"""`crossdock check`: is the data sound, and what to do if not."""

from typing import Any

import click
import msgspec

from crossdock.cli import lake_checks
from crossdock.cli.control import OperatorCommand, print_json, settings_of
from crossdock.cli.meter import meter
from crossdock.cli.show import size, some
from crossdock.journal.check import Report
from crossdock.journal.check import check as look_at
from crossdock.server.lake_keeper import last_batch

_EXAMPLES = """\b
Examples:
  crossdock check
  crossdock check --data /var/lib/crossdock --json
  crossdock check --data /mnt/backups/monday        a backup, too
"""


@click.command("check", cls=OperatorCommand, epilog=_EXAMPLES)
def check(as_json: bool, **values: Any) -> int:
    """Verify the data folder: every batch, the snapshots, that they make a state, and every page of the lake.

    Changes nothing; the server may run. Exit code 0: all is sound, 1: it is not, and what to do is told.
    """
    settings = settings_of(values).settings
    with meter() as progress:
        report = look_at(settings.server.data, progress, last_batch(settings))
        lake = lake_checks.verified(settings, progress)
    if as_json:
        sound = not report.faults and not lake.faults
        print_json({"sound": sound, **msgspec.to_builtins(report), "lake": msgspec.to_builtins(lake)})
    else:
        click.echo(_text(report, lake))
    return 1 if report.faults or lake.faults else 0


def _text(report: Report, lake: lake_checks.Verified) -> str:
    states = ", ".join(f"{count:,} {state}" for state, count in report.states.items())
    lines = [
        f"folder     {report.folder}" + (f", in use by process {report.server}" if report.server else ""),
        f"journal    batches {report.first:,} to {report.last:,}, {size(report.bytes)}",
        f"snapshots  {', '.join(f'batch {seq:,}' for seq in report.snapshots) or 'none'}",
        f"events     {report.events:,} behind the newest snapshot",
        f"jobs       {report.jobs:,}" + (f": {states}" if states else ""),
        f"lake       {some(lake.rows, 'row')} in {some(lake.segments, 'segment')}",
        *(f"fault: {fault}" for fault in report.faults),
        *(f"fault: {fault}" for fault in lake.faults),
        *([f"sound: {report.cure}"] if not report.faults and not lake.faults else []),
        *([f"what to do: {report.cure}"] if report.faults else []),
        *([f"what to do: {lake_checks.CURE}"] if lake.faults else []),
    ]
    return "\n".join(lines)
