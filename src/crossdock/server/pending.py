"""Requests that are not answered at once: they wait for a queue or a job, or are long work that runs in slices."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from crossdock.protocols.base import Answer, Close, JobResult, ReplyMemory, Slices, Wait
from crossdock.server.clock import LoopClock
from crossdock.server.limits import SLICES_S
from crossdock.server.waiters import Answered

if TYPE_CHECKING:
    from crossdock.server.group_commit import GroupCommit

#: Makes an answer of an exception that a session raised.
Failed = Callable[[Exception], Close]


def guarded_wait(wait: Wait, failed: Failed) -> Wait:
    """The same wait. An exception of its callbacks does not reach the request that woke it."""

    def ask(late: bool) -> Answer:
        try:
            return wait.ask(late)
        except Exception as error:  # noqa: BLE001 any defect of a session
            return failed(error)

    def told(result: JobResult) -> Answer:
        try:
            return wait.ask(False) if wait.told is None else wait.told(result)
        except Exception as error:  # noqa: BLE001 any defect of a session
            return failed(error)

    return wait._replace(ask=ask, told=told)


def guarded_work(work: Slices, failed: Failed) -> Slices:
    try:
        return (yield from work)
    except Exception as error:  # noqa: BLE001 any defect of a session
        return failed(error)


class SliceQueue:
    """The slices of all long requests, in turn. In each pass of the event loop they share a millisecond, so a hundred
    long requests delay the others no longer than one does."""

    __slots__ = ("_clock", "_scheduled", "_waiting")

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self._waiting: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def add(self, run: Callable[[], None]) -> None:
        """Run it in the next pass, or later if there are many. One that adds itself again waits for the others."""
        self._waiting.append(run)
        if not self._scheduled:
            self._scheduled = True
            self._clock.call_soon(self._run)

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
    """Asked again when a queue that it waits on has work, and for the last time at its deadline."""

    def __init__(self, wait: Wait, commit: "GroupCommit", answered: Answered) -> None:
        self._commit = commit
        self._answered = answered
        self._waiter = commit.waits.add(wait, self._woken)
        self._deadline = commit.clock.call_later(max(0.0, wait.until - commit.now.steady), self.too_late)
        self._over = False

    def _woken(self, answer: Answer) -> None:
        self._over = True
        self._deadline.cancel()
        self._answered(answer)

    def too_late(self) -> None:
        if self._over:  # a timer that was due made the job ready that it waited for
            return
        self._commit.waits.remove(self._waiter)
        self._woken(self._waiter.wait.ask(True))

    def leave(self) -> None:
        """Stop waiting, without an answer."""
        self._over = True
        self._commit.waits.remove(self._waiter)
        self._deadline.cancel()


class SlicedRequest:
    """Other connections are served between the slices."""

    def __init__(
        self,
        work: Slices,
        commit: "GroupCommit",
        *,
        answered: Answered,
        part: Callable[[bytes], None],
        reserve: Callable[[int], None],
    ) -> None:
        """`part` takes a part of the reply; its receiver calls `go_on` for the next one. `reserve` is called with the
        bytes that the work keeps for its reply."""
        self._work = work
        self._commit = commit
        self._answered = answered
        self._part = part
        self._reserve = reserve
        self._rest: asyncio.TimerHandle | None = None
        self._over = False

    def step(self) -> Answer | None:
        """Run one slice. The answer, if that was the last; otherwise the next slice is scheduled."""
        try:
            found: float | bytes | ReplyMemory | None = next(self._work)
        except StopIteration as end:
            self._over = True
            answer: Answer = end.value
            return answer
        if isinstance(found, bytes):
            self._part(found)
        elif isinstance(found, ReplyMemory):
            self._reserve(found.size)
            self.go_on()
        elif found:
            self._rest = self._commit.clock.call_later(found, self._next)
        else:
            self.go_on()
        return None

    def go_on(self) -> None:
        self._commit.slices.add(self._next)

    def _next(self) -> None:
        if self._over:
            return
        answer = self.step()
        if answer is not None:
            self._answered(answer)

    def leave(self) -> None:
        """Stop the work. What it keeps is freed now, not at the end of its rest."""
        self._over = True
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
