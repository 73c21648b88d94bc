"""Removes what a power cut left of the newest commit or checkpoint of a lake on a local disk.

delta-rs does not sync, so after a power cut the newest entry of the log may be torn. Such an entry was never reported:
the exporter syncs it first. It is removed if the journal still has all entries after the position before it. The
exporter then writes them again. In all other cases the lake is damaged and nothing is changed.

The caller holds the lake's lock.
"""

import logging

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from crossdock import logs
from crossdock.lake import checkpoints
from crossdock.lake.checksums import BadSum
from crossdock.lake.location import Reported
from crossdock.lake.log import HINT, LOG, Names, decode_log_entry, entry_name
from crossdock.lake.store import Store
from crossdock.lake.table import LAST, first_line
from crossdock.model.errors import Damaged

log = logging.getLogger("crossdock.lake")


def repair(store: Store, journal_first: int, reported: Reported | None) -> None:
    """`journal_first`: the oldest entry of the journal. `reported`: what `lake.position` says. Raises Damaged."""
    names = store.names()
    if not names.entries and not names.checkpoints:
        return
    _drop_unfinished_checkpoints(store, names)
    names = store.names()
    bad = next((version for version in names.tail if _fault(store, version)), None)
    if bad is None:
        _write_unreported(store, names, reported)
        return
    newest = names.entries[-1]
    why = _fault(store, bad)
    if (bad < newest) if reported is None else (bad <= reported.version):
        raise _damaged(store, bad, why)
    before = _last_before(store, bad, why)
    if journal_first > before + 1 or (reported is not None and reported.last > before):
        raise _damaged(store, bad, why)
    for version in range(newest, bad - 1, -1):
        store.delete(entry_name(version))
        text = f"{store.uri}/{entry_name(version)} was not finished before a power cut, and is written again"
        logs.event(log, logging.WARNING, "lake-log-repaired", text)
    store.sync_log(())


def _write_unreported(store: Store, names: Names, reported: Reported | None) -> None:
    """Write the entries again that the last writer did not report. Its sync may have failed, and a second sync of the
    same file would succeed without writing anything."""
    for version in names.tail:
        if reported is None or version > reported.version:
            store.write(entry_name(version), store.read(entry_name(version)))


def _fault(store: Store, version: int) -> str:
    try:
        data = store.read(entry_name(version))
        decode_log_entry(version, data)
    except BadSum as error:
        return str(error)
    return "" if version or b'"metaData"' in data else "it is torn: the table's schema is missing"


def _last_before(store: Store, version: int, why: str) -> int:
    """The last journal entry in the lake before this version; 0 if it was empty."""
    if version == 0:
        return 0
    try:
        return DeltaTable(store.uri, version=version - 1).transaction_version(LAST) or 0
    except DeltaError as error:
        raise _damaged(store, version, f"{why}, and the version before: {first_line(error)}") from error


def _drop_unfinished_checkpoints(store: Store, names: Names) -> None:
    known = checkpoints.read_sums(store)
    finished = [version for version, files in names.checkpoints.items() if all(each in known for each in files)]
    for version, files in names.checkpoints.items():
        if version in finished:
            continue
        if not checkpoints.is_complete_without(names, known, version):
            raise Damaged(
                f"{store.uri}/{LOG}/{files[0]} has no checksum, and the log entries before it are missing; no file was "
                "changed. Restore them from a copy of the lake, or set lake.dir to another folder"
            )
        for name in files:
            store.delete(f"{LOG}/{name}")
    try:
        hint = checkpoints.hinted(store)
    except BadSum:
        hint = -1
    if hint is not None and hint not in finished:
        store.delete(f"{LOG}/{HINT}")  # a hint only: readers look for the newest checkpoint then
    store.sync_log(())


def _damaged(store: Store, version: int, why: str) -> Damaged:
    return Damaged(
        f"{store.uri}/{entry_name(version)} is damaged: {why}; no file was changed. Restore it from a copy of the "
        "lake, or set lake.dir to another folder"
    )
