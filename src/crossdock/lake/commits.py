"""Commits to the lake's table, for the exporter and the maintenance process.

A transaction id alone does not make a commit exactly once: a handle that has not read it may commit the same id again.
So the position is read and committed on one handle, and delta-rs refuses the commit if another process has committed
one of its transactions since. All commits of Crossdock have one: `crossdock.last` of the exporter or
`crossdock.maintained` of the maintenance process.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction, Transaction

from crossdock.lake.location import FORMAT
from crossdock.lake.log import SUM, Added, Removed, sum_of
from crossdock.lake.schema import EVENTS, PARTITION
from crossdock.lake.store import Disk, Store
from crossdock.lake.table import FORMAT_KEY, Lake, LakeFile, NoLake, cannot_read, first_line, open_table
from crossdock.model.errors import CrossdockError, Damaged

#: Columns whose statistics are in the log. No texts: the log is readable where the data may not be.
_STATS: Final = "seq,number,at,group_name,callback_of,needs"

#: The maintenance process makes checkpoints and cleans up the log, and syncs both.
_BARE: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)

_PARTITIONS: Final = [PARTITION]

_TRIES: Final = 3

#: Versions after a checkpoint from which on a newer one is looked for, and how often.
_LONG: Final = 100
_LOOK: Final = 10


class Overtaken(CrossdockError):
    """Another process has committed to the lake. Read its state again."""


class Segment(NamedTuple):
    """A file to add, already in its place."""

    path: str
    date: str
    bytes: int
    stats: str  #: JSON


def lake_schema() -> pa.Schema:
    return EVENTS.append(pa.field(PARTITION, pa.date32(), nullable=False))


class Commits:
    """The handle of a writer."""

    def __init__(self, store: Store, table: DeltaTable) -> None:
        self._store = store
        self._table = table
        self._checkpoint = max(store.names().newest_checkpoint, 0)  #: from which the handle was opened

    @classmethod
    def open(cls, store: Store) -> "Commits":
        """Raises NoLake, Damaged, Newer, Unreachable."""
        try:
            found = cls(store, open_table(store))
        except FileNotFoundError as error:
            raise Damaged(f"{store.uri} cannot be read: {error}; restore it from a copy of the lake") from error
        store.sync_log(store.names().tail)  # a writer that was killed may have committed without syncing
        return found

    @classmethod
    def open_or_create(cls, store: Store, server: str) -> "Commits":
        try:
            found = cls.open(store)
        except NoLake:
            return cls._create(store, server)
        found._add_columns()
        return found

    @classmethod
    def _create(cls, store: Store, server: str) -> "Commits":
        if isinstance(store, Disk):
            store.create()
        configuration = {
            FORMAT_KEY: str(FORMAT),
            "delta.dataSkippingStatsColumns": _STATS,
            "delta.enableExpiredLogCleanup": "false",  # by other tools: they do not know the checksums
        }
        try:
            table = DeltaTable.create(
                store.uri, Schema.from_arrow(lake_schema()), partition_by=_PARTITIONS, name=server,
                configuration=configuration, raise_if_key_not_exists=False, post_commithook_properties=_BARE,
            )  # fmt: skip
        except (DeltaError, OSError) as error:
            raise cannot_read(store, error) from error
        store.sync_log([table.version()])
        return cls(store, table)

    def _add_columns(self) -> None:
        """A newer program has more columns, always at the end."""
        there = {field.name for field in self._table.schema().fields}
        new = [field for field in Schema.from_arrow(lake_schema()).fields if field.name not in there]
        if new:
            self._table.alter.add_columns(new, post_commithook_properties=_BARE)
            self._update()

    @property
    def lake(self) -> Lake:
        """The version that the next commit follows."""
        return Lake(self._store, self._table)

    def commit(
        self,
        adds: Sequence[Segment],
        transactions: Mapping[str, int],
        removes: Sequence[LakeFile] = (),
        *,
        data_change: bool = True,
    ) -> int:
        """Commit, durably. Returns the version. Raises Overtaken if another process has committed a transaction of
        these since the handle was read."""
        now = int(time.time() * 1_000)
        new = [Added(each.path, each.bytes, each.date, now, data_change, each.stats) for each in adds]
        old = [Removed(each.path, data_change, now) for each in removes]
        actions: list[AddAction | RemoveAction] = [
            AddAction(each.path, each.size, {PARTITION: each.date}, now, data_change, each.stats) for each in new
        ]
        actions += [RemoveAction(each.path, data_change, now, each.bytes, {PARTITION: each.date}) for each in removes]
        properties = CommitProperties(
            custom_metadata={SUM: sum_of(new, old, transactions)},
            app_transactions=[Transaction(name, value) for name, value in transactions.items()],
        )
        before = {name: self._table.transaction_version(name) for name in transactions}
        for left in reversed(range(_TRIES)):
            try:
                self._table.create_write_transaction(
                    actions, "append", self._table.schema(), _PARTITIONS,
                    commit_properties=properties, post_commithook_properties=_BARE,
                )  # fmt: skip
                break
            except CommitFailedError as error:
                # Dates may have expired. Other changes of the files do not concern a commit that only adds some.
                self._update()
                if not left or removes or self._differ(before):
                    raise self._overtaken(first_line(error)) from error
            except DeltaError as error:
                raise Damaged(f"{self._store.uri} cannot be written to: {first_line(error)}") from error
        self._update()
        if self._differ(transactions):
            raise self._overtaken("its state differs")
        return self._table.version()

    def _differ(self, transactions: Mapping[str, int | None]) -> bool:
        return any(self._table.transaction_version(name) != value for name, value in transactions.items())

    def _overtaken(self, why: str) -> Overtaken:
        return Overtaken(
            f"{self._store.uri} was changed by another process meanwhile: {why}; only one server may write to a lake"
        )

    def _update(self) -> None:
        before = self._table.version()
        self._table.update_incremental()
        # Entries of the other process too: a reader needs all of them.
        self._store.sync_log(range(before + 1, self._table.version() + 1))
        if self._table.version() - self._checkpoint >= _LONG and self._table.version() % _LOOK == 0:
            self._reopen()

    def _reopen(self) -> None:
        """Begin with the newest checkpoint: a handle keeps all entries since it was opened, and gets slower with each.
        The caller finds out whether another process has committed meanwhile, as after any other update."""
        newest = self._store.names().newest_checkpoint
        if newest > self._checkpoint:
            self._table = open_table(self._store)
            self._checkpoint = newest

    def refresh(self) -> None:
        """Read what other processes have committed."""
        self._update()

    def checkpoint(self) -> None:
        self._table.create_checkpoint()


def stats_of(
    rows: int, least: Mapping[str, float | None], most: Mapping[str, float | None], nulls: Mapping[str, int]
) -> str:
    """Statistics of a file as Delta stores them. Values that are null for all rows are left out."""
    stats = {
        "numRecords": rows,
        "minValues": {name: value for name, value in least.items() if value is not None},
        "maxValues": {name: value for name, value in most.items() if value is not None},
        "nullCount": dict(nulls),
    }
    return msgspec.json.encode(stats).decode()
