"""The job that is being executed: its data, its progress, and whether its lease is still held.

A worker makes a `JobContext` for each job and passes it to `execute`. A task reads it through the functions of this
module. They use context variables, so they work in threads and in asyncio tasks alike. A thread that a task starts does
not inherit them; start it with `contextvars.copy_context().run`.
"""

import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from crossdock.app.errors import NoCurrentJob
from crossdock.app.foreign import environment_of, include_path_of
from crossdock.client.jobs import FetchedJob

_TEXT_CHARS: Final = 1_000


class JobInterrupted(BaseException):
    """Base of what a worker raises inside a task to stop it: a timeout, a lost lease, a shutdown.

    `execute` lets it pass, so the worker that raised it can settle the job.
    """


def _ignored(percent: int, text: str) -> None:
    """For contexts whose progress is not reported."""


class JobContext:
    """A job under execution. The worker makes it; a task gets it by `current_job()`."""

    __slots__ = ("_report", "ended_by", "job", "lease_lost")

    def __init__(
        self,
        job: FetchedJob,
        *,
        report: Callable[[int, str], None] = _ignored,
        lease_lost: threading.Event | None = None,
    ) -> None:
        """`report` sends progress, in percent. It must not block for long. `lease_lost` is set by the worker."""
        self.job: Final = job
        self._report = report
        self.lease_lost: Final = threading.Event() if lease_lost is None else lease_lost
        #: What the task raised, or the outcome that it returned or raised; None: it returned a result
        self.ended_by: BaseException | None = None

    @property
    def id(self) -> str:
        return self.job.jid

    @property
    def kind(self) -> str:
        return self.job.kind

    @property
    def queue(self) -> str:
        return self.job.queue

    @property
    def attempt(self) -> int:
        """Number of the lease, starting at 1."""
        return self.job.attempt

    @property
    def origin(self) -> str:
        """The protocol that the job was pushed through: faktory, workq, masenko, qless or resqu."""
        return self.job.origin

    @property
    def tags(self) -> tuple[str, ...]:
        return self.job.tags

    @property
    def batch(self) -> str:
        """ID of the batch that the job belongs to, or an empty text."""
        return self.job.batch

    @property
    def custom(self) -> Mapping[str, Any]:
        """What the client put beside the arguments."""
        return self.job.custom

    @property
    def environment(self) -> Mapping[str, Any]:
        """The `environment` of a Resqu job, as data. The worker does not change its own environment."""
        return environment_of(self.job)

    @property
    def include_path(self) -> str:
        """The `includePath` of a Resqu job, or an empty text. It selects a registered bundle and is never opened."""
        return include_path_of(self.job)

    def progress(self, part: float, text: str = "") -> None:
        """Report how far the job is: `part` from 0 to 1. Values outside are cut."""
        if math.isnan(part):
            raise ValueError("progress is a number from 0 to 1, not nan")
        self._report(round(100 * min(1.0, max(0.0, part))), text[:_TEXT_CHARS])


_current: Final[ContextVar[JobContext]] = ContextVar("crossdock_job")
_never_lost: Final = threading.Event()


@contextmanager
def entered(context: JobContext) -> Iterator[None]:
    """Make it the current job while the block runs."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def current_job() -> JobContext:
    """The job that is being executed. Raises NoCurrentJob outside of a job, for example in a plain call of a task."""
    try:
        return _current.get()
    except LookupError:
        raise NoCurrentJob(
            "no job is being executed here; current_job() works in tasks that a worker runs, not in plain calls"
        ) from None


def progress(part: float, text: str = "") -> None:
    """Report how far the current job is: `part` from 0 to 1, and a text. Outside of a job it does nothing."""
    context = _current.get(None)
    if context is not None:
        context.progress(part, text)


def lease_lost() -> threading.Event:
    """An event that is set when the worker no longer holds the current job: it was cancelled or its lease expired.

    Another worker may execute the job then. A long task checks `lease_lost().is_set()` and stops. Outside of a job the
    event is never set.
    """
    context = _current.get(None)
    return _never_lost if context is None else context.lease_lost


class JobFilter(logging.Filter):
    """Adds `jid` and `kind` of the current job to log records; both are empty outside of a job."""

    def filter(self, record: logging.LogRecord) -> bool:
        context = _current.get(None)
        record.jid = "" if context is None else context.id
        record.kind = "" if context is None else context.kind
        if context is not None:  # Crossdock's own log formats show `fields`
            record.fields = {"jid": context.id, "kind": context.kind} | getattr(record, "fields", {})
        return True


#: A logger for tasks. Its records have `jid` and `kind`.
logger: Final = logging.getLogger("crossdock.task")
logger.addFilter(JobFilter())
