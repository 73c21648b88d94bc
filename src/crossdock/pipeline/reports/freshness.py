"""The state of the tables: their newest event, and the files of the lakes that are not in them."""

import datetime as dt

import msgspec

from crossdock.lake.table import Lake, NoLake
from crossdock.model.errors import CrossdockError
from crossdock.pipeline.lakes import KnownLake, known_lakes
from crossdock.pipeline.planning import waiting
from crossdock.pipeline.reports.tables import Reader


class Freshness(msgspec.Struct):
    first: dt.date  #: first day of the report
    last: dt.date
    observed_s: float  #: seconds from the first to the last event of these days; 0: there are none
    newest: dt.date | None  #: newest day with data in the tables
    upto: dt.datetime | None  #: newest event in the tables
    servers: list[str]  #: with events in these days
    lakes: int  #: lakes that were read; 0: how far the tables are behind is not known
    waiting: int  #: files of these lakes that are not in the tables
    waiting_rows: int
    troubles: list[str]  #: why a lake was not read


def freshness(reader: Reader, lake: str) -> Freshness:
    """`lake`: the location of the server's own lake, which may not be in the tables yet."""
    newest = max((file.date for file in reader.tables["counts_hour"].files()), default=None)
    found = Freshness(
        first=reader.days.first,
        last=reader.days.last,
        observed_s=reader.observed.seconds if reader.observed else 0.0,
        newest=newest,
        upto=_upto(reader, newest),
        servers=reader.servers,
        lakes=0,
        waiting=0,
        waiting_rows=0,
        troubles=[],
    )
    known = known_lakes(reader.tables["lakes"])
    own = [] if any(each.location == lake for each in known) else [KnownLake("", "", lake)]
    for each in (*known, *own):
        if reader.server in (None, each.server):
            _add(found, reader, each)
    return found


def _upto(reader: Reader, newest: dt.date | None) -> dt.datetime | None:
    if newest is None:
        return None
    where = f"date = DATE '{newest.isoformat()}'"
    [row] = reader.rows("counts_hour", f"SELECT max(last_at) AS last FROM counts_hour WHERE {where}")
    return None if row["last"] is None else dt.datetime.fromtimestamp(row["last"], dt.UTC)


def _add(found: Freshness, reader: Reader, known: KnownLake) -> None:
    try:
        ahead = waiting(reader.tables, [Lake.open(known.location)])
    except NoLake:
        return  # reports are often made where the tables are and the lake is not
    except CrossdockError as error:
        found.troubles.append(str(error))
        return
    found.lakes += 1
    found.waiting += ahead.files
    found.waiting_rows += ahead.rows
