"""What `crossdock check` verifies: every entry, the end of the journal, both snapshots, and that all folds to a state.

Nothing is changed, and a server may run meanwhile. What it trims while this looks is not missing: nothing counts as
lost that a snapshot has made superfluous.
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

#: Faults that are told one by one; a disk that gives back nonsense has thousands.
_TOLD: Final = 10

#: A server that compacts while its snapshot is read; each try reads a newer one.
_TRIES: Final = 3

SOUND: Final = "nothing is wrong: there is nothing to do"
SPARE: Final = (
    "what the server needs is sound, but the disk gave back something else than was written: back it up now with "
    "`crossdock backup DEST`, and look at the disk"
)
BROKEN: Final = (
    "keep this folder as it is. Restore the newest backup elsewhere with `crossdock restore BACKUP --data DIR` and "
    "start the server there, or copy what can still be read with `crossdock salvage DIR NEW_DIR`"
)


NEWER: Final = "start the newer Crossdock again, or restore a backup that was made before the upgrade"


class Report(msgspec.Struct):
    folder: str
    server: str  #: the process that has it open, "": none
    entries: int = 0
    first: int = 0
    last: int = 0
    bytes: int = 0
    snapshots: list[int] = []  #: the newest first
    events: int = 0  #: behind the newest snapshot
    jobs: int = 0
    states: dict[str, int] = {}
    faults: list[str] = []
    cure: str = SOUND


def check(data: Path, progress: Progress, lake: int = 0) -> Report:
    """Raises NoJournal when there is nothing to check. `lake` is the last entry in the lake."""
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
    spare: list[str] = []  #: faults in what the server could do without
    needed: list[str] = []
    try:
        _attempt(reader.check_structure, needed)
        _look_at_end(reader, lake, spare, needed)
        _look_at_entries(reader, report, spare, needed, throttled(progress))
        _look_at_snapshots(reader, report, spare, needed, progress)
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


def _look_at_end(reader: JournalReader, lake: int, spare: list[str], needed: list[str]) -> None:
    try:
        mark = reader.refuse_incomplete(lake)
        if mark is not None and mark.fault:
            spare.append(mark.fault)
    except Damaged as error:
        needed.append(_fault(error))


def _look_at_entries(
    reader: JournalReader, report: Report, spare: list[str], needed: list[str], progress: Progress
) -> None:
    first, last, base = reader.first, reader.last, reader.snapshot()
    newest = base.seq if base is not None else 0
    report.last = max(last, newest)
    after = first - 1 if first else newest
    if after > newest:
        needed.append(f"batches {newest + 1} to {after} are missing between the snapshot and the journal")
    for seq, size, intact in reader.stored(after):
        if seq > last:
            break
        faults = needed if seq > newest else spare
        if seq != after + 1 and seq - 1 > reader.previous:  # else the server trimmed them just now
            faults.append(f"batches {after + 1} to {seq - 1} are missing")
        if not intact:
            faults.append(f"batch {seq} fails its checksum")
        report.first = report.first or seq
        report.entries += 1
        report.bytes += size
        progress("journal", seq - first, last - first)
        after = seq
        if len(spare) + len(needed) >= _TOLD:
            faults.append("and perhaps more: the rest of the journal was not looked at")
            return


def _look_at_snapshots(
    reader: JournalReader, report: Report, spare: list[str], needed: list[str], progress: Progress
) -> None:
    """The newest one is read by the fold, if there is one; the one before it the server keeps in reserve."""
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
        if seq in (newest, reader.previous):  # else the server has deleted it meanwhile
            faults += found
        progress("snapshot", 1, 1)


def _fold(data: Path, reader: JournalReader, report: Report, needed: list[str]) -> None:
    gc.disable()  # a fold makes millions of objects and no garbage
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


def _attempt(look: Callable[[], object], faults: list[str]) -> None:
    try:
        look()
    except Damaged as error:
        faults.append(_fault(error))


def _fault(error: Damaged) -> str:
    """Without its advice: the report gives one for all."""
    text = str(error).removesuffix("; restore a backup").removesuffix("; nothing was changed, restore a backup")
    return text.removesuffix(f"; {CURE}")
