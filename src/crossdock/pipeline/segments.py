"""The lake's segments as the ledger keeps them: which are new, what is wrong with others, and which days they touch."""

import datetime as dt
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow.parquet as pq

from crossdock.lake.segments import Look, damage, look
from crossdock.lake.segments import Segment as Counted

_EPOCH: Final = dt.date(1970, 1, 1)
#: Bounds that no day is beyond: a segment without statistics may book on any.
_ANY: Final = (-(2**31), 2**31)


class Segment(NamedTuple):
    name: str  #: beneath the lake: `events/date=2026-11-16/000000000017-000000000042.parquet`
    bytes: int
    first: int  #: batches of the journal
    last: int
    rows: int
    first_day: int  #: days since 1970 that its rows may book on, or are of
    last_day: int
    fault: str = ""  #: why it is set aside; then none of its rows is counted

    def covers(self, day: dt.date) -> bool:
        return self.first_day <= (day - _EPOCH).days <= self.last_day


def survey(lake: Path, known: Iterable[Segment]) -> Look:
    """The lake as it is now. Segments that are in the ledger are not opened again."""
    return look(lake, {lake / each.name: _counted(lake, each) for each in known if not each.fault})


def new(seen: Look, known: Mapping[str, Segment]) -> list[Segment]:
    """What the ledger does not have yet, oldest first; then what was set aside, for this reason, not before."""
    found = []
    for each in seen.segments:
        name = str(each.path.relative_to(seen.folder))
        if name not in known or known[name].fault:
            found.append(Segment(name, each.bytes, each.first, each.last, each.rows, *_days(each)))
    for path, why in seen.aside:
        name = str(path.relative_to(seen.folder))
        if name not in known or known[name].fault not in ("", why):
            found.append(Segment(name, path.stat().st_size if path.exists() else 0, 0, 0, 0, 0, 0, why))
    return found


def set_aside(seen: Look, known: Mapping[str, Segment]) -> dict[str, str]:
    """Names and faults of all that is: by the look of it now, or by what was found on its pages when they were read."""
    there = {str(each.path.relative_to(seen.folder)) for each in seen.segments}
    aside = {name: each.fault for name, each in known.items() if each.fault and name in there}
    for path, why in seen.aside:
        name = str(path.relative_to(seen.folder))
        taken = name in known and not known[name].fault
        aside[name] = f"{why}; what it held is in the tables, and its days are not rebuilt without it" if taken else why
    return aside


def waiting(seen: Look, known: Mapping[str, Segment]) -> list[Segment]:
    aside = set_aside(seen, known)
    return [each for each in new(seen, known) if not each.fault and each.name not in aside]


def faulty(lake: Path, segments: Iterable[Segment]) -> list[Segment]:
    """Those that cannot be read again as they were taken in, with what is wrong with them."""
    return [each._replace(fault=why) for each in segments if (why := _fault(lake, each))]


def _fault(lake: Path, segment: Segment) -> str:
    path = lake / segment.name
    try:
        size = path.stat().st_size
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if size != segment.bytes:
        return f"it is torn: it has {size:,} bytes, and had {segment.bytes:,} when it was taken in"
    return damage(path)


def _counted(lake: Path, each: Segment) -> Counted:
    date = Path(each.name).parent.name.partition("=")[2]
    return Counted(lake / each.name, date, each.first, each.last, each.rows, each.bytes)


def _days(segment: Counted) -> tuple[int, int]:
    footer: Any = pq.read_metadata(segment.path)
    day = (dt.date.fromisoformat(segment.date) - _EPOCH).days
    low = high = day
    for group in range(footer.num_row_groups):
        for index in range(footer.num_columns):
            column = footer.row_group(group).column(index)
            if column.path_in_schema == "booked_day":
                booked = column.statistics
                known = booked is not None and booked.has_min_max
                least, most = (booked.min, booked.max) if known else _ANY
                if not known and booked is not None and booked.null_count == column.num_values:
                    continue
                low, high = min(low, least), max(high, most)
    return low, high
