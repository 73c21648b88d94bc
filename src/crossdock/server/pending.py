"""A request that is not answered at once: it waits for queues to stir, or is long work that goes on slice by slice."""

import asyncio
from collections.abc import Callable

from crossdock.protocols.base import Answer, ReplyMemory, Slices, Wait
from crossdock.server.group_commit import GroupCommit
from crossdock.server.waiters import Answered


class WaitingRequest:
    """It is asked when a queue it waits on has something to say, and for the last time when its time is over."""

    def __init__(self, wait: Wait, turn: GroupCommit, loop: asyncio.AbstractEventLoop, answered: Answered) -> None:
        self._turn = turn
        self._answered = answered
        self._waiter = turn.waits.add(wait, self._stirred)
        self._deadline = loop.call_later(max(0.0, wait.until - turn.now.steady), self.too_late)
        self._over = False

    def _stirred(self, answer: Answer) -> None:
        self._over = True
        self._deadline.cancel()
        self._answered(answer)

    def too_late(self) -> None:
        self._turn.begin()
        if self._over:  # what was due by now was what it waited for
            return
        self._turn.waits.remove(self._waiter)
        self._stirred(self._waiter.wait.ask(True))

    def leave(self) -> None:
        """Unheard: nobody asks this one any more."""
        self._over = True
        self._turn.waits.remove(self._waiter)
        self._deadline.cancel()


class SlicedRequest:
    """Others are served between the steps."""

    def __init__(
        self,
        work: Slices,
        turn: GroupCommit,
        loop: asyncio.AbstractEventLoop,
        answered: Answered,
        part: Callable[[bytes], None],
        keep: Callable[[int], None],
    ) -> None:
        self._work = work
        self._turn = turn
        self._loop = loop
        self._answered = answered
        self._part = part  #: takes a part of the answer; whoever does says when to go on
        self._keep = keep  #: told of what the work keeps
        self._rest: asyncio.TimerHandle | None = None
        self._over = False

    def step(self) -> Answer | None:
        """One slice. What the work came to, if that was the last; else the next one follows by itself."""
        try:
            found: float | bytes | ReplyMemory | None = next(self._work)
        except StopIteration as end:
            self._over = True
            answer: Answer = end.value
            return answer
        if isinstance(found, bytes):
            self._part(found)
        elif isinstance(found, ReplyMemory):
            self._keep(found.size)
            self.go_on()
        elif found:
            self._rest = self._loop.call_later(found, self._next)
        else:
            self.go_on()
        return None

    def go_on(self) -> None:
        self._turn.slices.add(self._next)

    def _next(self) -> None:
        if self._over:
            return
        self._turn.begin()
        answer = self.step()
        if answer is not None:
            self._answered(answer)

    def leave(self) -> None:
        """It is not gone on with, and what it keeps goes now, not when its rest would be over."""
        self._over = True
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
