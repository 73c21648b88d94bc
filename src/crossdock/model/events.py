"""Events: what the journal keeps, what `apply` folds, and what the lake shows a row for.

A kind is defined with its like (event_jobs, event_moves, event_queues, event_records, event_resqu, keys, loads) and
listed here, the one list of what a journal may hold. Those of jobs, queues and records are named through this list.

Each event about a job names all that its lake row needs, so neither lake nor stream needs the engine's state. They are
array-like msgpack: a new field goes at the end with a default, and an old journal always loads. A kind of event is
never renamed and its fields never change their meaning or order (tests/unit/test_events.py holds a journal of each
version and loads it).
"""

from typing import Final

import msgspec

from crossdock.model.errors import Newer
from crossdock.model.event import ClosingEvent as ClosingEvent
from crossdock.model.event import Ended as Ended
from crossdock.model.event import Event as Event
from crossdock.model.event import JobEvent as JobEvent
from crossdock.model.event import Row as Row
from crossdock.model.event_jobs import Buried as Buried
from crossdock.model.event_jobs import DependentsPostponed as DependentsPostponed
from crossdock.model.event_jobs import DependentsResolved as DependentsResolved
from crossdock.model.event_jobs import Failed as Failed
from crossdock.model.event_jobs import Lapsed as Lapsed
from crossdock.model.event_jobs import Leased as Leased
from crossdock.model.event_jobs import Pushed as Pushed
from crossdock.model.event_jobs import Readied as Readied
from crossdock.model.event_jobs import Removed as Removed
from crossdock.model.event_jobs import Renewed as Renewed
from crossdock.model.event_jobs import Returned as Returned
from crossdock.model.event_jobs import Scheduled as Scheduled
from crossdock.model.event_jobs import Succeeded as Succeeded
from crossdock.model.event_moves import Advanced as Advanced
from crossdock.model.event_moves import Held as Held
from crossdock.model.event_moves import Moved as Moved
from crossdock.model.event_moves import NeedsEdited as NeedsEdited
from crossdock.model.event_moves import Noted as Noted
from crossdock.model.event_moves import Reprioritised as Reprioritised
from crossdock.model.event_moves import Rerouted as Rerouted
from crossdock.model.event_moves import Revived as Revived
from crossdock.model.event_moves import Stalled as Stalled
from crossdock.model.event_moves import Surfaced as Surfaced
from crossdock.model.event_moves import Tagged as Tagged
from crossdock.model.event_moves import Warned as Warned
from crossdock.model.event_queues import Expired as Expired
from crossdock.model.event_queues import Flushed as Flushed
from crossdock.model.event_queues import NumbersDrawn as NumbersDrawn
from crossdock.model.event_queues import QueueForgotten as QueueForgotten
from crossdock.model.event_queues import QueuePaused as QueuePaused
from crossdock.model.event_queues import QueueResumed as QueueResumed
from crossdock.model.event_queues import QueueSeen as QueueSeen
from crossdock.model.event_queues import Started as Started
from crossdock.model.event_records import Configured as Configured
from crossdock.model.event_records import GroupCalled as GroupCalled
from crossdock.model.event_records import GroupCommitted as GroupCommitted
from crossdock.model.event_records import GroupFinished as GroupFinished
from crossdock.model.event_records import GroupOpened as GroupOpened
from crossdock.model.event_records import IntervalCleared as IntervalCleared
from crossdock.model.event_records import IntervalSet as IntervalSet
from crossdock.model.event_records import Recurred as Recurred
from crossdock.model.event_records import RecurrencesSet as RecurrencesSet
from crossdock.model.event_records import Spawned as Spawned
from crossdock.model.event_records import ThrottleFreed as ThrottleFreed
from crossdock.model.event_records import ThrottleSet as ThrottleSet
from crossdock.model.event_records import ThrottlesSet as ThrottlesSet
from crossdock.model.event_records import Tracked as Tracked
from crossdock.model.event_records import TracksDated as TracksDated
from crossdock.model.event_records import Unheld as Unheld
from crossdock.model.event_records import Unwatched as Unwatched
from crossdock.model.event_records import Watched as Watched
from crossdock.model.event_records import WorkerSeen as WorkerSeen
from crossdock.model.event_records import WorkersForgotten as WorkersForgotten
from crossdock.model.event_resqu import Reserved as Reserved
from crossdock.model.event_resqu import ResquEvent as ResquEvent
from crossdock.model.event_resqu import Unreserved as Unreserved
from crossdock.model.keys import KeyEvent
from crossdock.model.loads import JobsLoaded as JobsLoaded
from crossdock.model.loads import LoadClosed as LoadClosed
from crossdock.model.loads import LoadEvent

#: Written into each batch and snapshot; a reader refuses a newer one.
EVENT_VERSION: Final = 1


AnyEvent = (
    Pushed
    | Leased
    | Succeeded
    | Failed
    | Lapsed
    | Returned
    | Readied
    | Scheduled
    | Buried
    | Removed
    | QueueSeen
    | QueuePaused
    | QueueResumed
    | QueueForgotten
    | Flushed
    | Started
    | Expired
    | GroupOpened
    | GroupCommitted
    | GroupCalled
    | GroupFinished
    | Tracked
    | Renewed
    | ThrottlesSet
    | RecurrencesSet
    | Spawned
    | TracksDated
    | NumbersDrawn
    | KeyEvent
    | Moved
    | Advanced
    | Revived
    | Stalled
    | Warned
    | Reprioritised
    | Tagged
    | NeedsEdited
    | Noted
    | Configured
    | Watched
    | Unwatched
    | WorkerSeen
    | WorkersForgotten
    | IntervalSet
    | IntervalCleared
    | Recurred
    | Held
    | ThrottleSet
    | ThrottleFreed
    | Unheld
    | Surfaced
    | ResquEvent
    | LoadEvent
    | Rerouted
    | DependentsPostponed
    | DependentsResolved
)

#: Soft events are written with the next batch; no reply waits for them.
SOFT: Final[frozenset[type[Event]]] = frozenset({QueueSeen, WorkerSeen, Reserved, Unreserved})


class Batch(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One turn of the server, one row of the journal."""

    version: int
    wall: float
    steady: float  #: so that steady time goes on over a restart
    events: list[AnyEvent]


encode_batch = msgspec.msgpack.Encoder().encode
decode_batch = msgspec.msgpack.Decoder(Batch).decode


class _Versioned(msgspec.Struct, array_like=True):
    """The beginning of a batch, of whatever version."""

    version: int


_begin = msgspec.msgpack.Decoder(_Versioned).decode


def refuse_newer_batch(seq: int, batch: bytes, by: str = "") -> None:
    """Raises Newer. Bytes that are no batch at all pass: decoding them says what is wrong."""
    try:
        version = _begin(batch).version
    except msgspec.MsgspecError:
        return
    if version > EVENT_VERSION:
        raise Newer(f"batch {seq}, of event version", version, EVENT_VERSION, by)
