"""A Delta table of the pipeline. Spark and pyarrow write Parquet files, and this module commits them with delta-rs.

A write puts its files into a folder of its own below the table, and one log entry names them. So readers never see half
a write, nothing is renamed, and an interrupted write leaves only files that no log entry names.

Each table is its own ledger: a commit carries, for every lake in the batch, the lake's version and its last journal
entry as transactions. The log keeps them through checkpoints and through the `optimize` of other tools.
"""

import datetime as dt
import json
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, Transaction

from crossdock.pipeline.errors import PipelineError, TablesInUse
from crossdock.pipeline.schemas.table_schema import TableSchema
from crossdock.pipeline.storage import Storage

#: Replaced files are kept this long, for readers of an older version.
KEEP_HOURS: Final = 24

#: A date with more files than this is merged.
MANY_FILES: Final = 16

#: Log entries between two checkpoints.
_CHECKPOINT: Final = 50

_EPOCH: Final = dt.date(1970, 1, 1)

_WRITING: Final[Mapping[str, Any]] = {"compression": "zstd", "store_schema": False}


class Position(NamedTuple):
    """Up to where a table has the events of a lake."""

    version: int = -1  #: of the lake's table
    entry: int = 0  #: journal entry


class File(NamedTuple):
    """A file of the newest version of a table."""

    path: str
    date: dt.date
    rows: int
    bytes: int
    lowest: int | None = None  #: job numbers (TableSchema.bounds); None: unknown
    highest: int | None = None


class Table:
    """One table. A handle is opened for reading or for one change: what was read and what is committed then belong to
    the same version, and a commit that lost a race is refused."""

    def __init__(self, location: str, schema: TableSchema) -> None:
        self.name = schema.name
        self.schema = schema
        self.location = location
        self.storage = Storage(location)

    def create(self) -> None:
        """Create the table, or add the columns that it lacks. Raises PipelineError if a column has another type."""
        wanted = Schema.from_arrow(self.schema.arrow)
        handle = self.open()
        if handle is None:
            self.storage.make_folder()
            DeltaTable.create(
                self.location, wanted, mode="ignore", partition_by=["date"], name=self.name,
                description=self.schema.meaning,
            )  # fmt: skip
            return
        known = {field.name: field.type for field in handle.schema().fields}
        other = [field.name for field in wanted.fields if known.get(field.name, field.type) != field.type]
        if other:
            raise PipelineError(
                f"the column {other[0]} of the table {self.name} in {self.location} has another type than this "
                "Crossdock writes: run `crossdock pipeline rebuild`, which makes all tables again from the lake"
            )
        lacking = [field for field in wanted.fields if field.name not in known]
        if lacking:
            handle.alter.add_columns(lacking)

    def open(self) -> DeltaTable | None:
        """A handle of the newest version; None: there is no such table."""
        try:
            return DeltaTable(self.location)
        except TableNotFoundError:
            return None

    def handle(self) -> DeltaTable:
        """Raises PipelineError if there is no such table."""
        found = self.open()
        if found is None:
            raise PipelineError(f"there is no table {self.name} in {self.location}; `crossdock pipeline run` makes it")
        return found

    def position(self, lake: str, handle: DeltaTable | None = None) -> Position:
        handle = handle or self.open()
        version = None if handle is None else handle.transaction_version(_version_of(lake))
        if handle is None or version is None:
            return Position()
        return Position(version, handle.transaction_version(_entry_of(lake)) or 0)

    def source(self, name: str, handle: DeltaTable) -> int:
        """The version of another table that this view was computed from; -1: none."""
        version = handle.transaction_version(_source(name))
        return -1 if version is None else version

    def expired(self, server: str, handle: DeltaTable) -> dt.date:
        """Rows of this server were deleted up to this date."""
        days = handle.transaction_version(_expired(server))
        return dt.date.min if days is None else _EPOCH + dt.timedelta(days=days)

    def files(self, dates: Collection[dt.date] | None = None, handle: DeltaTable | None = None) -> list[File]:
        """Files of these dates, or all."""
        handle = handle or self.open()
        if handle is None:
            return []
        actions = pa.table(handle.get_add_actions(flatten=True))
        low, high = self.schema.bounds or ("", "")
        names = ("path", "partition.date", "num_records", "size_bytes", f"min.{low}", f"max.{high}")
        columns = [
            actions.column(name).to_pylist() if name in actions.column_names else [None] * actions.num_rows
            for name in names
        ]
        found = (File(path, date, rows or 0, *rest) for path, date, rows, *rest in zip(*columns, strict=True))
        return [file for file in found if dates is None or file.date in dates]

    def new_folder(self) -> str:
        """The name of a folder for one write."""
        return uuid.uuid4().hex

    def write(self, rows: pa.Table) -> list[AddAction]:
        """Write rows with pyarrow, one file per date. Returns the actions to commit."""
        schema, made, folder = self.schema.arrow, [], self.new_folder()
        stored = schema.remove(schema.get_field_index("date"))
        for date in sorted(rows.column("date").unique().to_pylist()):
            part = rows.filter(pa.compute.equal(rows.column("date"), pa.scalar(date, pa.date32())))
            path = f"{folder}/date={date.isoformat()}/part.parquet"
            sink = pa.BufferOutputStream()
            pq.write_table(part.select(stored.names).cast(stored), sink, **_WRITING)
            data = sink.getvalue()
            self.storage.put(path, data)
            made.append(self._added(path, data.size, date, pq.read_metadata(pa.BufferReader(data))))
        return made

    def read(self, file: File, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of a file, without their date. Columns that are newer than the file are null."""
        with self.storage.open(file.path) as source:
            rows = pq.ParquetFile(source).read(columns)
        for field in self.schema.arrow:
            if (
                field.name not in rows.column_names
                and field.name != "date"
                and (columns is None or field.name in columns)
            ):
                rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        return rows

    def joined(self, files: Sequence[File], change: Callable[[pa.Table], pa.Table] = lambda rows: rows) -> AddAction:
        """Write the rows of these files, all of one date, to one file. `change` gets the rows of each file. Files are
        read one after the other, since all together may not fit into memory."""
        schema, date = self.schema.arrow, files[0].date
        stored = schema.remove(schema.get_field_index("date"))
        path, sink = f"{self.new_folder()}/date={date.isoformat()}/part.parquet", pa.BufferOutputStream()
        with pq.ParquetWriter(sink, stored, **_WRITING) as writer:
            for file in files:
                writer.write_table(change(self.read(file).select(stored.names).cast(stored)))
        data = sink.getvalue()
        self.storage.put(path, data)
        return self._added(path, data.size, date, pq.read_metadata(pa.BufferReader(data)))

    def written(self, folder: str) -> list[AddAction]:
        """The actions for the files that Spark wrote into a folder."""
        return self.named([path for path, _ in self.storage.list(folder) if path.endswith(".parquet")])

    def named(self, paths: Iterable[str]) -> list[AddAction]:
        """The actions for files that another process wrote, with the row counts of their footers. Files that do not
        exist here are left out."""
        made = []
        for path in paths:
            date = dt.date.fromisoformat(path.rsplit("/", 2)[1].removeprefix("date="))
            try:
                with self.storage.open(path) as source:
                    metadata = pq.read_metadata(source)
                    size = source.seek(0, 2)
            except FileNotFoundError:
                continue
            self.storage.sync(path)
            made.append(self._added(path, size, date, metadata))
        return made

    def _added(self, path: str, size: int, date: dt.date, metadata: Any) -> AddAction:
        stats: dict[str, Any] = {"numRecords": metadata.num_rows}
        if self.schema.bounds is not None:
            low, high = self.schema.bounds
            (least, _), (_, most) = _range(metadata, low), _range(metadata, high)
            if least is not None and most is not None:
                stats |= {"minValues": {low: least}, "maxValues": {high: most}}
        values = {"date": date.isoformat()}
        return AddAction(path, size, values, int(time.time() * 1_000), True, json.dumps(stats))

    def commit(
        self,
        handle: DeltaTable,
        added: Sequence[AddAction],
        *,
        replaced: Iterable[File] = (),
        positions: Mapping[str, Position] | None = None,
        sources: Mapping[str, int] | None = None,
        expired: Mapping[str, dt.date] | None = None,
        changes: bool = True,
    ) -> None:
        """Add files and remove others in one log entry. It carries the new positions of lakes, the versions of the
        tables that a view was computed from, or up to which date a server's rows were deleted."""
        now = int(time.time() * 1_000)
        gone = [RemoveAction(file.path, changes, now, file.bytes, {"date": file.date.isoformat()}) for file in replaced]
        if not changes:
            added = [AddAction(a.path, a.size, a.partition_values, a.modification_time, False, a.stats) for a in added]
        marks = [Transaction(_source(name), version) for name, version in (sources or {}).items()]
        marks += [Transaction(_expired(server), (date - _EPOCH).days) for server, date in (expired or {}).items()]
        for lake, position in (positions or {}).items():
            marks += [Transaction(_version_of(lake), position.version), Transaction(_entry_of(lake), position.entry)]
        if not (added or gone or marks):
            return
        try:
            handle.create_write_transaction(
                [*added, *gone],
                "append",
                handle.schema(),
                ["date"],
                commit_properties=CommitProperties(app_transactions=marks or None),
                post_commithook_properties=PostCommitHookProperties(
                    create_checkpoint=False, cleanup_expired_logs=False
                ),
            )
        except CommitFailedError as error:
            raise TablesInUse(
                f"another process changed the table {self.name} in {self.location} meanwhile: run this command again, "
                "and one at a time (no data is lost)"
            ) from error
        self.storage.sync_log(handle.version())

    def tidy(self) -> None:
        """Make a checkpoint now and then, and delete files that no version of the last day uses."""
        handle = self.open()
        if handle is None:
            return
        if handle.version() - self.storage.last_checkpoint() >= _CHECKPOINT:
            handle.create_checkpoint()
            for path, _ in self.storage.list("_delta_log"):
                if ".checkpoint." in path or path.endswith("_last_checkpoint"):
                    self.storage.sync(path)
            handle.cleanup_metadata()  # log entries that are older than 30 days and in the checkpoint
        # A vacuum adds two log entries, so a dry run first looks for unused files.
        if handle.vacuum(KEEP_HOURS, enforce_retention_duration=False, full=True):
            handle.vacuum(KEEP_HOURS, dry_run=False, enforce_retention_duration=False, full=True)


def rows_of(added: Iterable[AddAction]) -> int:
    return sum(json.loads(action.stats)["numRecords"] for action in added)


def _range(metadata: Any, column: str) -> tuple[int | None, int | None]:
    """Minimum and maximum of a column by the footer of its file; None: unknown."""
    found = []
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        index = next((i for i in range(group.num_columns) if group.column(i).path_in_schema == column), None)
        statistics = None if index is None else group.column(index).statistics
        if statistics is None:
            return None, None
        if statistics.has_min_max:
            found.append((statistics.min, statistics.max))
        elif not (statistics.has_null_count and statistics.null_count == group.num_rows):
            return None, None
    return min((low for low, _ in found), default=None), max((high for _, high in found), default=None)


def _version_of(lake: str) -> str:
    return f"crossdock/{lake}"


def _entry_of(lake: str) -> str:
    return f"crossdock/{lake}/entry"


def _expired(server: str) -> str:
    return f"crossdock/expired/{server}"


def _source(table: str) -> str:
    return f"crossdock/source/{table}"
