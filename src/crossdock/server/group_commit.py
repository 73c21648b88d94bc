"""The turn: group commit. What all connections ask for until none of them asks for more becomes one row of the journal.

A sync costs as much as a dozen requests, so a batch stays open while each pass of the event loop brings more of them,
for two milliseconds at most. A reply, of a read too, leaves when its own batch and every batch before it are durable. A
turn without hard events while nothing is in flight leaves at once."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any, Final, NoReturn, Protocol, TypeAlias, TypeVar

from crossdock.engine.decision import Topic
from crossdock.engine.engine import Engine
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Command, Ticked
from crossdock.model.errors import CrossdockError, HalfDone
from crossdock.model.events import SOFT, AnyEvent, Buried, Failed, Flushed, Removed, Succeeded
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, encode_entry
from crossdock.model.job import LeaseRef, Number
from crossdock.model.states import State
from crossdock.protocols.base import Dispatcher, JobResult
from crossdock.protocols.channels import Channels
from crossdock.server.admission import Admission
from crossdock.server.clock import Clock, LoopClock
from crossdock.server.pending import SliceQueue
from crossdock.server.reply_queue import Outlet
from crossdock.server.timer import Timer
from crossdock.server.waiters import Waiters

T = TypeVar("T")

#: Objects of a flushed state freed in one go, about 5 ms.
FREE_ITEMS = 2_500

#: After so long a batch is closed, even if others have something to add.
_OPEN_S: Final = 0.002

#: Commands of which nothing but soft events came. So many are written though nobody waits for them.
SOFT_AT_MOST: Final = 10_000


#: Where it goes, what it says, and the leases only it tells of.
Reply = tuple[Outlet, bytes, list[LeaseRef] | None]


class EntryWriter(Protocol):
    def append(self, batch: bytes, durable: Callable[[], None]) -> None: ...


class GroupCommit:
    """The desk of all sessions: `do` carries out and records, `reply` queues what may be said once it is durable."""

    # As in Memory: too many for an object without them.
    __slots__ = (
        "_carry_out",
        "_changes",
        "_engine",
        "_freeing",
        "_hard",
        "_idle",
        "_in_flight",
        "_journal_writer",
        "_loop",
        "_opened",
        "_replies",
        "_scheduled",
        "_seen",
        "_ticker",
        "admission",
        "batches",
        "channels",
        "clock",
        "herald",
        "no_room",
        "now",
        "on_failure",
        "slices",
        "state",
        "tail_bytes",
        "tail_events",
        "together",
        "waiting",
        "waits",
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
        self._carry_out = engine.execute
        self._journal_writer = journal_writer
        self.clock = LoopClock(clock, loop, self._begin_pass)
        self._loop = loop
        self.on_failure: Callable[[Exception], None] = lambda error: None
        #: Publishes what events mean to those who subscribed; asked only while somebody did
        self.herald: Callable[[Dispatcher, Sequence[AnyEvent]], None] = lambda dispatcher, events: None
        self._changes: list[Sequence[AnyEvent]] = []  #: of each command
        self._hard = False
        self._replies: list[Reply] = []
        self._in_flight = False
        self._scheduled = False
        self._opened = 0.0  #: steady; when the first came into the batch that fills
        self._seen = 0  #: replies that were there when it was last asked whether to close it
        self._freeing = False
        self._idle: list[Callable[[], None]] = []
        self.state: EngineState = engine.state
        self.admission = admission
        self.no_room = admission.no_room
        self.now: Now = clock.now()
        self.waits = Waiters(self._has_work)
        self.waiting = self.waits.tickets
        self.together: Callable[[], AbstractContextManager[None]] = self.waits.held
        self.channels = Channels()
        self.slices = SliceQueue(self.clock)  #: of long answers
        self.tail_events = 0  #: since the last snapshot
        self.tail_bytes = 0
        self.written_bytes = 0  #: since this start
        self.batches = 0
        self._ticker = Timer(self, engine, self.clock)

    def _begin_pass(self, now: Now) -> None:
        """What is due is executed before anything else in the pass, even if the timer is late: no request sees a job
        after its time to live."""
        self.now = now
        ticker = self._ticker
        if ticker.due <= now.steady:
            ticker.tick()

    def held_up(self) -> float:
        return self.clock.source.now().steady - self.now.steady

    @property
    def ticked(self) -> Ticked:
        return self._ticker.done

    def start_timers(self, looked: float) -> None:
        """`looked`: steady; when the journal ended."""
        self._ticker.begin(looked)

    def do(self, command: Command[T]) -> T:
        execute = self._carry_out
        try:
            events, outcome, ready_queues = execute(command, self.now)
        except HalfDone as error:
            self._give_up(error)
            raise
        waits = self.waits
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
            if waits.by_job:
                waits.tell(endings(events, waits.by_job))
            channels = self.channels
            if channels.by_name or channels.by_pattern:
                self.herald(self, events)
        if ready_queues and waits.by_queue:  # of a lazy deadline there is no event
            waits.wake(ready_queues)
        return outcome

    def _give_up(self, error: HalfDone) -> None:
        """From now on nothing is decided, written or answered: the next start recovers from disk."""

        def refuse(command: Command[Any], now: Now) -> NoReturn:
            raise CrossdockError(f"stopping: {error}")

        self._carry_out = refuse
        self._in_flight = True  # for ever: what was decided in this turn is not written either
        self._ticker.stop()
        self.on_failure(error)

    def _free(self) -> None:
        """A FLUSH left millions of objects; they go a slice at a time."""
        self._freeing = self.state.free(FREE_ITEMS)
        if self._freeing:
            self._loop.call_soon(self._free)

    def reply(self, outlet: Outlet, data: bytes, granted: list[LeaseRef] | None) -> None:
        self._replies.append((outlet, data, granted))
        if not self._scheduled:
            self._schedule()

    @property
    def held(self) -> int:
        """Replies in the batch that fills."""
        return len(self._replies)

    def overlook(self, before: int) -> None:
        """What came in since there were so many is of one who sends without waiting: for that no batch stays open."""
        self._seen += self.held - before

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
        if self._hard and len(replies) > self._seen and self.now.steady < self._opened + _OPEN_S:
            self._seen = len(replies)
            self._loop.call_soon(self._flush)
            return
        self._scheduled = False
        self._seen = 0
        if self._in_flight:
            return
        self._replies = []
        if self._hard:
            self._in_flight = True
            changes, self._changes, self._hard = self._changes, [], False
            try:
                written = encode_entries(changes, self.now)
            except Exception as error:  # noqa: BLE001 it was applied, and cannot be written
                self._give_up(HalfDone(f"what was decided cannot be written: {error!r}"))
                return
            left = len(written)
            for row, events in written:
                self.batches += 1
                self.tail_events += events
                self.tail_bytes += len(row)
                self.written_bytes += len(row)
                left -= 1
                self._journal_writer.append(row, _not_last if left else lambda: self._durable(replies))
            self._ticker.arm()
            if self.state.discarded and not self._freeing:
                self._free()
        else:
            _release(replies)
            if self._idle:
                self._tell_settled()

    def _durable(self, replies: list[Reply]) -> None:
        _release(replies)
        self._in_flight = False
        if self._scheduled:
            # After what has arrived meanwhile: a fuller batch, and one sync less.
            self._loop.call_soon(self._flush)
        elif self._idle:
            self._tell_settled()

    def _tell_settled(self) -> None:
        if not self._in_flight and not self._scheduled:
            waiting, self._idle = self._idle, []
            for settled in waiting:
                settled()

    def when_settled(self, settled: Callable[[], None]) -> None:
        """Call back once everything said so far is durable and released."""
        if self._in_flight or self._scheduled:
            self._idle.append(settled)
            if not self._scheduled:
                self._schedule()
        else:
            settled()


def _not_last() -> None:
    """Durable, but another entry of the same commit follows."""


def _release(replies: list[Reply]) -> None:
    for outlet, data, granted in replies:
        outlet.deliver(data, granted)


_ENDS = frozenset({State.FAILED, State.DEAD, State.GONE})

GONE = JobResult(settled=False, ok=False, body=b"")
LAPSED = JobResult(settled=False, ok=False, body=b"", lapsed=True)


def endings(events: Iterable[AnyEvent], waited_for: Collection[Number]) -> Iterator[tuple[Number, JobResult]]:
    """The results of the jobs that are waited for, in the order they ended. A job may be gone by the time its result is
    sent."""
    for event in events:
        if isinstance(event, Succeeded):
            if event.number in waited_for:
                yield event.number, JobResult(settled=True, ok=True, body=event.result)
        elif isinstance(event, Failed):
            if event.number in waited_for and event.then in _ENDS:
                yield event.number, JobResult(settled=True, ok=False, body=event.body)
        elif isinstance(event, Removed):
            how = LAPSED if event.why == "lapsed" else GONE
            yield from ((row.number, how) for row in event.rows if row.number in waited_for)
        elif isinstance(event, Buried):  # by an operator: to whoever waits it has failed
            buried = JobResult(settled=True, ok=False, body=b"")
            yield from ((row.number, buried) for row in event.rows if row.number in waited_for)
        elif isinstance(event, Flushed):
            yield from ((number, GONE) for number in waited_for)


#: A journal entry is not longer, unless one command makes it so. SQLite takes no blob of a gigabyte, and a reader has a
#: whole entry in memory.
ENTRY_BYTES: Final = 64 * 1024 * 1024

#: The bytes of a journal entry, and how many events it holds.
EncodedEntry: TypeAlias = tuple[bytes, int]


def encode_entries(changes: Sequence[Sequence[AnyEvent]], now: Now) -> list[EncodedEntry]:
    """The events of each command as one journal entry, or several if that would be too long. A command's events stay
    together, because a restart may find the first of two entries alone."""
    events = list(chain.from_iterable(changes))
    row = encode_entry(JournalEntry(EVENT_VERSION, now.wall, now.steady, events))
    if len(row) <= ENTRY_BYTES or len(changes) == 1:
        return [(row, len(events))]
    half = len(changes) // 2
    return encode_entries(changes[:half], now) + encode_entries(changes[half:], now)
