"""`crossdock backup`: a verified copy of the data, while the server works or while it does not."""

from pathlib import Path
from typing import Any

import click
import msgspec

from crossdock.cli.control import OperatorCommand, print_json, settings_of
from crossdock.cli.meter import meter
from crossdock.cli.show import size, some
from crossdock.journal.backup import back_up
from crossdock.server.admission import watermark

_EXAMPLES = """\b
Examples:
  crossdock backup /mnt/backups/monday
  crossdock backup "/mnt/backups/$(date +%F)" --data /var/lib/crossdock
"""


@click.command("backup", cls=OperatorCommand, epilog=_EXAMPLES)
@click.argument("dest", type=click.Path(path_type=Path))
def backup(dest: Path, as_json: bool, **values: Any) -> None:
    """Copy the data to DEST, a new folder, and verify the copy.

    The server may run, and goes on working. The copy holds every job that was answered before it began. It needs as
    much memory as the server's jobs do. On the server's own disk it stops before new jobs would be refused.
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
        f"backed up {some(made.jobs, 'job')} and {some(made.events, 'event')} up to batch {made.seq:,} to {dest}, "
        f"{size(made.bytes)}, verified"
    )
