"""Events of bulk loads."""

from crossdock.model.events.base import Event
from crossdock.model.job import Number


class JobsLoaded(Event, tag="jobs-loaded"):
    """A run brought jobs: those numbered from `number` on were new (the event before this one has them)."""

    run: str
    number: Number
    new: int
    known: int
    end: float  #: steady
    once: bool = False


class LoadClosed(Event, tag="load-closed"):
    run: str
    idle: bool = False  #: nobody closed it: nothing came for long


LoadEvent = JobsLoaded | LoadClosed
