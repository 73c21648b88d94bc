"""One Delta table: Spark writes Parquet files, this commits them. No jar is needed, and any reader of Delta reads it.

Spark writes into a staging folder of the write's own; the files are synced, moved into the table, and become part of it
by one entry in the log. So readers never see half a write, and a write that was cut off left files that nobody names.
A write may carry a transaction (a name and a number): the table knows the last number of each name, and a caller that
finds its own there knows the write was done.

The stem of a file's name is the write's: `b00000007` is what batch 7 added, `r00000007` what a rebuild made of all
batches up to 7. The log is thus the manifest: it says of each day which of the two it holds.
"""

import datetime as dt
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.transaction import AddAction, RemoveAction, Transaction
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from crossdock.pipeline.errors import PipelineError

_STEM: Final = re.compile(r"([a-z])(\d+)-")
_STAGING: Final = "_staging"

#: Hardly two of their values are alike. A dictionary of them is made in vain, in a fifth of the time to write attempts.
_UNLIKE: Final = ("seq", "number", "jid", "leased_at", "closed_at", "wait_s", "run_s")
#: How Spark writes the files.
WRITING: Final = {f"parquet.enable.dictionary#{name}": "false" for name in _UNLIKE}

#: Files that a newer version of the table no longer names stay this long, for readers that began before.
KEEP_HOURS: Final = 24


class File(NamedTuple):
    """A file of the table as it is now."""

    path: str
    date: dt.date
    rows: int
    bytes: int

    @property
    def stem(self) -> tuple[str, int]:
        """The kind of write it came by, and that write's number."""
        found = _STEM.match(Path(self.path).name)
        return (found[1], int(found[2])) if found else ("?", 0)


class Table:
    """Partitioned by `date`. One process writes at a time (lock.py); any number read."""

    def __init__(self, folder: Path, schema: StructType) -> None:
        self.folder = folder
        self.name = folder.name
        self.schema = schema

    @property
    def exists(self) -> bool:
        return (self.folder / "_delta_log").is_dir()

    def create(self) -> None:
        """Make it if it is not there. Raises PipelineError if it is there with other columns."""
        if not self.exists:
            self.folder.mkdir(parents=True, exist_ok=True)
            DeltaTable.create(self.folder, self._delta_schema(), partition_by=["date"], mode="ignore")
        elif DeltaTable(self.folder).schema() != self._delta_schema():
            raise PipelineError(
                f"the table {self.name} in {self.folder.parent} has other columns than this Crossdock makes: "
                "move that folder away and run `crossdock pipeline run`, which makes all tables anew from the lake"
            )

    def version(self, app: str) -> int:
        """The number of the last write under that name; -1 for none."""
        found = DeltaTable(self.folder).transaction_version(app) if self.exists else None
        return -1 if found is None else found

    def files(self) -> list[File]:
        if not self.exists:
            return []
        actions = DeltaTable(self.folder).get_add_actions(flatten=True)
        columns = [actions.column(name).to_pylist() for name in ("path", "partition.date", "num_records", "size_bytes")]
        return [File(path, date, rows or 0, size) for path, date, rows, size in zip(*columns, strict=True)]

    def dataset(self, files: Collection[File]) -> ds.Dataset | None:
        """What is in these files, read by pyarrow itself; None: there are none. On deltalake's own way to a dataset
        pyarrow's threads call back into Python, and some processes abort when they end (deltalake 1.6, pyarrow 26)."""
        if not files:
            return None
        schema = pa.schema(self._delta_schema().to_arrow())
        dates = ds.partitioning(pa.schema([schema.field("date")]), flavor="hive")
        paths = [str(self.folder / file.path) for file in files]
        return ds.dataset(paths, schema, format="parquet", partitioning=dates, partition_base_dir=str(self.folder))

    def read(self, spark: SparkSession, dates: Collection[dt.date] | None = None) -> DataFrame:
        """The rows of these dates, or all; of the version that is newest now."""
        named = [str(self.folder / file.path) for file in self.files() if dates is None or file.date in dates]
        if not named:
            return nothing(spark, self.schema)
        reader = spark.read.schema(self.schema).option("basePath", str(self.folder))
        return reader.parquet(*named).select(*self.schema.fieldNames())

    def write(
        self,
        rows: DataFrame | None,
        stem: str,
        *,
        replace: Iterable[File] = (),
        done: tuple[str, int] | None = None,
        changes: bool = True,
    ) -> None:
        """Add these rows (None: none) and take those files away, as one commit, noted as `done`.

        Raises PipelineError where the rows are not of the table's columns and types.
        """
        self.commit(None if rows is None else self.stage(rows, stem), stem, replace=replace, done=done, changes=changes)

    def stage(self, rows: DataFrame, stem: str) -> Path:
        """Let Spark write these rows where no reader looks: a folder for `commit`. Raises PipelineError."""
        if rows.schema.simpleString() != self.schema.simpleString():
            raise PipelineError(f"rows for {self.name} have the columns {rows.schema.simpleString()}")
        staging = self.folder / _STAGING / f"{stem}-{uuid.uuid4().hex}"
        staging.parent.mkdir(exist_ok=True)  # a folder that Hadoop makes costs it a process, for chmod
        rows.write.options(**WRITING).partitionBy("date").parquet(str(staging))
        return staging

    def commit(
        self,
        staged: Path | None,
        stem: str,
        *,
        replace: Iterable[File] = (),
        done: tuple[str, int] | None = None,
        changes: bool = True,
    ) -> None:
        """The second half of `write`."""
        paths = () if staged is None else sorted(staged.rglob("*.parquet"))
        actions: list[Any] = [self._move_in(path, stem) for path in paths]
        now = int(time.time() * 1_000)
        for file in replace:
            gone = RemoveAction(file.path, changes, now, file.bytes, {"date": file.date.isoformat()})
            actions.append(gone)
        for folder in {self.folder / Path(action.path).parent for action in actions} | {self.folder}:
            _sync(folder)
        marks = CommitProperties(app_transactions=[Transaction(*done)] if done else None)
        if actions or done:
            DeltaTable(self.folder).create_write_transaction(
                actions, "append", self._delta_schema(), ["date"], commit_properties=marks
            )
        if staged is not None:
            shutil.rmtree(staged, ignore_errors=True)

    def sweep(self) -> None:
        """What writes that were cut off left behind. The caller has the lock."""
        shutil.rmtree(self.folder / _STAGING, ignore_errors=True)

    def vacuum(self) -> None:
        """Delete files that no version of the last day names."""
        vacuum(DeltaTable(self.folder))

    def _delta_schema(self) -> Schema:
        return Schema.from_json(self.schema.json())

    def _move_in(self, path: Path, stem: str) -> AddAction:
        _sync(path)
        stat = path.stat()
        date = path.parent.name.partition("=")[2]
        home = self.folder / path.parent.name
        home.mkdir(exist_ok=True)
        name = f"{path.parent.name}/{stem}-{uuid.uuid4().hex}.parquet"
        rows = pq.read_metadata(path).num_rows
        path.rename(self.folder / name)
        stats = json.dumps({"numRecords": rows})
        return AddAction(name, stat.st_size, {"date": date}, int(stat.st_mtime * 1_000), True, stats)


def nothing(spark: SparkSession, schema: StructType) -> DataFrame:
    """No rows of these columns, which the planner can tell. An empty list would start a Python on an executor."""
    return (
        spark.range(0)
        .where(F.lit(False))
        .select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in schema))
    )


def vacuum(table: DeltaTable) -> None:
    """It leaves two entries in the log, so it is asked first whether there is anything to do."""
    if table.vacuum(KEEP_HOURS, enforce_retention_duration=False, full=True):
        table.vacuum(KEEP_HOURS, dry_run=False, enforce_retention_duration=False, full=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
