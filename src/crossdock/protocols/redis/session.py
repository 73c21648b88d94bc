"""One Redis connection: looks up the command of each request, queues commands after MULTI, and encodes the replies."""

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from crossdock import logs
from crossdock.protocols.base import Answer, Close, Dispatcher, Grant, ReplyMemory, Slices, Wait, give_back
from crossdock.protocols.redis.commands.command import BEFORE_AUTH, NOT_QUEUED, OUTSIDE_MULTI, WHILE_SUBSCRIBED, Command
from crossdock.protocols.redis.commands.table import COMMANDS
from crossdock.protocols.redis.commands.transaction import QUEUE_AT_MOST, WORD_BYTES, end
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.pubsub import leave_all
from crossdock.protocols.redis.resp import values
from crossdock.protocols.redis.resp.decode import ProtocolError, Requests, RespRequest
from crossdock.protocols.redis.resp.encode import LARGE as LONG
from crossdock.protocols.redis.resp.encode import bulk_in_parts, encode, in_parts, is_long
from crossdock.protocols.redis.resp.values import Block, Error, LastReply, Result, Simple, Value
from crossdock.protocols.redis.views import run
from crossdock.protocols.rejection_delay import LARGE, Long, answer_long, close_delayed

if TYPE_CHECKING:
    from crossdock.protocols.redis.protocol import RedisProtocol

_QUEUED: Final = Simple(b"QUEUED")

#: The types that most commands return. They are encoded without further checks.
_SCALARS: Final = frozenset({int, Simple, type(None)})

#: Lines of an HTTP request. Redis closes the connection on them since 3.2, so that a web page cannot send commands.
_HTTP: Final = frozenset({b"post", b"host:"})


class RedisSession(Context):
    def __init__(self, protocol: "RedisProtocol", dispatcher: Dispatcher, number: int) -> None:
        super().__init__(protocol, dispatcher, number)
        self._requests = Requests(protocol.request_bytes, authenticated=self.identified)
        self.receive: Callable[[bytes], list[RespRequest]] = self._requests.receive
        self.push: Callable[[bytes], None] = lambda data: None

    def greeting(self) -> bytes:
        return b""

    def handle(self, request: RespRequest) -> Answer:
        if not isinstance(request, list):
            return self._unusual(request)
        command = COMMANDS.get(request[0])
        if command is None:
            name = request[0].lower()
            if name in _HTTP:
                self.report("protocol-error", "an HTTP request")
                return Close(b"")
            command = COMMANDS.get(name)
            if command is None:
                self.report("unknown-command", f"unknown command {logs.shown(name)}")
                return self._refuse(values.unknown_command(request))
        arity = command.arity
        if len(request) != arity if arity > 0 else len(request) < -arity:
            return self._refuse_as(command, request, values.arity)
        if not self.identified and not command.flags & BEFORE_AUTH:
            return self._refuse_as(command, request, lambda name: values.NO_AUTH)
        if (self.channels or self.patterns) and not self.resp3 and not command.flags & WHILE_SUBSCRIBED:
            return self._refuse_as(command, request, values.not_while_subscribed)
        self.protocol.commands += 1
        if self.queued is not None and not command.flags & NOT_QUEUED:
            return self._queue(command, request)
        try:
            answer = run(self, command, request[1:])
            if type(answer) is bytes and (size := len(answer)) <= LONG:
                leases = self.granted
                if leases is None:
                    return b"$%d\r\n%b\r\n" % (size, answer)
                self.granted = None
                return Grant(b"$%d\r\n%b\r\n" % (size, answer), leases)
            return self._answer(answer)
        except Exception:
            self._give_back()
            raise

    def _unusual(self, request: Long[list[bytes]] | ProtocolError) -> Answer:
        if isinstance(request, Long):
            return answer_long(self.dispatcher, self.handle, request)
        self.report("protocol-error", request.text)
        close = Close(encode(Error(f"ERR {request.text}"), self.resp3))
        return close_delayed(close, request.size) if request.size > LARGE else close

    def _refuse(self, error: Error) -> bytes:
        """Refuse a command before it runs. Inside MULTI, EXEC then refuses the transaction."""
        self.queue_failed = True
        return encode(error, self.resp3)

    def _refuse_as(self, command: Command, request: list[bytes], error: Callable[[bytes], Error]) -> bytes:
        """Refuse with `error(name)`, or with the error of a wrong subcommand, which takes precedence."""
        try:
            refused = error(command.full_name(request[1:]))
        except Error as wrong:
            return self._refuse(wrong.reply())
        if command.name == b"exec":
            end(self)
            refused = values.exec_refused(refused)
        return self._refuse(refused)

    def _queue(self, command: Command, request: list[bytes]) -> bytes:
        if command.flags & OUTSIDE_MULTI:
            return self._refuse(values.NOT_IN_MULTI)
        if command.subcommands is not None:
            try:
                command.full_name(request[1:])
            except Error as wrong:
                return self._refuse(wrong.reply())
        self.queued_bytes += sum(map(len, request)) + WORD_BYTES * len(request)
        if self.queued is None or len(self.queued) >= QUEUE_AT_MOST or self.queued_bytes > self.protocol.request_bytes:
            return self._refuse(Error("ERR the transaction is too large"))
        self.queued.append((command, request[1:]))
        return encode(_QUEUED, self.resp3)

    def _answer(self, result: Result) -> Answer:
        if type(result) in _SCALARS:
            return self._reply(result)  # type: ignore[arg-type]
        if isinstance(result, Block):
            return Wait(result.on, result.until, partial(self._retry, result))
        if isinstance(result, LastReply):
            return Close(encode(result.value, self.resp3))
        if isinstance(result, Generator):
            return self._slices(result)
        # Leases are granted with the last byte of a reply, so a reply that grants leases is sent in one piece.
        if self.granted is None:
            if type(result) is bytes and len(result) > LONG:
                return self._bulk(result)
            if is_long(result):
                return self._parts(result)
        return self._reply(result)

    def _reply(self, value: Value) -> bytes | Grant:
        reply = encode(value, self.resp3)
        if self.granted is None:
            return reply
        leases, self.granted = self.granted, None
        return Grant(reply, leases)

    def _give_back(self) -> None:
        """End the leases of a request that failed before its reply was made."""
        if self.granted is not None:
            leases, self.granted = self.granted, None
            give_back(self.dispatcher, self.protocol.name, leases)

    def _retry(self, block: Block, late: bool) -> Answer:
        if late:
            return encode(block.at_timeout, self.resp3)
        try:
            return self._answer(block.retry())
        except Error as error:
            return self._reply(error.reply())
        except Exception:
            self._give_back()
            raise

    def _slices(self, work: Generator[Any, None, Value]) -> Slices:
        reported = 0  # bytes of the reply that are counted already
        while True:
            try:
                step = next(work)
            except StopIteration as end:
                value: Value = end.value
                break
            except Error as error:
                value = error.reply()
                break
            except Exception:
                self._give_back()
                raise
            if isinstance(step, ReplyMemory):
                reported += step.size
            yield step
        if is_long(value) and self.granted is None:
            return (yield from self._parts(value, reported))
        return self._reply(value)

    def _bulk(self, value: bytes) -> Slices:
        yield from bulk_in_parts(value)
        return b""

    def _parts(self, value: Value, reported: int = 0) -> Slices:
        yield from in_parts(value, self.resp3, reported)
        return b""

    def deliver(self, pattern: bytes | None, channel: bytes, text: bytes) -> None:
        self.push(self.protocol.notification(pattern, channel, text, self.resp3))

    def set_authenticated(self) -> None:
        self.identified = self._requests.authenticated = True

    def reset_authentication(self) -> None:
        self.identified = self._requests.authenticated = not self.protocol.has_password

    def broken(self) -> Close | None:
        return None  # a protocol error arrives as a request, so that the requests before it are answered first

    def crowded(self, connections: int) -> Close:
        return Close(encode(Error("ERR max number of clients reached"), self.resp3))

    def farewell(self) -> bytes:
        return b""

    def closed(self) -> None:
        leave_all(self)
        self.protocol.sessions.pop(self.number, None)
        for act in self.on_close:
            act()
