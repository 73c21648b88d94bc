"""Runs tasks on an asyncio event loop."""

import asyncio
import threading
import time
from collections import deque

from crossdock.app.execute import execute_async
from crossdock.worker.frames import Assignment, Outcome, Reason, Returned
from crossdock.worker.running import Bench, RunningJob, outcome_of, outcome_of_error


class AsyncRunner:
    """Its methods are called on the event loop."""

    def __init__(self, bench: Bench, slots: int) -> None:
        self._bench = bench
        self._slots = slots
        self._waiting: deque[Assignment] = deque()
        self._running: dict[int, RunningJob] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._thread = threading.get_ident()

    def run(self, jobs: list[Assignment]) -> None:
        self._waiting.extend(jobs)
        self._start_more()

    def _start_more(self) -> None:
        waiting, tasks = self._waiting, self._tasks
        while waiting and len(tasks) < self._slots:
            assignment = waiting.popleft()
            tasks[assignment.row] = asyncio.create_task(self._run(assignment))

    def interrupt(self, row: int, reason: Reason) -> None:
        """Tell the task, and cancel it."""
        running = self._running.get(row)
        if running is not None and running.reason is None:
            running.reason = reason
            running.context.lease_lost.set()
            self._tasks[row].cancel()

    async def finished(self) -> None:
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def _run(self, assignment: Assignment) -> None:
        row = assignment.row
        outcome: Outcome
        if self._bench.start(row, alone=not self._running):
            began = time.monotonic()
            running = self._running[row] = RunningJob(assignment, self._bench.reporter, self._thread)
            try:
                outcome = outcome_of(row, began, await execute_async(self._bench.app, assignment.job, running.context))
            except BaseException as error:  # noqa: BLE001, whatever a task raises ends only its job
                outcome = outcome_of_error(running, began, error)
            del self._running[row]
            self._bench.end(row, outcome)
        else:
            self._bench.reporter.add(Returned(row))
        del self._tasks[row]
        self._start_more()
