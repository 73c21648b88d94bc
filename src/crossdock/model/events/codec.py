"""Encodes and decodes journal entries: the events of one group commit, as msgpack."""

import zlib
from typing import Final

import msgspec

from crossdock.model.errors import Newer
from crossdock.model.events import AnyEvent
from crossdock.model.events.base import ClosingEvent as ClosingEvent
from crossdock.model.events.base import EndedLease as EndedLease
from crossdock.model.events.base import Event as Event
from crossdock.model.events.base import JobEvent as JobEvent
from crossdock.model.events.base import JobRow as JobRow
from crossdock.model.events.bulk import JobsLoaded as JobsLoaded
from crossdock.model.events.bulk import LoadClosed as LoadClosed
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
from crossdock.model.events.records import ProgressDated as ProgressDated
from crossdock.model.events.records import ProgressSet as ProgressSet
from crossdock.model.events.records import SchedulesSet as SchedulesSet
from crossdock.model.events.records import Spawned as Spawned
from crossdock.model.events.records import ThrottlesSet as ThrottlesSet
from crossdock.model.events.resqu import Reserved as Reserved
from crossdock.model.events.resqu import ResquEvent as ResquEvent
from crossdock.model.events.resqu import Unreserved as Unreserved

#: Written into each entry and snapshot; a reader refuses a newer one.
EVENT_VERSION: Final = 1


class JournalEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The events of one group commit: one row of the journal."""

    version: int
    wall: float
    steady: float  #: so that steady time goes on over a restart
    events: list[AnyEvent]


encode_entry = msgspec.msgpack.Encoder().encode


decode_entry = msgspec.msgpack.Decoder(JournalEntry).decode


class _Versioned(msgspec.Struct, array_like=True):
    """The beginning of an entry, of whatever version."""

    version: int


_begin = msgspec.msgpack.Decoder(_Versioned).decode


def refuse_newer_entry(seq: int, entry: bytes, by: str = "") -> None:
    """Raises Newer. Bytes that are no entry at all pass: decoding them says what is wrong."""
    try:
        version = _begin(entry).version
    except msgspec.MsgspecError:
        return
    if version > EVENT_VERSION:
        raise Newer(f"batch {seq}, of event version", version, EVENT_VERSION, by)


def entry_checksum(seq: int, entry: bytes) -> int:
    """CRC-32 over the entry and its number, stored beside it."""
    return zlib.crc32(entry, seq & 0xFFFFFFFF)
