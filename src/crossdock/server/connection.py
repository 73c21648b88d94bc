"""One connection, any door: hands requests to the session, and ends when either side does.

A client that floods is served a slice at a time, between the turns of others.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from crossdock.protocols.base import Answer, Close, Grant, IdleLimited, Slices, Subscriber, Wait, WireProtocol
from crossdock.server.answering import Answering
from crossdock.server.connection_registry import ConnectionRegistry
from crossdock.server.group_commit import GroupCommit
from crossdock.server.idle_timeout import Deadline, IdleTimeout
from crossdock.server.limits import LARGE_REPLY, PASS_S, PIECE, REQUESTS_A_PASS
from crossdock.server.pending import SlicedRequest, WaitingRequest


class Connection(Answering):
    def __init__(
        self, registry: ConnectionRegistry, door: WireProtocol, turn: GroupCommit, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(door.session(turn, self.abort), door.name, turn, loop, registry.limits.unread_bytes)
        self._registry = registry
        self._door = door
        self.unfinished = 0
        if isinstance(self._session, Subscriber):
            self._session.push = self.push
        self._receive = self._session.receive
        self._handle = self._session.handle
        self._reply = turn.reply
        self._handshake: Deadline | None = None
        self._silence: IdleTimeout | None = None
        self._pump_queued = False
        self._left = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self._registry.enter(self):
            self.abort()
            return
        greeting = self._session.greeting()
        if greeting:
            self._transport.write(greeting)
        if self._door.handshake_s:
            self._await_handshake()
        else:
            self._welcome()
        if isinstance(self._session, IdleLimited):
            self._silence = IdleTimeout(self, self._session, self._turn, self._loop)

    def _await_handshake(self) -> None:
        self._handshake = Deadline(self._loop, self._door.handshake_s, self._not_identified)

    def _not_identified(self) -> None:
        """In time. While its request is worked on it is not the peer that is late."""
        if self.is_owed():
            self._await_handshake()
        else:
            self.abort()

    def data_received(self, data: bytes) -> None:
        if len(data) > PIECE and not self._yielding:
            self._divide(data, 0)
            return
        if self._closing:
            return
        receive = self._receive  # called as `self._receive(…)` it would be looked for on the class first, each time
        requests = receive(data)
        if not requests:
            self._registry.gather(self, len(data))
        elif self.unfinished:
            self._complete(requests, len(data))
            return
        if self._requests or self._choked or self._pending is not None:
            self._line_up(requests, len(data))
        elif len(requests) == 1 and self._handshake is None:
            if not self._turn.fresh:
                self._turn.begin()
            handle = self._handle
            try:
                answer = handle(requests[0])
            except Exception as error:  # noqa: BLE001 see `_fault`
                answer = self._fault(error)
            if type(answer) is bytes and (size := len(answer)) <= LARGE_REPLY:  # as `_say`
                self._unreleased += size
                reply = self._reply
                reply(self, answer, None)
            elif type(answer) is Grant and (size := len(answer.reply)) <= LARGE_REPLY:
                self._unreleased += size
                reply = self._reply
                reply(self, answer.reply, answer.leases)
            else:
                self._take(answer)
        else:
            self._requests.extend(requests)
            self._pump()

    def _divide(self, data: bytes, at: int) -> None:
        """A pipeline may have tens of thousands of requests in one read: they are cut piece by piece, between the turns
        of others, and nothing more is read meanwhile. Of one long request there is nothing to cut."""
        self._yielding = True
        self._control_reading()
        end = len(data) if self.unfinished else at + PIECE
        self.data_received(data[at:end])
        if end < len(data) and not self._closing:
            self._loop.call_soon(self._divide, data, end)
        else:
            self._loop.call_soon(self._read_on)

    def _complete(self, requests: Sequence[Any], size: int) -> None:
        """What came in pieces is whole. If it is worked on in slices it is kept meanwhile, and counts as long."""
        if self._requests or self._choked or self._pending is not None:
            self._line_up(requests, size)
        else:
            self._requests.extend(requests)
            self._pump()
        if not isinstance(self._pending, SlicedRequest):
            self._registry.finish(self)

    def _line_up(self, requests: Sequence[Any], size: int) -> None:
        """Behind what is not answered yet."""
        self._requests.extend(requests)
        self._ahead += size
        self._control_reading()

    def _count_replies(self) -> None:
        self._registry.count_replies(self)

    def describe(self) -> str:
        """For the log."""
        return f"{self._via} {self._transport.get_extra_info('peername') or 'on a UNIX socket'}"

    def _answered(self, answer: Answer) -> None:
        if self.unfinished and isinstance(self._pending, SlicedRequest):
            self._registry.finish(self)
        if self._silence is not None:  # while it waited for the answer it could not speak
            self._silence.answered()
        super()._answered(answer)

    def _pump(self) -> None:
        """Handle what was read, until it blocks or ends, or others must have their turn."""
        goes_on, self._pump_queued = self._pump_queued, False
        if self._closing:  # since it was queued, and the session may have gone with the peer
            return
        session, requests = self._session, self._requests
        self._turn.begin()
        before = self._turn.held
        left, until = REQUESTS_A_PASS, time.monotonic() + PASS_S
        while requests and left and not self._choked and self._unreleased <= self._unread_bytes:
            left -= 1
            answer = self._attend()
            if type(answer) is bytes:
                self._say(answer)
                if self._handshake is not None and session.identified:
                    self._welcome()
            else:
                if self._handshake is not None and session.identified:
                    self._welcome()  # the peer has spoken, though the answer may take minutes
                    if self._closing:
                        break
                if not self._take(answer):
                    break
            if time.monotonic() > until:
                left = 0
        if goes_on:
            self._turn.overlook(before)
        if requests:
            if not left:
                self._go_on()
            self._control_reading()
        elif not self._closing:
            self._ahead = 0
            broken = session.broken()
            if broken is not None:
                self._registry.finish(self)  # it is not kept, and the answer may be late
                self._take(broken)
            elif not self._reading:
                self._control_reading()

    def _attend(self) -> Answer:
        """To the request that came first."""
        request = self._requests.popleft()
        try:
            return self._session.handle(request)
        except Exception as error:  # noqa: BLE001 see `_fault`
            return self._fault(error)

    def _go_on(self) -> None:
        """With the requests that wait, after the others' turn. Nothing to do while something blocks."""
        if self._pump_queued or self._closing or self._choked or self._pending is not None:
            return
        if self._requests:
            self._pump_queued = True
            self._loop.call_soon(self._pump)
        elif not self._reading:  # what was read ahead is the beginning of one request
            self._ahead = 0
            self._control_reading()

    def _welcome(self) -> None:
        if self._handshake is not None:
            self._handshake.cancel()
            self._handshake = None
        if not self._registry.welcome(self):
            crowded = self._session.crowded(len(self._registry.welcomed) + 1)
            if crowded is not None:
                self._take(crowded)

    def eof_received(self) -> bool:
        """The peer sends no more. Whether it still listens cannot be told: so what it asked for is answered, but it
        waits for nothing any more and is given no job, which would be lost with it. True: keep the connection."""
        self._ended = True
        if isinstance(self._pending, WaitingRequest):
            self._leave_pending()
            self._take(Close(b""))
        return self._owes()

    def connection_lost(self, error: Exception | None) -> None:
        self._registry.leave(self)
        super().connection_lost(error)
        if self._handshake is not None:
            self._handshake.cancel()
        if self._silence is not None:
            self._silence.end()
            self._silence = None
        self._lose()

    def _lose(self) -> None:
        self._lost = self._closing = True
        self._give_back_unsent()
        self._leave_pending()
        self._requests.clear()
        if not self._unreleased:
            self._leave()

    def _leave(self) -> None:
        """The peer is gone, and what it never heard of is given back: the session may end."""
        if not self._left:
            self._left = True
            self._turn.begin()  # what the session leaves behind happens now
            self._finish(self._session.closed())
            # They know each other: what was half sent would wait for the garbage collector, which comes late.
            del self._session, self._receive, self._handle

    def _finish(self, work: Slices | None) -> None:
        self._turn.begin()
        if work is not None and next(work, self) is not self:
            self._loop.call_soon(self._finish, work)

    def abort(self) -> None:
        self._requests.clear()
        super().abort()

    def shut_down(self, give_up: float) -> None:
        """Answer what was read, end a wait with its empty answer, say goodbye, close. A request that would wait on all
        the same gets no answer, and none behind it does: that would be taken for its answer."""
        if self._closing:
            return
        self._turn.begin()
        self._end_wait()
        while not self._closing:
            while isinstance(self._pending, SlicedRequest) and not self._is_much() and time.monotonic() < give_up:
                self._slice(self._pending)
            self._end_wait()  # of a FETCH that went on in slices and then waits
            if self._closing:  # it ended with last words of its own
                return
            if isinstance(self._pending, SlicedRequest) and self._is_much():  # a long answer: it ends here
                self._leave_pending()
                self._take(Close(b""))
            elif isinstance(self._pending, SlicedRequest):
                self.abort()
            elif self._requests and self._pending is None:
                answer = self._attend()
                self._take(self._patient(answer).ask(True) if isinstance(answer, Wait) else answer)
            else:
                self._leave_pending()
                self._take(Close(self._session.farewell()))
