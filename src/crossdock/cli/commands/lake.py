"""`crossdock lake`: the history that the server leaves as Parquet files."""

from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from crossdock.cli.options import AdminCommand, settings_of
from crossdock.cli.output import print_json
from crossdock.cli.render.tables import age, size, some
from crossdock.lake.manifest import DONE, SetBack, expect
from crossdock.lake.segments import look
from crossdock.lake.status import Status
from crossdock.lake.status import status as status_of
from crossdock.server.lake_keeper import folder_of

_EXAMPLES = """\b
Examples:
  crossdock lake status
  crossdock lake status --data /var/lib/crossdock --json
"""


@click.command("status", cls=AdminCommand, epilog=_EXAMPLES)
def status(as_json: bool, **values: Any) -> int:
    """Show the lake's size, its lag behind the journal, and its faults.

    Changes nothing; the server may run. Exit code 0: no faults, 1: a file is set aside or missing.
    """
    settings = settings_of(values).settings
    folder = folder_of(settings)
    expect(folder, settings.server.data)
    told = status_of(look(folder), settings.server.data, on=settings.lake.on)
    if as_json:
        print_json({"sound": not told.faults, **msgspec.to_builtins(told)})
    else:
        click.echo(_text(told, settings.lake.segment_s))
    return 1 if told.faults else 0


def clock_told(set_back: SetBack | None) -> list[str]:
    """Nothing is lost by that, and nothing can be mended: rates and dates of that time are as they are."""
    if set_back is None:
        return []
    first, last, many = set_back.first, set_back.last, set_back.batches
    which = f"batch {first:,}" if many == 1 else f"{many:,} batches, {first:,} to {last:,},"
    return [f"clock: the server's was set back: events of {which} are dated up to {age(set_back.seconds)} after it"]


def _moment(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):  # the server's clock has been anywhere
        return f"{at:.0f} s after 1970"


def _text(told: Status, segment_s: float) -> str:
    idle = "none now; the server starts it when there is something to write" if told.on else "none: lake.on is false"
    writer = f"process {told.writer}" if told.writer else idle
    lines = [f"folder   {told.folder}", f"writer   {writer}"]
    if told.last:
        newest = _moment(told.at) if told.at else "-"
        lines += [
            f"size     {some(told.rows, 'row')} in {some(told.segments, 'segment')}, {size(told.bytes)}",
            f"range    {told.oldest or '-'} to {told.newest or '-'}, batches {told.first:,} to {told.last:,}",
            f"newest   event of {newest}" + (f"; being written: {some(told.pending, 'file')}" if told.pending else ""),
        ]
    else:
        waits = told.on and told.lag is not None and told.lag.batches
        due = f": no {DONE} is there; its first segment is due when the oldest batch is {age(segment_s)} old"
        lines.append(f"size     nothing yet{due if waits else ''}")
    if told.lag is not None:
        behind = f"{told.lag.batches:,} batches, {size(told.lag.bytes)}, the oldest {age(told.lag.seconds)} old"
        lines.append(f"behind   {behind if told.lag.batches else 'nothing: all of the journal is in it'}")
    lines += [f"gap: batches {gap.first:,} to {gap.last:,} were trimmed while the lake was off" for gap in told.gaps]
    lines += clock_told(told.set_back)
    lines += [f"fault: {fault}" for fault in told.faults]
    return "\n".join(lines)
