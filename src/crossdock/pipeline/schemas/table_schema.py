"""What a schema is, and the types and columns that many tables have."""

from typing import Final, NamedTuple

import pyarrow as pa

TEXT: Final = pa.string()
INT: Final = pa.int64()
INT32: Final = pa.int32()
FLOAT: Final = pa.float64()
BOOL: Final = pa.bool_()
DATE: Final = pa.date32()
TIME: Final = pa.timestamp("us", "UTC")

Column = tuple[str, pa.DataType, str]


class TableSchema(NamedTuple):
    name: str
    meaning: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]  #: columns that identify a row; of a rollup, a row of one batch
    #: Two columns of job numbers. The log has the minimum of the first and the maximum of the second for each file, so
    #: that a search for jobs leaves out files.
    bounds: tuple[str, str] | None = None

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema([pa.field(name, kind, metadata={"meaning": text}) for name, kind, text in self.columns])

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.columns]


#: Columns that many tables have.
SERVER: Final = ("server", TEXT, "name of the server, from `server.name`")
EPOCH: Final = ("flush_epoch", INT, "number of flushes before; statistics and depths restart with each flush")
QUEUE: Final = ("queue", TEXT, "the job's queue when the event happened")
KIND: Final = ("kind", TEXT, "the job's type or class")
ORIGIN: Final = ("protocol", TEXT, "protocol that pushed the job")
DAY: Final = ("date", DATE, "UTC day by the server's clock")
HOUR: Final = ("hour", TIME, "start of the hour, UTC")
