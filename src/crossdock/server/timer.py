"""One timer, for whatever is due first: jobs whose time has come, leases that ran out, kept jobs that may go.

A timer of the event loop may be milliseconds late. A request that comes before it must not see what is over by then, so
the group commit runs what is due at the beginning of each pass of the event loop.
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

#: Jobs a slice may touch: about 5 ms of work between the turns of others.
TICK_JOBS: Final = 500

#: Dependents a slice may resolve, about as long: a failure costs two to three times what a due job does.
TICK_DEPENDENTS: Final = 200

#: The wall clock may be set: look again at least this often.
_LOOK_S: Final = 10.0

#: Two looks at the clocks do not agree on a deadline to the microsecond, and the loop counts in milliseconds.
_NEARLY_S: Final = 0.001


class Executor(Protocol):
    now: Now
    admission: Admission

    def do(self, command: Command[T]) -> T: ...


class Timer:
    def __init__(self, turn: Executor, engine: Engine, clock: LoopClock) -> None:
        self._turn = turn
        self._engine = engine
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._at = inf  #: steady; when it looks next
        self.due = inf  #: steady; the first deadline, exactly, or when the clocks are to be looked at
        self._stopped = False
        self._looked = -inf  #: steady; when nothing was due
        self.done = Ticked()  #: since the start

    def begin(self, looked: float) -> None:
        """`looked`: steady; as far as the journal tells, all that was due by then was carried out."""
        self._looked = looked
        self.arm()

    def arm(self) -> None:
        """What is due first may have changed. A timer that comes too early finds nothing, which costs less than to set
        it anew after every batch."""
        now = self._turn.now
        due_in = None if self._stopped else self._engine.due_in(now)
        if due_in != 0.0:
            self._looked = now.steady
        if due_in is None:
            self.due = inf
            return
        wait = min(due_in, _LOOK_S)
        self.due = now.steady + wait
        if now.steady + wait < self._at - _NEARLY_S:
            if self._timer is not None:
                self._timer.cancel()
            self._at = now.steady + wait
            self._timer = self._clock.call_later(wait, self._ring)

    def _ring(self) -> None:
        """The pass that begins with it has executed a slice of what is due. The rest follows in the next pass, so that
        there is time for requests."""
        self._timer, self._at = None, inf
        self.arm()

    def stop(self) -> None:
        """A change failed in the middle: nothing more is decided, by time neither."""
        self._stopped, self.due = True, inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._at = None, inf

    def tick(self) -> None:
        started = time.perf_counter()
        self.due = inf
        more, done = self._turn.do(Tick(TICK_JOBS, self._turn.admission.free_places(), self._looked)), self.done
        done.scheduled += more.scheduled
        done.retried += more.retried
        done.lapsed += more.lapsed
        done.purged += more.purged
        done.ended += more.ended
        done.passes += 1
        self._resolve()
        done.seconds += time.perf_counter() - started
        self.arm()

    def _resolve(self) -> None:
        """What a single command left undone: dependents of jobs that ended, and jobs that throttles have room for."""
        left, state = TICK_DEPENDENTS, self._engine.state
        while left > 0 and state.unresolved:
            left -= max(1, self._turn.do(ResolveDependents(left)))
        while left > 0 and state.owed:
            left -= max(1, self._turn.do(FreeHeld(left)))
