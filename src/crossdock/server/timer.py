"""The timer of the engine: runs scheduled jobs, retries, expired leases and purges when they are due.

A timer of the event loop may be milliseconds late. A request of that pass must not see a job after its time to live, so
the group commit executes what is due at the beginning of each pass of the event loop.
"""

import asyncio
import time
from math import inf
from typing import Final, Protocol, TypeVar

from crossdock.engine.engine import Engine
from crossdock.model.clock import Now
from crossdock.model.commands.core import Command, ResolveDependents, Tick, Ticked
from crossdock.model.commands.qless import FreeHeld
from crossdock.server.admission import Admission
from crossdock.server.clock import LoopClock

T = TypeVar("T")

#: Jobs that one pass changes, in about 5 ms. Requests are served between two passes.
TICK_JOBS: Final = 500

#: Dependents that one pass resolves, in about the same time: a failure costs two to three times what a due job does.
TICK_DEPENDENTS: Final = 200

#: Longest wait in seconds. The wall clock may be set meanwhile, and schedules follow it.
_CHECK_S: Final = 10.0

#: A timer that is this close to the deadline is not set again: the event loop counts in milliseconds.
_NEARLY_S: Final = 0.001


class Executor(Protocol):
    now: Now
    admission: Admission

    def do(self, command: Command[T]) -> T: ...


class Timer:
    def __init__(self, commit: Executor, engine: Engine, clock: LoopClock) -> None:
        self._commit = commit
        self._engine = engine
        self._clock = clock
        self._handle: asyncio.TimerHandle | None = None
        self._fires_at = inf  #: steady
        self.due = inf  #: steady; the exact first deadline, or `_CHECK_S` from now
        self._stopped = False
        self._nothing_due_at = -inf  #: steady; when nothing was due for the last time
        self.done = Ticked()  #: since the start

    def start(self, journal_end: float) -> None:
        """`journal_end`: steady; all that was due by then is in the journal."""
        self._nothing_due_at = journal_end
        self.arm()

    def arm(self) -> None:
        """Update `due` after a change. The event loop's timer is only set if it would fire too late: one that fires too
        early finds nothing to do, which costs less than setting it after every entry."""
        now = self._commit.now
        due_in = None if self._stopped else self._engine.due_in(now)
        if due_in != 0.0:
            self._nothing_due_at = now.steady
        if due_in is None:
            self.due = inf
            return
        wait = min(due_in, _CHECK_S)
        self.due = now.steady + wait
        if self.due < self._fires_at - _NEARLY_S:
            if self._handle is not None:
                self._handle.cancel()
            self._fires_at = self.due
            self._handle = self._clock.call_later(wait, self._fired)

    def _fired(self) -> None:
        """The pass of this callback has executed one slice of what is due. The next slice follows in the next pass, so
        that requests are served in between."""
        self._handle, self._fires_at = None, inf
        self.arm()

    def stop(self) -> None:
        """A change failed halfway: nothing more is executed."""
        self._stopped, self.due = True, inf
        if self._handle is not None:
            self._handle.cancel()
            self._handle, self._fires_at = None, inf

    def tick(self) -> None:
        """Execute one slice of what is due."""
        started = time.perf_counter()
        self.due = inf
        commit, done = self._commit, self.done
        more = commit.do(Tick(TICK_JOBS, commit.admission.free_places(), self._nothing_due_at))
        done.scheduled += more.scheduled
        done.retried += more.retried
        done.expired += more.expired
        done.purged += more.purged
        done.ended += more.ended
        done.passes += 1
        self._resolve()
        done.seconds += time.perf_counter() - started
        self.arm()

    def _resolve(self) -> None:
        """Continue what a command left for later: dependents of jobs that ended, and jobs that throttles now admit."""
        left, state = TICK_DEPENDENTS, self._engine.state
        while left > 0 and state.unresolved:
            left -= max(1, self._commit.do(ResolveDependents(left)))
        while left > 0 and state.owed:
            left -= max(1, self._commit.do(FreeHeld(left)))
