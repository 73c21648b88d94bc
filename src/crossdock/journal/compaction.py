"""The compaction process: folds the journal's tail into a new snapshot while the server runs.

    python -m crossdock.journal.compaction DATA_DIR UNTIL

It opens the journal read-only, folds its entries with the engine's `apply`, writes the file, reads it back and prints a
report. The server installs the snapshot, so a process that dies at any moment has changed nothing.
"""

import gc
import logging
import sys
from pathlib import Path
from typing import Final

import msgspec

from crossdock import logs
from crossdock.journal.child_process import end_with_server
from crossdock.journal.data_dir import snapshot_name
from crossdock.journal.files import total_bytes
from crossdock.journal.open import open_reader
from crossdock.journal.recovery import Recovered, recover
from crossdock.journal.snapshot import file as snapshot_file

log = logging.getLogger("crossdock.compaction")

#: Bytes that a snapshot leaves free on the disk for journal entries, or a twentieth of a small disk.
_LEAVE_BYTES: Final = 32 * 1024 * 1024


class WrittenSnapshot(msgspec.Struct):
    """A snapshot file that is not installed yet. The process reports it as one JSON line."""

    seq: int
    file: str
    jobs: int
    bytes: int


def compact(data_dir: Path, until: int) -> WrittenSnapshot:
    journal = open_reader(data_dir)
    try:
        found = recover(journal, until)
    finally:
        journal.close()
    written = write_snapshot(data_dir, found)
    path, jobs = data_dir / written.file, written.jobs
    del found
    if len(snapshot_file.load(path).state.jobs) != jobs:
        raise RuntimeError(f"{path} has another number of jobs when it is read back")
    return written


def write_snapshot(data_dir: Path, found: Recovered) -> WrittenSnapshot:
    """Write a recovered state as a snapshot file."""
    path = data_dir / snapshot_name(found.seq)
    leave = min(_LEAVE_BYTES, total_bytes(data_dir) // 20)
    size = snapshot_file.write(path, found.state, found.seq, found.wall, found.steady, leave)
    return WrittenSnapshot(found.seq, path.name, len(found.state.jobs), size)


def main() -> None:
    data_dir, until = sys.argv[1:]
    end_with_server()
    gc.disable()
    try:
        written = compact(Path(data_dir), int(until))
    except OSError as error:
        logs.event(log, logging.ERROR, "snapshot-failed", f"the snapshot was not written: {error}")
        sys.exit(1)
    print(msgspec.json.encode(written).decode(), flush=True)


if __name__ == "__main__":
    main()
