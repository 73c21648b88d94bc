"""Counts the events of journal entries, after their replies were sent.

The frequent kinds of event are only collected here, in a few steps of the interpreter each. Their values are added to
histograms together, a thousand at a time.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final

from crossdock.model import events as e
from crossdock.model.events import AnyEvent, Event, Leased, Pushed, Succeeded
from crossdock.model.events.resqu import Rescheduled, ResquBatchPushed
from crossdock.model.states import State
from crossdock.server.activity import DEAD, EXPIRED, FAILED, PROCESSED, RETRIED, Activity
from crossdock.server.histogram import BYTES, COUNTS, Histogram

#: Events that are collected before they are added.
ADD_AT: Final = 1_000

_queue = attrgetter("queue")


class EventCounter:
    def __init__(self) -> None:
        self.activity = Activity()
        self.entry_bytes = Histogram(BYTES)
        self.entry_events = Histogram(COUNTS)
        self._sizes: list[int] = []
        self._lengths: list[int] = []
        self._collected = 0
        self._pushed: list[str] = []  #: the queue of each job
        self._waits: defaultdict[str, list[float]] = defaultdict(list)
        self._runs: defaultdict[str, list[float]] = defaultdict(list)

    def observe(self, changes: Sequence[Sequence[AnyEvent]], entries: Sequence[tuple[bytes, int]]) -> None:
        """The events of each command, and the entries in which they were written: their bytes and how many events each
        holds."""
        pushed, waits, runs = self._pushed, self._waits, self._runs
        for event in chain.from_iterable(changes):
            kind = type(event)
            if kind is Leased:
                waits[event.queue].append(event.wait_s)  # type: ignore[union-attr]
            elif kind is Succeeded:
                if event.token:  # type: ignore[union-attr]
                    runs[event.queue].append(event.run_s)  # type: ignore[union-attr]
            elif kind is Pushed:
                pushed.extend(map(_queue, event.specs))  # type: ignore[union-attr]
            elif kind in _OTHERS:
                _OTHERS[kind](self, event)
        for entry, events in entries:
            self._sizes.append(len(entry))
            self._lengths.append(events)
            self._collected += events
        if self._collected >= ADD_AT:
            self.add_collected()

    def add_collected(self) -> None:
        """Called every second too, and before the figures are read."""
        self._collected = 0
        if self._pushed:
            self.activity.add_pushed(Counter(self._pushed))
            self._pushed.clear()
        if self._waits:
            self.activity.add_waits(self._waits)
            self._waits.clear()
        if self._runs:
            self.activity.add_runs(self._runs)
            self._runs.clear()
        self.entry_bytes.add(self._sizes)
        self._sizes.clear()
        self.entry_events.add(self._lengths)
        self._lengths.clear()

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
        self._runs[event.queue].append(event.run_s)

    def _failed(self, event: e.Failed) -> None:
        count, queue = self.activity.count, event.queue
        if event.token:
            if event.lost:  # the time until the lease expired is not a run time
                count(EXPIRED, queue)
                count(PROCESSED, queue)
            else:
                self._runs[queue].append(event.run_s)
            if event.counted:
                count(FAILED, queue)
        if event.to_queue or event.then in _GIVEN_UP:
            count(DEAD, queue)
        elif event.then in _TRIED_AGAIN:
            count(RETRIED, queue)

    def _rescheduled(self, event: Rescheduled) -> None:
        self._runs[event.queue].append(event.run_s)
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

_OTHERS: Final[dict[type[Event], Callable[[EventCounter, Any], None]]] = {
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
