"""Schedules of an application: tasks that the server pushes at an interval or by a cron line."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, overload
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError

from crossdock.app.errors import BadArgument, BadTask
from crossdock.app.outcomes import Outcome
from crossdock.app.task import AsyncTask, PreparedJob, SyncTask, Task, make_task
from crossdock.client.durations import Duration, seconds
from crossdock.client.jobs import Schedule

if TYPE_CHECKING:
    from crossdock.app.app import App

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=Task[..., Any])

_SHORTEST_S: Final = 1.0
_NAME_BYTES: Final = 255


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """When a schedule runs: `cron` in a `zone`, or each `every_s`."""

    cron: str | None = None
    every_s: float | None = None
    zone: str | None = None


def interval(every: Duration) -> Times:
    """Raises BadTask."""
    try:
        every_s = seconds(every)
    except ValueError as error:
        raise BadTask(f"every: {error}") from error
    if every_s < _SHORTEST_S:
        raise BadTask(f"every: {every!r} is too short; the shortest interval is one second")
    return Times(every_s=every_s)


def calendar(line: str, zone: str | None) -> Times:
    """Check a cron line of five fields and its time zone. Raises BadTask."""
    fields = len(line.split())
    if fields != 5:  # a sixth field means seconds or years, depending on the dialect
        raise BadTask(f"cron: {line!r} has {fields} fields; write minute, hour, day, month and weekday")
    try:
        CronSim(line, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise BadTask(f"cron: {line!r} is not valid: {error}") from error
    if zone is not None:
        try:
            ZoneInfo(zone)
        except (KeyError, ValueError, OSError) as error:
            raise BadTask(f"cron: there is no time zone {zone!r}; write one such as Europe/Berlin") from error
    return Times(cron=line, zone=zone)


class ScheduledTask(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as the application defines it."""

    name: str
    times: Times
    task: Task[..., Any]
    prepared: PreparedJob[Any] | None  #: None: the task without arguments

    def schedule(self) -> Schedule:
        """As the server receives it. Raises BadTask."""
        prepared = self.task.job() if self.prepared is None else self.prepared
        # The server chooses an ID for each run. This one stays the same, so that an unchanged schedule is equal.
        job = msgspec.structs.replace(prepared.new_job, jid=f"schedule-{self.name}"[:_NAME_BYTES])
        return Schedule(name=self.name, job=job, cron=self.times.cron, every_s=self.times.every_s, zone=self.times.zone)


class Scheduler:
    """The decorator that `app.every` and `app.cron` return. It takes a task, a function or a prepared job."""

    def __init__(self, app: App, times: Times, name: str | None) -> None:
        self._app = app
        self._times = times
        self._name = name

    @overload
    def __call__(self, work: PreparedJob[R]) -> PreparedJob[R]: ...
    @overload
    def __call__(self, work: T) -> T: ...
    @overload  # the last one matches a function that returns a coroutine, too
    def __call__(  # type: ignore[overload-overlap]
        self, work: Callable[P, Coroutine[Any, Any, R | Outcome]]
    ) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, work: Callable[P, R | Outcome]) -> SyncTask[P, R]: ...
    def __call__(self, work: Any) -> Any:
        """Raises BadTask if the name is taken, or the task needs arguments and has none."""
        if isinstance(work, PreparedJob):
            self._add(work.task, work)
            return work
        task = work if isinstance(work, Task) else self._app.add(make_task(self._app, work, {}))
        try:
            task.signature.bind((), {})
        except BadArgument as error:
            raise BadTask(f"{error}; schedule the task with its arguments: app.every(…)({task.name}.job(…))") from error
        self._add(task, None)
        return task

    def _add(self, task: Task[..., Any], prepared: PreparedJob[Any] | None) -> None:
        if prepared is not None and (prepared.new_job.at is not None or prepared.new_job.depends_on):
            raise BadTask(f"{task.name}: a scheduled job has no time of its own and no dependencies")
        self._app.add_schedule(
            ScheduledTask(
                name=task.name if self._name is None else self._name, times=self._times, task=task, prepared=prepared
            )
        )
