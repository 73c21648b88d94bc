"""The server of a test: the real engine and the real Faktory protocol in this process, without sockets or files."""

from collections.abc import Callable, Sequence
from random import Random
from threading import RLock
from typing import Final

from crossdock.client.address import Address
from crossdock.engine.engine import Engine
from crossdock.engine.queries.jobs import newest_job
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.events import AnyEvent
from crossdock.model.job import Number
from crossdock.model.states import State
from crossdock.protocols.base import give_back
from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.testing.connection import LocalConnection
from crossdock.testing.dispatcher import LocalDispatcher
from crossdock.testing.errors import WouldWait

#: Steady time at the start. Any number would do.
_STEADY: Final = 1_000.0


class _ObservedDispatcher(LocalDispatcher):
    def __init__(self, engine: Engine, now: Now, observe: Callable[[Sequence[AnyEvent]], None]) -> None:
        super().__init__(engine, now)
        self._observe = observe

    def executed(self, events: Sequence[AnyEvent]) -> None:
        self._observe(events)


class LocalServer:
    """Applications may push from several threads. A lock lets one request in at a time, as the event loop of a real
    server does."""

    def __init__(self, wall: float, observe: Callable[[Sequence[AnyEvent]], None]) -> None:
        """`wall`: the time at which the clock stands. `observe` is called with the events of each command."""
        # The random source is seeded: a retry has the same jitter in each run of a test.
        self._dispatcher = _ObservedDispatcher(Engine(EngineState(), Random(0)), Now(wall, _STEADY), observe)
        self._protocol = FaktoryProtocol(handshake_s=0, clock=lambda: self.now.steady)
        self.lock = RLock()

    @property
    def now(self) -> Now:
        return self._dispatcher.now

    @property
    def state(self) -> EngineState:
        """The engine's state, read-only."""
        return self._dispatcher.state

    def connect(self, address: Address, timeout_s: float, /) -> "LocalTransport":
        """A connection to this server, whatever the address is."""
        with self.lock:
            return LocalTransport(LocalConnection(self._dispatcher, self._protocol), self.lock)

    def state_of(self, jid: str) -> str:
        """The state of the newest job with this ID; "gone" if there is none."""
        with self.lock:
            job = newest_job(self.state, jid)
            return (State.GONE if job is None else job.state).name.lower()

    def give_back(self, number: Number) -> None:
        """End the lease of a job as if it had never been granted."""
        with self.lock:
            lease = self.state.jobs[number].lease
            if lease is not None:
                give_back(self._dispatcher, lease.via, [(number, lease.token)])

    def reach_deadline(self, goal: float) -> bool:
        """Advance the clock to the next deadline and handle what is due then. If the next one is later than `goal`
        (steady), advance to `goal` and return False."""
        with self.lock:
            at = self._dispatcher.next_deadline()
            if at > goal:
                self._dispatcher.advance(goal - self.now.steady)
                return False
            self._dispatcher.reach(at)
            return True


class LocalTransport:
    """A client's connection to a server in this process. Requests are executed while they are sent."""

    def __init__(self, connection: LocalConnection, lock: RLock) -> None:
        self._connection = connection
        self._lock = lock
        self._request = b""

    def send(self, data: bytes, /) -> None:
        with self._lock:
            if self._connection.is_closed:
                raise BrokenPipeError("the connection is closed")
            self._request = data
            self._connection.send(data)

    def receive(self) -> bytes:
        """A request that waits would wait for ever: no worker runs beside the test, and the clock stands."""
        with self._lock:
            said = self._connection.take()
            if not said and self._connection.is_waiting:
                request = self._request[:200].decode("utf-8", "replace").strip()
                self.close()
                raise WouldWait(
                    f"the request waits, and in a test nothing happens meanwhile: {request}. Run the jobs first with "
                    "jobs.drain(), push inside jobs.inline(), or move the clock with jobs.clock.advance()"
                )
            return said

    def settimeout(self, seconds: float, /) -> None:
        """Nothing takes time here."""

    def close(self) -> None:
        with self._lock:
            self._connection.close()
