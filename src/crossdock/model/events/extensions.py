"""Events of the extensions of the Faktory protocol: remembered pushes, snoozed jobs, outcomes and schedules of apps."""

from crossdock.model.events.base import ClosingEvent, Event
from crossdock.model.records import Schedule


class OnceConfigured(Event, tag="once-configured"):
    """How long jids of pushes with `once` are remembered, and how many."""

    keep_s: float
    at_most: int


class Snoozed(ClosingEvent, tag="snoozed"):
    """A worker put a job off without a failure. The job is scheduled again, and the attempt counts."""

    due: float  #: wall
    reason: str = ""
    leased_via: str = ""  #: as in `Succeeded`
    pushed_at: float | None = None


class OutcomesDated(Event, tag="outcomes-dated"):
    """The steady ends of outcomes that earlier events of the same change wrote."""

    ends: dict[str, float]  #: by jid


class AppSchedulesSet(Event, tag="app-schedules-set"):
    """The schedules of one app, all of them, each with its next run."""

    app: str
    schedules: list[Schedule]


ExtensionEvent = OnceConfigured | Snoozed | OutcomesDated | AppSchedulesSet
