"""What the two ways to run tasks share: the state of a running job, and how its end becomes an outcome."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import msgspec

from crossdock.app import App
from crossdock.app.context import JobContext, JobInterrupted
from crossdock.app.execute import Ack, Settlement, Snoozed as SnoozedSettlement
from crossdock.worker import sandbox
from crossdock.worker.frames import Assignment, Failed, Interrupted, Outcome, Reason, Snoozed, Succeeded
from crossdock.worker.reporter import Reporter
from crossdock.worker.table import JobTable

_MESSAGE_CHARS: Final = 4_000


class TaskInterrupted(JobInterrupted):
    """Raised inside a task whose time is over."""


class RunningJob:
    """A job whose task is running."""

    __slots__ = ("context", "job", "reason", "row", "thread")

    def __init__(self, assignment: Assignment, reporter: Reporter, thread: int) -> None:
        self.job = assignment.job
        self.row = assignment.row
        self.thread = thread
        self.reason: Reason | None = None  #: why it was told to end
        self.context = JobContext(self.job, report=self._report_to(reporter))

    def _report_to(self, reporter: Reporter) -> Callable[[int, str], None]:
        def report(percent: int, text: str) -> None:
            reporter.progress(self.row, percent, text)

        return report


class Runner(Protocol):
    """Runs the jobs of a child process."""

    def run(self, jobs: list[Assignment]) -> None: ...

    def interrupt(self, row: int, reason: Reason) -> None: ...

    def stop(self) -> None:
        """Return when all tasks have ended."""


class Bench:
    """What a runner works with."""

    def __init__(self, app: App, table: JobTable, reporter: Reporter, folder: Path | None) -> None:
        self.app = app
        self.table = table
        self.reporter = reporter
        self._folder = folder  #: the sandbox
        self._pid = os.getpid()
        self._ran = False

    def start(self, row: int, alone: bool) -> bool:
        """Whether the job may be started. `alone`: no other task is running, so the sandbox is not in use."""
        if not self.table.start(row):
            return False
        if self._folder is not None:
            if alone and self._ran:
                with suppress(OSError):  # the task sees the error when it uses the folder
                    sandbox.empty(self._folder)
            self._ran = True
        return True

    def end(self, row: int, outcome: Outcome) -> None:
        """Report an outcome. A process that the task has forked ends here."""
        if os.getpid() != self._pid:
            os._exit(0)
        self.table.finish(row, succeeded=isinstance(outcome, Succeeded))
        self.reporter.add(outcome)


def outcome_of(row: int, began: float, settlement: Settlement) -> Outcome:
    seconds = time.monotonic() - began
    if isinstance(settlement, Ack):
        return Succeeded(row, seconds, None if settlement.result is None else msgspec.Raw(settlement.result))
    if isinstance(settlement, SnoozedSettlement):
        return Snoozed(row, seconds, settlement.delay_s, settlement.reason)
    return Failed(
        row=row,
        seconds=seconds,
        type=settlement.type,
        message=settlement.message,
        backtrace=list(settlement.backtrace),
        final=settlement.final,
        delay_s=settlement.delay_s,
    )


def outcome_of_error(running: RunningJob, began: float, error: BaseException) -> Outcome:
    """The outcome of a task that ended with an exception that is not an error of the task's code."""
    row, seconds = running.row, time.monotonic() - began
    if isinstance(error, SystemExit):
        return Failed(row, seconds, "SystemExit", f"the task called sys.exit({error.code!r})"[:_MESSAGE_CHARS])
    if running.reason is not None:
        return Interrupted(row, seconds, running.reason)
    return Failed(row, seconds, type(error).__name__, f"the task ended with {error!r}"[:_MESSAGE_CHARS])
