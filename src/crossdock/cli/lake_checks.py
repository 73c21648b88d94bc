"""What `crossdock doctor` and `crossdock check` say about the lake. Both only look."""

import os
from collections.abc import Iterator
from typing import Final

import msgspec

from crossdock.journal.files import Progress
from crossdock.lake.segments import look, verify
from crossdock.lake.status import status
from crossdock.model.errors import CrossdockError, Damaged, Newer
from crossdock.server import admission
from crossdock.server.lake_keeper import BEHIND_BYTES, folder_of
from crossdock.settings.schema import Settings

#: Faults that doctor tells one by one.
_TOLD: Final = 5

CURE: Final = (
    "the server and its jobs are not affected. Put what is damaged or missing in the lake back from a copy of it, and "
    "take out what does not belong there; until then reports are made without it"
)


class Verified(msgspec.Struct):
    segments: int = 0
    rows: int = 0
    faults: list[str] = []


def warnings(settings: Settings) -> Iterator[str]:
    if not settings.lake.on:
        return
    folder = folder_of(settings)
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        if folder.parent != settings.server.data:  # else the data folder's own warning says it
            yield f"the lake cannot be written: {there} is no folder this user may write to; set lake.dir to another"
        return
    try:
        told = status(look(folder), settings.server.data, on=True)
    except Newer as error:
        yield f"the server will not start: {error}"
        return
    except (CrossdockError, OSError) as error:
        yield f"the lake cannot be written: {error}"
        return
    if told.lag is not None and told.lag.bytes > BEHIND_BYTES:
        yield (
            f"the lake is {told.lag.bytes // admission.MIB} MiB behind the journal, which cannot be trimmed until it "
            "has caught up; the server's log says what keeps it"
        )
    yield from told.faults[:_TOLD]
    if len(told.faults) > _TOLD:
        yield f"{len(told.faults) - _TOLD} faults more in the lake; crossdock lake status names them all"


def verified(settings: Settings, progress: Progress) -> Verified:
    """Of whatever lake is in the folder, whether it is written to now or not."""
    folder = folder_of(settings)
    try:
        found = look(folder)
    except (Damaged, OSError) as error:
        return Verified(faults=[str(error)])
    rows = sum(segment.rows for segment in found.segments)
    return Verified(len(found.segments), rows, [*found.faults, *verify(found, progress)])
