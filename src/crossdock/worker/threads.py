"""Runs tasks in threads."""

import ctypes
import threading
import time
from queue import SimpleQueue

from crossdock.app.execute import execute
from crossdock.worker.frames import Assignment, Outcome, Reason, Returned
from crossdock.worker.running import Bench, RunningJob, TaskInterrupted, outcome_of, outcome_of_error


class ThreadRunner:
    def __init__(self, bench: Bench, threads: int) -> None:
        self._bench = bench
        self._jobs: SimpleQueue[Assignment | None] = SimpleQueue()
        self._running: dict[int, RunningJob] = {}
        #: Held while a thread is interrupted, and while a task ends: an exception must not reach a thread after its task.
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
            except TaskInterrupted:  # it came after the end of its task, which has reported its outcome
                continue

    def _run(self, assignment: Assignment, thread: int) -> None:
        row = assignment.row
        if not self._bench.start(row, alone=not self._running):
            self._bench.reporter.add(Returned(row))
            return
        began = time.monotonic()
        running = self._running[row] = RunningJob(assignment, self._bench.reporter, thread)
        outcome: Outcome | None = None
        try:
            try:
                outcome = outcome_of(row, began, execute(self._bench.app, assignment.job, running.context))
            except BaseException as error:  # noqa: BLE001, whatever a task raises ends only its job
                outcome = outcome_of_error(running, began, error)
            with self._ending:
                del self._running[row]
        except TaskInterrupted as error:  # it came while the outcome was built
            self._running.pop(row, None)
            outcome = outcome or outcome_of_error(running, began, error)
        self._bench.end(row, outcome)


def _raise_in(thread: int) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TaskInterrupted))
