"""What the tables hold and how far behind the lake they are. No Spark: the Delta logs and the ledger say it all."""

import datetime as dt
from pathlib import Path
from typing import Any

import msgspec

from crossdock.lake.manifest import SetBack
from crossdock.pipeline.catalog import FACTS, VIEWS, Catalog
from crossdock.pipeline.ledger import BATCH, Ledger
from crossdock.pipeline.refresh import VIEW
from crossdock.pipeline.retention import by_date
from crossdock.pipeline.segments import set_aside, survey, waiting


class TableStatus(msgspec.Struct):
    name: str
    rows: int
    files: int
    bytes: int
    first: dt.date | None
    last: dt.date | None
    batch: int  #: it has all up to this one


class Status(msgspec.Struct):
    batch: int
    segments: int
    events: int
    waiting: int  #: segments that are not in the tables
    waiting_bytes: int
    set_aside: dict[str, str]  #: segment and fault
    missing: list[str]  #: of the lake, in sentences
    set_back: SetBack | None  #: the server's clock was
    tables: list[TableStatus]
    days: dict[str, str]  #: what each day's facts are: deltas, rebuilt, or rebuilt and deltas since


def status(lake: Path, tables: Path) -> Status:
    catalog, ledger = Catalog(tables), Ledger(tables / "facts" / "segments")
    ledger.load()
    seen = survey(lake, ledger.segments)
    ahead = waiting(seen, ledger.known)
    sound = [each for each in ledger.segments if not each.fault]
    return Status(
        ledger.newest,
        len(sound),
        sum(each.rows for each in sound),
        len(ahead),
        sum(each.bytes for each in ahead),
        set_aside(seen, ledger.known),
        seen.missing,
        None if seen.done is None else seen.done.set_back,
        [_table(catalog, each.name, BATCH) for each in FACTS] + [_table(catalog, each.name, VIEW) for each in VIEWS],
        _days(catalog),
    )


def _table(catalog: Catalog, name: str, app: str) -> TableStatus:
    files = catalog[name].files()
    dates = [file.date for file in files]
    return TableStatus(
        name,
        sum(file.rows for file in files),
        len(files),
        sum(file.bytes for file in files),
        min(dates, default=None),
        max(dates, default=None),
        max(catalog[name].version(app), 0),
    )


def _days(catalog: Catalog) -> dict[str, str]:
    kinds: dict[Any, set[str]] = {}
    for fact in FACTS:
        for date, files in by_date(catalog[fact.name]).items():
            kinds.setdefault(date, set()).update(file.stem[0] for file in files)
    words = {"b": "deltas", "r": "rebuilt", "br": "rebuilt, and deltas since"}
    return {date.isoformat(): words.get("".join(sorted(each)), "?") for date, each in sorted(kinds.items())}
