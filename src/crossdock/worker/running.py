"""What the two ways to run tasks share: the state of a running job, and how its end becomes an outcome."""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import msgspec

from crossdock.app.app import App
from crossdock.app.context import JobContext, JobInterrupted
from crossdock.app.execute import Ack, Failed, Settlement, Snoozed
from crossdock.client.errors import ClientError
from crossdock.worker import frames, sandbox
from crossdock.worker.frames import Assignment, Interrupted, Outcome, Reason, Returned, Succeeded
from crossdock.worker.reporter import Reporter
from crossdock.worker.table import JobTable

_MESSAGE_CHARS: Final = 4_000


class TaskInterrupted(JobInterrupted):
    """Raised inside a task whose time is over."""


class Runner(Protocol):
    """Runs the jobs of a child process."""

    def run(self, jobs: list[Assignment]) -> None: ...

    def interrupt(self, row: int, reason: Reason) -> None: ...


class RunningJob:
    """A job whose task is running."""

    __slots__ = ("_reporter", "began", "context", "job", "reason", "row", "thread")

    def __init__(self, assignment: Assignment, reporter: Reporter, thread: int) -> None:
        self.job = assignment.job
        self.row = assignment.row
        self.thread = thread
        self.began = time.monotonic()
        self.reason: Reason | None = None  #: why it is to end
        self.context = JobContext(self.job, report=self._report)
        self._reporter = reporter

    def _report(self, percent: int, text: str) -> None:
        self._reporter.progress(self.row, percent, text)

    def seconds(self) -> float:
        return time.monotonic() - self.began


class Bench:
    """What a runner works with."""

    def __init__(self, app: App, table: JobTable, reporter: Reporter, folder: Path | None) -> None:
        self.app = app
        self.table = table
        self.reporter = reporter
        self._folder = folder  #: the sandbox
        self._using: set[int] = set()  #: rows of jobs that use the sandbox
        self._cleaning = threading.Lock()
        self._is_used = False
        self._pid = os.getpid()

    def start(self, row: int) -> bool:
        """Whether the job may be started. If not, it was given to another process."""
        if not self.table.start(row):
            self.reporter.add(Returned(row))
            return False
        if self._folder is not None:
            with self._cleaning:
                self._clean(self._folder)
                self._using.add(row)
        return True

    def _clean(self, folder: Path) -> None:
        """Only between jobs: a job that is running may use its files."""
        if self._is_used and not self._using:
            with suppress(OSError):  # the task sees the error when it uses the folder
                sandbox.empty(folder)
        self._is_used = True

    def end(self, row: int, outcome: Outcome) -> None:
        """Report an outcome. A process that the task has forked ends here."""
        if os.getpid() != self._pid:
            os._exit(0)
        if self._folder is not None:
            self._using.discard(row)
        self.table.finish(row, succeeded=isinstance(outcome, Succeeded))
        self.reporter.add(outcome)


def outcome_of(running: RunningJob, settlement: Settlement) -> Outcome:
    row, seconds = running.row, running.seconds()
    if isinstance(settlement, Ack):
        return Succeeded(row, seconds, msgspec.Raw(settlement.result or b"null"))
    if isinstance(settlement, Snoozed):
        return frames.Snoozed(row, seconds, settlement.delay_s, settlement.reason)
    return frames.Failed(
        row=row,
        seconds=seconds,
        error=settlement.type,
        message=settlement.message,
        backtrace=list(settlement.backtrace),
        final=settlement.final,
        delay_s=settlement.delay_s,
    )


def not_pushed(error: ClientError) -> Settlement:
    """The job that the task wanted to follow could not be pushed, so this one runs again."""
    return Failed(type="NotRescheduled", message=f"the next job could not be pushed: {error}")


def outcome_of_error(running: RunningJob, error: BaseException) -> Outcome:
    """The outcome of a task that ended with an exception that `execute` lets pass."""
    if running.reason is not None:
        return Interrupted(running.row, running.seconds(), running.reason)
    text = f"the task ended with {type(error).__name__}, which is not an error of its own"
    return frames.Failed(running.row, running.seconds(), type(error).__name__, text[:_MESSAGE_CHARS])
