"""One connection, any door: reads with bounds, hands requests to the session, writes what the turn releases.

Flow control both ways: a client that does not read is not read from, and a client that floods is served a slice at a
time, between the turns of others.
"""

import asyncio
import time
from collections import deque
from typing import Any, Final, Protocol, cast

from crossdock.model.commands import GiveBack
from crossdock.model.job import Held
from crossdock.server.limits import PUSHED_UNREAD, READ_AHEAD, REQUESTS_A_PASS, Limits
from crossdock.server.parts import Part
from crossdock.server.turn import Turn
from crossdock.server.waits import Waiter
from crossdock.wire.answer import Answer, Bye, Slices, Wait
from crossdock.wire.session import Door, Told, Watched

#: A peer that was told goodbye may go on sending this long before it is cut off.
_LINGER_S: Final = 1.0


class Host(Protocol):
    """The server, as a connection sees it."""

    connections: "set[Connection]"
    limits: Limits


class Connection(asyncio.Protocol):
    def __init__(self, host: Host, door: Door, turn: Turn, loop: asyncio.AbstractEventLoop) -> None:
        self._host = host
        self._door = door
        self._turn = turn
        self._loop = loop
        self._session = door.session(turn, self.abort)
        if isinstance(self._session, Told):
            self._session.push = self.push
        self._receive = self._session.receive
        self._handle = self._session.handle
        self._reply = turn.reply
        self._unread_bytes = host.limits.unread_bytes
        self._requests: deque[Any] = deque()
        self._ahead = 0  #: bytes read since requests began to pile up
        self._unreleased = 0  #: bytes of replies the turn still holds
        self._handshake: asyncio.TimerHandle | None = None
        self._waiter: Waiter | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._linger: asyncio.TimerHandle | None = None
        self._silence: asyncio.TimerHandle | None = None
        self._slices: Slices | None = None
        self._parted = False  #: the socket has a part of a reply; what follows waits for the peer
        self._pump_queued = False
        self._reading = True
        self._choked = False  #: the peer does not read
        self._ended = False  #: the peer sends no more
        self._closing = False
        self._lost = False
        self._left = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._write = self._transport.write
        self._transport.set_write_buffer_limits(high=self._unread_bytes)
        self._host.connections.add(self)
        greeting = self._session.greeting()
        if greeting:
            self._transport.write(greeting)
        if self._door.handshake_s:
            self._handshake = self._loop.call_later(self._door.handshake_s, self.abort)
        else:
            self._welcome()
        if isinstance(self._session, Watched):
            self._watch(self._session, self._session.silence_s)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        receive = self._receive  # called as `self._receive(…)` it would be looked for on the class first, each time
        requests = receive(data)
        if self._requests or self._choked or self._waiter is not None or self._slices is not None:
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
        left = REQUESTS_A_PASS
        while requests and left and not self._choked and self._unreleased <= self._unread_bytes:
            left -= 1
            answer = session.handle(requests.popleft())
            if type(answer) is bytes:
                self._say(answer)
            elif not self._take(answer):
                break
            if self._handshake is not None and session.identified:
                self._welcome()
        if requests:
            if not left:
                self._queue_pump()
            self._control_reading()
        elif not self._closing:
            self._ahead = 0
            broken = session.broken()
            if broken is not None:
                self._take(broken)
            elif not self._reading:
                self._control_reading()

    def _queue_pump(self) -> None:
        """Go on with the requests that wait, after the others' turn. Nothing to do while something blocks."""
        if self._pump_queued or self._closing or self._choked or self._waiter is not None or self._slices is not None:
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
            self._waiter = self._turn.waits.add(answer, self._stirred)
            self._deadline = self._loop.call_later(max(0.0, answer.until - self._turn.now.steady), self._too_late)
            return False
        self._slices = answer
        return self._slice()

    def _slice(self) -> bool:
        """One step of long work. True when it has ended and was answered."""
        if self._slices is None:
            return False
        try:
            step: float | bytes | None = next(self._slices)
        except StopIteration as end:
            self._slices = None
            return self._take(end.value)
        if isinstance(step, bytes):
            self._unreleased += len(step)
            self._turn.reply(Part(self), step, None)
        elif step:
            self._loop.call_later(step, self._next_slice)
        else:
            self._loop.call_soon(self._next_slice)
        return False

    def _next_slice(self) -> None:
        self._turn.begin()
        if self._slice():
            self._queue_pump()

    def parted(self) -> None:
        self._parted = True
        self._go_on()

    def _go_on(self) -> None:
        """With the next part of a reply, if the peer reads."""
        if self._parted and not self._choked:
            self._parted = False
            self._loop.call_soon(self._next_slice)

    def _stirred(self, answer: Answer) -> None:
        """A queue this connection waited on had something to say."""
        self._end_wait()
        if self._take(answer):
            self._queue_pump()

    def _too_late(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._turn.begin()
            self._turn.waits.remove(waiter)
            self._stirred(waiter.wait.ask(True))

    def _end_wait(self) -> None:
        self._waiter = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _leave_wait(self) -> None:
        """Unheard: nobody asks this one any more."""
        if self._waiter is not None:
            self._turn.waits.remove(self._waiter)
        self._end_wait()

    def _watch(self, session: Watched, seconds: float) -> None:
        self._silence = self._loop.call_later(seconds, self._look, session)

    def _look(self, session: Watched) -> None:
        """Was the peer silent for too long, while it was its turn? Looked at when it might have been: hearing it costs
        no timer."""
        if self._closing:
            return
        self._turn.begin()
        owed = self._waiter is not None or self._slices is not None or self._unreleased
        if owed or (self._requests and not self._choked):
            left = session.silence_s
        else:
            left = session.heard + session.silence_s - self._turn.now.steady
        if left > 0:
            self._watch(session, left)
        else:
            self._take(session.silent())

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
            self._queue_pump()
        elif self._ended and not self._owes():
            self._take(Bye(b""))

    def _owes(self) -> bool:
        return bool(self._unreleased or self._requests or self._slices is not None)

    def eof_received(self) -> bool:
        """The peer sends no more. Whether it still listens cannot be told: so what it asked for is answered, but it
        waits for nothing any more and is given no job, which would be lost with it. True: keep the connection."""
        self._ended = True
        if self._waiter is not None:
            self._leave_wait()
            self._take(Bye(b""))
        return self._owes()

    def _hang_up(self) -> None:
        """Close, but let the peer hear the last words: a socket closed with bytes unread would cut them off."""
        if self._transport.is_closing() or self._linger is not None:
            return
        self._linger = self._loop.call_later(_LINGER_S, self.abort)
        self._transport.write_eof()
        if not self._reading:
            self._reading = True
            self._transport.resume_reading()

    def _control_reading(self) -> None:
        """Read while the peer reads and what is read ahead is within bounds: so the end of a waiting peer is seen."""
        reading = (not self._choked and self._ahead <= READ_AHEAD) or self._linger is not None
        if reading is not self._reading and not self._transport.is_closing():
            self._reading = reading
            if reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def pause_writing(self) -> None:
        self._choked = True
        self._control_reading()

    def resume_writing(self) -> None:
        self._choked = False
        self._control_reading()
        self._go_on()
        self._queue_pump()

    def connection_lost(self, error: Exception | None) -> None:
        self._host.connections.discard(self)
        for timer in (self._handshake, self._linger, self._silence):
            if timer is not None:
                timer.cancel()
        self._lose()

    def _lose(self) -> None:
        """Nothing reaches the peer any more."""
        self._lost = self._closing = True
        self._leave_wait()
        self._slices = None
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
        """Close at once, without a word."""
        self._closing = True
        self._requests.clear()
        self._transport.abort()

    def shut_down(self, give_up: float) -> None:
        """Answer what was read, end a wait with its empty answer, say goodbye, close. A request that would wait on all
        the same gets no answer, and none behind it does: that would be taken for its answer."""
        if self._closing:
            return
        self._turn.begin()
        self._too_late()
        while not self._closing:
            while self._slices is not None and self._unreleased <= self._unread_bytes and time.monotonic() < give_up:
                self._slice()
            self._too_late()  # of a FETCH that went on in slices and then waits
            if self._slices is not None and self._unreleased > self._unread_bytes:  # a long reply: it ends here
                self._slices = None
                self._take(Bye(b""))
            elif self._slices is not None:
                self.abort()
            elif self._requests and self._waiter is None:
                answer = self._session.handle(self._requests.popleft())
                self._take(answer.ask(True) if isinstance(answer, Wait) else answer)
            else:
                self._leave_wait()
                self._take(Bye(self._session.farewell()))
