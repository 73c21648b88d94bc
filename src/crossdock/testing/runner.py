"""Executes jobs of a test as a worker does: takes a lease, calls the task and reports the outcome to the server."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Final

import msgspec

from crossdock.app.app import App
from crossdock.app.context import JobContext
from crossdock.app.errors import UnknownTask, suggestion
from crossdock.app.execute import Ack, Failed, Settlement, Snoozed, execute, execute_async
from crossdock.app.outcomes import OutcomeBase
from crossdock.client.client import Client
from crossdock.client.jobs import FetchedJob
from crossdock.engine.queries.queues import queues_by_name
from crossdock.testing.errors import EndlessChain, TestingError
from crossdock.testing.server import LocalServer

#: Jobs that one call runs before it counts as endless.
LIMIT: Final = 1_000

#: Of the leases that jobs run under. No time passes meanwhile, unless the task itself moves the clock.
LEASE_S: Final = 1_800.0

_SHOWN: Final = 3


class ExecutedJob(msgspec.Struct, frozen=True, kw_only=True):
    """One execution of a job."""

    job: FetchedJob
    settlement: Settlement  #: what was reported to the server: Ack, Failed or Snoozed
    error: BaseException | None  #: what the task raised
    outcome: OutcomeBase | None  #: the outcome that the task returned or raised, such as Snooze

    @property
    def jid(self) -> str:
        return self.job.jid

    @property
    def kind(self) -> str:
        return self.job.kind

    @property
    def ok(self) -> bool:
        """Whether the job succeeded."""
        return isinstance(self.settlement, Ack)


class Runner:
    def __init__(self, server: LocalServer, apps: Sequence[App]) -> None:
        """`apps` may grow later."""
        self._server = server
        self._apps = apps
        self._worker = Client(connect=server.connect, wid="crossdock-testing", hostname="test")

    def close(self) -> None:
        self._worker.close()

    def lease(self, kinds: Sequence[str] | None = None) -> FetchedJob | None:
        """Lease the next ready job, of any kind or of these, and do not run it."""
        passed: list[FetchedJob] = []
        try:
            while (job := self._next()) is not None:
                if kinds is None or job.kind in kinds:
                    return job
                passed.append(job)
            return None
        finally:
            for each in passed:
                self._server.give_back(each.number)

    def _next(self) -> FetchedJob | None:
        with self._server.lock:
            ready = [name for name, queue in queues_by_name(self._server.state).items() if queue.waiting]
        # Each queue is asked for itself: there may be more of them than a request may name.
        for name in ready:
            if jobs := self._worker.fetch([name], 1, 0, LEASE_S):
                return jobs[0]
        return None

    # Running many

    def run_ready(self, *, raises: bool, limit: int) -> list[ExecutedJob]:
        """Run jobs until none is ready. Raises EndlessChain, or what the first task raises."""
        __tracebackhide__ = True
        executed: list[ExecutedJob] = []
        while (job := self._next_within(limit, executed)) is not None:
            executed.append(self.run(job))
            _raise_error(executed[-1], raises)
        return executed

    async def run_ready_async(self, *, raises: bool, limit: int) -> list[ExecutedJob]:
        __tracebackhide__ = True
        executed: list[ExecutedJob] = []
        while (job := self._next_within(limit, executed)) is not None:
            executed.append(await self.run_async(job))
            _raise_error(executed[-1], raises)
        return executed

    def _next_within(self, limit: int, executed: Sequence[ExecutedJob]) -> FetchedJob | None:
        __tracebackhide__ = True
        job = self._next()
        if job is not None and len(executed) >= limit:
            self._server.give_back(job.number)
            kinds = Counter(each.kind for each in executed).most_common(_SHOWN)
            ran = ", ".join(f"{kind} {times} times" for kind, times in kinds)
            raise EndlessChain(
                f"{limit} jobs were run and {job.kind} is ready again; a task probably pushes itself. These ran: "
                f"{ran}. If the test needs more jobs, call jobs.drain(limit=…)"
            )
        return job

    # Running one

    def run(self, job: FetchedJob) -> ExecutedJob:
        """Execute a leased job and report the outcome."""
        app, context = self._app_of(job), self._context(job)
        return self._settled(job, context, _execute(app, job, context))

    async def run_async(self, job: FetchedJob) -> ExecutedJob:
        app, context = self._app_of(job), self._context(job)
        return self._settled(job, context, await _execute_async(app, job, context))

    def _context(self, job: FetchedJob) -> JobContext:
        return JobContext(job, report=lambda percent, text: self._worker.set_progress(job.jid, percent, text))

    def _app_of(self, job: FetchedJob) -> App:
        """The first app that knows the kind. An unknown kind is an error of the test."""
        for app in self._apps:
            try:
                app.task_of(job)
            except UnknownTask:
                continue
            return app
        self._server.give_back(job.number)
        if not self._apps:
            raise TestingError(
                f"no app is known that could run {job.kind}; set crossdock_app = MODULE:APP in the settings of pytest, "
                "or call jobs.use(app)"
            )
        known = [name for app in self._apps for name in app.tasks]
        raise UnknownTask(
            f'no task named "{job.kind}" in {", ".join(app.name for app in self._apps)}; '
            f"{suggestion(job.kind, known)} Has the test imported the module that defines it?"
        )

    def _settled(self, job: FetchedJob, context: JobContext, settlement: Settlement) -> ExecutedJob:
        if settlement.push:
            self._worker.push_many(settlement.push)
        match settlement:
            case Ack():
                self._worker.ack([(job.jid, settlement.result)])
            case Failed():
                self._worker.fail(
                    job.jid,
                    settlement.type,
                    settlement.message,
                    settlement.backtrace,
                    final=settlement.final,
                    delay_s=settlement.delay_s,
                )
            case Snoozed():
                self._worker.snooze(job.jid, settlement.delay_s, settlement.reason)
        ended_by = context.ended_by
        if isinstance(ended_by, OutcomeBase):
            return ExecutedJob(job=job, settlement=settlement, error=None, outcome=ended_by)
        return ExecutedJob(job=job, settlement=settlement, error=ended_by, outcome=None)


def perform(app: App, job: FetchedJob) -> tuple[Settlement, BaseException | None]:
    """Execute a job that is on no server. Returns the settlement, and what the task raised or the outcome it chose."""
    context = JobContext(job)
    return _execute(app, job, context), context.ended_by


async def perform_async(app: App, job: FetchedJob) -> tuple[Settlement, BaseException | None]:
    """As `perform`, in this event loop."""
    context = JobContext(job)
    return await _execute_async(app, job, context), context.ended_by


def _raise_error(executed: ExecutedJob, raises: bool) -> None:
    """An endless chain of inline jobs is raised in any case."""
    __tracebackhide__ = True
    error = executed.error
    if error is not None and (raises or isinstance(error, EndlessChain)):
        raise error


def _execute(app: App, job: FetchedJob, context: JobContext) -> Settlement:
    """A coroutine needs an event loop of its own, hence another thread if this one runs a loop."""
    if not (_is_in_loop() and app.task_of(job).is_async):
        return execute(app, job, context)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, execute, app, job, context).result()


async def _execute_async(app: App, job: FetchedJob, context: JobContext) -> Settlement:
    """A `def` task runs in this thread: what it shares with the test may belong to the thread."""
    return await execute_async(app, job, context) if app.task_of(job).is_async else execute(app, job, context)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
