"""The Faktory protocol: the state that its sessions share."""

import hmac
import math
import secrets
import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final, NamedTuple

from crossdock.engine.queries.jobs import jobs_in_state
from crossdock.model.password_hash import digest
from crossdock.model.states import State
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.faktory.session import FaktorySession
from crossdock.protocols.worker_registry import WorkerRegistry

NAME = "faktory"

#: All connections of a second share one challenge, so that its hash is computed once. Hashing takes 3 ms: at 380 HELLOs
#: a second it would use all CPU time. Only an attacker that reads the connection could replay a hash in that second,
#: and such an attacker reads the jobs anyway.
CHALLENGE_S: Final = 1.0
_EXPECTED: Final = 16  #: cached hashes: both kinds, for connections that may still send HELLO


class Challenge(NamedTuple):
    """The password challenge in the greeting (faktory.md section 2.1)."""

    iterations: int
    salt: str


class FaktoryProtocol:
    name = NAME

    def __init__(
        self,
        *,
        password: str = "",
        allow_legacy_hash: bool = True,
        line_bytes: int = 16 * 1024 * 1024,
        handshake_s: float = 2.0,
        may_flush: bool = True,
        memory_mb: Callable[[], int] = lambda: 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.set_password(password)
        self._allow_legacy_hash = allow_legacy_hash
        self._challenge = Challenge(0, "")
        self._challenged = -math.inf
        self._clock = clock  # the dispatcher's time stands still until a connection's first request
        self.line_bytes = line_bytes
        self.handshake_s = handshake_s
        self.may_flush = may_flush
        self.memory_mb = memory_mb
        self.workers = WorkerRegistry()
        self.connections = 0  #: identified ones
        self.commands = 0
        self.errors = 0
        self.started: float | None = None  #: steady

    def set_password(self, password: str) -> None:
        """Require this password from now on; "": none. Connections past their handshake stay open."""
        self.has_password = bool(password)
        self._expected = lru_cache(_EXPECTED)(partial(digest, password.encode())) if password else None

    def session(self, dispatcher: Dispatcher, hang_up: Callable[[], None]) -> FaktorySession:
        self._begin(dispatcher)
        return FaktorySession(self, dispatcher, hang_up)

    def tick(self, dispatcher: Dispatcher) -> None:
        self._begin(dispatcher)
        self.workers.reap(dispatcher)

    def _begin(self, dispatcher: Dispatcher) -> None:
        """At the first call after a start: every lease there is was granted before the restart. A worker of another
        protocol may have the name of a Faktory worker."""
        if self.started is None:
            self.started = dispatcher.now.steady
            leased = jobs_in_state(dispatcher.state, State.LEASED)
            own = [job for job in leased if job.lease is not None and job.lease.via == NAME]
            self.workers.restore(own, dispatcher)

    def challenge(self) -> Challenge | None:
        if self._expected is None:
            return None
        now = self._clock()
        if now - self._challenged >= CHALLENGE_S:
            self._challenge = Challenge(4000 + secrets.randbelow(4096), f"{secrets.randbits(63):x}")
            self._challenged = now
        return self._challenge

    def admits(self, challenge: Challenge, version: int, pwdhash: str) -> bool:
        """Clients below version 2, such as PyPI `faktory`, hash once (faktory.md section 2.4). A setting refuses
        them."""
        if self._expected is None or not pwdhash or (version < 2 and not self._allow_legacy_hash):
            return False
        expected = self._expected(challenge.salt, challenge.iterations if version >= 2 else 1)
        return hmac.compare_digest(expected.encode(), pwdhash.encode())
