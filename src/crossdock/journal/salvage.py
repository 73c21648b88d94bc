"""Salvage: copies what can still be read of a damaged data directory to a new one that a server can start on.

The source is only read. The newest intact snapshot is loaded, and every entry after it that passes its checksum is
folded in, in order. Events about jobs that only missing entries created are left out. The new directory holds one
snapshot of the result, and continues the numbers of the old journal.
"""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from crossdock.engine.state import EngineState
from crossdock.journal.backup import PARTIAL, removed_on_failure, verify
from crossdock.journal.completeness import RESTORED, read_mark, write_mark
from crossdock.journal.data_dir import in_use_by, snapshot_name, snapshot_numbers
from crossdock.journal.files import Progress, sync_dir, write_whole
from crossdock.journal.open import create_journal, readable_entries
from crossdock.journal.recovery import Recovered, decoded, fold
from crossdock.journal.snapshot import file
from crossdock.model.errors import CrossdockError, Damaged
from crossdock.model.events import AnyEvent
from crossdock.model.events.codec import JournalEntry

REPORT: Final = "salvage.json"


class CannotSalvage(CrossdockError):
    """Nothing was written. The message says why and what to do."""


class Dropped(msgspec.Struct, frozen=True):
    """An event that could not be applied, because its job or record was lost."""

    entry: int
    event: str
    jid: str


class Salvaged(msgspec.Struct):
    source: str
    jobs: int = 0
    snapshot: int = 0  #: the last entry of the snapshot that was used. 0: none was
    entries: int = 0  #: read from the journal
    last: int = 0  #: the entry number that the new directory continues from
    missing: list[tuple[int, int]] = []  #: first and last entry of each range that cannot be read
    unreadable: list[str] = []  #: snapshots that fail a check
    dropped: list[Dropped] = []

    @property
    def lost(self) -> bool:
        return bool(self.missing or self.dropped)


def salvage(source: Path, dest: Path, progress: Progress) -> Salvaged:
    """Copy what can be read to `dest`, which must not exist."""
    dest = dest.absolute()
    _refuse(source, dest)
    partial = dest.with_name(dest.name + PARTIAL)
    if partial.exists():
        raise CannotSalvage(f"{partial} exists: a salvage to {dest} was interrupted; remove it")
    partial.mkdir(mode=0o700)
    with removed_on_failure(partial, "salvage", CannotSalvage):
        report = Salvaged(str(source.absolute()))
        gc.disable()  # a fold creates millions of objects and no garbage
        try:
            found = _read(source, report, progress)
        finally:
            gc.enable()
        _write(partial, found, report)
        verify(partial)
        os.rename(partial, dest)
    sync_dir(dest.parent)
    return report


def _refuse(source: Path, dest: Path) -> None:
    if not source.is_dir():
        raise CannotSalvage(f"{source} is not a folder; name the data folder of a server")
    holder = in_use_by(source)
    if holder:
        raise CannotSalvage(f"{source} is in use by process {holder}; stop that server first")
    if os.path.lexists(dest):
        raise CannotSalvage(f"{dest} exists; choose a folder that does not exist")
    if not dest.parent.is_dir():
        raise CannotSalvage(f"{dest.parent} is not a folder; create it, or choose another place")


def _read(source: Path, report: Salvaged, progress: Progress) -> Recovered:
    base = _newest_snapshot(source, report)
    progress("journal", 0, 1)
    entries = readable_entries(source, base)
    progress("journal", 1, 1)
    if not entries and not base:
        raise CannotSalvage(f"nothing in {source} can be read: no snapshot and no journal entry is intact")
    report.snapshot, report.entries = base, len(entries)
    report.last = max([base, *entries, _marked(source)])
    report.missing = list(_gaps(base, sorted(entries), report.last))
    return _Fold(source, base, {seq: decoded(seq, entries[seq]) for seq in sorted(entries)}, report).run()


def _newest_snapshot(source: Path, report: Salvaged) -> int:
    """The number of the newest intact snapshot. 0: there is none."""
    for seq in sorted(snapshot_numbers(source), reverse=True):
        try:
            file.load(source / snapshot_name(seq))
        except Damaged as error:
            report.unreadable.append(str(error).removesuffix("; restore a backup"))
        else:
            return seq
    return 0


def _marked(source: Path) -> int:
    try:
        mark = read_mark(source)
    except Damaged:
        return 0
    return mark.seq if mark is not None else 0


def _gaps(base: int, there: list[int], last: int) -> Iterator[tuple[int, int]]:
    before = base
    for seq in (*there, last + 1):
        if seq > before + 1:
            yield before + 1, seq - 1
        before = seq


class _Fold:
    """Folds the entries without the events that do not fit.

    An event that fails may have changed part of the state before. So the fold starts again without it, and without all
    events of its type about unknown jobs: it starts again once for each type, not for each job.
    """

    def __init__(self, source: Path, base: int, entries: dict[int, JournalEntry], report: Salvaged) -> None:
        self._source = source
        self._base = base
        self._entries = entries
        self._report = report
        self._unfit: set[tuple[int, int]] = set()
        self._need_job: set[type[AnyEvent]] = set()

    def run(self) -> Recovered:
        while True:
            self._report.dropped = []
            found = self._begin()
            if all(self._fits(found, seq, entry) for seq, entry in self._entries.items()):
                return found

    def _begin(self) -> Recovered:
        if not self._base:
            return Recovered(EngineState(), 0, 0.0, 0.0)
        loaded = file.load(self._source / snapshot_name(self._base))
        return Recovered(loaded.state, loaded.seq, loaded.wall, loaded.steady)

    def _fits(self, found: Recovered, seq: int, entry: JournalEntry) -> bool:
        try:
            fold(found, seq, entry, self._events(found, seq, entry))
        except Exception:  # noqa: BLE001 an incomplete state may break any assumption
            event = entry.events[self._at]
            self._unfit.add((seq, self._at))
            if _about_unknown(found, event):
                self._need_job.add(type(event))
            return False
        return True

    def _events(self, found: Recovered, seq: int, entry: JournalEntry) -> Iterator[AnyEvent]:
        for at, event in enumerate(entry.events):
            self._at = at
            if (seq, at) in self._unfit or (type(event) in self._need_job and _about_unknown(found, event)):
                self._report.dropped.append(Dropped(seq, type(event).__name__, getattr(event, "jid", "")))
            else:
                yield event


def _about_unknown(found: Recovered, event: AnyEvent) -> bool:
    number = getattr(event, "number", None)
    return number is not None and number not in found.state.jobs


def _write(folder: Path, found: Recovered, report: Salvaged) -> None:
    report.jobs = len(found.state.jobs)
    file.write(folder / snapshot_name(report.last), found.state, report.last, found.wall, found.steady)
    create_journal(folder, report.last)
    write_mark(folder, report.last, RESTORED)
    write_whole(folder / REPORT, [msgspec.json.format(msgspec.json.encode(report)) + b"\n"])
