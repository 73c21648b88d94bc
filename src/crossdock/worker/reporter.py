"""Sends a child's outcomes to the supervisor, many in one frame.

A thread writes them. While it writes, or while tasks keep the interpreter busy, more outcomes gather for the next
frame. Progress is sent at most a few times a second for each job: only the latest of each matters.
"""

import os
import threading
import time
from queue import Empty, SimpleQueue
from typing import Final

import msgspec

from crossdock.worker.frames import Failed, Message, Outcome, Progress, Report, frame

PROGRESS_S: Final = 0.2  #: shortest time between two reports of progress
_OUTCOMES_AT_MOST: Final = 1_000  #: in a frame


class Reporter:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._outcomes: SimpleQueue[Outcome | None] = SimpleQueue()
        self._latest: dict[int, Progress] = {}
        self._progress_due = 0.0
        self._closing = False
        self._thread = threading.Thread(target=self._write_all, name="crossdock-reporter", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, outcome: Outcome) -> None:
        late = self._latest.pop(outcome.row, None) if self._latest else None
        if late is not None:
            self._outcomes.put(late)
        self._outcomes.put(outcome)

    def progress(self, row: int, percent: int, text: str) -> None:
        waits = bool(self._latest)
        self._latest[row] = Progress(row, percent, text)
        if not waits:
            self._outcomes.put(None)

    def send(self, message: Message) -> None:
        """Write at once. Only before `start` or after `close`."""
        _write(self._descriptor, frame(message))

    def close(self) -> None:
        """Write what is there and end the thread."""
        self._closing = True
        self._outcomes.put(None)
        self._thread.join()

    def _write_all(self) -> None:
        while True:
            batch = self._next()
            if batch:
                try:
                    _write(self._descriptor, _encoded(batch))
                except OSError:  # the supervisor has ended
                    os._exit(3)
            elif self._closing:
                return

    def _next(self) -> list[Outcome]:
        batch: list[Outcome] = []
        take = self._outcomes.get_nowait
        try:
            wait_s = max(0.0, self._progress_due - time.monotonic()) if self._latest and not self._closing else None
            first = take() if wait_s == 0.0 else self._outcomes.get(timeout=wait_s)
            if first is not None:
                batch.append(first)
            while len(batch) < _OUTCOMES_AT_MOST:
                found = take()
                if found is not None:
                    batch.append(found)
        except Empty:
            pass
        if self._latest and time.monotonic() >= self._progress_due:
            self._progress_due = time.monotonic() + PROGRESS_S
            for row in list(self._latest):
                late = self._latest.pop(row, None)  # its job may end meanwhile
                if late is not None:
                    batch.append(late)
        return batch


def _encoded(batch: list[Outcome]) -> bytes:
    try:
        return frame(Report(batch))
    except (UnicodeEncodeError, msgspec.MsgspecError, RecursionError, TypeError, ValueError):
        return b"".join(map(_encoded_alone, batch))


def _encoded_alone(outcome: Outcome) -> bytes:
    try:
        return frame(Report([outcome]))
    except (UnicodeEncodeError, msgspec.MsgspecError, RecursionError, TypeError, ValueError) as error:
        text = f"the outcome of the task cannot be encoded: {type(error).__name__}"
        return frame(Report([Failed(outcome.row, 0.0, "BadOutcome", text)]))


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
