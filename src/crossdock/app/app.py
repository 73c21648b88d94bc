"""The application: the registry of tasks, their schedules and limits, and the clients that push."""

from __future__ import annotations

import atexit
import hashlib
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, ParamSpec, TypeVar, Unpack, cast, overload
from weakref import WeakSet

import msgspec

from crossdock.app.batches import AppBatch, AsyncAppBatch, new_async_batch, new_batch
from crossdock.app.bundles import Bundle
from crossdock.app.decorator import TaskDecorator
from crossdock.app.errors import BadTask, UnknownBundle, UnknownTask, suggestion
from crossdock.app.foreign import include_path_of, kinds_of
from crossdock.app.handle import Handle
from crossdock.app.limits import rate_of
from crossdock.app.outcomes import Outcome
from crossdock.app.schedules import ScheduledTask, Scheduler, calendar, interval
from crossdock.app.task import AsyncTask, PreparedJob, SyncTask, Task, TaskKeywords, make_task
from crossdock.client.aio import AsyncClient
from crossdock.client.client import Client
from crossdock.client.durations import Duration
from crossdock.client.jobs import FetchedJob, RateLimit, Schedule
from crossdock.client.transport import Connect

P = ParamSpec("P")
R = TypeVar("R")

_SHOWN_CHARS: Final = 100

#: Clients that are closed when the interpreter ends. A program that only pushes need not close anything.
_opened: Final[WeakSet[Client]] = WeakSet()


@atexit.register
def _close_all() -> None:
    for client in list(_opened):
        client.close()


class App:
    """Tasks of one application. Nothing is connected before the first push.

    A worker executes what is registered here and nothing else: a job cannot make it import anything.
    """

    def __init__(
        self, url: str | None = None, *, name: str = "app", queue: str = "default", connect: Connect | None = None
    ) -> None:
        """Without a URL the environment variable `CROSSDOCK_URL` is used, or else the local server.

        `name`: under which the server stores schedules and rate limits; applications that share a server need
        different names. `queue`: of tasks that name none. `connect` replaces the network.
        """
        self.name: Final = name
        self.queue: Final = queue
        self.tasks: Final[dict[str, Task[..., Any]]] = {}  #: by name
        self.bundles: Final[dict[str, Bundle]] = {}  #: by Resqu's include path
        self.now: Callable[[], float] = time.time  #: seconds since 1970
        self._kinds: Final[dict[str, Task[..., Any]]] = {}
        self._schedules: Final[dict[str, ScheduledTask]] = {}
        self._queue_rates: Final[dict[str, RateLimit]] = {}
        self._url = url
        self._connect = connect
        self._lock: Final = threading.Lock()
        self._client: Client | None = None
        self._async_client: AsyncClient | None = None
        self._new_client: Callable[[], Client] = lambda: Client(self._url, connect=self._connect)
        self._new_async_client: Callable[[], AsyncClient] = lambda: AsyncClient(self._url, connect=self._connect)

    def __repr__(self) -> str:
        return f"<App {self.name} with {len(self.tasks)} tasks>"

    # Tasks

    @overload  # the second one matches a function that returns a coroutine, too
    def task(  # type: ignore[overload-overlap]
        self, function: Callable[P, Coroutine[Any, Any, R | Outcome]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def task(self, function: Callable[P, R | Outcome], /) -> SyncTask[P, R]: ...
    @overload
    def task(self, /, **options: Unpack[TaskKeywords]) -> TaskDecorator: ...
    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Make a task of a function: `@app.task` or `@app.task(queue="mail", retries=5)`.

        The options are those of `TaskKeywords`. Raises BadTask.
        """

        def make(function: Callable[..., Any]) -> Task[..., Any]:
            return self.add(make_task(self, function, cast(TaskKeywords, options)))

        return TaskDecorator(make) if function is None else make(function)

    def add(self, task: Task[..., Any], *, everywhere: bool = True) -> Task[..., Any]:
        """Register a task under its name and, `everywhere`, its kinds. Raises BadTask if one of them is taken."""
        for kind in (task.name, *(task.kinds if everywhere else ())):
            if (other := self._kinds.get(kind)) is not None:
                where = f"{other.function.__module__}.{other.function.__qualname__}"
                raise BadTask(f'{task.name}: {where} is registered as "{kind}" already; pass another name=…')
        self.tasks[task.name] = task
        self._kinds.update(dict.fromkeys((task.name, *(task.kinds if everywhere else ())), task))
        return task

    def bundle(self, name: str, *, setup: Callable[[], object] | None = None) -> Bundle:
        """Register a bundle for Resqu jobs whose `includePath` is `name`. `setup` is called before each of its jobs."""
        if name in self.bundles:
            raise BadTask(f'the bundle "{name}" is registered already')
        self.bundles[name] = Bundle(self, name, setup)
        return self.bundles[name]

    def bundle_of(self, job: FetchedJob) -> Bundle | None:
        """The bundle that a job selects; None: it selects none. Raises UnknownBundle."""
        path = include_path_of(job)
        if not path:
            return None
        try:
            return self.bundles[path]
        except KeyError:
            raise UnknownBundle(
                f'no bundle is registered for the include path "{path[:_SHOWN_CHARS]}"; '
                f"{_ended(suggestion(path, self.bundles))} A worker opens no files that a job names: use app.bundle(…)"
            ) from None

    def task_of(self, job: FetchedJob) -> Task[..., Any]:
        """The task that executes a job. Raises UnknownTask or UnknownBundle, which name what is near."""
        bundle = self.bundle_of(job)
        for kind in kinds_of(job):
            for known in ({} if bundle is None else bundle.kinds, self._kinds):
                if (task := known.get(kind)) is not None:
                    return task
        near = suggestion(job.kind, [*self._kinds, *(() if bundle is None else bundle.kinds)])
        raise UnknownTask(
            f'no task named "{job.kind[:_SHOWN_CHARS]}"; {_ended(near)} '
            "Has the worker imported the module that defines it?"
        )

    # Schedules and limits

    def every(self, interval_: Duration, *, name: str | None = None) -> Scheduler:
        """Push a task at an interval: `@app.every("5 minutes")` above a task or a function.

        A task with arguments is scheduled by `app.every("1h", name="report-7")(report.job(7))`. `name` is needed if a
        task has several schedules. The server has the schedules: it pushes whether workers run or not.
        """
        return Scheduler(self, interval(interval_), name)

    def cron(self, line: str, *, zone: str | None = None, name: str | None = None) -> Scheduler:
        """Push a task by a cron line of five fields, in a time zone such as Europe/Berlin; UTC without one."""
        return Scheduler(self, calendar(line, zone), name)

    def add_schedule(self, schedule: ScheduledTask) -> None:
        """Raises BadTask if the name is taken."""
        if schedule.name in self._schedules:
            raise BadTask(f'there is a schedule "{schedule.name}" already; pass another name=…')
        self._schedules[schedule.name] = schedule

    def limit_queue(self, queue: str, rate: str) -> None:
        """Let workers start no more jobs of a queue than this: `app.limit_queue("mail", "100/m")`. Raises BadTask."""
        found = rate_of(f'queue "{queue}"', rate)
        if found is not None:
            self._queue_rates[queue] = RateLimit(queue=queue, count=found.count, per_s=found.per_s)

    @property
    def schedules(self) -> list[Schedule]:
        """The schedules, as the server receives them. Raises BadTask or BadArgument."""
        return [each.schedule() for each in self._schedules.values()]

    @property
    def rates(self) -> list[RateLimit]:
        """The rate limits of tasks and queues, as the server receives them. Limits by argument travel with jobs."""
        of_tasks = [
            RateLimit(kind=kind, count=task.settings.rate.count, per_s=task.settings.rate.per_s)
            for kind, task in self._kinds.items()
            if task.settings.rate is not None and not task.settings.rate.by
        ]
        return [*of_tasks, *self._queue_rates.values()]

    @property
    def sync_digest(self) -> str:
        """Changes when the schedules or the rate limits do. It is the same in all processes."""
        return hashlib.sha256(msgspec.json.encode([self.name, self.schedules, self.rates])).hexdigest()

    def sync(self) -> None:
        """Replace this application's schedules and rate limits on the server. A worker does it when it starts.

        A server without these extensions has none to replace. Raises Unsupported if there are some.
        """
        schedules, rates, has = self.schedules, self.rates, self.client.features().extensions
        if schedules or "schedules" in has:
            self.client.sync_schedules(self.name, schedules)
        if rates or "rates" in has:
            self.client.sync_rates(self.name, rates)

    async def async_sync(self) -> None:
        """As `sync`, for asyncio."""
        schedules, rates, has = self.schedules, self.rates, (await self.async_client.features()).extensions
        if schedules or "schedules" in has:
            await self.async_client.sync_schedules(self.name, schedules)
        if rates or "rates" in has:
            await self.async_client.sync_rates(self.name, rates)

    # Jobs

    def push_many(self, jobs: list[PreparedJob[Any]]) -> list[Handle[Any]]:
        """Push prepared jobs of any tasks."""
        self.client.push_many(each.new_job for each in jobs)
        return [each.handle for each in jobs]

    async def apush_many(self, jobs: list[PreparedJob[Any]]) -> list[Handle[Any]]:
        """As `push_many`, for asyncio."""
        await self.async_client.push_many(each.new_job for each in jobs)
        return [each.handle for each in jobs]

    def batch(
        self,
        description: str = "",
        *,
        success: PreparedJob[Any] | None = None,
        complete: PreparedJob[Any] | None = None,
    ) -> AppBatch:
        """A batch for a `with` block. `success` is pushed when all its jobs have succeeded, `complete` when all were
        executed. One of them is needed."""
        return new_batch(self, description, success, complete)

    def abatch(
        self,
        description: str = "",
        *,
        success: PreparedJob[Any] | None = None,
        complete: PreparedJob[Any] | None = None,
    ) -> AsyncAppBatch:
        """As `batch`, for an `async with` block."""
        return new_async_batch(self, description, success, complete)

    @overload
    def handle(self, jid: str, task: Task[..., R]) -> Handle[R]: ...
    @overload
    def handle(self, jid: str, task: None = None) -> Handle[Any]: ...
    def handle(self, jid: str, task: Task[..., Any] | None = None) -> Handle[Any]:
        """The handle of a job whose ID is known. With its task the result is decoded to the type it returns."""
        return Handle(self, jid, task)

    # Clients

    @property
    def url(self) -> str | None:
        """URL of the server; None: that of the environment, or the local server. Set it before the first push."""
        return self._url

    @url.setter
    def url(self, url: str | None) -> None:
        self._url = url

    @property
    def client(self) -> Client:
        """The client that all threads share."""
        if self._client is None:
            with self._lock:
                if self._client is None:
                    self._client = self._new_client()
                    _opened.add(self._client)
        return self._client

    @property
    def async_client(self) -> AsyncClient:
        """The client that all asyncio tasks share."""
        if self._async_client is None:
            with self._lock:
                if self._async_client is None:
                    self._async_client = self._new_async_client()
        return self._async_client

    def close(self) -> None:
        """Close the connections of `client`. The next push opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        """Close the connections of both clients. The next push opens new ones."""
        with self._lock:
            client, self._async_client = self._async_client, None
        if client is not None:
            await client.close()
        self.close()

    @contextmanager
    def using(
        self,
        *,
        url: str | None = None,
        connect: Connect | None = None,
        now: Callable[[], float] | None = None,
        new_client: Callable[[], Client] | None = None,
        new_async_client: Callable[[], AsyncClient] | None = None,
    ) -> Iterator[App]:
        """Use another server, network, clock or other clients in a `with` block, for tests."""
        before = self._url, self._connect, self.now, self._client, self._async_client
        makers = self._new_client, self._new_async_client
        with self._lock:
            self._url, self._connect, self._client, self._async_client = url, connect, None, None
            self._new_client = new_client or self._new_client
            self._new_async_client = new_async_client or self._new_async_client
        self.now = self.now if now is None else now
        try:
            yield self
        finally:
            self.close()
            with self._lock:
                self._url, self._connect, self.now, self._client, self._async_client = before
                self._new_client, self._new_async_client = makers


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith("?") else f"{sentence}."
