"""Reads live jobs, as `crossdock job list` does: page by page, one task per state and queue.

They are read through the admin socket, or from other machines through the Redis listener.
"""

from collections.abc import Iterator
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, In, InputPartition
from pyspark.sql.types import ArrayType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

from crossdock.client.admin import AdminClient
from crossdock.client.bulk import LiveJobs
from crossdock.model.states import State
from crossdock.pipeline.source.options import BadOption, Reading

_STATES: Final = tuple(state.name.lower() for state in State if state is not State.GONE)

_COLUMNS: Final[dict[str, tuple[Any, pa.DataType]]] = {
    "number": (LongType(), pa.int64()),
    "jid": (StringType(), pa.string()),
    "queue": (StringType(), pa.string()),
    "kind": (StringType(), pa.string()),
    "state": (StringType(), pa.string()),
    "priority": (DoubleType(), pa.float64()),
    "since": (TimestampType(), pa.timestamp("us", "UTC")),
    "due": (TimestampType(), pa.timestamp("us", "UTC")),
    "attempts": (LongType(), pa.int64()),
    "failures": (LongType(), pa.int64()),
    "worker": (StringType(), pa.string()),
    "tags": (ArrayType(StringType()), pa.list_(pa.string())),
    "error": (StringType(), pa.string()),
    "payload": (StringType(), pa.string()),
    "payload_bytes": (LongType(), pa.int64()),
}
JOBS_SCHEMA: Final = StructType([StructField(name, kind) for name, (kind, _) in _COLUMNS.items()])
_ARROW: Final = pa.schema([(name, kind) for name, (_, kind) in _COLUMNS.items()])
_TIMES: Final = frozenset({"since", "due"})
_BATCH: Final = 1_000
#: Columns that the server filters by, if they are compared with constants.
_CHOSEN: Final = ("state", "queue", "kind")


class Live(DataSourceReader):
    def __init__(self, options: Reading) -> None:
        self._options = options
        given = options.filters
        self._among: dict[str, list[str]] = {name: [given[name]] for name in _CHOSEN if name in given}
        state = given.get("state")
        if state is not None and state not in _STATES:
            raise BadOption(f"option state = {state!r} is not allowed; it must be one of {', '.join(_STATES)}")
        self._reach().close()  # raises NoServer before Spark starts a task

    def _reach(self) -> AdminClient | LiveJobs:
        where = self._options.where
        return AdminClient(Path(self._options.data)) if where is None else LiveJobs(where)

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802 (Spark's name)
        """Use `=` and `in` on state, queue and kind."""
        for each in filters:
            name, values = _constants(each)
            if not name:
                yield each
            else:
                before = self._among.get(name, values)
                self._among[name] = [value for value in values if value in before]

    def partitions(self) -> list[InputPartition]:
        states = [state for state in self._among.get("state", _STATES) if state in _STATES]
        queues, kinds = (self._among.get(name, [None]) for name in ("queue", "kind"))
        made = [
            InputPartition({"states": [state], "queue": queue, "kind": kind})
            for state, queue, kind in product(states, queues, kinds)
        ]
        return made or [InputPartition(None)]  # without a partition Spark creates one without a value

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:
            return
        chosen = {name: value for name, value in partition.value.items() if value is not None}
        if "tag" in self._options.filters:
            chosen["tag"] = self._options.filters["tag"]
        rows: list[dict[str, Any]] = []
        with self._reach() as client:
            found = client.rows("jobs", **chosen) if isinstance(client, AdminClient) else client.rows(**chosen)
            for row in found:
                rows.append(row)
                if len(rows) == _BATCH:
                    yield _batch(rows)
                    rows = []
        if rows:
            yield _batch(rows)


def _constants(rule: Any) -> tuple[str, list[str]]:
    """The column and its allowed values, without duplicates. Empty if the filter has another form."""
    if type(rule) not in (EqualTo, In) or len(rule.attribute) != 1 or rule.attribute[0] not in _CHOSEN:
        return "", []
    values = list(dict.fromkeys(rule.value if type(rule) is In else (rule.value,)))
    return (rule.attribute[0], values) if all(type(value) is str and value for value in values) else ("", [])


def _batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    columns = [[_value(name, row[name]) for row in rows] for name in _ARROW.names]
    return pa.RecordBatch.from_arrays(
        [pa.array(values, kind) for values, kind in zip(columns, _ARROW.types, strict=True)], schema=_ARROW
    )


def _value(name: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if name in _TIMES and value is not None else value
