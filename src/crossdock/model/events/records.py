"""Events of records beside the job: groups, tracks, throttles, recurrences; and what callers keep: settings, watched
jobs, workers heard of, jobs at intervals."""

from crossdock.model.events.base import Event
from crossdock.model.job import Callback, Number, Spec
from crossdock.model.records import Per, Schedule


class BatchOpened(Event, tag="group-opened"):
    name: str
    via: str
    parent: str
    description: str
    complete: Spec | None
    success: Spec | None
    end: float  #: steady


class BatchCommitted(Event, tag="group-committed"):
    name: str
    end: float


class BatchCallbackPushed(Event, tag="group-called"):
    """A callback of a group was pushed."""

    name: str
    via: str
    call: Callback
    number: Number
    spec: Spec


class BatchFinished(Event, tag="group-finished"):
    """A group with its callbacks and children is all executed, or all succeeded; its parent may go on."""

    name: str
    call: Callback
    end: float  #: steady; kept until then for those who ask


class ProgressSet(Event, tag="tracked"):
    """Somebody said how far a job is."""

    jid: str
    percent: int | None
    text: str | None


class ProgressDated(Event, tag="tracks-dated"):
    """Tracks that the events before it changed, by a clock that does not jump: each is kept until `end`."""

    jids: list[str]
    end: float  #: steady


class ThrottlesSet(Event, tag="throttles-set"):
    """The throttles of the configuration, all of them."""

    throttles: list[tuple[str, int, Per, float]]


class SchedulesSet(Event, tag="recurrences-set"):
    """The recurrences of the configuration, all of them, each with its next run."""

    schedules: list[Schedule]


class Spawned(Event, tag="spawned"):
    """A recurrence was due: its job was pushed as `number` (0: it was not, another holds its lock); `next` follows."""

    name: str
    via: str
    number: Number
    spec: Spec
    next: float
