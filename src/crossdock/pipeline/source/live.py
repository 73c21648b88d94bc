"""Live jobs, as `crossdock jobs` lists them: through the control socket, page by page, a task a state."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import ArrayType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

from crossdock.client.control import ControlClient
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


class Live(DataSourceReader):
    def __init__(self, options: Reading) -> None:
        self._options = options
        state = options.filters.get("state")
        if state is not None and state not in _STATES:
            raise BadOption(f"option state = {state!r} is not allowed; it must be one of {', '.join(_STATES)}")
        ControlClient(Path(options.data)).close()  # raises NoServer before Spark starts a task

    def partitions(self) -> list[InputPartition]:
        state = self._options.filters.get("state")
        return [InputPartition(each) for each in ([state] if state else _STATES)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        chosen = {name: value for name, value in self._options.filters.items() if name != "state"}
        rows: list[dict[str, Any]] = []
        with ControlClient(Path(self._options.data)) as client:
            for row in client.rows("jobs", states=[partition.value], **chosen):
                rows.append(row)
                if len(rows) == _BATCH:
                    yield _batch(rows)
                    rows = []
        if rows:
            yield _batch(rows)


def _batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    columns = [[_value(name, row[name]) for row in rows] for name in _ARROW.names]
    return pa.RecordBatch.from_arrays(
        [pa.array(values, kind) for values, kind in zip(columns, _ARROW.types, strict=True)], schema=_ARROW
    )


def _value(name: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if name in _TIMES and value is not None else value
