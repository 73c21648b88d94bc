"""`crossdock lake`: the job history, which the server writes as a Delta table."""

from typing import Any

import click
import msgspec

from crossdock.cli.options import AdminCommand, settings_of
from crossdock.cli.output import print_json
from crossdock.cli.render import times
from crossdock.cli.render.tables import age, size, some
from crossdock.lake.status import Status
from crossdock.lake.status import status as status_of
from crossdock.lake.table import expect
from crossdock.server.lake_keeper import location_of

_EXAMPLES = """\b
Examples:
  crossdock lake status
  crossdock lake status --data /var/lib/crossdock --json
"""


@click.command("status", cls=AdminCommand, epilog=_EXAMPLES)
def status(as_json: bool, **values: Any) -> int:
    """Show the lake's size, its lag behind the journal, and its faults.

    Changes nothing; the server may run. Exit code 0: no faults, 1: a file is missing or torn.
    """
    settings = settings_of(values).settings
    location = location_of(settings)
    expect(location, settings.server.data)
    found = status_of(location, settings.server.data, on=settings.lake.on)
    if as_json:
        print_json({"sound": not found.faults, **msgspec.to_builtins(found)})
    else:
        click.echo(_text(found, settings.lake.segment_s))
    return 1 if found.faults else 0


def clock_notes(set_backs: list[str]) -> list[str]:
    """Notes only: no data is lost, but rates and dates of that time are off and cannot be corrected."""
    return [f"clock: the server's clock was set back: {each}" for each in set_backs]


def _text(lake: Status, segment_s: float) -> str:
    idle = "not running; the server starts it when there is something to write" if lake.on else "none: lake.on is false"
    writer = f"process {lake.writer}" if lake.writer else idle
    lines = [f"lake     {lake.location}", f"writer   {writer}"]
    if lake.last:
        newest = times.instant(lake.at) if lake.at else "-"
        lines += [
            f"size     {some(lake.rows, 'row')} in {some(lake.segments, 'segment')}, {size(lake.bytes)}",
            f"range    {lake.oldest or '-'} to {lake.newest or '-'}, entries {lake.first:,} to {lake.last:,}",
            f"newest   event of {newest}, in version {lake.version:,}",
        ]
    else:
        waits = lake.on and lake.lag is not None and lake.lag.entries
        due = f": the first segment is due when the oldest journal entry is {age(segment_s)} old"
        lines.append(f"size     nothing yet{due if waits else ''}")
    if lake.lag is not None:
        behind = (
            f"{some(lake.lag.entries, 'journal entry')}, {size(lake.lag.bytes)}, the oldest {age(lake.lag.seconds)} old"
        )
        lines.append(f"behind   {behind if lake.lag.entries else 'nothing: the lake has the whole journal'}")
    if lake.erased is not None:
        erased = f"{some(lake.erased.jobs, 'job')} in {some(lake.erased.rows, 'row')}"
        lines.append(f"erased   {erased} on {times.instant(lake.erased.at)}; {some(lake.erased.times, 'time')} in all")
    lines += [f"gap: {gap}" for gap in lake.gaps]
    lines += clock_notes(lake.set_backs)
    lines += [f"fault: {fault}" for fault in lake.faults]
    return "\n".join(lines)
