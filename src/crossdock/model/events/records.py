"""Events of records beside the job: batches, progress, throttles, rate limits, schedules and bulk loads."""

import msgspec

from crossdock.model.events.base import Event, JobRow
from crossdock.model.job import Callback, Number, Spec
from crossdock.model.records import Per, RateSpec, Schedule


class BatchOpened(Event, tag="batch-opened"):
    name: str
    via: str
    parent: str
    description: str
    complete: Spec | None
    success: Spec | None
    end: float  #: steady


class BatchCommitted(Event, tag="batch-committed"):
    name: str
    end: float


class BatchCallbackPushed(Event, tag="batch-callback-pushed"):
    """A callback of a batch was pushed."""

    name: str
    via: str
    call: Callback
    number: Number
    spec: Spec


class BatchFinished(Event, tag="batch-finished"):
    """All jobs of a batch are executed or have succeeded, with callbacks and children. Its parent may continue."""

    name: str
    call: Callback
    end: float  #: steady; the batch can be read until then


class ProgressSet(Event, tag="progress-set"):
    """A worker reported the progress of a job."""

    jid: str
    percent: int | None
    text: str | None


class ProgressDated(Event, tag="progress-dated"):
    """The steady end of progress that earlier events of the same change wrote."""

    jids: list[str]
    end: float  #: steady


class ThrottlesSet(Event, tag="throttles-set"):
    """The configured throttles, all of them."""

    throttles: list[tuple[str, int, Per, float]]


class RatesSet(Event, tag="rates-set"):
    """The rate limits of one source, all of them."""

    source: str
    steady: float
    rates: list[RateSpec]


class RateHeld(Event, tag="rate-held"):
    """Ready jobs of a queue found their rate limits used up when they were to be leased, and are held."""

    via: str
    queue: str
    steady: float
    rows: list[JobRow]
    rates: list[str]  #: one per row: the key of the limit
    #: keys of limits that keep the next job of a batch in the queue. That job keeps its place
    lanes: list[str] = msgspec.field(default_factory=list)


class RatesOpened(Event, tag="rates-opened"):
    """Rate limits have tokens again, or do not exist any more. The first jobs that they hold are ready, in their old
    places.
    """

    steady: float
    opened: list[tuple[str, str]]  #: key and queue
    rows: list[JobRow]
    rates: list[str]  #: one per row: the key of the limit


class SchedulesSet(Event, tag="schedules-set"):
    """The configured schedules, all of them, each with its next run."""

    schedules: list[Schedule]


class Spawned(Event, tag="spawned"):
    """A schedule was due. Its job was pushed as `number` (0: it was not, because another job holds its lock). `next` is
    the next run.
    """

    name: str
    via: str
    number: Number
    spec: Spec
    next: float


class JobsLoaded(Event, tag="jobs-loaded"):
    """A call of a bulk load. The event before this one pushed the new jobs, numbered from `number` on."""

    run: str
    number: Number
    new: int
    known: int
    end: float  #: steady
    once: bool = False


class LoadClosed(Event, tag="load-closed"):
    run: str
    idle: bool = False  #: it was closed because no call came for long


LoadEvent = JobsLoaded | LoadClosed
