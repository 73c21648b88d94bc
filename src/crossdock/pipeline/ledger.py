"""The ledger: which segments are in the tables, by which batch, and which are set aside. It is written first.

A batch is a set of segments that were not in the ledger. When they are, it is begun; each table then gets its rows by
a commit of its own that names the batch. A crash in between leaves a batch that some tables have and others lack:
whoever comes next asks the ledger for the newest batch and finishes it before anything else. So what is counted
depends on the ledger alone, not on any checkpoint.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.transaction import Transaction

from crossdock.pipeline.delta import vacuum
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.segments import Segment

BATCH: Final = "crossdock-batch"

_MANY_FILES: Final = 64

_SCHEMA: Final = pa.schema(
    [
        pa.field("batch", pa.int64()),
        pa.field("lake", pa.string()),
        pa.field("name", pa.string()),
        pa.field("bytes", pa.int64()),
        pa.field("first", pa.int64()),
        pa.field("last", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("first_day", pa.int64()),
        pa.field("last_day", pa.int64()),
        pa.field("fault", pa.string()),
    ]
)


class Ledger:
    """Read once, and kept in step with what this process records: the lock keeps others from it meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._batches: dict[int, dict[str, Segment]] = {}
        self._known: dict[str, Segment] = {}
        self._version = -1
        self._lake = ""

    def load(self) -> None:
        """Read what others recorded since."""
        if not DeltaTable.is_deltatable(str(self._folder)):
            return
        table = DeltaTable(self._folder)
        if table.version() == self._version:
            return
        self._batches.clear()
        self._known.clear()
        # By pyarrow itself, for the reason that `delta.Table.dataset` gives.
        paths = [str(self._folder / path) for path in table.get_add_actions(flatten=True).column("path").to_pylist()]
        rows = ds.dataset(paths, _SCHEMA, format="parquet").to_table()
        # The faults last: what was set aside after its batch was begun stands in it twice.
        for row in rows.sort_by([(name, "ascending") for name in ("batch", "fault", "first")]).to_pylist():
            self._lake = row.pop("lake")
            self._note(row.pop("batch"), Segment(**row))
        self._version = table.version()

    @property
    def newest(self) -> int:
        """The number of the newest batch; 0: there is none."""
        return max(self._batches, default=0)

    @property
    def segments(self) -> list[Segment]:
        """All that are known, the sound and the others; of one that was set aside and is whole now, the latter."""
        return list(self._known.values())

    def of_batch(self, batch: int) -> list[Segment]:
        return [each for each in self._batches.get(batch, {}).values() if not each.fault]

    @property
    def known(self) -> Mapping[str, Segment]:
        """By name."""
        return self._known

    def record(self, lake: str, segments: Sequence[Segment]) -> int:
        """Begin the next batch, of that lake; its number. Raises PipelineError if the others are of another."""
        if self._lake not in ("", lake):
            raise PipelineError(
                f"the tables in {self._folder.parents[1]} are of the lake {self._lake}, and this one is {lake}: "
                "name another folder for its tables"
            )
        batch, self._lake = self.newest + 1, lake
        self._write(batch, segments, CommitProperties(app_transactions=[Transaction(BATCH, batch)]))
        return batch

    def set_aside(self, faults: Sequence[Segment]) -> None:
        """Of the newest batch, which no table has yet."""
        if faults:
            self._write(self.newest, faults)

    def _write(self, batch: int, segments: Sequence[Segment], marks: CommitProperties | None = None) -> None:
        columns: dict[str, list[Any]] = {"batch": [batch] * len(segments), "lake": [self._lake] * len(segments)}
        for index, name in enumerate(Segment._fields):
            columns[name] = [each[index] for each in segments]
        write_deltalake(str(self._folder), pa.table(columns, schema=_SCHEMA), mode="append", commit_properties=marks)
        for segment in segments:
            self._note(batch, segment)
        self._version = DeltaTable(self._folder).version()

    def tidy(self) -> None:
        """One file of many: each batch left one."""
        table = DeltaTable(self._folder)
        if len(table.file_uris()) > _MANY_FILES:
            table.optimize.compact()
        vacuum(table)

    def _note(self, batch: int, segment: Segment) -> None:
        self._batches.setdefault(batch, {})[segment.name] = segment
        self._known[segment.name] = segment
