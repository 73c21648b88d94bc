"""Counts the events of journal entries, after their replies were sent.

A commit is only collected here. A thousand events are counted together, kind by kind: the loops over the frequent kinds
run in C.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, compress, repeat
from operator import attrgetter, is_
from typing import Any, Final

from crossdock.model import events as e
from crossdock.model.events import AnyEvent, Event, Leased, Pushed, Succeeded
from crossdock.model.events.resqu import Rescheduled, ResquBatchPushed
from crossdock.model.states import State
from crossdock.server.activity import DEAD, EXPIRED, FAILED, PROCESSED, RETRIED, Activity
from crossdock.server.histogram import BYTES, COUNTS, Histogram

#: Events that are collected before they are counted, and the bytes of their entries. Collected events stay in memory.
ADD_AT: Final = 1_000
ADD_AT_BYTES: Final = 1024 * 1024

_queue = attrgetter("queue")
_queue_and_wait = attrgetter("queue", "wait_s")
_queue_and_run = attrgetter("queue", "run_s")
_specs = attrgetter("specs")
_token = attrgetter("token")


class EventCounter:
    def __init__(self) -> None:
        self.activity = Activity()
        self.entry_bytes = Histogram(BYTES)
        self.entry_events = Histogram(COUNTS)
        self._changes: list[Sequence[AnyEvent]] = []  #: the events of each command that is not counted yet
        self._sizes: list[int] = []
        self._lengths: list[int] = []
        self._events = 0
        self._bytes = 0
        self._pushed: list[str] = []  #: the queue of each job
        self._waits: list[tuple[str, float]] = []
        self._runs: list[tuple[str, float]] = []

    def observe(self, changes: Sequence[Sequence[AnyEvent]], entries: Sequence[tuple[bytes, int]]) -> None:
        """The events of each command, and the entries in which they were written: their bytes and how many events each
        holds."""
        self._changes.extend(changes)
        for entry, events in entries:
            self._sizes.append(len(entry))
            self._lengths.append(events)
            self._events += events
            self._bytes += len(entry)
        if self._events >= ADD_AT or self._bytes >= ADD_AT_BYTES:
            self.add_collected()

    def add_collected(self) -> None:
        """Called every second too, and before the figures are read."""
        if not self._changes:
            return
        self._sort()
        self._changes.clear()
        self._events = self._bytes = 0
        if self._pushed:
            self.activity.add_pushed(Counter(self._pushed))
            self._pushed.clear()
        if self._waits:
            self.activity.add_waits(_by_queue(self._waits))
            self._waits.clear()
        if self._runs:
            self.activity.add_runs(_by_queue(self._runs))
            self._runs.clear()
        self.entry_bytes.add(self._sizes)
        self._sizes.clear()
        self.entry_events.add(self._lengths)
        self._lengths.clear()

    def _sort(self) -> None:
        events = list(chain.from_iterable(self._changes))
        kinds = list(map(type, events))
        for kind in set(kinds):
            if kind in _MANY:
                _MANY[kind](self, _of_kind(events, kinds, kind))
            elif kind in _ONE:
                count = _ONE[kind]
                for event in _of_kind(events, kinds, kind):
                    count(self, event)

    def _many_pushed(self, events: Iterable[Pushed]) -> None:
        self._pushed.extend(map(_queue, chain.from_iterable(map(_specs, events))))

    def _many_leased(self, events: Iterable[Leased]) -> None:
        self._waits.extend(map(_queue_and_wait, events))

    def _many_succeeded(self, events: Iterable[Succeeded]) -> None:
        """Without a token the job was not leased."""
        self._runs.extend(map(_queue_and_run, filter(_token, events)))

    def _created(self, event: e.BatchCallbackPushed | ResquBatchPushed) -> None:
        self._pushed.append(event.spec.queue)

    def _spawned(self, event: e.Spawned) -> None:
        if event.number:
            self._pushed.append(event.spec.queue)

    def _recurred(self, event: e.Recurred) -> None:
        for at, spec in enumerate(event.specs):
            if at not in event.over and at not in event.instead:
                self._pushed.append(spec.queue)

    def _advanced(self, event: e.Advanced) -> None:
        self._runs.append((event.queue, event.run_s))

    def _failed(self, event: e.Failed) -> None:
        count, queue = self.activity.count, event.queue
        if event.token:
            if event.lost:  # the time until the lease expired is not a run time
                count(EXPIRED, queue)
                count(PROCESSED, queue)
            else:
                self._runs.append((queue, event.run_s))
            if event.counted:
                count(FAILED, queue)
        if event.to_queue or event.then in _GIVEN_UP:
            count(DEAD, queue)
        elif event.then in _TRIED_AGAIN:
            count(RETRIED, queue)

    def _rescheduled(self, event: Rescheduled) -> None:
        self._runs.append((event.queue, event.run_s))
        if event.failed:
            self.activity.count(FAILED, event.queue)
            self.activity.count(RETRIED, event.queue)

    def _lease_expired(self, event: e.LeaseExpired) -> None:
        self.activity.count(EXPIRED, event.queue)

    def _buried(self, event: e.Buried) -> None:
        for row in event.rows:
            self.activity.count(DEAD, row.queue)

    def _removed(self, event: e.Removed) -> None:
        if event.why == "lease-expired":
            for row in event.rows:
                self.activity.count(EXPIRED, row.queue)


_GIVEN_UP: Final = frozenset({State.DEAD, State.FAILED})
_TRIED_AGAIN: Final = frozenset({State.RETRYING, State.READY})


def _of_kind(events: Iterable[AnyEvent], kinds: Iterable[type[Event]], kind: type[Event]) -> Iterable[Any]:
    return compress(events, map(is_, kinds, repeat(kind)))


def _by_queue(values: Sequence[tuple[str, float]]) -> dict[str, list[float]]:
    queues, found = zip(*values, strict=True)
    if len(set(queues)) == 1:
        return {queues[0]: list(found)}
    sorted_values: defaultdict[str, list[float]] = defaultdict(list)
    for queue, value in values:
        sorted_values[queue].append(value)
    return sorted_values


#: Frequent kinds, counted together.
_MANY: Final[dict[type[Event], Callable[[EventCounter, Iterable[Any]], None]]] = {
    Pushed: EventCounter._many_pushed,
    Leased: EventCounter._many_leased,
    Succeeded: EventCounter._many_succeeded,
}

#: Other kinds, counted one by one.
_ONE: Final[dict[type[Event], Callable[[EventCounter, Any], None]]] = {
    e.Failed: EventCounter._failed,
    e.Advanced: EventCounter._advanced,
    Rescheduled: EventCounter._rescheduled,
    e.LeaseExpired: EventCounter._lease_expired,
    e.Buried: EventCounter._buried,
    e.Removed: EventCounter._removed,
    e.BatchCallbackPushed: EventCounter._created,
    ResquBatchPushed: EventCounter._created,
    e.Spawned: EventCounter._spawned,
    e.Recurred: EventCounter._recurred,
}
