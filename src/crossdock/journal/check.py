"""`crossdock check`: verifies every entry, the end of the journal and both snapshots, and folds them to a state.

Nothing is changed, and a server may run meanwhile. Entries that it trims during the check do not count as missing,
because a snapshot holds them.
"""

import gc
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from crossdock.journal.backup import MANIFEST, compare, read_manifest
from crossdock.journal.completeness import CURE
from crossdock.journal.data_dir import in_use_by, snapshot_name
from crossdock.journal.files import Progress, throttled
from crossdock.journal.open import open_reader
from crossdock.journal.port import JournalReader
from crossdock.journal.recovery import recover
from crossdock.journal.snapshot import file
from crossdock.model.errors import Damaged, Newer
from crossdock.model.states import State

#: Faults that are listed. A failing disk may cause thousands.
_FAULTS_MOST: Final = 10

#: Tries to fold while a server compacts. Each try reads a newer snapshot.
_TRIES: Final = 3

SOUND: Final = "no faults found"
SPARE: Final = (
    "the data that the server needs is intact, but the disk returned data that was not written to it: back up now with "
    "`crossdock backup DEST`, and check the disk"
)
BROKEN: Final = (
    "do not change this folder. Restore the newest backup elsewhere with `crossdock restore BACKUP --data DIR` and "
    "start the server there, or copy what can still be read with `crossdock salvage DIR NEW_DIR`"
)

NEWER: Final = "start the newer Crossdock again, or restore a backup that was made before the upgrade"


class Report(msgspec.Struct):
    folder: str
    server: str  #: the process that has it open. "": none
    entries: int = 0
    first: int = 0
    last: int = 0
    bytes: int = 0
    snapshots: list[int] = []  #: the newest first
    events: int = 0  #: after the newest snapshot
    jobs: int = 0
    states: dict[str, int] = {}
    faults: list[str] = []
    cure: str = SOUND


def check(data: Path, progress: Progress, lake: int = 0) -> Report:
    """Check a data directory. `lake` is the last entry in the lake. Raises NoJournal if there is nothing to check."""
    report = Report(str(data), in_use_by(data))
    try:
        reader = open_reader(data)
    except Damaged as error:
        report.faults, report.cure = [_fault(error)], BROKEN
        return report
    try:
        reader.refuse_newer()
    except Newer as error:
        reader.close()
        report.faults, report.cure = [str(error).partition("; nothing was changed")[0]], NEWER
        return report
    spare: list[str] = []  #: faults in data that the server does not need
    needed: list[str] = []  #: faults in data that it needs
    try:
        _attempt(reader.check_structure, needed)
        _check_end(reader, lake, spare, needed)
        _check_entries(reader, report, spare, needed, throttled(progress))
        _check_snapshots(reader, report, spare, needed, progress)
        if not needed:
            progress("fold", 0, 1)
            _fold(data, reader, report, needed)
            progress("fold", 1, 1)
    except Damaged as error:
        needed.append(_fault(error))
    finally:
        reader.close()
    report.faults = [*needed, *spare]
    report.cure = BROKEN if needed else SPARE if spare else SOUND
    return report


def _check_end(reader: JournalReader, lake: int, spare: list[str], needed: list[str]) -> None:
    try:
        mark = reader.refuse_incomplete(lake)
        if mark is not None and mark.fault:
            spare.append(mark.fault)
    except Damaged as error:
        needed.append(_fault(error))


def _check_entries(
    reader: JournalReader, report: Report, spare: list[str], needed: list[str], progress: Progress
) -> None:
    first, last, base = reader.first, reader.last, reader.snapshot()
    newest = base.seq if base is not None else 0
    report.last = max(last, newest)
    after = first - 1 if first else newest
    if after > newest:
        needed.append(f"journal entries {newest + 1} to {after} are missing between the snapshot and the journal")
    for seq, size, intact in reader.stored(after):
        if seq > last:
            break
        faults = needed if seq > newest else spare
        if seq != after + 1 and seq - 1 > reader.previous:  # else the server has trimmed them
            faults.append(f"journal entries {after + 1} to {seq - 1} are missing")
        if not intact:
            faults.append(f"journal entry {seq} fails its checksum")
        report.first = report.first or seq
        report.entries += 1
        report.bytes += size
        progress("journal", seq - first, last - first)
        after = seq
        if len(spare) + len(needed) >= _FAULTS_MOST:
            faults.append("there may be more: the rest of the journal was not checked")
            return


def _check_snapshots(
    reader: JournalReader, report: Report, spare: list[str], needed: list[str], progress: Progress
) -> None:
    """The fold reads the newest snapshot if there are no faults so far. The server keeps the one before as a spare."""
    base, previous = reader.snapshot(), reader.previous
    newest = base.seq if base is not None else 0
    report.snapshots = [seq for seq in (newest, previous) if seq]
    for seq, faults in ((newest if needed else 0, needed), (previous, spare)):
        if not seq:
            continue
        progress("snapshot", 0, 1)
        found: list[str] = []
        path = Path(report.folder) / snapshot_name(seq)
        _attempt(partial(file.load, path), found)
        if seq in (newest, reader.previous):  # else the server has deleted it
            faults += found
        progress("snapshot", 1, 1)


def _fold(data: Path, reader: JournalReader, report: Report, needed: list[str]) -> None:
    gc.disable()  # a fold creates millions of objects and no garbage
    try:
        for tries in range(_TRIES):
            base = reader.snapshot()
            try:
                found = recover(reader, reader.last)
                break
            except Damaged:
                if tries == _TRIES - 1 or reader.snapshot() == base:
                    raise
        report.events, report.jobs = found.events, len(found.state.jobs)
        states = Counter(job.state for job in found.state.jobs.values())
        report.states = {State(state).name.lower(): count for state, count in sorted(states.items())}
        if (data / MANIFEST).exists():
            compare(data, read_manifest(data), found)
    except Damaged as error:
        needed.append(_fault(error))
    finally:
        gc.enable()


def _attempt(check_part: Callable[[], object], faults: list[str]) -> None:
    try:
        check_part()
    except Damaged as error:
        faults.append(_fault(error))


def _fault(error: Damaged) -> str:
    """The message without its advice: the report gives one for all faults."""
    text = str(error).removesuffix("; restore a backup").removesuffix("; nothing was changed, restore a backup")
    return text.removesuffix(f"; {CURE}")
