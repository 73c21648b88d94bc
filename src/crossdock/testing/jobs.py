"""The fixture `jobs`: what was pushed, running it, and the clock."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, NamedTuple, ParamSpec, Self

import msgspec

from crossdock.app import encoding
from crossdock.app.app import App
from crossdock.app.execute import Ack, Settlement
from crossdock.app.handle import Handle
from crossdock.app.outcomes import OutcomeBase
from crossdock.app.task import Task
from crossdock.client.client import Client
from crossdock.client.jobs import FetchedJob, NewJob
from crossdock.model.events import AnyEvent
from crossdock.testing.calls import Expectation, Parameters
from crossdock.testing.clients import ObservedAsyncClient, ObservedClient
from crossdock.testing.clock import Clock
from crossdock.testing.errors import EndlessChain, TestingError
from crossdock.testing.pushed import PushedJob, PushRecord
from crossdock.testing.runner import LIMIT, ExecutedJob, Runner, perform, perform_async
from crossdock.testing.server import LocalServer

P = ParamSpec("P")

#: Inline jobs inside inline jobs. More of them count as endless.
_DEEPEST: Final = 20

_depth: ContextVar[int] = ContextVar("crossdock_inline_depth", default=0)


class _Inline(NamedTuple):
    raises: bool


class Jobs:
    """The jobs of one test. It has a server of its own in this process, whose clock the test moves.

    No job runs by itself. `drain` runs what is ready, as a worker would. Arguments and results always pass through
    JSON.
    """

    def __init__(self) -> None:
        self._record = PushRecord()
        # Whole seconds: the times of jobs are exact to the microsecond, and a float is not.
        self._server = LocalServer(float(int(time.time())), self._observe)
        self._apps: list[App] = []
        self._runner = Runner(self._server, self._apps)
        self._restore = ExitStack()
        self._inline: _Inline | None = None
        self.client: Final = Client(connect=self._server.connect)  #: a client of the server
        self.clock: Final = Clock(self._server, self._sync_apps, self._called)

    def _observe(self, events: Sequence[AnyEvent]) -> None:
        self._record.observe(self._server.state, events)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the apps their own connections back."""
        self._restore.close()
        self._runner.close()
        self.client.close()

    def use(self, app: App) -> App:
        """Take the jobs of this app until the test ends. Nothing reaches its real server. The plugin does this for the
        apps that `crossdock_app` names."""
        if app not in self._apps:
            connect = self._server.connect
            rerouted = app.using(
                now=self.clock.time,
                new_client=lambda: ObservedClient(connect, self._called),
                new_async_client=lambda: ObservedAsyncClient(connect, self._async_called),
            )
            self._restore.enter_context(rerouted)
            self._apps.append(app)
        return app

    # What was pushed

    def pushed(self, task: Task[..., Any] | str | None = None) -> list[PushedJob]:
        """All jobs that were pushed in this test, or those of a task or a kind, in order. Jobs that have run are among
        them, and so are those of cron schedules and callbacks."""
        if task is None:
            return list(self._record.jobs)
        kinds = self._kinds(task)
        return [job for job in self._record.jobs if job.kind in kinds]

    def assert_pushed(self, task: Task[..., Any] | str, /, *args: Any, **kwargs: Any) -> PushedJob:
        """A job of this task with these arguments was pushed. Arguments that are not named may have any value. Returns
        the newest such job."""
        __tracebackhide__ = True
        expected = self._expected(task, args, kwargs)
        found = [job for job in self.pushed(task) if expected.matches(job)]
        if not found:
            raise AssertionError(expected.not_pushed(self._record.jobs, self._parameters))
        return found[-1]

    def refute_pushed(self, task: Task[..., Any] | str, /, *args: Any, **kwargs: Any) -> None:
        """No job of this task with these arguments was pushed."""
        __tracebackhide__ = True
        expected = self._expected(task, args, kwargs)
        found = [job for job in self.pushed(task) if expected.matches(job)]
        if found:
            raise AssertionError(expected.unwanted(found))

    def forget_pushed(self) -> None:
        """Forget what was pushed so far. The jobs stay on the server."""
        self._record.jobs.clear()

    def _expected(self, task: Task[..., Any] | str, args: Sequence[Any], kwargs: dict[str, Any]) -> Expectation:
        if not isinstance(task, str):
            self._must_use(task)
        kinds = self._kinds(task)
        parameters = self._parameters(task) if isinstance(task, str) else _parameters_of(task)
        return Expectation(parameters, kinds, args, kwargs, encoding.encode)

    def _kinds(self, task: Task[..., Any] | str) -> tuple[str, ...]:
        return (task,) if isinstance(task, str) else (task.name, *task.kinds)

    def _parameters(self, kind: str) -> Parameters:
        for app in self._apps:
            if kind in app.tasks:
                return _parameters_of(app.tasks[kind])
        return Parameters(kind)

    def _must_use(self, task: Task[..., Any]) -> None:
        if task.app not in self._apps:
            raise TestingError(
                f"{task.name} belongs to the app {task.app.name!r}, whose jobs this test does not take; set "
                "crossdock_app = MODULE:APP in the settings of pytest, or call jobs.use(app)"
            )

    # Running

    def drain(self, *, raises: bool = True, limit: int = LIMIT) -> list[ExecutedJob]:
        """Run jobs, as a worker would, until none is ready. Returns what was run.

        The first exception of a task is raised here, after its job was failed on the server. With `raises=False` the
        rest runs as well. Jobs that are scheduled, or wait to be retried, wait for the clock. Raises EndlessChain if
        more than `limit` jobs run.
        """
        __tracebackhide__ = True
        self._sync_apps()
        return self._runner.run_ready(raises=raises, limit=limit)

    async def adrain(self, *, raises: bool = True, limit: int = LIMIT) -> list[ExecutedJob]:
        """As `drain`, for asyncio. `async def` tasks run in the test's event loop."""
        __tracebackhide__ = True
        self._sync_apps()
        return await self._runner.run_ready_async(raises=raises, limit=limit)

    def perform(self, task: Task[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Execute a task as a worker would, without a queue. Returns its result, decoded from JSON, or its outcome,
        such as Snooze. Raises what the task raises."""
        __tracebackhide__ = True
        self._must_use(task)
        return _returned(task, *perform(task.app, _fetched(task.job(*args, **kwargs).new_job)))

    async def aperform(self, task: Task[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """As `perform`, for asyncio."""
        __tracebackhide__ = True
        self._must_use(task)
        return _returned(task, *await perform_async(task.app, _fetched(task.job(*args, **kwargs).new_job)))

    def lease(self, task: Task[..., Any] | str | None = None) -> FetchedJob:
        """Take the next job, or the next one of a task, and do not run it, as a worker that dies. The lease expires by
        the clock after half an hour. Raises AssertionError if no such job is ready."""
        __tracebackhide__ = True
        kinds = None if task is None else self._kinds(task)
        job = self._runner.lease(kinds)
        if job is None:
            raise AssertionError("no job is ready" if kinds is None else f"no job of {kinds[0]} is ready")
        return job

    def state(self, job: Handle[Any] | PushedJob | FetchedJob | str) -> str:
        """The state of a job on the server: scheduled, blocked, held, ready, leased, retrying, complete, failed or
        dead. "gone": the server does not have it, because it succeeded or was removed."""
        jid = job.id if isinstance(job, Handle) else job if isinstance(job, str) else job.jid
        return self._server.state_of(jid)

    @contextmanager
    def inline(self, *, raises: bool = True) -> Iterator[None]:
        """In this block a push runs its job at once. An exception of the task is raised by the push. With
        `raises=False` the job is retried by the clock instead, as on a server."""
        before, self._inline = self._inline, _Inline(raises)
        try:
            yield
        finally:
            self._inline = before

    def _called(self) -> None:
        """After a call of a client, and after each step of the clock."""
        __tracebackhide__ = True
        if self._inline is not None:
            with _deeper():
                self._runner.run_ready(raises=self._inline.raises, limit=LIMIT)

    async def _async_called(self) -> None:
        __tracebackhide__ = True
        if self._inline is not None:
            with _deeper():
                await self._runner.run_ready_async(raises=self._inline.raises, limit=LIMIT)

    # Schedules

    def _sync_apps(self) -> None:
        """The server gets the schedules and rate limits of the apps, as from a worker that starts. Tasks may have been
        added since the last time. Not by an app's own client, which would run jobs in inline mode."""
        for app in self._apps:
            if schedules := app.schedules:
                self.client.sync_schedules(app.name, schedules)
            if rates := app.rates:
                self.client.sync_rates(app.name, rates)


@contextmanager
def _deeper() -> Iterator[None]:
    depth = _depth.get()
    if depth >= _DEEPEST:
        raise EndlessChain(
            f"{_DEEPEST} inline jobs were pushed inside each other; a task probably pushes itself. Push outside of "
            "jobs.inline() and call jobs.drain()"
        )
    token = _depth.set(depth + 1)
    try:
        yield
    finally:
        _depth.reset(token)


def _parameters_of(task: Task[..., Any]) -> Parameters:
    return Parameters.of(task.name, task.function)


def _fetched(job: NewJob) -> FetchedJob:
    """The job as a worker receives it: all of it has passed through JSON."""
    custom: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(job.custom or {}))
    if job.kwargs is not None:
        custom["kwargs"] = msgspec.json.decode(msgspec.json.encode(job.kwargs))
    args = job.args if isinstance(job.args, msgspec.Raw) else msgspec.Raw(msgspec.json.encode(job.args))
    return FetchedJob(
        jid=job.jid,
        kind=job.kind,
        queue=job.queue,
        args=args,
        custom=custom,
        tags=tuple(job.tags),
        keep_result=True,
        retry=job.retries,
    )


def _returned(task: Task[..., Any], settlement: Settlement, ended_by: BaseException | None) -> Any:
    __tracebackhide__ = True
    if isinstance(ended_by, OutcomeBase):
        return ended_by
    if ended_by is not None:
        raise ended_by
    text = settlement.result if isinstance(settlement, Ack) else None
    return task.signature.decode_result(text or b"null")
