"""`crossdock restore`: a backup becomes the data folder of a server."""

from pathlib import Path
from typing import Any

import click
import msgspec

from crossdock.cli.control import OperatorCommand, print_json, settings_of
from crossdock.cli.meter import meter
from crossdock.cli.show import some
from crossdock.journal.restore import restore as restore_to

_EXAMPLES = """\b
Examples:
  crossdock restore /mnt/backups/monday --data /var/lib/crossdock
"""


@click.command("restore", cls=OperatorCommand, epilog=_EXAMPLES)
@click.argument("backup", type=click.Path(path_type=Path))
def restore(backup: Path, as_json: bool, **values: Any) -> None:
    """Verify BACKUP, copy it to the data folder, and verify that.

    The folder must be empty or not exist yet, and no server may use it. What happened after the backup began is not in
    it: jobs done since then come again, jobs pushed since then are missing.
    """
    data = settings_of(values).settings.server.data
    with meter() as progress:
        made = restore_to(backup, data, progress)
    if as_json:
        print_json({"folder": str(data.absolute()), **msgspec.to_builtins(made)})
        return
    click.echo(f"restored {some(made.jobs, 'job')} up to batch {made.seq:,} to {data}, verified")
    click.echo(f"start it with: crossdock up --data {data}")
