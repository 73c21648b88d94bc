"""The Redis protocol: what its sessions share. The scripts and views of qless and Resqu are passed as arguments."""

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

#: Publishes the notifications that follow from the events of one command.
EventHandler = Callable[[Dispatcher, Sequence[AnyEvent]], None]


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
        event_handlers: tuple[EventHandler, ...] = (),
    ) -> None:
        self._handshake_s = handshake_s
        self.set_password(password)
        self.request_bytes = request_bytes
        self.keys_bytes = keys_bytes
        self.shared_databases = shared_databases
        self.may_flush = may_flush
        self.scripts = Scripts(libraries)
        self.views = Views(views)
        self._event_handlers = event_handlers
        self.sessions: dict[int, RedisSession] = {}
        self.connected = 0
        self.commands = 0
        self.errors = 0
        self.started = 0.0  #: steady; time of the first connection or tick
        self.slow_log = {b"slowlog-log-slower-than": b"10000", b"slowlog-max-len": b"128"}
        self._numbers = count(1)
        self._last_notification: tuple[object, bytes] = (None, b"")

    def set_password(self, password: str) -> None:
        """Require this password from now on; "": none. Connections that are open stay open."""
        self._password = password.encode()
        self.has_password = bool(password)
        self.handshake_s = self._handshake_s if password else 0.0  #: without a password no handshake is expected

    def session(self, dispatcher: Dispatcher, hang_up: Callable[[], None]) -> RedisSession:
        self.started = self.started or dispatcher.now.steady
        self.connected += 1
        session = RedisSession(self, dispatcher, next(self._numbers))
        self.sessions[session.number] = session
        return session

    def tick(self, dispatcher: Dispatcher) -> None:
        """Only note the start time. The engine itself expires keys and leases."""
        self.started = self.started or dispatcher.now.steady

    def publish(self, dispatcher: Dispatcher, events: Sequence[AnyEvent]) -> None:
        for handler in self._event_handlers:
            handler(dispatcher, events)

    def notification(self, pattern: bytes | None, channel: bytes, text: bytes, resp3: bool) -> bytes:
        """Encode a published message. Subscribers to the same channel or pattern in the same RESP version share it."""
        key = (pattern, channel, text, resp3)
        if key != self._last_notification[0]:
            items = (b"message", channel, text) if pattern is None else (b"pmessage", pattern, channel, text)
            self._last_notification = (key, encode(Push(items), resp3))
        return self._last_notification[1]

    def admits(self, password: bytes) -> bool:
        return not self._password or hmac.compare_digest(self._password, password)
