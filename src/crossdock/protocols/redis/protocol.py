"""The Redis door: what its sessions share. qless and Resqu bring their scripts and views as arguments."""

import hmac
from collections.abc import Callable, Sequence
from itertools import count

from crossdock.model.events import AnyEvent
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.redis.resp.encode import encode
from crossdock.protocols.redis.resp.values import Push
from crossdock.protocols.redis.scripts import Library, Scripts
from crossdock.protocols.redis.session import RedisSession
from crossdock.protocols.redis.views import View, Views

NAME = "redis"

#: Publishes what events mean to those who subscribed.
Herald = Callable[[Dispatcher, Sequence[AnyEvent]], None]


class RedisProtocol:
    name = NAME

    def __init__(
        self,
        *,
        password: str = "",
        request_bytes: int = 16 * 1024 * 1024,
        keys_bytes: int = 64 * 1024 * 1024,
        shared_databases: bool = False,
        handshake_s: float = 5.0,
        may_flush: bool = True,
        libraries: tuple[Library, ...] = (),
        views: tuple[View, ...] = (),
        heralds: tuple[Herald, ...] = (),
    ) -> None:
        self._password = password.encode()
        self.has_password = bool(password)
        self.handshake_s = handshake_s if password else 0.0  #: without one there is nothing to wait for
        self.request_bytes = request_bytes
        self.keys_bytes = keys_bytes
        self.shared_databases = shared_databases
        self.may_flush = may_flush
        self.scripts = Scripts(libraries)
        self.views = Views(views)
        self._heralds = heralds
        self.sessions: dict[int, RedisSession] = {}
        self.connected = 0
        self.commands = 0
        self.started = 0.0  #: steady; of the first connection
        self.slow_log = {b"slowlog-log-slower-than": b"10000", b"slowlog-max-len": b"128"}
        self._numbers = count(1)
        self._told: tuple[object, bytes] = (None, b"")

    def session(self, dispatcher: Dispatcher, hang_up: Callable[[], None]) -> RedisSession:
        self.started = self.started or dispatcher.now.steady
        self.connected += 1
        session = RedisSession(self, dispatcher, next(self._numbers))
        self.sessions[session.number] = session
        return session

    def tick(self, dispatcher: Dispatcher) -> None:
        """Nothing to watch: what has an end is the engine's affair."""
        self.started = self.started or dispatcher.now.steady

    def tell(self, dispatcher: Dispatcher, events: Sequence[AnyEvent]) -> None:
        for herald in self._heralds:
            herald(dispatcher, events)

    def notification(self, pattern: bytes | None, channel: bytes, text: bytes, resp3: bool) -> bytes:
        """A published text on the wire: made once for all who hear it by the same name and protocol."""
        what = (pattern, channel, text, resp3)
        if what != self._told[0]:
            said = (b"message", channel, text) if pattern is None else (b"pmessage", pattern, channel, text)
            self._told = (what, encode(Push(said), resp3))
        return self._told[1]

    def admits(self, password: bytes) -> bool:
        return not self._password or hmac.compare_digest(self._password, password)
