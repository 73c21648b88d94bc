"""Requests that wait for a queue or a job, with one wake-up path for all protocols.

When a job becomes ready in a queue, the requests that wait on it are asked in the order they came, across all
protocols, until the queue has no work left. A request that cannot take the job is passed over and keeps its place. A
push costs no more if thousands wait. When a job ends, all requests that wait on it receive its result, in order.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from heapq import heapify, heappop, heappush
from itertools import islice, takewhile
from typing import Final, TypeVar

from crossdock.engine.decision import Topic
from crossdock.model.job import Number
from crossdock.protocols.base import Answer, JobResult, Wait

T = TypeVar("T")

Answered = Callable[[Answer], None]

#: Waiters at the head of a queue that are scanned each time. Only beyond these is a list of the others made.
_SCANNED: Final = 8


class Waiter:
    __slots__ = ("answered", "ticket", "wait")

    def __init__(self, ticket: int, wait: Wait, answered: Answered) -> None:
        self.ticket = ticket  #: numbers waiters in the order they came
        self.wait = wait
        self.answered = answered


class _WaitingLine:
    """The waiters on one queue while it is served. Waiters that were passed over are not scanned again and again."""

    __slots__ = ("_ahead", "_newest", "queue")

    def __init__(self, queue: Topic) -> None:
        self.queue = queue
        self._ahead: deque[Waiter] = deque()
        self._newest = 0  #: ticket of the last one in `_ahead`

    def first(self, waiters: OrderedDict[int, Waiter], passed: set[int]) -> Waiter | None:
        for waiter in islice(waiters.values(), _SCANNED):
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
    """One object for all uses, because some protocols enter it for every request. A generator costs four times as
    much."""

    __slots__ = ("_waiters", "depth")

    def __init__(self, waiters: "Waiters") -> None:
        self._waiters = waiters
        self.depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *error: object) -> None:
        self.depth -= 1
        waiters = self._waiters
        if waiters.woken or waiters.ended:
            waiters.serve()


class Waiters:
    def __init__(self, has_work: Callable[[Topic], bool]) -> None:
        self._has_work = has_work
        self.by_queue: dict[Topic, OrderedDict[int, Waiter]] = {}  #: by queue, or by key of the Redis protocol
        self.by_job: dict[Number, OrderedDict[int, Waiter]] = {}
        self.tickets: dict[int, Waiter] = {}  #: all of them
        self._tickets = 0
        self.woken: list[Topic] = []  #: queues to serve
        self.ended: list[tuple[Number, JobResult]] = []  #: jobs whose waiters are to be answered
        self._serving = False
        self._hold = _Hold(self)
        self.asked = 0  #: how often waiters were asked; tests bound it

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

    def notify(self, ended: Iterable[tuple[Number, JobResult]]) -> None:
        """These jobs ended."""
        self.ended.extend(ended)
        self.serve()

    def wake(self, queues: Sequence[Topic]) -> None:
        """A job became ready in these queues."""
        self.woken.extend(queues)
        self.serve()

    def held(self) -> AbstractContextManager[None]:
        """Make several commands one step: waiters are served at the end of the block."""
        return self._hold

    def serve(self) -> None:
        """Answer the waiters of ended jobs, then ask those of woken queues. Asking may itself end a job or make one
        ready, for example of a callback. That is served when the asking is over, so no waiter is asked recursively."""
        if self._serving or self._hold.depth:
            return
        self._serving = True
        try:
            while self.ended or self.woken:
                ended, self.ended = self.ended, []
                for number, result in ended:
                    self._answer_job(number, result)
                woken, self.woken = self.woken, []
                self._serve_queues(woken)
        finally:
            self._serving = False

    def _answer_job(self, number: Number, result: JobResult) -> None:
        for waiter in list(self.by_job.get(number, {}).values()):
            self.remove(waiter)
            wait = waiter.wait
            waiter.answered(wait.on_result(result) if wait.on_result is not None else wait.ask(False))

    def _serve_queues(self, woken: Sequence[Topic]) -> None:
        """Ask waiters in the order of their tickets. One transaction may wake twenty thousand queues, and a thousand
        requests may wait for them, so the queues are kept in a heap by the ticket of their first waiter."""
        by_queue = self.by_queue
        passed: set[int] = set()  #: tickets of waiters that could not take a job
        lines = [_WaitingLine(queue) for queue in dict.fromkeys(woken) if queue in by_queue]
        heap = [(next(iter(by_queue[line.queue])), at) for at, line in enumerate(lines)]
        heapify(heap)
        while heap:
            ticket, at = heappop(heap)
            waiter = self._first(lines[at], passed)
            if waiter is not None and waiter.ticket == ticket:
                self._ask(waiter, passed)
                waiter = self._first(lines[at], passed)
            if waiter is not None:
                heappush(heap, (waiter.ticket, at))

    def _ask(self, waiter: Waiter, passed: set[int]) -> None:
        self.asked += 1
        answer = waiter.wait.ask(False)
        if isinstance(answer, Wait) and answer.queues == waiter.wait.queues:
            passed.add(waiter.ticket)
        else:
            self.remove(waiter)
            waiter.answered(answer)

    def _first(self, line: _WaitingLine, passed: set[int]) -> Waiter | None:
        """The first waiter on this queue that was not passed over. None if the queue has no work."""
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
