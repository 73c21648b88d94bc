"""Erases a person's data from the lake: rewrites the rows of jobs, and deletes the old files at once.

Rows stay, since counts must agree with those of the journal and the tables. Columns that a client or a worker filled
with data of the job lose their values. Only files that have rows of the jobs are rewritten, one after the other, with
the lake's own writer. One commit replaces them all.

A process that is killed before the commit has changed nothing. One that is killed after it has left a list of the old
files (file_changes.py): the next erase or the maintenance process deletes them.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crossdock.journal.files import free_bytes
from crossdock.lake.checksums import BadSum, verify_segment
from crossdock.lake.commits import Commits, Overtaken, Segment
from crossdock.lake.drafts import MERGED, Draft
from crossdock.lake.file_changes import finish_deletions, plan_deletions
from crossdock.lake.maintenance import complete
from crossdock.lake.selection import ERASED, Chosen, Progress, may_have, scan
from crossdock.lake.store import Store
from crossdock.lake.table import (
    ERASED_AT_US,
    ERASED_JOBS,
    ERASED_ROWS,
    ERASURES,
    MAINTAINED,
    Lake,
    LakeFile,
    first_line,
    range_of,
)
from crossdock.model.errors import CrossdockError, Damaged
from crossdock.model.job import error_group

#: Columns that become null.
_NULLED: Final = ("payload", "payload_hash", "custom", "error_message", "backtrace", "tags", "detail")

#: Other processes may commit meanwhile. After this many times something is wrong.
_TRIES: Final = 20


class NoRoom(CrossdockError):
    """The disk has no space for the rewritten files."""


class Counted(NamedTuple):
    jobs: int
    rows: int
    files: int
    bytes: int


def of_jobs(table: pa.Table, chosen: Chosen) -> pa.ChunkedArray:
    """Which rows are about these jobs. A job that Resqu has deferred has a jid and no number."""
    number, jid = table.column("number"), table.column("jid")
    unnumbered = pc.and_(pc.is_null(number), pc.is_in(jid, chosen.jids))
    return pc.or_(pc.is_in(number, chosen.numbers), pc.fill_null(unnumbered, False))


def erase_rows(table: pa.Table, rows: pa.ChunkedArray) -> pa.Table:
    """The table with these rows erased. Columns that it does not have are left out."""
    for name in ("jid", "replayed_from"):
        if name in table.column_names:
            there = pc.and_(rows, pc.is_valid(table.column(name)))
            table = _with(table, name, pc.if_else(there, ERASED, table.column(name)))
    if "error_group" in table.column_names:
        table = _with(table, "error_group", _groups(table, rows))
    for name in _NULLED:
        if name in table.column_names:
            column = table.column(name)
            table = _with(table, name, pc.if_else(rows, pa.scalar(None, column.type), column))
    return table


def _groups(table: pa.Table, rows: pa.ChunkedArray) -> pa.ChunkedArray:
    """A group that was made of the message's first words is erased with the message. An error type stays."""
    groups, messages = table.column("error_group"), table.column("error_message")
    at = pc.indices_nonzero(pc.and_(rows, pc.and_(pc.is_valid(groups), pc.is_valid(messages))))
    made = [
        row
        for row, group, message in zip(
            at.to_pylist(), groups.take(at).to_pylist(), messages.take(at).to_pylist(), strict=True
        )
        if group and group == error_group("", message)
    ]
    if not made:
        return groups
    is_made = pc.is_in(pa.array(range(table.num_rows), pa.int64()), pa.array(made, pa.int64()))
    return pc.if_else(is_made, ERASED, groups)


def _with(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), column.cast(table.schema.field(at).type))


def affected(lake: Lake, chosen: Chosen, progress: Progress) -> list[LakeFile]:
    """The live files that have rows of these jobs."""
    files = lake.files()
    by_number = {file.path for file in may_have(lake, files, chosen.numbers)}
    found = []
    for done, file in enumerate(files):
        progress("looking for rows", done, len(files))
        if _has_rows(lake, file, chosen, numbers=file.path in by_number):
            found.append(file)
    return found


def _has_rows(lake: Lake, file: LakeFile, chosen: Chosen, *, numbers: bool) -> bool:
    number, jid = pc.field("number"), pc.field("jid")
    where = pc.is_null(number) & (pc.field("event") == "deferred") & jid.isin(chosen.jids)
    if numbers:
        where = where | number.isin(chosen.numbers)
    left = jid != ERASED
    for name in _NULLED:
        left = left | pc.is_valid(pc.field(name))
    return any(True for _ in scan(lake, file, ("seq",), where & left))


def count(lake: Lake, chosen: Chosen, progress: Progress) -> Counted:
    """What an erase would change."""
    files = affected(lake, chosen, progress)
    rows = 0
    for file in files:
        for batch in scan(lake, file, ("number", "jid"), pc.field("seq") >= 0):
            rows += pc.sum(of_jobs(pa.Table.from_batches([batch]), chosen)).as_py() or 0
    return Counted(len(chosen.numbers), rows, len(files), sum(file.bytes for file in files))


class LakeEraser:
    """Runs under the lock of `changing_files`."""

    def __init__(self, store: Store, data: Path, chosen: Chosen, progress: Progress) -> None:
        self._store = store
        self._data = data
        self._chosen = chosen
        self._progress = progress
        self._commits = Commits.open(store)
        self._folder = data / MERGED
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._folder.iterdir():  # left by a process that was killed
            path.unlink()

    def run(self) -> Counted:
        """Erase the jobs. Raises Damaged, NoRoom, Overtaken; then the lake is as before."""
        finish_deletions(self._commits.lake, self._data)
        for _ in range(_TRIES):
            try:
                done = self._replace()
                break
            except Overtaken:
                self._commits.refresh()
        else:
            raise Overtaken(f"{self._store.uri} is changed all the time by another process; run the command again")
        self._progress("deleting old files", 0, 1)
        plan_deletions(self._commits.lake, self._data, list(self._unnamed()))
        finish_deletions(self._commits.lake, self._data)
        return done

    def _replace(self) -> Counted:
        lake = self._commits.lake
        files = affected(lake, self._chosen, self._progress)
        need = 2 * sum(file.bytes for file in files)
        if free_bytes(self._store.root or self._data) < need:
            raise NoRoom(f"erasing needs {need // 1024 // 1024:,} MiB of free disk space; nothing was changed")
        made: list[Segment] = []
        rows = 0
        try:
            for done, file in enumerate(files):
                self._progress("rewriting files", done, len(files))
                segment, erased = self._rewrite(lake, file)
                made.append(segment)
                rows += erased
            if files:
                plan_deletions(lake, self._data, [file.path for file in files])
                self._commit(lake, made, files, rows)
        except (CrossdockError, OSError, KeyboardInterrupt):
            live = {file.path for file in Commits.open(self._store).lake.files()}
            for segment in made:
                if segment.path not in live:  # a commit may have been written although its reply was lost
                    self._store.delete(segment.path)
            raise
        return Counted(len(self._chosen.numbers), rows, len(files), sum(file.bytes for file in files))

    def _commit(self, lake: Lake, made: list[Segment], files: list[LakeFile], rows: int) -> None:
        transactions = {
            MAINTAINED: lake.transaction(MAINTAINED) + 1,
            ERASURES: lake.transaction(ERASURES) + 1,
            ERASED_AT_US: int(time.time() * 1e6),
            ERASED_JOBS: len(self._chosen.numbers),
            ERASED_ROWS: rows,
        }
        self._commits.commit(made, transactions, files, data_change=False)

    def _rewrite(self, lake: Lake, file: LakeFile) -> tuple[Segment, int]:
        """Write the file again, row group by row group, with the same range. Returns it and the erased rows."""
        draft = Draft(self._folder / "erased.parquet", file.date)
        erased = 0
        try:
            for table in self._tables(file):
                rows = of_jobs(table, self._chosen)
                erased += pc.sum(rows).as_py() or 0
                draft.add(erase_rows(table, rows))
        except (BadSum, OSError, pa.ArrowException) as error:
            raise Damaged(
                f"{lake.location}/{file.path} cannot be rewritten: {first_line(error)}; nothing was changed in the "
                "lake. Restore the file from a copy of the lake, and run the command again"
            ) from error
        drawn = draft.finish(lake.id, lake.server, file.first, file.last)
        if draft.stats.rows != file.rows:
            raise Damaged(f"{lake.location}/{file.path} has {draft.stats.rows:,} of {file.rows:,} rows")
        segment = drawn.segment
        if not file.first:  # of another tool: its rows may be of any entries
            segment = segment._replace(path=f"date={file.date}/part-{os.urandom(8).hex()}.parquet")
        self._store.put(drawn.draft, segment.path)
        return segment, erased

    def _tables(self, file: LakeFile) -> Iterator[pa.Table]:
        with self._store.open(file.path) as source:
            if file.first:
                verify_segment(source)
            with pq.ParquetFile(source, page_checksum_verification=not file.first) as parquet:
                for group in range(parquet.num_row_groups):
                    yield complete(parquet.read_row_group(group))

    def _unnamed(self) -> Iterator[str]:
        """Files that no version names, or only an old one, and that have rows of the jobs. Files of entries that are
        not in the lake yet belong to the exporter."""
        lake = self._commits.lake
        live = {file.path for file in lake.files()}
        for path, _ in list(self._store.listed()):
            first, last = range_of(path)
            if path not in live and last <= lake.last and self._may_have_rows(lake, path, first, last):
                yield path

    def _may_have_rows(self, lake: Lake, path: str, first: int, last: int) -> bool:
        file = LakeFile(path, "", 0, 0, 0, first, last, linked=False)
        try:
            return _has_rows(lake, file, self._chosen, numbers=True)
        except (OSError, pa.ArrowException):
            return path.endswith(".parquet")  # unfinished: nothing reads it
