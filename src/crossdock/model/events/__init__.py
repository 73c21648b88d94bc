"""Events: the journal stores them, `apply` changes the state by them, and the lake writes rows for them.

The modules of this package define the kinds of events by subject. `AnyEvent` lists all kinds that a journal may hold.

An event about a job has everything that its lake row needs, so neither the lake nor the pipeline needs the engine's
state. Events are array-like msgpack. A new field goes to the end and has a default, so an older journal still loads. A
kind of event is never renamed after a release, and its fields never change their meaning or order.
tests/unit/model/test_events.py loads a journal of each version.
"""

from typing import Final

from crossdock.model.events.base import ClosingEvent as ClosingEvent
from crossdock.model.events.base import EndedLease as EndedLease
from crossdock.model.events.base import Event as Event
from crossdock.model.events.base import JobEvent as JobEvent
from crossdock.model.events.base import JobRow as JobRow
from crossdock.model.events.extensions import ExtensionEvent as ExtensionEvent
from crossdock.model.events.jobs import Buried as Buried
from crossdock.model.events.jobs import DependentsPostponed as DependentsPostponed
from crossdock.model.events.jobs import DependentsResolved as DependentsResolved
from crossdock.model.events.jobs import Failed as Failed
from crossdock.model.events.jobs import Leased as Leased
from crossdock.model.events.jobs import LeaseExpired as LeaseExpired
from crossdock.model.events.jobs import Pushed as Pushed
from crossdock.model.events.jobs import Readied as Readied
from crossdock.model.events.jobs import Removed as Removed
from crossdock.model.events.jobs import Renewed as Renewed
from crossdock.model.events.jobs import Rerouted as Rerouted
from crossdock.model.events.jobs import Returned as Returned
from crossdock.model.events.jobs import Scheduled as Scheduled
from crossdock.model.events.jobs import Succeeded as Succeeded
from crossdock.model.events.keyspace import KeyEvent
from crossdock.model.events.qless import Advanced as Advanced
from crossdock.model.events.qless import Configured as Configured
from crossdock.model.events.qless import DependenciesEdited as DependenciesEdited
from crossdock.model.events.qless import Held as Held
from crossdock.model.events.qless import IntervalCleared as IntervalCleared
from crossdock.model.events.qless import IntervalSet as IntervalSet
from crossdock.model.events.qless import Moved as Moved
from crossdock.model.events.qless import Noted as Noted
from crossdock.model.events.qless import Recurred as Recurred
from crossdock.model.events.qless import Reprioritised as Reprioritised
from crossdock.model.events.qless import Revived as Revived
from crossdock.model.events.qless import Stalled as Stalled
from crossdock.model.events.qless import Surfaced as Surfaced
from crossdock.model.events.qless import Tagged as Tagged
from crossdock.model.events.qless import ThrottleFreed as ThrottleFreed
from crossdock.model.events.qless import ThrottleSet as ThrottleSet
from crossdock.model.events.qless import Unheld as Unheld
from crossdock.model.events.qless import Unwatched as Unwatched
from crossdock.model.events.qless import Warned as Warned
from crossdock.model.events.qless import Watched as Watched
from crossdock.model.events.qless import WorkerSeen as WorkerSeen
from crossdock.model.events.qless import WorkersForgotten as WorkersForgotten
from crossdock.model.events.queues import Audited as Audited
from crossdock.model.events.queues import Expired as Expired
from crossdock.model.events.queues import Flushed as Flushed
from crossdock.model.events.queues import NumbersDrawn as NumbersDrawn
from crossdock.model.events.queues import QueueForgotten as QueueForgotten
from crossdock.model.events.queues import QueuePaused as QueuePaused
from crossdock.model.events.queues import QueueResumed as QueueResumed
from crossdock.model.events.queues import QueueSeen as QueueSeen
from crossdock.model.events.queues import Started as Started
from crossdock.model.events.records import BatchCallbackPushed as BatchCallbackPushed
from crossdock.model.events.records import BatchCommitted as BatchCommitted
from crossdock.model.events.records import BatchFinished as BatchFinished
from crossdock.model.events.records import BatchOpened as BatchOpened
from crossdock.model.events.records import JobsLoaded as JobsLoaded
from crossdock.model.events.records import LoadClosed as LoadClosed
from crossdock.model.events.records import LoadEvent
from crossdock.model.events.records import ProgressDated as ProgressDated
from crossdock.model.events.records import ProgressSet as ProgressSet
from crossdock.model.events.records import RateHeld as RateHeld
from crossdock.model.events.records import RatesOpened as RatesOpened
from crossdock.model.events.records import RatesSet as RatesSet
from crossdock.model.events.records import SchedulesSet as SchedulesSet
from crossdock.model.events.records import Spawned as Spawned
from crossdock.model.events.records import ThrottlesSet as ThrottlesSet
from crossdock.model.events.resqu import Reserved as Reserved
from crossdock.model.events.resqu import ResquEvent as ResquEvent
from crossdock.model.events.resqu import Unreserved as Unreserved

AnyEvent = (
    Pushed
    | Leased
    | Succeeded
    | Failed
    | LeaseExpired
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
    | BatchOpened
    | BatchCommitted
    | BatchCallbackPushed
    | BatchFinished
    | ProgressSet
    | Renewed
    | ThrottlesSet
    | SchedulesSet
    | Spawned
    | ProgressDated
    | NumbersDrawn
    | KeyEvent
    | Moved
    | Advanced
    | Revived
    | Stalled
    | Warned
    | Reprioritised
    | Tagged
    | DependenciesEdited
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
    | Audited
    | ExtensionEvent
    | RatesSet
    | RateHeld
    | RatesOpened
)

#: Soft events are written with the next journal entry. No reply waits for them.
SOFT: Final[frozenset[type[Event]]] = frozenset({QueueSeen, WorkerSeen, Reserved, Unreserved})
