"""Counts failures again from the lake, for the causes and error groups that erased jobs had.

A cause or an error group may be the text of a message, and the time of its first failure cannot be corrected without
looking at all of them. So all failures of these keys on the dates concerned are read from the lake, with the rows of
the erased jobs changed as in the lake.
"""

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crossdock.lake.erase import erase_rows, of_jobs
from crossdock.lake.schema import SEQ_SHIFT
from crossdock.lake.selection import Chosen, may_have, scan
from crossdock.lake.table import Lake, LakeFile
from crossdock.pipeline.catalog import Progress, Tables
from crossdock.pipeline.lakes import skipped_paths
from crossdock.pipeline.schemas.appended import COUNTS_DAY, FAILURES_DAY

_FAILED: Final = pc.field("event") == "failed"
_COLUMNS: Final = (
    "seq", "at", "number", "jid", "flush_epoch", "queue", "kind", "origin", "event", "state", "outcome", "lost",
    "attempt", "over", "run_s", "error_group", "error_message",
)  # fmt: skip

# As transforms/rollups.py has them, which needs Spark.
_ENDED: Final = ("complete", "failed", "dead", "gone")
_MESSAGE: Final = 500
_CAUSE: Final = 200
_VARIES: Final = (
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b0x[0-9a-f]+\b|\b(?=[a-f]*[0-9])[0-9a-f]{8,}\b|[0-9]+"
)
#: Before version 19, Java takes all letters for word characters, and ASCII alone since.
_FOLDING: Final = (re.compile(_VARIES, re.IGNORECASE), re.compile(_VARIES, re.IGNORECASE | re.ASCII))

Key = tuple[Any, ...]


class Recounted(NamedTuple):
    failure_keys: set[Key]  #: whose rows are replaced: the key of the table without server and date
    count_keys: set[Key]
    failures: pa.Table  #: the new rows
    counts: pa.Table


def recount(
    tables: Tables, lake: Lake, chosen: Chosen, entry: int, progress: Progress
) -> Iterator[tuple[dt.date, Recounted]]:
    """For each date on which the jobs failed. `entry`: the last journal entry in the tables."""
    skipped = skipped_paths(tables, lake.id)
    files = [file for file in lake.files() if file.path not in skipped]
    dates = sorted({file.date for file in may_have(lake, files, chosen.numbers)})
    for done, date in enumerate(dates):
        progress("counting failures again", done, len(dates))
        found = _recount(tables, lake, [file for file in files if file.date == date], date, chosen, entry)
        if found is not None:
            yield dt.date.fromisoformat(date), found


def _recount(
    tables: Tables, lake: Lake, files: list[LakeFile], date: str, chosen: Chosen, entry: int
) -> Recounted | None:
    causes = _Causes(tables, date)
    failure_keys: set[Key] = set()
    count_keys: set[Key] = set()
    of_chosen = pc.field("number").isin(chosen.numbers)
    for before, after in _rows(lake, may_have(lake, files, chosen.numbers), chosen, entry, of_chosen):
        failure_keys |= {_failure_key(before, causes), _failure_key(after, causes)}
        if before["error_group"] != after["error_group"]:
            count_keys |= {_count_key(before), _count_key(after)}
    if not failure_keys:
        return None
    failures: dict[Key, dict[str, Any]] = {}
    counts: dict[Key, dict[str, Any]] = {}
    queues = pa.array(sorted({key[0] for key in failure_keys if key[0] is not None}), pa.string())
    of_queues = pc.field("queue").isin(queues) | pc.is_null(pc.field("queue"))
    for _, row in _rows(lake, files, chosen, entry, of_queues):
        key = _failure_key(row, causes)
        if key in failure_keys:
            _count_failure(failures, key, row)
        key = _count_key(row)
        if key in count_keys:
            _count_event(counts, key, row)
    return Recounted(
        failure_keys,
        count_keys,
        _table(FAILURES_DAY.key, FAILURES_DAY.arrow, failures, lake, date),
        _table(COUNTS_DAY.key, COUNTS_DAY.arrow, counts, lake, date),
    )


class _Causes:
    """Causes of messages, as the Java that made the table finds them. Only messages beyond ASCII differ."""

    def __init__(self, tables: Tables, date: str) -> None:
        table = tables[FAILURES_DAY.name]
        self._known: set[str | None] = set()
        for file in table.files([dt.date.fromisoformat(date)]):
            with table.storage.open(file.path) as source:
                self._known.update(pq.read_table(source, columns=["cause"]).column("cause").to_pylist())

    def of(self, message: str) -> str:
        first, second = (fold.sub("N", message[:_MESSAGE])[:_CAUSE] for fold in _FOLDING)
        return second if first not in self._known and second in self._known else first


def _rows(
    lake: Lake, files: list[LakeFile], chosen: Chosen, entry: int, where: Any
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Failures that are in the tables, as they were and as they are when the jobs are erased."""
    until = (entry + 1) << SEQ_SHIFT
    for file in files:
        for batch in scan(lake, file, _COLUMNS, _FAILED & (pc.field("seq") < until) & where):
            table = pa.Table.from_batches([batch])
            erased = erase_rows(table, of_jobs(table, chosen))
            yield from zip(table.to_pylist(), erased.to_pylist(), strict=True)


def _failure_key(row: dict[str, Any], causes: _Causes) -> Key:
    return row["queue"], row["kind"], row["error_group"] or "", causes.of(row["error_message"] or "")


def _count_key(row: dict[str, Any]) -> Key:
    return (
        row["flush_epoch"], row["queue"], row["kind"], row["origin"], row["event"], row["state"], row["outcome"],
        bool(row["lost"]), (row["attempt"] or 0) > 1, bool(row["over"]), row["error_group"] or "",
    )  # fmt: skip


def _count_failure(failures: dict[Key, dict[str, Any]], key: Key, row: dict[str, Any]) -> None:
    at, seq = row["at"], row["seq"]
    found = failures.setdefault(key, {"n": 0, "deaths": 0, "first_at": at, "last_at": at, "seq": None})
    found["n"] += 1
    found["deaths"] += row["state"] in _ENDED
    found["first_at"], found["last_at"] = min(found["first_at"], at), max(found["last_at"], at)
    if found["seq"] is None or seq < found["seq"]:
        found |= {"seq": seq, "jid": row["jid"], "message": (row["error_message"] or "")[:_MESSAGE]}


def _count_event(counts: dict[Key, dict[str, Any]], key: Key, row: dict[str, Any]) -> None:
    found = counts.setdefault(key, {"n": 0, "run_s": 0.0})
    found["n"] += 1
    found["run_s"] += (row["run_s"] or 0.0) if row["outcome"] is not None else 0.0


def _table(
    names: tuple[str, ...], schema: pa.Schema, found: dict[Key, dict[str, Any]], lake: Lake, date: str
) -> pa.Table:
    own = {"server": lake.server, "date": dt.date.fromisoformat(date)}
    keys = [name for name in names if name not in own]
    rows = [own | dict(zip(keys, key, strict=True)) | values for key, values in found.items()]
    return pa.Table.from_pylist(rows, schema=schema)
