"""One connection, any door: hands requests to the session and writes what the turn releases.

A client that floods is served a slice at a time, between the turns of others.
"""

import asyncio
import time
from collections import deque
from typing import Any, Protocol

from crossdock.model.commands import GiveBack
from crossdock.model.job import Held
from crossdock.server.deadline import Deadline
from crossdock.server.flow import Flow
from crossdock.server.limits import PASS_S, PUSHED_UNREAD, REQUESTS_A_PASS, Limits
from crossdock.server.parts import Part
from crossdock.server.pending import Slicing, Waiting
from crossdock.server.silence import Silence
from crossdock.server.turn import Turn
from crossdock.wire.answer import Answer, Bye, Slices, Wait
from crossdock.wire.session import Door, Told, Watched


class Host(Protocol):
    """The server, as a connection sees it."""

    connections: "set[Connection]"
    limits: Limits


class Connection(Flow):
    def __init__(self, host: Host, door: Door, turn: Turn, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop, host.limits.unread_bytes)
        self._host = host
        self._door = door
        self._turn = turn
        self._session = door.session(turn, self.abort)
        if isinstance(self._session, Told):
            self._session.push = self.push
        self._receive = self._session.receive
        self._handle = self._session.handle
        self._reply = turn.reply
        self._requests: deque[Any] = deque()
        self._unreleased = 0  #: bytes of replies the turn still holds
        self._handshake: Deadline | None = None
        self._silence: Silence | None = None
        self._pending: Waiting | Slicing | None = None  #: a request that is not answered yet; those behind it wait
        self._parted = False  #: the socket has a part of its answer; what follows waits for the peer
        self._pump_queued = False
        self._ended = False  #: the peer sends no more
        self._lost = False
        self._left = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._host.connections.add(self)
        greeting = self._session.greeting()
        if greeting:
            self._transport.write(greeting)
        if self._door.handshake_s:
            self._handshake = Deadline(self._loop, self._door.handshake_s, self.abort)
        else:
            self._welcome()
        if isinstance(self._session, Watched):
            self._silence = Silence(self, self._session, self._turn, self._loop)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        receive = self._receive  # called as `self._receive(…)` it would be looked for on the class first, each time
        requests = receive(data)
        if self._requests or self._choked or self._pending is not None:
            self._requests.extend(requests)
            self._ahead += len(data)
            self._control_reading()
        elif len(requests) == 1 and self._handshake is None:
            if not self._turn.fresh:
                self._turn.begin()
            handle = self._handle
            answer = handle(requests[0])
            if type(answer) is bytes:  # as `_say`
                granted = self._session.granted
                if granted is not None:
                    self._session.granted = None
                self._unreleased += len(answer)
                reply = self._reply
                reply(self, answer, granted)
            else:
                self._take(answer)
        else:
            self._requests.extend(requests)
            self._pump()

    def _pump(self) -> None:
        """Handle what was read, until it blocks or ends, or others must have their turn."""
        self._pump_queued = False
        session, requests = self._session, self._requests
        self._turn.begin()
        left, until = REQUESTS_A_PASS, time.monotonic() + PASS_S
        while requests and left and not self._choked and self._unreleased <= self._unread_bytes:
            left -= 1
            answer = session.handle(requests.popleft())
            if type(answer) is bytes:
                self._say(answer)
            elif not self._take(answer):
                break
            if self._handshake is not None and session.identified:
                self._welcome()
            if time.monotonic() > until:
                left = 0
        if requests:
            if not left:
                self._go_on()
            self._control_reading()
        elif not self._closing:
            self._ahead = 0
            broken = session.broken()
            if broken is not None:
                self._take(broken)
            elif not self._reading:
                self._control_reading()

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
        if len(self._host.connections) > self._host.limits.connections:
            crowded = self._session.crowded(len(self._host.connections))
            if crowded is not None:
                self._take(crowded)

    def _say(self, reply: bytes) -> None:
        self._unreleased += len(reply)
        granted = self._session.granted
        if granted is not None:
            self._session.granted = None
        self._turn.reply(self, reply, granted)

    def _take(self, answer: Answer) -> bool:
        """Carry out an answer. True: the next request may be handled."""
        if isinstance(answer, bytes):
            self._say(answer)
            return True
        if isinstance(answer, Bye):
            self._requests.clear()
            self._say(answer.reply)
            self._closing = True
            return False
        if isinstance(answer, Wait):
            if self._ended:
                return self._take(Bye(b""))
            self._pending = Waiting(answer, self._turn, self._loop, self._answered)
            return False
        work = self._pending = Slicing(answer, self._turn, self._loop, self._answered, self._part)
        return self._slice(work)

    def _slice(self, work: Slicing) -> bool:
        """One step of it. True when it has ended and was answered."""
        answer = work.step()
        if answer is None:
            return False
        self._pending = None
        return self._take(answer)

    def _part(self, data: bytes) -> None:
        self._unreleased += len(data)
        self._turn.reply(Part(self), data, None)

    def parted(self) -> None:
        self._parted = True
        self._next_part()

    def _next_part(self) -> None:
        """Of a long answer, if the peer reads."""
        if self._parted and not self._choked and isinstance(self._pending, Slicing):
            self._parted = False
            self._pending.go_on()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._next_part()

    def _answered(self, answer: Answer) -> None:
        """What was pending has come to this."""
        self._pending = None
        if self._take(answer):
            self._go_on()

    def _leave_pending(self) -> None:
        """Unheard."""
        if self._pending is not None:
            self._pending.leave()
            self._pending = None

    def is_owed(self) -> bool:
        return bool(self._pending is not None or self._unreleased or (self._requests and not self._choked))

    def cut_off(self, last: Bye) -> None:
        self._take(last)

    def push(self, data: bytes) -> None:
        """Tell the peer what it did not ask for, behind all that was said before. Unlike with replies nobody can be
        made to wait for it, so a peer that does not read is cut off."""
        if self._closing:
            return
        unread = self._unreleased + self._transport.get_write_buffer_size() + len(data)
        if unread > PUSHED_UNREAD * self._unread_bytes:
            self.abort()
            return
        self._unreleased += len(data)
        self._turn.reply(self, data, None)

    def deliver(self, reply: bytes, granted: list[Held] | None) -> None:
        """Called by the turn when this reply, and all before it, may leave."""
        self._unreleased -= len(reply)
        if self._lost or (self._ended and granted is not None):
            if granted is not None:  # nobody will ever know of these leases
                self._turn.begin()
                self._turn.do(GiveBack(self._door.name, granted))
            if not self._lost:
                self._transport.close()
            self._lose()
            return
        if reply:
            write = self._write
            write(reply)
        if self._closing:
            if not self._unreleased:
                self._hang_up()
        elif self._requests:
            self._go_on()
        elif self._ended and not self._owes():
            self._take(Bye(b""))

    def _owes(self) -> bool:
        return bool(self._unreleased or self._requests or self._pending is not None)

    def eof_received(self) -> bool:
        """The peer sends no more. Whether it still listens cannot be told: so what it asked for is answered, but it
        waits for nothing any more and is given no job, which would be lost with it. True: keep the connection."""
        self._ended = True
        if isinstance(self._pending, Waiting):
            self._leave_pending()
            self._take(Bye(b""))
        return self._owes()

    def connection_lost(self, error: Exception | None) -> None:
        self._host.connections.discard(self)
        super().connection_lost(error)
        if self._handshake is not None:
            self._handshake.cancel()
        if self._silence is not None:
            self._silence.end()
        self._lose()

    def _lose(self) -> None:
        """Nothing reaches the peer any more."""
        self._lost = self._closing = True
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
            while isinstance(self._pending, Slicing) and not self._is_much() and time.monotonic() < give_up:
                self._slice(self._pending)
            self._end_wait()  # of a FETCH that went on in slices and then waits
            if isinstance(self._pending, Slicing) and self._is_much():  # a long answer: it ends here
                self._leave_pending()
                self._take(Bye(b""))
            elif isinstance(self._pending, Slicing):
                self.abort()
            elif self._requests and self._pending is None:
                answer = self._session.handle(self._requests.popleft())
                self._take(answer.ask(True) if isinstance(answer, Wait) else answer)
            else:
                self._leave_pending()
                self._take(Bye(self._session.farewell()))

    def _is_much(self) -> bool:
        return self._unreleased > self._unread_bytes

    def _end_wait(self) -> None:
        if isinstance(self._pending, Waiting):
            self._pending.too_late()
