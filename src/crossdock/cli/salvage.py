"""`crossdock salvage`: the last resort for a damaged data folder without a backup."""

from pathlib import Path

import click
import msgspec

from crossdock.cli.control import print_json
from crossdock.cli.meter import meter
from crossdock.cli.show import some
from crossdock.journal.salvage import REPORT, Salvaged
from crossdock.journal.salvage import salvage as copy_readable

_EXAMPLES = """\b
Examples:
  crossdock check --data /var/lib/crossdock                         what is wrong
  crossdock salvage /var/lib/crossdock /var/lib/crossdock-salvaged
  crossdock up --data /var/lib/crossdock-salvaged
"""

#: Lines of each kind that are printed; salvage.json in the new folder has all.
_SHOWN = 20


@click.command("salvage", epilog=_EXAMPLES)
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("dest", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def salvage(source: Path, dest: Path, as_json: bool) -> None:
    """Copy what can be read of a damaged data folder into a new one, and list what was lost.

    SOURCE is only read, and no server may use it. Try `crossdock restore` first: a backup is consistent, a salvage may
    not be. The newest whole snapshot and every later batch that passes its checksum are copied, including those after a
    damaged one. A job runs again if the batch that completed it was lost. The lake is not copied: it can still be read
    in SOURCE, and the server begins a new one in DEST.
    """
    with meter() as progress:
        report = copy_readable(source, dest, progress)
    if as_json:
        print_json({"folder": str(dest.absolute()), **msgspec.to_builtins(report)})
        return
    for line in _lines(report):
        click.echo(line)
    click.echo(f"salvaged {some(report.jobs, 'job')} to {dest}, verified; {dest / REPORT} lists all that was lost")
    click.echo(f"start it with: crossdock up --data {dest}")


def _lines(report: Salvaged) -> list[str]:
    missing = [f"lost: batch {first:,}" + (f" to {last:,}" if last > first else "") for first, last in report.missing]
    dropped = [
        f"left out: {each.event} of batch {each.entry:,}" + (f", job {each.jid}" if each.jid else "")
        for each in report.dropped
    ]
    return [
        *(f"unreadable: {each}" for each in report.unreadable),
        *_some_of(missing),
        *_some_of(dropped),
        *([] if report.lost else ["nothing was lost: every batch that was acknowledged is there"]),
    ]


def _some_of(lines: list[str]) -> list[str]:
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([f"and {more:,} more"] if more > 0 else [])]
