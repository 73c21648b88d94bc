"""Who waits for what. One wake-up path for all doors.

When a queue stirs, those who wait on it are asked in the order they came, over all doors, until the queue has nothing
left; one that is not entitled now is passed over and keeps its place. A herd of waiters costs a push nothing. When a
job ends, all who wait on it are told how, in the order they came.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from heapq import heappop, heappush
from itertools import islice, takewhile
from typing import Final, TypeVar

from crossdock.engine.decision import Topic
from crossdock.model.job import Number
from crossdock.protocols.base import Answer, JobResult, Wait

T = TypeVar("T")

Answered = Callable[[Answer], None]

#: Of a queue so many are looked at anew each time; a list of the others would cost a push something.
_FEW: Final = 8


class Waiter:
    __slots__ = ("answered", "ticket", "wait")

    def __init__(self, ticket: int, wait: Wait, answered: Answered) -> None:
        self.ticket = ticket
        self.wait = wait
        self.answered = answered


class _Line:
    """Those who wait on one queue, while it is served: who was passed over is not looked at again and again."""

    __slots__ = ("_ahead", "_newest", "queue")

    def __init__(self, queue: Topic) -> None:
        self.queue = queue
        self._ahead: deque[Waiter] = deque()
        self._newest = 0  #: of those that were lined up

    def first(self, waiters: OrderedDict[int, Waiter], passed: set[int]) -> Waiter | None:
        for waiter in islice(waiters.values(), _FEW):
            if waiter.ticket not in passed:
                return waiter
        while True:
            while self._ahead:
                waiter = self._ahead[0]
                if waiter.ticket in waiters and waiter.ticket not in passed:
                    return waiter
                self._ahead.popleft()
            newer = list(takewhile(lambda each: each.ticket > self._newest, reversed(waiters.values())))
            if not newer:
                return None
            self._newest = newer[0].ticket
            self._ahead.extend(reversed(newer))


class _Hold:
    """One for all, entered once for every request of some doors: a generator would cost four times as much."""

    __slots__ = ("_waits", "depth")

    def __init__(self, waits: "Waiters") -> None:
        self._waits = waits
        self.depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *error: object) -> None:
        self.depth -= 1
        waits = self._waits
        if waits.woken or waits.ended:
            waits.go_on()


class Waiters:
    def __init__(self, has_work: Callable[[Topic], bool]) -> None:
        self._has_work = has_work
        self.by_queue: dict[Topic, OrderedDict[int, Waiter]] = {}  #: queues, and keys of the Redis door
        self.by_job: dict[Number, OrderedDict[int, Waiter]] = {}
        self.tickets: dict[int, Waiter] = {}  #: all of them
        self._tickets = 0
        self.woken: list[Topic] = []  #: and not served yet
        self.ended: list[tuple[Number, JobResult]] = []  #: and not told yet
        self._stirring = False
        self._hold = _Hold(self)
        self.asked = 0  #: how often a waiter was asked: what a herd would drive up

    def __len__(self) -> int:
        return sum(len(waiters) for on in (self.by_queue, self.by_job) for waiters in on.values())

    def add(self, wait: Wait, answered: Answered) -> Waiter:
        self._tickets += 1
        waiter = self.tickets[self._tickets] = Waiter(self._tickets, wait, answered)
        for queue in wait.queues:
            self.by_queue.setdefault(queue, OrderedDict())[waiter.ticket] = waiter
        if wait.job:
            self.by_job.setdefault(wait.job, OrderedDict())[waiter.ticket] = waiter
        return waiter

    def remove(self, waiter: Waiter) -> None:
        self.tickets.pop(waiter.ticket, None)
        for queue in waiter.wait.queues:
            _take_out(self.by_queue, queue, waiter)
        if waiter.wait.job:
            _take_out(self.by_job, waiter.wait.job, waiter)

    def tell(self, ended: Iterable[tuple[Number, JobResult]]) -> None:
        """These jobs ended."""
        self.ended.extend(ended)
        self.go_on()

    def held(self) -> AbstractContextManager[None]:
        """Several commands that are one step to those who wait: whatever stirs meanwhile is served at the end."""
        return self._hold

    def wake(self, queues: Sequence[Topic]) -> None:
        """In these queues a job became ready."""
        self.woken.extend(queues)
        self.go_on()

    def go_on(self) -> None:
        """Asking may itself make a job ready, of a callback for one, or end one: that is told when the asking is over,
        so that nobody is asked while it is being asked."""
        if self._stirring or self._hold.depth:
            return
        self._stirring = True
        try:
            while self.ended or self.woken:
                ended, self.ended = self.ended, []
                for number, how in ended:
                    self._tell(number, how)
                woken, self.woken = self.woken, []
                self._serve(woken)
        finally:
            self._stirring = False

    def _tell(self, number: Number, how: JobResult) -> None:
        for waiter in list(self.by_job.get(number, {}).values()):
            self.remove(waiter)
            wait = waiter.wait
            waiter.answered(wait.told(how) if wait.told is not None else wait.ask(False))

    def _serve(self, woken: Sequence[Topic]) -> None:
        """One transaction may stir twenty thousand queues, and a thousand may wait for them: so each queue stands in a
        heap by who came first to it, and is looked at when its turn comes."""
        passed: set[int] = set()
        lines = [_Line(queue) for queue in dict.fromkeys(woken) if queue in self.by_queue]
        heap: list[tuple[int, int]] = []
        for at, line in enumerate(lines):
            self._line_up(heap, at, line, passed)
        while heap:
            ticket, at = heappop(heap)
            waiter = self._first(lines[at], passed)
            if waiter is not None and waiter.ticket == ticket:
                self._ask(waiter, passed)
            self._line_up(heap, at, lines[at], passed)

    def _ask(self, waiter: Waiter, passed: set[int]) -> None:
        self.asked += 1
        answer = waiter.wait.ask(False)
        if isinstance(answer, Wait) and answer.queues == waiter.wait.queues:
            passed.add(waiter.ticket)
        else:
            self.remove(waiter)
            waiter.answered(answer)

    def _line_up(self, heap: list[tuple[int, int]], at: int, line: _Line, passed: set[int]) -> None:
        first = self._first(line, passed)
        if first is not None:
            heappush(heap, (first.ticket, at))

    def _first(self, line: _Line, passed: set[int]) -> Waiter | None:
        """Who came first of those that wait on this queue, if it has work."""
        waiters = self.by_queue.get(line.queue)
        if waiters is not None and self._has_work(line.queue):
            return line.first(waiters, passed)
        return None


def _take_out(waiting: dict[T, OrderedDict[int, Waiter]], on: T, waiter: Waiter) -> None:
    waiters = waiting.get(on)
    if waiters is not None:
        waiters.pop(waiter.ticket, None)
        if not waiters:
            del waiting[on]
