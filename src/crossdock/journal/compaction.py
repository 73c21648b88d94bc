"""The compactor: a child process that folds the journal's tail into a new snapshot beside the running server.

    python -m crossdock.journal.compaction DATA_DIR UNTIL

It opens the journal read-only, folds with the engine's own `apply`, writes the file, reads it back and prints what it
made. The server installs it: a child that dies at any moment has changed nothing. It runs when nothing else wants the
processor, and ends when its stdin does: with the server.
"""

import gc
import sys
from pathlib import Path
from typing import Final

import msgspec

from crossdock.journal.child_process import end_with_server
from crossdock.journal.data_dir import snapshot_name
from crossdock.journal.files import total_bytes
from crossdock.journal.open import open_reader
from crossdock.journal.recovery import recover
from crossdock.journal.snapshot import file as snapshot_file

#: Bytes that a snapshot leaves free, or a twentieth of a small disk: entries need room meanwhile.
_LEAVE_BYTES: Final = 32 * 1024 * 1024


class Made(msgspec.Struct):
    """The child's report, one JSON line."""

    seq: int
    file: str
    jobs: int
    bytes: int


def compact(data_dir: Path, until: int) -> Made:
    journal = open_reader(data_dir)
    try:
        found = recover(journal, until)
    finally:
        journal.close()
    path = data_dir / snapshot_name(found.seq)
    leave = min(_LEAVE_BYTES, total_bytes(data_dir) // 20)
    size = snapshot_file.write(path, found.state, found.seq, found.wall, found.steady, leave)
    jobs = len(found.state.jobs)
    del found
    if len(snapshot_file.load(path).state.jobs) != jobs:
        raise RuntimeError(f"{path} reads back with another number of jobs")
    return Made(until, path.name, jobs, size)


def main() -> None:
    data_dir, until = sys.argv[1:]
    end_with_server()
    gc.disable()
    try:
        made = compact(Path(data_dir), int(until))
    except OSError as error:
        sys.exit(f"the snapshot was not written: {error}")
    print(msgspec.json.encode(made).decode(), flush=True)


if __name__ == "__main__":
    main()
