"""The lake as a Delta table: what readers use.

    _delta_log/                                          the log: which files belong to the lake
    date=2026-11-16/000000000017-000000000042-1f0c5d2a.parquet    a segment: rows of these journal entries

The log also holds the lake's state, as transactions with the names below. A reader sees the state and the files of one
version. Every entry of the log that is read is verified (log.py), and so is the checkpoint (checkpoints.py).
"""

import datetime as dt
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from crossdock.journal.data_dir import DATABASE
from crossdock.lake.checkpoints import verify_newest
from crossdock.lake.checksums import BadSum
from crossdock.lake.location import FORMAT, folder
from crossdock.lake.log import LOG, Added, Entry, decode_log_entry, entry_name
from crossdock.lake.store import Store, store_of
from crossdock.model.errors import CrossdockError, Damaged, Newer

#: Transactions of the lake's table.
FIRST: Final = "crossdock.first"  #: first journal entry
LAST: Final = "crossdock.last"  #: last journal entry
CRC: Final = "crossdock.crc"  #: checksum of that entry, to recognise the journal
FLUSH_EPOCH: Final = "crossdock.flush_epoch"
AT_US: Final = "crossdock.at_us"  #: time of the newest event
EXPIRED: Final = "crossdock.expired"  #: days since 1970: this date and all earlier ones were deleted
STEADY_MS: Final = "crossdock.steady_ms."  #: and a date: steady time of its newest entry
GAPS: Final = "crossdock.gaps"  #: how many; the details are rows of the lake
SET_BACKS: Final = "crossdock.set_backs"  #: how many; the details are rows of the lake
MAINTAINED: Final = "crossdock.maintained"  #: number of commits of the maintenance process

#: Erased data (erase.py), for `crossdock lake status`.
ERASURES: Final = "crossdock.erasures"  #: how many there were
ERASED_AT_US: Final = "crossdock.erased_at_us"  #: when the last one was
ERASED_JOBS: Final = "crossdock.erased_jobs"  #: of the last one
ERASED_ROWS: Final = "crossdock.erased_rows"

FORMAT_KEY: Final = "crossdock.format"

#: A log entry may be deleted, or a version appear, while the log is read. Then it is read again.
_TRIES: Final = 3

_NAME: Final = re.compile(r"(\d{12,})-(\d{12,})-[0-9a-f]{8}\.parquet")
_LINKS: Final = ("group_name", "callback_of", "needs")


class NoLake(CrossdockError):
    """There is no lake at this location."""


class Unreachable(CrossdockError):
    """The object store cannot be reached, or denies access."""


class LakeFile(NamedTuple):
    path: str  #: relative to the lake
    date: str  #: ISO
    rows: int
    bytes: int
    version: int  #: that added it; 0: unknown
    first: int  #: journal entries; 0: another tool wrote the file
    last: int
    linked: bool  #: may have rows with group_name, callback_of or needs


class Lake:
    """One version of a lake."""

    def __init__(self, store: Store, table: DeltaTable) -> None:
        self.store = store
        self.table = table
        self.location = store.uri
        metadata = table.metadata()
        self.id = str(metadata.id)
        self.server = metadata.name or ""
        self.version = table.version()
        self.first = self.transaction(FIRST)
        self.last = self.transaction(LAST)
        self.crc = self.transaction(CRC)
        self.flush_epoch = self.transaction(FLUSH_EPOCH)
        self.at = self.transaction(AT_US) / 1e6
        self.gaps = self.transaction(GAPS)
        self.set_backs = self.transaction(SET_BACKS)
        expired = table.transaction_version(EXPIRED)
        self.expired = "" if expired is None else date_of_day(expired).isoformat()

    @classmethod
    def open(cls, location: str | Path) -> "Lake":
        """Open the newest version. Raises NoLake, Damaged, Newer, Unreachable."""
        store = store_of(location)
        for left in reversed(range(_TRIES)):
            try:
                return cls(store, open_table(store))
            except FileNotFoundError as error:
                if not left:
                    raise Damaged(f"{store.uri} cannot be read: {error}; restore it from a copy of the lake") from error
        raise AssertionError("not reached")

    def transaction(self, name: str) -> int:
        return self.table.transaction_version(name) or 0

    def files(self) -> list[LakeFile]:
        """The live files, in the order of their entries."""
        found = pa.table(self.table.get_add_actions(flatten=True))
        columns: dict[str, list[Any]] = {name: found[name].to_pylist() for name in found.column_names}
        links = [columns.get(f"null_count.{name}", [None] * found.num_rows) for name in _LINKS]
        rows = zip(
            columns["path"], columns["partition.date"], columns["num_records"], columns["size_bytes"],
            zip(*links, strict=True), strict=True,
        )  # fmt: skip
        files = [
            _file(path, date.isoformat(), many or 0, size, 0, any(nulls != many for nulls in null))
            for path, date, many, size, null in rows
        ]
        return sorted(files, key=lambda file: (file.first, file.date, file.path))

    def added(self, after: int, upto: int | None = None) -> list[LakeFile]:
        """The files that the versions after `after` added, in the order of their entries. Files that only replace
        others are left out, and files of dates that have expired since.

        If the log no longer has these versions, or files that were merged since are deleted, all live files are
        returned, whatever `upto` says. They have `version` 0. Leave out files whose `last` was read before, and rows
        by their `seq`."""
        upto = self.version if upto is None else upto
        found: dict[str, LakeFile] = {}
        merged: list[str] = []
        for version in range(after + 1, self.version + 1):
            try:
                entry = self.entry(version)
            except FileNotFoundError:
                return self.files()
            for add in entry.adds if version <= upto else ():
                if add.data_change:
                    found[add.path] = _from_log(version, add)
            for remove in entry.removes:
                if remove.path in found and remove.data_change:
                    del found[remove.path]
                elif remove.path in found:
                    merged.append(remove.path)
        if any(self.store.size(path) is None for path in merged):
            return self.files()
        return sorted(found.values(), key=lambda file: (file.first, file.date, file.path))

    def entry(self, version: int) -> Entry:
        """An entry of the log. Raises FileNotFoundError if it was cleaned up, Damaged."""
        return read_entry(self.store, version)

    def uri(self, file: LakeFile) -> str:
        root = self.store.root
        return f"{self.location}/{file.path}" if root is None else f"file://{root / file.path}"


def expect(location: str | Path, data: Path | None = None) -> None:
    """Raises NoLake unless there is a lake, or `data` has a journal from which the server will make one."""
    root = folder(location)
    if root is None or is_lake(root) or (data is not None and (data / DATABASE).exists()):
        return
    within = Path(location) / "lake"
    cure = f"; it is in {within}" if is_lake(within) else ": start the server, or name the folder of its lake"
    raise NoLake(f"there is no lake in {location}{cure}")


def is_lake(root: Path) -> bool:
    """Raises OSError if that cannot be determined, for example without permission."""
    try:
        (root / LOG).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def open_table(store: Store) -> DeltaTable:
    """Open and verify the newest version. Raises NoLake, Damaged, Newer, Unreachable, FileNotFoundError."""
    try:
        names = store.names()
    except OSError as error:
        raise cannot_read(store, error) from error
    if not names.entries and not names.checkpoints:
        raise NoLake(f"there is no lake in {store.uri}: start the server, or name the folder of its lake")
    verify_newest(store, names)
    for version in names.tail:
        read_entry(store, version)
    try:
        table = DeltaTable(store.uri)
    except TableNotFoundError as error:
        raise NoLake(f"there is no lake in {store.uri}: {first_line(error)}") from error
    except (DeltaError, OSError, ValueError) as error:
        raise cannot_read(store, error) from error
    for version in range(max(names.tail, default=names.newest_checkpoint) + 1, table.version() + 1):
        read_entry(store, version)
    refuse_newer(store, table)
    return table


def refuse_newer(store: Store, table: DeltaTable) -> None:
    """Raises Newer or Damaged unless this program can read the table."""
    said = table.metadata().configuration.get(FORMAT_KEY) or ""
    if not said.isdigit() or int(said) < FORMAT:
        raise Damaged(f"{store.uri} is not a lake of Crossdock: its table has no {FORMAT_KEY} = {FORMAT}")
    if int(said) > FORMAT:
        raise Newer(f"the lake in {store.uri}, of format", int(said), FORMAT)


def read_entry(store: Store, version: int) -> Entry:
    """Raises FileNotFoundError, Damaged."""
    name = entry_name(version)
    try:
        return decode_log_entry(version, store.read(name))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise cannot_read(store, error) from error
    except BadSum as error:
        raise Damaged(
            f"{store.uri}/{name} is damaged: {error}; no file was changed. Restore it from a copy of the lake, or set "
            "lake.dir to another folder. After a power cut the server removes an entry that it had not finished"
        ) from error


def cannot_read(store: Store, error: Exception) -> CrossdockError:
    what = f"{store.uri} cannot be read: {first_line(error)}"
    if store.root is None:
        return Unreachable(f"{what}; see the credentials and the endpoint in the environment")
    return Damaged(f"{what}; restore it from a copy of the lake, or set lake.dir to another folder")


def first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def date_of_day(day: int) -> dt.date:
    return dt.date(1970, 1, 1) + dt.timedelta(days=day)


def range_of(path: str) -> tuple[int, int]:
    """The journal entries of a segment, by its name; 0 if another tool wrote it."""
    found = _NAME.fullmatch(path.rpartition("/")[2])
    return (0, 0) if found is None else (int(found[1]), int(found[2]))


def _file(path: str, date: str, rows: int, size: int, version: int, linked: bool) -> LakeFile:
    return LakeFile(path, date, rows, size, version, *range_of(path), linked)


def _from_log(version: int, add: Added) -> LakeFile:
    stats = msgspec.json.decode(add.stats or "{}", type=dict[str, Any])
    rows, nulls = stats.get("numRecords", 0), stats.get("nullCount", {})
    return _file(add.path, add.date, rows, add.size, version, any(nulls.get(name) != rows for name in _LINKS))
