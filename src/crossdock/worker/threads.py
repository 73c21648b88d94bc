"""Runs tasks in threads."""

import ctypes
import threading
from collections.abc import Callable
from queue import SimpleQueue

from crossdock.app.execute import Settlement, execute
from crossdock.client.errors import ClientError
from crossdock.worker.frames import Assignment, Outcome, Reason
from crossdock.worker.running import Bench, RunningJob, TaskInterrupted, not_pushed, outcome_of, outcome_of_error


def _ignored(row: int) -> None:
    """For callers that do not count jobs."""


class ThreadRunner:
    def __init__(self, bench: Bench, threads: int, ended: Callable[[int], None] = _ignored) -> None:
        """`ended` is called, in any thread, when a job has been reported."""
        self._bench = bench
        self._ended = ended
        self._jobs: SimpleQueue[Assignment | None] = SimpleQueue()
        self._running: dict[int, RunningJob] = {}
        #: Held while a thread is interrupted and while a task ends: the exception is for the task only.
        self._ending = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, name=f"crossdock-task-{number}", daemon=True)
            for number in range(1, threads + 1)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, jobs: list[Assignment]) -> None:
        for assignment in jobs:
            self._jobs.put(assignment)

    def interrupt(self, row: int, reason: Reason) -> None:
        """Tell the task. Only a timeout also raises an exception in its thread, at the next line of Python."""
        with self._ending:
            running = self._running.get(row)
            if running is None:
                return
            running.context.lease_lost.set()
            if reason == "timeout" and running.reason is None:
                running.reason = reason
                _raise_in(running.thread)

    def stop(self) -> None:
        """Return when all tasks have ended."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        thread, take = threading.get_ident(), self._jobs.get
        while True:
            try:
                assignment = take()
                if assignment is None:
                    return
                self._run(assignment, thread)
            except TaskInterrupted:  # it came after the end of its task, whose outcome is reported
                continue

    def _run(self, assignment: Assignment, thread: int) -> None:
        row = assignment.row
        if self._bench.start(row):
            running = self._running[row] = RunningJob(assignment, self._bench.reporter, thread)
            outcome: Outcome | None = None
            try:
                try:
                    outcome = outcome_of(running, self._execute(running))
                except BaseException as error:  # noqa: BLE001, whatever a task raises ends only its job
                    outcome = outcome_of_error(running, error)
                with self._ending:
                    del self._running[row]
            except TaskInterrupted as error:  # it came while the outcome was built
                self._running.pop(row, None)
                outcome = outcome or outcome_of_error(running, error)
            self._bench.end(row, outcome)
        self._ended(row)

    def _execute(self, running: RunningJob) -> Settlement:
        settlement = execute(self._bench.app, running.job, running.context)
        if settlement.push:
            try:
                self._bench.app.client.push_many(settlement.push)
            except ClientError as error:
                return not_pushed(error)
        return settlement


def _raise_in(thread: int) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TaskInterrupted))
