"""Requests that are not answered at once: they wait for a queue or a job, or their work runs in slices."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from crossdock.protocols.base import Answer, Close, JobResult, ReplyMemory, Slices, Wait
from crossdock.server.clock import LoopClock
from crossdock.server.reply_queue import ReplyQueue
from crossdock.server.waiters import Answered

if TYPE_CHECKING:
    from crossdock.server.group_commit import GroupCommit

#: Seconds of each pass of the event loop that all sliced requests share, however many there are.
SLICES_S: Final = 0.001

#: Makes an answer of an exception that a session raised.
Failed = Callable[[Exception], Close]


def guarded_wait(wait: Wait, failed: Failed) -> Wait:
    """The same wait. An exception of its callbacks does not reach the request that woke it."""

    def ask(late: bool) -> Answer:
        try:
            return wait.ask(late)
        except Exception as error:  # noqa: BLE001 any defect of a session
            return failed(error)

    def on_result(result: JobResult) -> Answer:
        try:
            return wait.ask(False) if wait.on_result is None else wait.on_result(result)
        except Exception as error:  # noqa: BLE001 any defect of a session
            return failed(error)

    return wait._replace(ask=ask, on_result=on_result)


def guarded_work(work: Slices, failed: Failed) -> Slices:
    """The same work. An exception is turned into an answer."""
    try:
        return (yield from work)
    except Exception as error:  # noqa: BLE001 any defect of a session
        return failed(error)


class SliceQueue:
    """Runs the slices of all sliced requests, round robin. In each pass of the event loop they share a millisecond, so
    a hundred of them delay other requests no longer than one does."""

    __slots__ = ("_clock", "_scheduled", "_waiting")

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self._waiting: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def add(self, run: Callable[[], None]) -> None:
        """Run it in the next pass, or later if there are many. One that adds itself again goes behind the others."""
        self._waiting.append(run)
        if not self._scheduled:
            self._scheduled = True
            self._clock.call_soon(self._run)

    def run(self, work: Iterator[object]) -> None:
        """Run the first step of `work` now, and the others in the passes that follow."""
        if next(work, self) is not self:
            self.add(partial(self.run, work))

    def _run(self) -> None:
        waiting = self._waiting
        until = time.monotonic() + SLICES_S
        try:
            for _ in range(len(waiting)):
                waiting.popleft()()
                if time.monotonic() >= until:
                    break
        finally:  # one that fails must not stop the others
            self._scheduled = bool(waiting)
            if waiting:
                self._clock.call_soon(self._run)


class WaitingRequest:
    """Asks its session again when a queue that it waits on has work, and for the last time at its deadline."""

    def __init__(self, wait: Wait, commit: "GroupCommit", answered: Answered) -> None:
        self._commit = commit
        self._answered = answered
        self._waiter = commit.waiters.add(wait, self._woken)
        self._deadline = commit.clock.call_later(max(0.0, wait.until - commit.now.steady), self.too_late)
        self._over = False

    def _woken(self, answer: Answer) -> None:
        self._over = True
        self._deadline.cancel()
        self._answered(answer)

    def too_late(self) -> None:
        if self._over:  # a timer of the same pass has made its job ready
            return
        self._commit.waiters.remove(self._waiter)
        self._woken(self._waiter.wait.ask(True))

    def leave(self) -> None:
        """Stop waiting, without an answer."""
        self._over = True
        self._commit.waiters.remove(self._waiter)
        self._deadline.cancel()


class SlicedRequest:
    """Runs its work one slice at a time. Other connections are served between the slices."""

    def __init__(self, work: Slices, commit: "GroupCommit", replies: ReplyQueue, answered: Answered) -> None:
        """`replies` takes the parts of a long reply, and the memory that the work reserves for it."""
        self._work = work
        self._commit = commit
        self._replies = replies
        self._answered = answered
        self._delay: asyncio.TimerHandle | None = None
        self._over = False

    def step(self) -> Answer | None:
        """Run one slice. Returns the answer if it was the last one; otherwise the next slice is scheduled. After a part
        of a long reply the connection schedules it, with `schedule`."""
        try:
            found: float | bytes | ReplyMemory | None = next(self._work)
        except StopIteration as end:
            self._over = True
            answer: Answer = end.value
            return answer
        if isinstance(found, bytes):
            self._replies.send_part(found)
        elif isinstance(found, ReplyMemory):
            self._replies.reserve(found.size)
            self.schedule()
        elif found:
            self._delay = self._commit.clock.call_later(found, self.run)
        else:
            self.schedule()
        return None

    def schedule(self) -> None:
        """Run the next slice when other requests were served."""
        self._commit.slices.add(self.run)

    def run(self) -> None:
        if self._over:
            return
        answer = self.step()
        if answer is not None:
            self._answered(answer)

    def leave(self) -> None:
        """Stop the work. A delay is cancelled, so that the memory of the work is freed now."""
        self._over = True
        if self._delay is not None:
            self._delay.cancel()
            self._delay = None


class PendingRequest:
    """The request of a connection that is not answered yet. There is at most one; requests behind it are queued."""

    __slots__ = ("_answered", "_commit", "_failed", "_part_written", "_replies", "request")

    def __init__(self, commit: "GroupCommit", replies: ReplyQueue, answered: Answered, failed: Failed) -> None:
        self._commit = commit
        self._replies = replies
        self._answered = answered
        self._failed = failed
        self._part_written = False  #: a part of a long reply was written, and the next one was not made yet
        self.request: WaitingRequest | SlicedRequest | None = None

    @property
    def is_waiting(self) -> bool:
        return isinstance(self.request, WaitingRequest)

    @property
    def is_sliced(self) -> bool:
        return isinstance(self.request, SlicedRequest)

    def wait(self, wait: Wait) -> None:
        self.request = WaitingRequest(guarded_wait(wait, self._failed), self._commit, self._answered)

    def work(self, work: Slices) -> Answer | None:
        """Run the first slice. Returns the answer if there are no more."""
        self.request = SlicedRequest(guarded_work(work, self._failed), self._commit, self._replies, self._answered)
        answer = self.request.step()
        if answer is not None:
            self.end()
        return answer

    def end(self) -> None:
        self.request = None
        self._replies.end_reserve()

    def drop(self) -> None:
        """End it without an answer."""
        if self.request is not None:
            self.request.leave()
            self.end()

    def finish(self, give_up: float) -> None:
        """At shutdown: end a wait with the answer that it gets at its deadline. Run slices until there are none, the
        replies are full, or `give_up` (monotonic) has passed."""
        self._end_wait()
        while isinstance(self.request, SlicedRequest) and not self._replies.is_full() and time.monotonic() < give_up:
            self.request.run()
        self._end_wait()  # of a FETCH that ran in slices and then waits

    def _end_wait(self) -> None:
        if isinstance(self.request, WaitingRequest):
            self.request.too_late()

    def part_written(self, *, make_next: bool) -> None:
        """A part of a long reply was written. The next one is made when the peer reads."""
        self._part_written = True
        if make_next:
            self.make_next_part()

    def make_next_part(self) -> None:
        if self._part_written and isinstance(self.request, SlicedRequest):
            self._part_written = False
            self.request.schedule()
