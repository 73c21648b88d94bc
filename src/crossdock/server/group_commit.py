"""Group commit: the changes of all connections in a few passes of the event loop become one journal entry.

A sync costs as much as a dozen requests. So an entry stays open while each pass of the event loop adds replies to it,
for two milliseconds at most. A reply, even to a read, is sent when its own entry and every entry before it are durable.
Replies are sent at once if there are only soft events, or none, and no entry is being written.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import chain
from typing import Any, Final, NoReturn, Protocol, TypeAlias, TypeVar

from crossdock.engine.decision import Topic
from crossdock.engine.engine import Engine
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Command, Ticked
from crossdock.model.errors import CrossdockError, HalfDone
from crossdock.model.events import SOFT, AnyEvent
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, encode_entry
from crossdock.model.job import LeaseRef
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.channels import Channels
from crossdock.server.admission import Admission
from crossdock.server.clock import Clock, LoopClock
from crossdock.server.endings import endings
from crossdock.server.lease_requests import ASKING, LeaseRequests
from crossdock.server.pending import SliceQueue
from crossdock.server.reply_queue import Outlet
from crossdock.server.timer import Timer
from crossdock.server.waiters import Waiters

T = TypeVar("T")

#: Objects of a flushed state that are freed in one pass, in about 5 ms.
FREE_ITEMS = 2_500

#: Seconds after which an entry is closed, even if connections go on adding to it.
_OPEN_S: Final = 0.002

#: Commands with soft events only that are collected before they are written.
SOFT_AT_MOST: Final = 10_000


#: The outlet, the bytes, and the leases that the reply grants.
Reply = tuple[Outlet, bytes, list[LeaseRef] | None]


#: The bytes of a journal entry, and how many events it holds.
EncodedEntry: TypeAlias = tuple[bytes, int]


class EntryWriter(Protocol):
    def append(self, entry: bytes, durable: Callable[[], None]) -> None: ...


class GroupCommit:
    """The dispatcher of all sessions. `do` executes a command and records its events. `reply` queues a reply, which is
    sent once these events are durable."""

    # As in EngineState: an object without slots keeps only 30 attributes in its fast layout.
    __slots__ = (
        "_awaited_jobs",
        "_awaited_queues",
        "_changes",
        "_counted",
        "_engine",
        "_execute",
        "_freeing",
        "_hard",
        "_in_flight",
        "_journal_writer",
        "_loop",
        "_on_settled",
        "_opened",
        "_replies",
        "_scheduled",
        "_timer",
        "admission",
        "channels",
        "clock",
        "entries",
        "lease_requests",
        "no_room",
        "now",
        "observers",
        "on_failure",
        "publish_events",
        "slices",
        "state",
        "tail_bytes",
        "tail_events",
        "together",
        "waiters",
        "waiting",
        "written_bytes",
    )

    def __init__(
        self,
        engine: Engine,
        journal_writer: EntryWriter,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        admission: Admission,
    ) -> None:
        self._engine = engine
        self._execute = engine.execute
        self._journal_writer = journal_writer
        self.clock = LoopClock(clock, loop, self._begin_pass)
        self._loop = loop
        self.on_failure: Callable[[Exception], None] = lambda error: None
        #: Publishes events on channels. Called only while a client is subscribed
        self.publish_events: Callable[[Dispatcher, Sequence[AnyEvent]], None] = lambda dispatcher, events: None
        #: Called with the events of each commit, by command, and its entries, after its replies were sent
        self.observers: list[Callable[[Sequence[Sequence[AnyEvent]], Sequence[EncodedEntry]], None]] = []
        self._changes: list[Sequence[AnyEvent]] = []  #: the events of each command of the open entry
        self._hard = False  #: the open entry must be written
        self._replies: list[Reply] = []
        self._in_flight = False  #: an entry is being written
        self._scheduled = False
        self._opened = 0.0  #: steady; when the open entry got its first event or reply
        self._counted = 0  #: replies of the open entry in the pass before
        self._freeing = False
        self._on_settled: list[Callable[[], None]] = []
        self.state: EngineState = engine.state
        self.admission = admission
        self.no_room = admission.no_room
        self.now: Now = clock.now()
        self.waiters = Waiters(self._has_work)
        self._awaited_jobs, self._awaited_queues = self.waiters.by_job, self.waiters.by_queue
        self.waiting = self.waiters.tickets
        self.lease_requests = LeaseRequests(self.waiters.by_queue, self.now.steady)
        engine.watch(ASKING, self.lease_requests.note)
        self.together: Callable[[], AbstractContextManager[None]] = self.waiters.held
        self.channels = Channels()
        self.slices = SliceQueue(self.clock)
        self.tail_events = 0  #: since the last snapshot
        self.tail_bytes = 0
        self.written_bytes = 0  #: since this start
        self.entries = 0  #: written since this start
        self._timer = Timer(self, engine, self.clock)

    def _begin_pass(self, now: Now) -> None:
        """Execute what is due before anything else in the pass, even if the event loop's timer is late: no request sees
        a job after its time to live."""
        self.now = now
        timer = self._timer
        if timer.due <= now.steady:
            timer.tick()

    def held_up(self) -> float:
        return self.clock.source.now().steady - self.now.steady

    @property
    def ticked(self) -> Ticked:
        return self._timer.done

    def start_timers(self, journal_end: float) -> None:
        """`journal_end`: steady time of the last entry of the journal."""
        self._timer.start(journal_end)

    def do(self, command: Command[T]) -> T:
        execute = self._execute
        try:
            events, outcome, ready_queues = execute(command, self.now)
        except HalfDone as error:
            self._give_up(error)
            raise
        if events:
            if not self._hard:
                for event in events:
                    if type(event) not in SOFT:
                        self._hard = True
                        break
                else:
                    self._hard = len(self._changes) >= SOFT_AT_MOST
            self._changes.append(events)
            if not self._scheduled:
                self._schedule()
            if self._awaited_jobs:
                self.waiters.notify(endings(events, self._awaited_jobs))
            channels = self.channels
            if channels.by_name or channels.by_pattern:
                self.publish_events(self, events)
        if ready_queues and self._awaited_queues:  # also without events: a lazy deadline has none
            self.waiters.wake(ready_queues)
        return outcome

    def _give_up(self, error: HalfDone) -> None:
        """From now on nothing is decided, written or answered. The next start recovers from disk."""

        def refuse(command: Command[Any], now: Now) -> NoReturn:
            raise CrossdockError(f"stopping: {error}")

        self._execute = refuse
        self._in_flight = True  # for ever: the open entry is not written either
        self._timer.stop()
        self.on_failure(error)

    def _free(self) -> None:
        """Free the objects of a flushed state, a slice in each pass: there may be millions."""
        self._freeing = self.state.free(FREE_ITEMS)
        if self._freeing:
            self._loop.call_soon(self._free)

    def reply(self, outlet: Outlet, data: bytes, leases: list[LeaseRef] | None) -> None:
        self._replies.append((outlet, data, leases))
        if not self._scheduled:
            self._schedule()

    @property
    def open_replies(self) -> int:
        """Replies of the open entry."""
        return len(self._replies)

    def discount(self, before: int) -> None:
        """Do not keep the entry open for replies that were added since there were `before`. They answer a pipeline,
        whose client sends without waiting for replies."""
        self._counted += self.open_replies - before

    def publish(self, channel: bytes, text: bytes, *, to_patterns: bool = True) -> int:
        return self.channels.publish(channel, text, to_patterns=to_patterns)

    def _has_work(self, topic: Topic) -> bool:
        return self._engine.has_work(topic, self.now)

    def _schedule(self) -> None:
        self._scheduled = True
        self._opened = self.now.steady
        if not self._in_flight:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        replies = self._replies
        if self._hard and len(replies) > self._counted and self.now.steady < self._opened + _OPEN_S:
            self._counted = len(replies)
            self._loop.call_soon(self._flush)
            return
        self._scheduled = False
        self._counted = 0
        if self._in_flight:
            return
        self.lease_requests.sort_if_many()
        self._replies = []
        if self._hard:
            self._in_flight = True
            changes, self._changes, self._hard = self._changes, [], False
            try:
                entries = encode_entries(changes, self.now)
            except Exception as error:  # noqa: BLE001 the changes were applied and cannot be written
                self._give_up(HalfDone(f"events cannot be encoded: {error!r}"))
                return
            left = len(entries)
            for entry, events in entries:
                self.entries += 1
                self.tail_events += events
                self.tail_bytes += len(entry)
                self.written_bytes += len(entry)
                left -= 1
                self._journal_writer.append(entry, _not_last if left else partial(self._durable, replies))
            for observe in self.observers:
                observe(changes, entries)
            self._timer.arm()
            if self.state.discarded and not self._freeing:
                self._free()
        else:
            for outlet, data, leases in replies:
                outlet.deliver(data, leases)
            if self._on_settled:
                self._call_settled()

    def _durable(self, replies: list[Reply]) -> None:
        for outlet, data, leases in replies:
            outlet.deliver(data, leases)
        self._in_flight = False
        if self._scheduled:
            # In the next pass, after requests that have arrived meanwhile: more of them share a sync.
            self._loop.call_soon(self._flush)
        elif self._on_settled:
            self._call_settled()

    def _call_settled(self) -> None:
        if not self._in_flight and not self._scheduled:
            waiting, self._on_settled = self._on_settled, []
            for settled in waiting:
                settled()

    def when_settled(self, settled: Callable[[], None]) -> None:
        """Call `settled` once all changes so far are durable and all replies so far were sent."""
        if self._in_flight or self._scheduled:
            self._on_settled.append(settled)
            if not self._scheduled:
                self._schedule()
        else:
            settled()


def _not_last() -> None:
    """Called for a durable entry that another entry of the same commit follows."""


#: Longest journal entry, unless the events of one command are longer. SQLite stores no blob of a gigabyte, and a reader
#: keeps a whole entry in memory.
ENTRY_BYTES: Final = 64 * 1024 * 1024


def encode_entries(changes: Sequence[Sequence[AnyEvent]], now: Now) -> list[EncodedEntry]:
    """Encode the events of all commands as one journal entry, or as several if it would be too long. The events of one
    command stay in one entry, because after a crash the journal may end between two entries."""
    events = list(chain.from_iterable(changes))
    entry = encode_entry(JournalEntry(EVENT_VERSION, now.wall, now.steady, events))
    if len(entry) <= ENTRY_BYTES or len(changes) == 1:
        return [(entry, len(events))]
    half = len(changes) // 2
    return encode_entries(changes[:half], now) + encode_entries(changes[half:], now)
