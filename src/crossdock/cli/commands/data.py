"""`crossdock backup`, `restore`, `check` and `salvage`: the data folder as a whole."""

from pathlib import Path
from typing import Any, Final

import click
import msgspec

from crossdock.cli.diagnosis import LAKE_CURE, verify_lake
from crossdock.cli.options import AdminCommand, settings_of
from crossdock.cli.output import meter, print_json
from crossdock.cli.render.tables import size, some
from crossdock.journal.backup import back_up
from crossdock.journal.check import Report
from crossdock.journal.check import check as check_journal
from crossdock.journal.restore import restore as restore_to
from crossdock.journal.salvage import REPORT, Salvaged
from crossdock.journal.salvage import salvage as copy_readable
from crossdock.lake.verify import Verified
from crossdock.server.admission import watermark
from crossdock.server.lake_keeper import last_entry

#: Lines of each kind that salvage prints; salvage.json in the new folder has all.
_SHOWN: Final = 20

_BACKUP_EXAMPLES = """\b
Examples:
  crossdock backup /mnt/backups/monday
  crossdock backup "/mnt/backups/$(date +%F)" --data /var/lib/crossdock
"""


@click.command("backup", cls=AdminCommand, epilog=_BACKUP_EXAMPLES)
@click.argument("dest", type=click.Path(path_type=Path))
def backup(dest: Path, as_json: bool, **values: Any) -> None:
    """Copy the data to DEST, a new folder, and verify the copy.

    The server may run meanwhile. The copy contains every job that was acknowledged before the backup began. A backup
    needs as much memory as the server's jobs do. On the server's own disk it stops before new jobs would be refused.
    """
    settings = settings_of(values).settings
    data = settings.server.data
    keep_free = watermark(data, settings.journal.min_free_mib) if data.exists() else 0
    with meter() as progress:
        made = back_up(data, dest, keep_free, progress)
    if as_json:
        print_json({"folder": str(dest.absolute()), **msgspec.to_builtins(made)})
        return
    click.echo(
        f"backed up {some(made.jobs, 'job')} and {some(made.events, 'event')}, up to entry {made.seq:,}, to {dest}, "
        f"{size(made.bytes)}, verified"
    )


_RESTORE_EXAMPLES = """\b
Examples:
  crossdock restore /mnt/backups/monday --data /var/lib/crossdock
"""


@click.command("restore", cls=AdminCommand, epilog=_RESTORE_EXAMPLES)
@click.argument("backup", type=click.Path(path_type=Path))
def restore(backup: Path, as_json: bool, **values: Any) -> None:
    """Verify BACKUP, copy it to the data folder, and verify that.

    The data folder must be empty or not exist, and no server may use it. Changes after the backup began are not in it:
    jobs completed since then run again, jobs pushed since then are missing.
    """
    data = settings_of(values).settings.server.data
    with meter() as progress:
        made = restore_to(backup, data, progress)
    if as_json:
        print_json({"folder": str(data.absolute()), **msgspec.to_builtins(made)})
        return
    click.echo(f"restored {some(made.jobs, 'job')} up to journal entry {made.seq:,} to {data}, verified")
    click.echo(f"start it with: crossdock up --data {data}")


_CHECK_EXAMPLES = """\b
Examples:
  crossdock check
  crossdock check --data /var/lib/crossdock --json
  crossdock check --data /mnt/backups/monday        a backup
"""


@click.command("check", cls=AdminCommand, epilog=_CHECK_EXAMPLES)
def check(as_json: bool, **values: Any) -> int:
    """Verify the journal, the snapshots and the lake of a data folder.

    Every entry of the journal is read, a state is built from the snapshots and the journal, and every page of the lake
    is read. Nothing is changed; the server may run. Exit code 0: no faults. 1: there are faults; the output
    says what to do.
    """
    settings = settings_of(values).settings
    with meter() as progress:
        report = check_journal(settings.server.data, progress, last_entry(settings))
        lake = verify_lake(settings, progress)
    if as_json:
        sound = not report.faults and not lake.faults
        print_json({"sound": sound, **msgspec.to_builtins(report), "lake": msgspec.to_builtins(lake)})
    else:
        click.echo(_check_text(report, lake))
    return 1 if report.faults or lake.faults else 0


def _check_text(report: Report, lake: Verified) -> str:
    states = ", ".join(f"{count:,} {state}" for state, count in report.states.items())
    lines = [
        f"folder     {report.folder}" + (f", in use by process {report.server}" if report.server else ""),
        f"journal    entries {report.first:,} to {report.last:,}, {size(report.bytes)}",
        f"snapshots  {', '.join(f'entry {seq:,}' for seq in report.snapshots) or 'none'}",
        f"events     {report.events:,} after the newest snapshot",
        f"jobs       {report.jobs:,}" + (f": {states}" if states else ""),
        f"lake       {some(lake.rows, 'row')} in {some(lake.segments, 'segment')}",
        *(f"fault: {fault}" for fault in report.faults),
        *(f"fault: {fault}" for fault in lake.faults),
        *([f"sound: {report.cure}"] if not report.faults and not lake.faults else []),
        *([f"what to do: {report.cure}"] if report.faults else []),
        *([f"what to do: {LAKE_CURE}"] if lake.faults else []),
    ]
    return "\n".join(lines)


_SALVAGE_EXAMPLES = """\b
Examples:
  crossdock check --data /var/lib/crossdock                         what is wrong
  crossdock salvage /var/lib/crossdock /var/lib/crossdock-salvaged
  crossdock up --data /var/lib/crossdock-salvaged
"""


@click.command("salvage", epilog=_SALVAGE_EXAMPLES)
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("dest", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def salvage(source: Path, dest: Path, as_json: bool) -> None:
    """Copy what is readable of a damaged data folder and list the losses.

    SOURCE is only read, and no server may use it. DEST is a new folder. Try `crossdock restore` first: a backup is
    consistent, a salvaged folder may not be. The newest whole snapshot and every later journal entry that passes its
    checksum are copied, including entries after a damaged one. A job runs again if the entry that completed it was
    lost. The lake is not copied: it can still be read in SOURCE, and the server begins a new one in DEST.
    """
    with meter() as progress:
        report = copy_readable(source, dest, progress)
    if as_json:
        print_json({"folder": str(dest.absolute()), **msgspec.to_builtins(report)})
        return
    for line in _salvage_lines(report):
        click.echo(line)
    click.echo(f"salvaged {some(report.jobs, 'job')} to {dest}, verified; {dest / REPORT} lists the losses")
    click.echo(f"start it with: crossdock up --data {dest}")


def _salvage_lines(report: Salvaged) -> list[str]:
    missing = [
        f"lost: journal entry {first:,}" + (f" to {last:,}" if last > first else "") for first, last in report.missing
    ]
    dropped = [
        f"left out: {each.event} of journal entry {each.entry:,}" + (f", job {each.jid}" if each.jid else "")
        for each in report.dropped
    ]
    return [
        *(f"unreadable: {each}" for each in report.unreadable),
        *_first_of(missing),
        *_first_of(dropped),
        *([] if report.lost else ["nothing was lost: every acknowledged journal entry is there"]),
    ]


def _first_of(lines: list[str]) -> list[str]:
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([f"and {more:,} more"] if more > 0 else [])]
