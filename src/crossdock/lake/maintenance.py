"""The maintenance process: keeps the lake small and its log short, while the exporter writes to it.

    python -m crossdock.lake.maintenance OPTIONS

It deletes expired dates, merges the segments of closed days, writes checkpoints, cleans up the log, and removes files
that no version names. It may die at any moment: each of its commits is complete or does not exist, and files are
deleted only after the commit that removes them is on disk. The exporter starts it, at the lowest priority, and it exits
when the exporter does.
"""

import datetime as dt
import logging
import sys
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from crossdock import logs
from crossdock.journal.child_process import end_with_server
from crossdock.journal.files import free_bytes
from crossdock.lake import checkpoints
from crossdock.lake.checksums import BadSum, verify_segment
from crossdock.lake.commits import Commits, Overtaken, Segment
from crossdock.lake.drafts import MERGED, Draft
from crossdock.lake.file_changes import FilesInUse, changing_files, finish_deletions
from crossdock.lake.log import LOG, entry_name
from crossdock.lake.messages import Chores
from crossdock.lake.schema import EVENTS
from crossdock.lake.store import store_of
from crossdock.lake.table import EXPIRED, MAINTAINED, STEADY_MS, LakeFile, date_of_day, first_line
from crossdock.model.clock import DAY
from crossdock.model.errors import CrossdockError

log = logging.getLogger("crossdock.lake")

#: Merge segments up to this size. A reader's task is about as large.
MERGED_BYTES: Final = 256 * 1024 * 1024
#: Rows of a row group in a merged segment. Small ones are put together.
_GROUP_ROWS: Final = 50_000

#: Segments of the current day are merged too when there are this many, and no more than this many at a time.
OPEN_FILES: Final = 500
_FILES_AT_MOST: Final = 1_000
#: In the current day a segment of this size is not merged again.
_LARGE_BYTES: Final = 16 * 1024 * 1024

#: Versions after which a checkpoint is written.
CHECKPOINT_EVERY: Final = 100

#: How long log entries stay after a checkpoint replaced them. Readers find new files in them.
LOG_KEEP_S: Final = 2 * DAY
#: How long merged segments stay, for readers that opened an earlier version, and files that no version names.
FILE_KEEP_S: Final = DAY


class Maintenance:
    def __init__(self, options: Chores) -> None:
        self._options = options
        self._store = store_of(options.location, options.group)
        self._commits = Commits.open(self._store)

    def run(self) -> None:
        """Do everything that is due."""
        finish_deletions(self._commits.lake, self._options.data)
        if self._options.keep_days:
            self.expire(self._options.keep_days, self._options.steady)
        self.compact()
        self.checkpoint()
        self.clean_up()

    def expire(self, keep_days: int, steady: float) -> list[str]:
        """Delete dates whose newest entry is older than `keep_days`. Ages use the steady clock, since a wall clock may
        be wrong. A date without a steady time is counted from now. Returns the dates."""
        lake = self._commits.lake
        files = lake.files()
        changes: dict[str, int] = {}
        over = []
        for day in sorted({file.date for file in files}):
            newest = lake.table.transaction_version(STEADY_MS + day)
            if newest is None:
                changes[STEADY_MS + day] = round(steady * 1_000)
            elif steady - newest / 1_000 > keep_days * DAY:
                over.append(day)
        if over:
            last = _day(max(over))
            changes[EXPIRED] = max(last, lake.table.transaction_version(EXPIRED) or last)
        gone = [file for file in files if file.date in over]
        if changes:
            self._commit([], gone, changes, data_change=True)
        for file in gone:
            self._store.delete(file.path)
        return over

    def compact(self) -> int:
        """Merge the segments of closed days, and of the current day if there are many. Returns the number merged."""
        files = [file for file in self._commits.lake.files() if file.first]
        newest = max((file.date for file in files), default="")
        merged = 0
        for day, of_day in groupby(sorted(files, key=lambda file: (file.date, file.first)), lambda file: file.date):
            there = list(of_day)
            if day == newest and len(there) < OPEN_FILES:
                continue
            for group in _groups(there, closed=day < newest):
                merged += len(group) if self._merge(group) else 0
        return merged

    def _merge(self, files: list[LakeFile]) -> bool:
        """Replace segments by one. A damaged one is left as it is: `crossdock check` reports it."""
        folder = self._options.data / MERGED
        if free_bytes(self._options.data) < self._options.keep_free + 2 * sum(file.bytes for file in files):
            return False
        folder.mkdir(mode=0o700, exist_ok=True)
        for path in folder.iterdir():  # left by a process that was killed
            path.unlink()
        lake = self._commits.lake
        draft = Draft(folder / "merged.parquet", files[0].date)
        try:
            for table in self._tables(files):
                draft.add(table)
        except (BadSum, OSError, pa.ArrowException) as error:
            print(f"{error}", file=sys.stderr)
            return False
        drawn = draft.finish(lake.id, lake.server, files[0].first, max(file.last for file in files))
        if draft.stats.rows != sum(file.rows for file in files):
            return False
        self._store.put(drawn.draft, drawn.segment.path)
        self._commit([drawn.segment], files, {}, data_change=False)
        return True

    def _tables(self, files: list[LakeFile]) -> Iterator[pa.Table]:
        """The rows of verified segments, in row groups of a useful size."""
        open_: list[pa.Table] = []
        for file in files:
            with self._store.open(file.path) as source:
                verify_segment(source)
                with pq.ParquetFile(source) as parquet:
                    for group in range(parquet.num_row_groups):
                        open_.append(complete(parquet.read_row_group(group)))
                        if sum(table.num_rows for table in open_) >= _GROUP_ROWS:
                            yield pa.concat_tables(open_)
                            open_ = []
        if open_:
            yield pa.concat_tables(open_)

    def _commit(
        self, adds: list[Segment], removes: list[LakeFile], transactions: dict[str, int], *, data_change: bool
    ) -> None:
        count = self._commits.lake.transaction(MAINTAINED) + 1
        self._commits.commit(adds, {**transactions, MAINTAINED: count}, removes, data_change=data_change)

    def checkpoint(self) -> bool:
        """Write a checkpoint if the log has grown."""
        self._commits.refresh()
        names = self._store.names()
        if len(names.tail) < CHECKPOINT_EVERY:
            return False
        self._commits.checkpoint()
        checkpoints.record(self._store, self._store.names())
        return True

    def clean_up(self, now: float | None = None) -> list[str]:
        """Delete log entries that a checkpoint replaced, and files that no version names. Returns their names."""
        now = time.time() if now is None else now
        self._commits.refresh()
        names, written = self._store.names(), dict(self._store.log_files())
        checkpoints.record(self._store, names)  # of a process that was killed: entries are deleted only after this
        kept: set[str] = {file.path for file in self._commits.lake.files()}
        gone = []
        for version in names.entries:
            name = entry_name(version)
            if version < names.newest_checkpoint and now - written.get(name, now) > LOG_KEEP_S:
                gone.append(name)
                continue
            entry = self._commits.lake.entry(version)
            kept.update(each.path for each in entry.removes if now - each.at_ms / 1_000 <= FILE_KEEP_S)
        for version, files in names.checkpoints.items():
            old = (f"{LOG}/{each}" for each in files)
            gone += [each for each in old if version < names.newest_checkpoint and now - written[each] > LOG_KEEP_S]
        gone += [name for name, at in written.items() if "#" in name and now - at > FILE_KEEP_S]  # of a killed writer
        gone += [name for name, at in self._store.listed() if name not in kept and now - at > FILE_KEEP_S]
        for name in gone:
            self._store.delete(name)
        checkpoints.record(self._store, self._store.names())
        return gone


def _groups(files: list[LakeFile], *, closed: bool) -> Iterator[list[LakeFile]]:
    """Consecutive segments of one date that become one."""
    group: list[LakeFile] = []
    size = 0
    for file in files:
        keep = not closed and file.bytes >= _LARGE_BYTES
        if group and (keep or size + file.bytes > MERGED_BYTES or len(group) >= _FILES_AT_MOST):
            if len(group) > 1:
                yield group
            group, size = [], 0
        if not keep:
            group.append(file)
            size += file.bytes
    if len(group) > 1:
        yield group


def complete(table: pa.Table) -> pa.Table:
    """With all columns: an older segment has fewer."""
    arrays = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
        for field in EVENTS
    ]
    return pa.Table.from_arrays(arrays, schema=EVENTS)


def _day(date: str) -> int:
    return (dt.date.fromisoformat(date) - date_of_day(0)).days


def main() -> None:
    options = msgspec.json.decode(sys.argv[1], type=Chores, dec_hook=lambda _, text: Path(text))
    end_with_server()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    pa.set_memory_pool(pa.system_memory_pool())  # keeps 50 MiB less than the default one, at the same speed
    try:
        with changing_files(options.data):
            Maintenance(options).run()
    except (Overtaken, FilesInUse):
        pass  # the next process does it
    except (CrossdockError, DeltaError, OSError) as error:
        logs.event(log, logging.ERROR, "lake-maintenance-failed", f"maintenance of the lake: {first_line(error)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
