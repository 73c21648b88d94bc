"""What a child process is doing, in memory that it shares with the supervisor.

A child cannot always answer: a task may hold the interpreter for minutes, or end the process. So each job that a child
has is a row of a table in a mapped file, which is written without a system call and outlives the child:

* the child writes the state of the row: queued, running, or how the job ended
* the child writes when the job was started, by the clock that all processes share, and in which thread
* the supervisor writes whether it has revoked the job

The supervisor can take back a job that a child has not started, even if the child does not run. Each side first writes
its own byte and then reads the other's: `start` says no if the job is revoked, and `revoke` says no if it is running.
If both happen at once both may say no, never both yes.
"""

import mmap
import time
from pathlib import Path
from threading import get_ident
from typing import Final, Self

QUEUED: Final = 0
RUNNING: Final = 1
SUCCEEDED: Final = 2
FAILED: Final = 3

_ROW_BYTES: Final = 18  #: a time and a thread of eight bytes each, a state, a mark


class JobTable:
    """Rows are numbered from 0. The supervisor gives a row to each job that it sends to a child."""

    def __init__(self, memory: mmap.mmap, rows: int) -> None:
        self._memory = memory
        view = memoryview(memory)
        self._whole = view
        self._started = view[: 8 * rows].cast("d")
        self._threads = view[8 * rows : 16 * rows].cast("Q")
        self._states = view[16 * rows : 17 * rows]
        self._revoked = view[17 * rows : 18 * rows]

    @classmethod
    def create(cls, path: Path, rows: int) -> Self:
        path.write_bytes(bytes(rows * _ROW_BYTES))
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Self:
        with path.open("r+b") as file:
            memory = mmap.mmap(file.fileno(), 0)
        return cls(memory, len(memory) // _ROW_BYTES)

    def close(self) -> None:
        for view in (self._started, self._threads, self._states, self._revoked, self._whole):
            view.release()
        self._memory.close()

    # The supervisor's side.

    def enqueue(self, row: int) -> None:
        """The row is free: the child has reported the end of its last job."""
        self._started[row] = 0.0
        self._revoked[row] = 0
        self._states[row] = QUEUED

    def revoke(self, row: int) -> bool:
        """Whether the child will not start the job. It still reports the row, and only then the row is free."""
        self._revoked[row] = 1
        return self._states[row] == QUEUED

    def state(self, row: int) -> int:
        return self._states[row]

    def thread(self, row: int) -> int:
        """The thread that runs the job, as `threading.get_ident` has it."""
        return self._threads[row]

    def running_s(self, row: int, now: float) -> float | None:
        """How long the job has been running at `now` (`time.monotonic`); None: it is not running."""
        if self._states[row] != RUNNING:
            return None
        started = self._started[row]
        return max(0.0, now - started) if started else 0.0

    # The child's side.

    def start(self, row: int) -> bool:
        """Whether the job may be started."""
        self._started[row] = time.monotonic()
        self._threads[row] = get_ident()
        self._states[row] = RUNNING
        if self._revoked[row]:
            self._states[row] = QUEUED
            return False
        return True

    def finish(self, row: int, succeeded: bool) -> None:
        self._states[row] = SUCCEEDED if succeeded else FAILED
