"""What happened in the last hour, in steps of ten seconds: in total, and in the busiest queues.

At most 200 queues are tracked, so memory is bounded. Events of other queues are counted together. A queue that becomes
busier than a tracked one takes its place at the next step.
"""

import heapq
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

from crossdock.server.histogram import SECONDS, WINDOWS, Histogram

STEP_S: Final = 10.0
STEPS: Final = 360

#: Queues that are tracked.
QUEUES: Final = 200

#: The name under which all other queues are counted. A queue of that name is one of them.
OTHER: Final = "_other"

#: Counters of a queue.
PUSHED, LEASED, PROCESSED, FAILED, RETRIED, DEAD, EXPIRED = range(7)

#: Counters with a history, by their names in replies.
SERIES: Final = ("pushed", "leased", "processed", "failed")

_READY: Final = len(SERIES)
_TURN_STEPS: Final = STEPS // WINDOWS

#: Queues that are not tracked and compete for a place.
_CANDIDATES: Final = 2_000
#: Queues that can take the place of another in one step.
_REPLACED: Final = 20
#: Scores halve in about four minutes.
_DECAY: Final = 0.97
#: A queue must be this much busier than a tracked one to take its place, so that two equal queues do not alternate.
_BUSIER: Final = 1.5
#: Steps without an event after which a queue that was removed is forgotten.
_IDLE_STEPS: Final = 6


class Series(NamedTuple):
    """Per step, oldest first."""

    counts: dict[str, list[int]]  #: by the names in `SERIES`
    ready: list[int]  #: ready jobs at the end of the step


class QueueActivity:
    """The counters of one queue, of all other queues, or of all queues."""

    __slots__ = ("_at_step", "_rings", "run", "score", "totals", "wait")

    def __init__(self) -> None:
        self.totals = [0] * 7  #: since it is tracked
        self._at_step = [0] * len(SERIES)  #: totals at the end of the last step
        empty = bytes(array("I").itemsize * STEPS)
        self._rings = [array("I", empty) for _ in range(len(SERIES) + 1)]
        self.wait = Histogram(SECONDS, recent=True)
        self.run = Histogram(SECONDS, recent=True)
        self.score = 0.0

    def end_step(self, step: int, ready: int, *, turn: bool) -> None:
        place = step % STEPS
        for which, before in enumerate(self._at_step):
            count = self.totals[which] - before
            self._rings[which][place] = count
            self._at_step[which] = self.totals[which]
        self._rings[_READY][place] = ready
        self.score = self.score * _DECAY + self._rings[PUSHED][place] + self._rings[LEASED][place]
        if turn:
            self.wait.turn()
            self.run.turn()

    def series(self, steps: int) -> Series:
        """The last steps, of `steps` that have ended."""
        rings = [_unrolled(ring, steps) for ring in self._rings]
        return Series(dict(zip(SERIES, rings, strict=False)), rings[_READY])

    def lately(self, steps: int, last: int) -> list[int]:
        """The sum of each counter in `SERIES` over the last few steps."""
        places = [(steps - back) % STEPS for back in range(1, last + 1)]
        return [sum(ring[place] for place in places) for ring in self._rings[:_READY]]


def _unrolled(ring: "array[int]", steps: int) -> list[int]:
    if steps <= STEPS:
        return ring[:steps].tolist()
    place = steps % STEPS
    return ring[place:].tolist() + ring[:place].tolist()


class Activity:
    def __init__(self) -> None:
        self.queues: dict[str, QueueActivity] = {}
        self.other = QueueActivity()
        self.total = QueueActivity()
        self.steps = 0  #: that have ended
        self._candidates: dict[str, float] = {}

    def of(self, queue: str, events: int = 1) -> QueueActivity:
        """Where the events of that queue are counted."""
        found = self.queues.get(queue)
        if found is not None:
            return found
        if self.track(queue):
            return self.queues[queue]
        if queue != OTHER:
            if len(self._candidates) >= _CANDIDATES and queue not in self._candidates:
                self._keep_best(_CANDIDATES // 2)
            self._candidates[queue] = self._candidates.get(queue, 0.0) + events
        return self.other

    def track(self, queue: str) -> bool:
        """Track the queue, if there is a free place."""
        if queue in self.queues:
            return True
        if len(self.queues) >= QUEUES or queue == OTHER:
            return False
        self.queues[queue] = QueueActivity()
        return True

    def count(self, which: int, queue: str, events: int = 1) -> None:
        self.of(queue, events).totals[which] += events
        self.total.totals[which] += events

    def add_pushed(self, pushed: dict[str, int]) -> None:
        for queue, events in pushed.items():
            self.count(PUSHED, queue, events)

    def add_waits(self, waits: dict[str, list[float]]) -> None:
        for queue, values in waits.items():
            found = self.of(queue, len(values))
            found.totals[LEASED] += len(values)
            found.wait.add(values)
            self.total.totals[LEASED] += len(values)
        self.total.wait.add(_joined(waits.values()))

    def add_runs(self, runs: dict[str, list[float]]) -> None:
        for queue, values in runs.items():
            found = self.of(queue, len(values))
            found.totals[PROCESSED] += len(values)
            found.run.add(values)
            self.total.totals[PROCESSED] += len(values)
        self.total.run.add(_joined(runs.values()))

    def end_step(self, ready_in: Callable[[str], int | None], ready: int) -> None:
        """`ready_in` returns the number of ready jobs of a queue, None if there is no such queue. `ready` is the number
        of all ready jobs."""
        turn = self.steps % _TURN_STEPS == _TURN_STEPS - 1
        unlisted = ready
        for name, queue in list(self.queues.items()):
            found = ready_in(name)
            queue.end_step(self.steps, found or 0, turn=turn)
            unlisted -= found or 0
            if found is None and not any(queue.lately(self.steps + 1, _IDLE_STEPS)):
                del self.queues[name]
        self.other.end_step(self.steps, max(0, unlisted), turn=turn)
        self.total.end_step(self.steps, ready, turn=turn)
        self.steps += 1
        self._replace()

    def _replace(self) -> None:
        """Give busy candidates the places of queues that are less busy."""
        self._candidates = {name: kept for name, score in self._candidates.items() if (kept := score * _DECAY) >= 1.0}
        best = heapq.nlargest(_REPLACED, self._candidates.items(), key=lambda each: each[1])
        weakest = heapq.nsmallest(len(best), self.queues, key=lambda name: self.queues[name].score)
        for (name, score), weak in zip(best, weakest, strict=False):
            if score <= self.queues[weak].score * _BUSIER:
                break
            del self.queues[weak], self._candidates[name]
            self.queues[name] = QueueActivity()
            self.queues[name].score = score

    def _keep_best(self, count: int) -> None:
        best = heapq.nlargest(count, self._candidates.items(), key=lambda each: each[1])
        self._candidates = dict(best)


def _joined(lists: Iterable[Sequence[float]]) -> Sequence[float]:
    """All values in one sequence, without a copy if there is only one list."""
    found = list(lists)
    return found[0] if len(found) == 1 else list(chain.from_iterable(found))
