"""Tasks: functions whose calls can be pushed as jobs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypedDict, TypeVar

import msgspec

from crossdock.app.encoding import Signature
from crossdock.app.errors import BadArgument, BadTask, suggestion
from crossdock.app.handle import Handle
from crossdock.app.limits import TaskRate, UniqueLike, UniqueTerms, key_of, rate_of, unique_of
from crossdock.app.tracing import carried
from crossdock.client.durations import Duration, seconds
from crossdock.client.jobs import NewJob, Rate, new_id

if TYPE_CHECKING:
    from crossdock.app.app import App

P = ParamSpec("P")
R = TypeVar("R")

#: How long results are kept, if a task returns something and does not say how long.
KEEP_RESULT_S: Final = 3_600.0
LONGEST_KEEP_S: Final = 604_800.0
RETRIES: Final = 25
_NAME_BYTES: Final = 255


class TaskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the decorator of a task says, checked."""

    queue: str
    retries: int = RETRIES
    timeout_s: float | None = None  #: the worker stops the task after this time; None: it does not
    priority: int | None = None
    tags: tuple[str, ...] = ()
    keep_result_s: float = 0.0
    track: bool = False
    unique: UniqueTerms | None = None
    rate: TaskRate | None = None
    unpack: bool = True  #: the object of a foreign job becomes keyword arguments


class PushOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What `options` says about some pushes. None: as the task has it."""

    queue: str | None = None
    retries: int | None = None
    priority: int | None = None
    tags: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    keep_result_s: float | None = None
    track: bool | None = None
    unique: UniqueTerms | None = None
    delay_s: float | None = None
    at: datetime | None = None
    jid: str | None = None
    custom: Mapping[str, Any] | None = None


class PreparedJob(Generic[R]):
    """A task with its arguments, encoded and ready to push. Its ID is chosen: pushing it twice makes one job."""

    __slots__ = ("new_job", "task")

    def __init__(self, task: Task[..., R], new_job: NewJob) -> None:
        self.task: Final = task
        self.new_job: Final = new_job

    @property
    def id(self) -> str:
        return self.new_job.jid

    @property
    def handle(self) -> Handle[R]:
        """The handle that a push of it returns."""
        return Handle(self.task.app, self.id, self.task, keeps_result=self.new_job.keep_result_s > 0)

    def push(self) -> Handle[R]:
        """Push it. Raises ClientError."""
        self.task.app.client.push(self.new_job)
        return self.handle

    async def apush(self) -> Handle[R]:
        """As `push`, for asyncio."""
        await self.task.app.async_client.push(self.new_job)
        return self.handle


class Pusher(Generic[P, R]):
    """Pushes jobs of one task. A task is a pusher without options."""

    def __init__(self, task: Task[P, R], options: PushOptions) -> None:
        self._task = task
        self._options = options

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> PreparedJob[R]:
        """Encode the arguments, but do not push. Raises BadArgument, which names the argument."""
        return PreparedJob(self._task, new_job(self._task, self._options, args, kwargs))

    def push(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Push a job with these arguments. Returns when the job is durable on the server.

        Raises BadArgument, which names the argument, NotUnique, PayloadTooLarge or another ClientError.
        """
        return self.job(*args, **kwargs).push()

    async def apush(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """As `push`, for asyncio."""
        return await self.job(*args, **kwargs).apush()

    def push_in(self, delay: Duration) -> Callable[P, Handle[R]]:
        """`task.push_in("10m")(42)` pushes a job that becomes ready after a delay."""
        return self.options(in_=delay).push

    def apush_in(self, delay: Duration) -> Callable[P, Awaitable[Handle[R]]]:
        """As `push_in`, for asyncio."""
        return self.options(in_=delay).apush

    def push_at(self, when: datetime) -> Callable[P, Handle[R]]:
        """`task.push_at(when)(42)` pushes a job that becomes ready at a time, which needs a time zone."""
        return self.options(at=when).push

    def apush_at(self, when: datetime) -> Callable[P, Awaitable[Handle[R]]]:
        """As `push_at`, for asyncio."""
        return self.options(at=when).apush

    def push_many(self, rows: Iterable[PreparedJob[R] | tuple[Any, ...] | Mapping[str, Any]]) -> list[Handle[R]]:
        """Push a job for each row: a tuple of positional arguments, a dict of keyword arguments, or a prepared job.

        All rows are encoded before the first is sent. Raises BadArgument, which names the row and the argument.
        """
        prepared = self._prepared(rows)
        self._task.app.client.push_many(each.new_job for each in prepared)
        return [each.handle for each in prepared]

    async def apush_many(self, rows: Iterable[PreparedJob[R] | tuple[Any, ...] | Mapping[str, Any]]) -> list[Handle[R]]:
        """As `push_many`, for asyncio."""
        prepared = self._prepared(rows)
        await self._task.app.async_client.push_many(each.new_job for each in prepared)
        return [each.handle for each in prepared]

    def _prepared(self, rows: Iterable[PreparedJob[R] | tuple[Any, ...] | Mapping[str, Any]]) -> list[PreparedJob[R]]:
        return [self._row(number, row) for number, row in enumerate(rows)]

    def _row(self, number: int, row: PreparedJob[R] | tuple[Any, ...] | Mapping[str, Any]) -> PreparedJob[R]:
        if isinstance(row, PreparedJob):
            return row
        args: Sequence[Any] = row if isinstance(row, tuple) else ()
        kwargs = row if isinstance(row, Mapping) else {}
        if not isinstance(row, (tuple, Mapping)):
            raise BadArgument(
                f"{self._task.name}: row {number} is of type {type(row).__name__}; "
                "write a tuple of arguments, such as (42,), or a dict"
            )
        try:
            return PreparedJob(self._task, new_job(self._task, self._options, args, kwargs))
        except BadArgument as error:
            text = str(error).removeprefix(f"{self._task.name}: ")
            raise BadArgument(f"{self._task.name}: row {number}: {text}") from error

    def options(
        self,
        *,
        queue: str | None = None,
        retries: int | None = None,
        priority: int | None = None,
        tags: Sequence[str] = (),
        depends_on: Sequence[Handle[Any] | PreparedJob[Any] | str] = (),
        keep_result: Duration | None = None,
        track: bool | None = None,
        unique: UniqueLike | None = None,
        in_: Duration | None = None,
        at: datetime | None = None,
        id: str | None = None,  # noqa: A002 - the name that a handle has for it
        custom: Mapping[str, Any] | None = None,
    ) -> Pusher[P, R]:
        """The same task with other options for some pushes: `task.options(queue="slow").push(42)`.

        `tags` and `depends_on` are added to those before. `depends_on`: jobs that must succeed first. `track`: record
        state and progress from the push on. `id`: the ID of one job, 8 to 255 bytes. `custom`: more data beside the
        arguments. Raises BadTask or BadArgument.
        """
        name = self._task.name
        if isinstance(tags, str) or isinstance(depends_on, str):
            raise BadArgument(f"{name}: tags and depends_on are lists")
        if at is not None and at.tzinfo is None:
            raise BadArgument(f"{name}: the time has no time zone; use datetime.now(UTC) or when.astimezone()")
        if in_ is not None and at is not None:
            raise BadArgument(f"{name}: give either in_ or at")
        old = self._options
        changes: dict[str, Any] = {
            "queue": queue,
            "retries": retries,
            "priority": priority,
            "keep_result_s": _seconds(name, "keep_result", keep_result),
            "track": track,
            "unique": _unique(name, self._task.signature, unique),
            "jid": id,
            "custom": custom,
        }
        chosen = {key: value for key, value in changes.items() if value is not None}
        if in_ is not None or at is not None:
            chosen |= {"delay_s": _seconds(name, "in_", in_), "at": at}
        return Pusher(
            self._task,
            msgspec.structs.replace(
                old,
                tags=(*old.tags, *tags),
                depends_on=(*old.depends_on, *(each if isinstance(each, str) else each.id for each in depends_on)),
                **chosen,
            ),
        )


class Task(Pusher[P, R]):
    """A registered function. Its subclasses are called as the function is: `SyncTask` and `AsyncTask`."""

    is_async: bool

    def __init__(
        self,
        *,
        app: App,
        name: str,
        function: Callable[..., Any],
        signature: Signature,
        settings: TaskOptions,
        kinds: tuple[str, ...] = (),
    ) -> None:
        super().__init__(self, PushOptions())
        self.app: Final = app
        self.name: Final = name
        self.function: Final = function
        self.signature: Final = signature
        self.settings: Final = settings
        self.kinds: Final = kinds  #: further kinds of jobs that it executes
        functools.update_wrapper(self, function, updated=())  # type: ignore[arg-type] # subclasses are callable

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class SyncTask(Task[P, R]):
    """A task made of a `def`."""

    is_async = False

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function. Nothing is pushed."""
        result: R = self.function(*args, **kwargs)
        return result


class AsyncTask(Task[P, R]):
    """A task made of an `async def`."""

    is_async = True

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Call the function. Nothing is pushed."""
        coroutine: Coroutine[Any, Any, R] = self.function(*args, **kwargs)
        return coroutine


class TaskKeywords(TypedDict, total=False):
    """The options of a task, as the decorator takes them."""

    #: The kind of its jobs. Default: the name of the function.
    name: str
    #: Default: the queue of the application.
    queue: str
    #: Tries after the first one, with growing delays. Default: 25.
    retries: int
    #: How long one try may take. Default: no limit.
    timeout: Duration | None
    #: 1 to 9, higher first. Default: 5.
    priority: int | None
    #: Texts by which operators find its jobs.
    tags: Sequence[str]
    #: How long results are kept. Default: an hour, or not at all if the function is annotated to return None.
    keep_result: Duration | None
    #: Record state and progress from the push on. Default: from the first progress that a job reports.
    track: bool
    #: Refuse a second job with the same arguments: a duration, a `Unique`, or a dict with its fields.
    unique: UniqueLike | None
    #: How many jobs are started in a time, such as "10/m". The server enforces it for all workers.
    rate: str | None
    #: Names of arguments: the rate holds for each of their values.
    rate_key: str | Sequence[str] | None
    #: Further kinds that it executes, such as a class name of a PHP application.
    kinds: Sequence[str]
    #: Whether the JSON object of a Resqu, qless or Masenko job becomes keyword arguments. Default: True.
    unpack: bool


def make_task(app: App, function: Callable[..., Any], given: TaskKeywords) -> Task[..., Any]:
    """Raises BadTask."""
    name: str = given["name"] if "name" in given else getattr(function, "__name__", "")
    signature = Signature(name or type(function).__name__, function)
    kinds = _texts(given.get("kinds", ()))
    for each in (name, *kinds):
        if not each or len(each.encode("utf-8", "replace")) > _NAME_BYTES or not each.isprintable():
            raise BadTask(f"{name[:_NAME_BYTES]!r}: the name of a task has 1 to {_NAME_BYTES} printable bytes")
    if name == "<lambda>":
        raise BadTask("a lambda has no name; pass name=…")
    for option in given:
        if option not in TaskKeywords.__annotations__:
            raise BadTask(
                f'{name}: a task has no option "{option}"; {suggestion(option, TaskKeywords.__annotations__)}'
            )
    rate = rate_of(name, given.get("rate"), given.get("rate_key"))
    if rate is not None:
        signature.check_names(rate.by, "rate_key")
    keep_s = _seconds(name, "keep_result", given.get("keep_result"))
    if keep_s is None:
        keep_s = 0.0 if signature.returns_nothing else KEEP_RESULT_S
    if keep_s > LONGEST_KEEP_S:
        raise BadTask(f"{name}: keep_result: results are kept for 7 days at most")
    priority = given.get("priority")
    if priority is not None and priority not in range(1, 10):
        raise BadTask(f"{name}: priority is a number from 1 to 9, not {priority!r}")
    settings = TaskOptions(
        queue=given.get("queue", app.queue),
        retries=given.get("retries", RETRIES),
        timeout_s=_seconds(name, "timeout", given.get("timeout")),
        priority=priority,
        tags=_texts(given.get("tags", ())),
        keep_result_s=keep_s,
        track=given.get("track", False),
        unique=_unique(name, signature, given.get("unique")),
        rate=rate,
        unpack=given.get("unpack", True),
    )
    kind: type[Task[..., Any]] = AsyncTask if inspect.iscoroutinefunction(function) else SyncTask
    return kind(app=app, name=name, function=function, signature=signature, settings=settings, kinds=kinds)


def _unique(task: str, signature: Signature, given: UniqueLike | None) -> UniqueTerms | None:
    unique = unique_of(task, given)
    if unique is not None:
        signature.check_names(unique.by, "unique")
    return unique


def _texts(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _seconds(task: str, what: str, duration: Duration | None) -> float | None:
    try:
        return None if duration is None else seconds(duration)
    except ValueError as error:
        raise BadTask(f"{task}: {what}: {error}") from error


def new_job(task: Task[..., Any], options: PushOptions, args: Sequence[Any], kwargs: Mapping[str, Any]) -> NewJob:
    """Encode a job. Raises BadArgument."""
    encoded = task.signature.encode(args, kwargs)
    settings = task.settings
    at: datetime | float | None = options.at
    if options.delay_s is not None:
        at = task.app.now() + options.delay_s
    unique = settings.unique if options.unique is None else options.unique
    rate = None
    if settings.rate is not None and settings.rate.by:
        values = task.signature.key(args, kwargs, settings.rate.by)
        rate = Rate(name=key_of(values, task.name), count=settings.rate.count, per_s=settings.rate.per_s)
    return NewJob(
        kind=task.name,
        args=encoded.args,
        kwargs=encoded.kwargs,
        queue=settings.queue if options.queue is None else options.queue,
        jid=new_id() if options.jid is None else options.jid,
        retries=settings.retries if options.retries is None else options.retries,
        at=at,
        priority=settings.priority if options.priority is None else options.priority,
        tags=(*settings.tags, *options.tags),
        depends_on=options.depends_on,
        keep_result_s=settings.keep_result_s if options.keep_result_s is None else options.keep_result_s,
        track=settings.track if options.track is None else options.track,
        unique_for_s=None if unique is None else unique.for_s,
        unique_until=None if unique is None else unique.until,
        unique_key=None if unique is None else key_of(task.signature.key(args, kwargs, unique.by)),
        custom=carried(options.custom),
        rate=rate,
    )
