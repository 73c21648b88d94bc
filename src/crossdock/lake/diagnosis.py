"""Checks of a journal and its lake that `crossdock doctor` and the dashboard share. They read only: nothing is created,
changed or locked, so a server may run meanwhile."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from crossdock.journal.completeness import lost_journal
from crossdock.journal.open import open_reader
from crossdock.journal.port import NoJournal
from crossdock.lake.location import folder, read_position
from crossdock.lake.messages import BEHIND_BYTES
from crossdock.lake.status import status
from crossdock.model.errors import CrossdockError, Damaged, Newer

#: Faults that are listed one by one.
_LISTED: Final = 5

_MIB: Final = 1024 * 1024


def warnings(data: Path, lake: str | Path | None) -> list[str]:
    """`lake` is the location of the lake that the server writes; None: it writes none."""
    return [*journal_warnings(data, lake), *lake_warnings(data, lake)]


def journal_warnings(data: Path, lake: str | Path | None) -> Iterator[str]:
    """A damaged journal stops the next start, not a server that runs."""
    try:
        wrong = lost_journal(data)
        if not wrong:
            with closing(open_reader(data)) as reader:
                reader.refuse_newer()
                reader.refuse_incomplete(_last_in(lake, data))
    except NoJournal:
        return
    except Damaged as error:
        wrong = str(error)
    if wrong:
        yield f"the server will not start: {wrong}"


def _last_in(lake: str | Path | None, data: Path) -> int:
    """The last journal entry that was reported to be in the lake. 0: nothing is known."""
    try:
        reported = read_position(data, lake) if lake is not None else None
    except Damaged:  # it is written again with the next segment; of a newer one `lake_warnings` says so
        reported = None
    return 0 if reported is None else reported.last


def lake_warnings(data: Path, lake: str | Path | None) -> Iterator[str]:
    if lake is None:
        return
    local = folder(lake)
    if local is not None:
        there = next(each for each in (local, *local.parents) if each.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            if local.parent != data.absolute():  # else the data folder's own warning says it
                yield f"the lake cannot be written: this user cannot write to {there}; set lake.dir to another"
            return
    try:
        _refuse_newer(data, lake)
        found = status(lake, data, on=True)
    except Newer as error:
        yield f"the server will not start: {error}"
        return
    except (CrossdockError, OSError) as error:
        yield f"the lake cannot be written: {error}"
        return
    if found.lag is not None and found.lag.bytes > BEHIND_BYTES:
        yield (
            f"the lake is {found.lag.bytes // _MIB} MiB behind the journal, which cannot be trimmed until the lake has "
            "caught up; see the server's log for the cause"
        )
    yield from found.faults[:_LISTED]
    if len(found.faults) > _LISTED:
        yield f"{len(found.faults) - _LISTED} more faults in the lake; crossdock lake status lists all"


def _refuse_newer(data: Path, lake: str | Path) -> None:
    try:
        read_position(data, lake)
    except Newer:
        raise
    except Damaged:
        return
