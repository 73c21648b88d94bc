"""Runs tasks on an asyncio event loop. Tasks that are not coroutines run in threads beside it."""

import asyncio
import threading
from collections import deque
from typing import Final

from crossdock.app.errors import AppError
from crossdock.app.execute import Settlement, execute_async
from crossdock.client.errors import ClientError
from crossdock.worker.frames import Assignment, Outcome, Reason
from crossdock.worker.running import Bench, RunningJob, not_pushed, outcome_of, outcome_of_error
from crossdock.worker.threads import ThreadRunner

#: Threads for tasks that are not coroutines.
THREADS_AT_MOST: Final = 32


class AsyncRunner:
    """Its methods are called on the event loop."""

    def __init__(self, bench: Bench, slots: int) -> None:
        self._bench = bench
        self._slots = slots
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._waiting: deque[Assignment] = deque()
        self._running: dict[int, RunningJob] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._in_threads: set[int] = set()
        self._threads: ThreadRunner | None = None
        self._ended = asyncio.Event()

    def run(self, jobs: list[Assignment]) -> None:
        self._waiting.extend(jobs)
        self._start_more()

    def _start_more(self) -> None:
        while self._waiting and len(self._tasks) + len(self._in_threads) < self._slots:
            assignment = self._waiting.popleft()
            if self._is_async(assignment):
                self._tasks[assignment.row] = self._loop.create_task(self._run(assignment))
            else:
                self._in_threads.add(assignment.row)
                self._thread_runner().run([assignment])

    def _is_async(self, assignment: Assignment) -> bool:
        try:
            return self._bench.app.task_of(assignment.job).is_async
        except AppError:
            return True  # no task: the job fails at once

    def _thread_runner(self) -> ThreadRunner:
        if self._threads is None:
            self._threads = ThreadRunner(self._bench, min(self._slots, THREADS_AT_MOST), self._ended_in_thread)
        return self._threads

    def _ended_in_thread(self, row: int) -> None:
        self._loop.call_soon_threadsafe(self._in_thread_ended, row)

    def _in_thread_ended(self, row: int) -> None:
        self._in_threads.discard(row)
        self._after_one()

    def _after_one(self) -> None:
        self._ended.set()
        self._start_more()

    def interrupt(self, row: int, reason: Reason) -> None:
        """Tell the task, and cancel it if it is a coroutine."""
        if row in self._in_threads and self._threads is not None:
            self._threads.interrupt(row, reason)
        running = self._running.get(row)
        if running is not None and running.reason is None:
            running.reason = reason
            running.context.lease_lost.set()
            self._tasks[row].cancel()

    async def finished(self) -> None:
        """Return when all tasks have ended."""
        while self._tasks or self._in_threads:
            self._ended.clear()
            await self._ended.wait()

    async def _run(self, assignment: Assignment) -> None:
        row = assignment.row
        if self._bench.start(row):
            running = self._running[row] = RunningJob(assignment, self._bench.reporter, self._thread)
            outcome: Outcome
            try:
                outcome = outcome_of(running, await self._execute(running))
            except BaseException as error:  # noqa: BLE001, whatever a task raises ends only its job
                outcome = outcome_of_error(running, error)
            del self._running[row]
            self._bench.end(row, outcome)
        del self._tasks[row]
        self._after_one()

    async def _execute(self, running: RunningJob) -> Settlement:
        settlement = await execute_async(self._bench.app, running.job, running.context)
        if settlement.push:
            try:
                await self._bench.app.async_client.push_many(settlement.push)
            except ClientError as error:
                return not_pushed(error)
        return settlement
