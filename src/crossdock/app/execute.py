"""Execution of one job: from the job that a worker has fetched to what it reports to the server.

No exception of a task leaves these functions, not even `SystemExit`. `KeyboardInterrupt`, `JobInterrupted` and the
cancellation of the asyncio task do, because they come from the worker.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from concurrent.futures import Executor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from crossdock.app.context import JobContext, JobInterrupted, current_job, entered
from crossdock.app.errors import AppError, BadArgument, BadResult
from crossdock.app.failures import backtrace_of, message_of, type_of
from crossdock.app.foreign import arguments_of, is_raw, raw_bytes
from crossdock.app.handle import CANCELLED
from crossdock.app.outcomes import Cancel, OutcomeBase, Reschedule, Retry, Snooze
from crossdock.app.reschedule import rescheduled
from crossdock.app.tracing import continued
from crossdock.client.jobs import FetchedJob, NewJob

if TYPE_CHECKING:
    from crossdock.app.app import App
    from crossdock.app.task import Task


class Ack(msgspec.Struct, frozen=True, kw_only=True):
    """The job has succeeded."""

    result: bytes | None = None  #: JSON; None: the server does not keep it
    push: tuple[NewJob, ...] = ()  #: to push before the job is settled


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """This try has failed."""

    type: str
    message: str
    backtrace: tuple[str, ...] = ()
    final: bool = False  #: there are no more tries
    delay_s: float | None = None  #: until the next try; None: the server's backoff
    push: tuple[NewJob, ...] = ()  #: to push before the job is settled


class Snoozed(msgspec.Struct, frozen=True, kw_only=True):
    """The job is to be executed later. It is not a failure."""

    delay_s: float
    reason: str = ""
    push: tuple[NewJob, ...] = ()  #: always empty


#: What the worker reports. It pushes the jobs of `push` first, with `once`: a repeated execution makes the same IDs.
Settlement: TypeAlias = Ack | Failed | Snoozed


def execute(app: App, job: FetchedJob, context: JobContext) -> Settlement:
    """Execute a job in this thread. The coroutine of an `async def` task gets an event loop of its own."""
    with entered(context), continued(job.custom):
        return _run(app, job)


async def execute_async(app: App, job: FetchedJob, context: JobContext, executor: Executor | None = None) -> Settlement:
    """Execute a job in this event loop. A `def` task runs in a thread of the executor, where it blocks no other job."""
    with entered(context), continued(job.custom):
        try:
            if not app.task_of(job).is_async:
                # Exceptions are turned into a settlement in the thread, since a future cannot hold all of them.
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(executor, copy_context().run, _run, app, job)
            task, args, kwargs = _prepare(app, job)
            return _settle(app, task, job, await task.function(*args, **kwargs))
        except asyncio.CancelledError as error:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            return _ended(app, job, error)
        except BaseException as error:  # noqa: BLE001 - a task may raise SystemExit
            return _ended(app, job, error)


def _run(app: App, job: FetchedJob) -> Settlement:
    try:
        task, args, kwargs = _prepare(app, job)
        result = task.function(*args, **kwargs)
        if inspect.isawaitable(result):
            result = asyncio.run(_awaited(result))
        return _settle(app, task, job, result)
    except BaseException as error:  # noqa: BLE001 - a task may raise SystemExit
        return _ended(app, job, error)


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result


def _prepare(app: App, job: FetchedJob) -> tuple[Task[..., Any], list[Any], dict[str, Any]]:
    """The task of a job and its arguments. Raises AppError, or what the setup of a bundle raises."""
    task = app.task_of(job)
    try:
        args, kwargs = arguments_of(job, unpack=task.settings.unpack)
    except msgspec.DecodeError as error:
        raise BadArgument(f"{task.name}: the arguments are not a JSON array: {error}") from error
    decoded = task.signature.decode(args, kwargs, raw=raw_bytes if is_raw(job) else None)
    bundle = app.bundle_of(job)
    if bundle is not None and bundle.setup is not None:
        bundle.setup()
    return task, *decoded


def _settle(app: App, task: Task[..., Any], job: FetchedJob, result: Any) -> Settlement:
    """Raises BadResult or BadArgument."""
    if isinstance(result, type) and issubclass(result, OutcomeBase):
        raise BadResult(f"{task.name}: it returned the class {result.__name__}; return {result.__name__}(…)")
    if isinstance(result, OutcomeBase):
        return _outcome(app, task, job, result)
    return Ack(result=task.signature.encode_result(result) if job.keep_result else None)


def _outcome(app: App, task: Task[..., Any], job: FetchedJob, outcome: OutcomeBase) -> Settlement:
    current_job().ended_by = outcome
    why = message_of(outcome) if outcome.why else ""
    match outcome:
        case Retry():
            return Failed(type="Retry", message=why or "the task asked for a retry", delay_s=outcome.delay_s)
        case Snooze():
            return Snoozed(delay_s=outcome.delay_s, reason=why)
        case Reschedule():
            new = rescheduled(app, task, job, outcome)
            if not outcome.as_failure:
                return Ack(push=(new,))
            message = why or f"rescheduled as job {new.jid}"
            return Failed(type="Rescheduled", message=message, final=True, push=(new,))
        case Cancel():
            return Failed(type=CANCELLED, message=why, final=True)
        case _:
            raise BadResult(f"{task.name}: {type(outcome).__name__} is not an outcome")


def _ended(app: App, job: FetchedJob, error: BaseException) -> Settlement:
    """What an exception means for the job. Raises it again if it comes from the worker."""
    if _is_for_the_worker(error):
        raise error
    try:
        if isinstance(error, OutcomeBase):
            return _outcome(app, app.task_of(job), job, error)
    except Exception as failure:  # noqa: BLE001 - of the arguments of a rescheduled job
        error = failure
    current_job().ended_by = error
    ours = isinstance(error, AppError)  # its frames are ours, but its cause may come from the task's types
    return Failed(
        type=type(error).__name__ if ours else type_of(error),
        message=message_of(error),
        backtrace=backtrace_of(error.__cause__ if ours else error),
        # The task is not executed 25 times for a result that cannot be encoded.
        final=isinstance(error, BadResult),
    )


def _is_for_the_worker(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup((KeyboardInterrupt, JobInterrupted)) is not None
    return isinstance(error, (KeyboardInterrupt, JobInterrupted))
