"""Reads the newest entries of a table's log: which dates changed after a version."""

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from deltalake import DeltaTable

from crossdock.pipeline.storage import Storage


class Changes(NamedTuple):
    """What happened to a table between two versions."""

    dates: set[dt.date]  #: dates whose rows changed
    removed: set[dt.date]  #: those of them that lost rows


def changes(storage: Storage, handle: DeltaTable, after: int) -> Changes | None:
    """What changed after this version, up to that of the handle. Merged files do not change rows. None: the log no
    longer has one of these entries, so anything may have changed."""
    if after < 0:
        return None
    found = Changes(set(), set())
    for version in range(after + 1, handle.version() + 1):
        try:
            for action in _actions(storage, version):
                file = action.get("add") or action.get("remove")
                if file is not None and file.get("dataChange", True):
                    date = dt.date.fromisoformat((file.get("partitionValues") or {})["date"])
                    found.dates.add(date)
                    if "remove" in action:
                        found.removed.add(date)
        except (OSError, KeyError):
            return None
    return found


def changed_dates(storage: Storage, handle: DeltaTable, after: int) -> set[dt.date]:
    """Dates whose rows changed after this version. All dates, if the log no longer tells."""
    found = changes(storage, handle, after)
    return all_dates(handle) if found is None else found.dates


def _actions(storage: Storage, version: int) -> Iterator[dict[str, Any]]:
    with storage.open(f"_delta_log/{version:020d}.json") as entry:
        data: bytes = entry.read()
    for line in data.splitlines():
        yield json.loads(line)


def all_dates(handle: DeltaTable) -> set[dt.date]:
    return {dt.date.fromisoformat(str(part["date"])) for part in handle.partitions()}
