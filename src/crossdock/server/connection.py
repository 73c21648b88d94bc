"""One connection of any protocol: passes requests to the session, sends its answers, and closes.

Pipelined requests are handled a few at a time, so that other connections are served in between.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from crossdock.model.commands.core import GiveBack
from crossdock.model.job import LeaseRef
from crossdock.protocols.base import Answer, Close, ErrorReply, Grant, IdleLimited, Subscriber, Wait, WireProtocol
from crossdock.server.connection_log import ConnectionLog
from crossdock.server.connection_registry import ConnectionRegistry
from crossdock.server.flow_control import PASS_S, PIECE, REQUESTS_A_PASS, FlowControl
from crossdock.server.group_commit import GroupCommit
from crossdock.server.idle_timeout import HandshakeTimeout, IdleTimeout
from crossdock.server.pending import PendingRequest, guarded_wait
from crossdock.server.reply_queue import LARGE_REPLY, LargeReply, ReplyQueue


class Connection(asyncio.Protocol):
    def __init__(self, registry: ConnectionRegistry, protocol: WireProtocol, commit: GroupCommit) -> None:
        self._registry = registry
        self._protocol = protocol
        self.protocol = protocol.name
        self._commit = commit
        self._clock = commit.clock
        self._clock.enter()
        reply_buffer = registry.limits.reply_buffer_bytes
        self._flow = FlowControl(commit.clock, reply_buffer)
        self.replies = ReplyQueue(self, commit.reply, self._flow, reply_buffer, partial(registry.count_replies, self))
        self.log = ConnectionLog(registry.next_number(), protocol.name, self._flow.peer_name)
        self._session_ended = False
        self._session = protocol.session(commit, self.abort)
        self._session.report = self.log.report
        if isinstance(self._session, Subscriber):
            self._session.push = self.push
        # `self._session.handle(…)` would look up the method on the class for every request.
        self._receive = self._session.receive
        self._handle: Callable[[Any], Answer] = self._session.handle
        if self.log.is_verbose():
            self.log_commands(True)
        self._reply = commit.reply
        self._requests: deque[Any] = deque()  #: parsed, and not handled yet
        self._pending = PendingRequest(commit, self.replies, self._answered, self.log.request_failed)
        self._handle_scheduled = False
        self._handshake: HandshakeTimeout | None = None
        self._idle: IdleTimeout | None = None
        self._closing = False
        self._ended = False  #: the peer has closed its sending side
        self._ending = False  #: `_closing` or `_ended`
        self.incomplete_bytes = 0  #: updated by the registry
        self.reply_bytes = 0  #: updated by the registry

    # Callbacks of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._flow.attach(cast(asyncio.Transport, transport))
        self._write = self._flow.write
        if not self._registry.add(self):
            self.log.report("connection-refused", "too many connections without a handshake")
            self.abort()
            return
        self.log.connected()
        greeting = self._session.greeting()
        if greeting:
            self._write(greeting)
        if self._protocol.handshake_s:
            self._handshake = HandshakeTimeout(self, self._clock, self._protocol.handshake_s)
        else:
            self._admit()
        if isinstance(self._session, IdleLimited):
            self._idle = IdleTimeout(self, self._session, self._commit)

    def data_received(self, data: bytes) -> None:
        if not self._clock.entered:
            self._clock.enter()
        if len(data) > PIECE and not self._flow.yielding:
            self._receive_pieces(data, 0)
            return
        if self._closing:
            return
        receive = self._receive
        requests = receive(data)
        if not requests:
            self._registry.add_incomplete(self, len(data))
        elif self.incomplete_bytes:
            self._receive_last_piece(requests, len(data))
            return
        if self._requests or self._flow.write_paused or self._pending.request is not None:
            self._queue_requests(requests, len(data))
        elif len(requests) == 1 and self._handshake is None:
            handle = self._handle
            try:
                answer = handle(requests[0])
            except Exception as error:  # noqa: BLE001 see `ConnectionLog.request_failed`
                answer = self.log.request_failed(error)
            # The same as `ReplyQueue.send`, without its calls.
            if type(answer) is bytes and (size := len(answer)) <= LARGE_REPLY:
                self.replies.unreleased += size
                reply = self._reply
                reply(self, answer, None)
            elif type(answer) is Grant and (size := len(answer.reply)) <= LARGE_REPLY:
                self.replies.unreleased += size
                reply = self._reply
                reply(self, answer.reply, answer.leases)
            else:
                self.accept_answer(answer)
        else:
            self._requests.extend(requests)
            self._handle_requests()

    def pause_writing(self) -> None:
        self._flow.pause_writing()

    def resume_writing(self) -> None:
        self._clock.enter()
        self.replies.peer_reads()
        self._flow.resume_writing()
        self._schedule_requests()
        if not self._flow.write_paused:
            self._pending.make_next_part()

    def eof_received(self) -> bool:
        """The peer has closed its sending side. It may still read, so its requests are answered. A request that would
        wait gets no answer, and no job is leased to it: the job would be lost with it. Returns True to keep the
        connection open, which TLS cannot."""
        self._clock.enter()
        self._ended = self._ending = True
        if self._pending.is_waiting:
            self._pending.drop()
            self.accept_answer(Close(b""))
        return not self._flow.is_tls and self._has_work()

    def connection_lost(self, error: Exception | None) -> None:
        self._clock.enter()
        self._registry.remove(self)
        self._flow.detach()
        if self._handshake is not None:
            self._handshake.cancel()
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        self._lose_peer()

    # Requests

    def _receive_pieces(self, data: bytes, at: int) -> None:
        """Parse a long read piece by piece: it may hold tens of thousands of pipelined requests. Other connections are
        served in between, and nothing more is read meanwhile. The middle of one long request is not cut."""
        self._flow.yield_to_others()
        end = len(data) if self.incomplete_bytes else at + PIECE
        self.data_received(data[at:end])
        if end < len(data) and not self._closing:
            self._clock.call_soon(self._receive_pieces, data, end)
        else:
            self._clock.call_soon(self._flow.end_yield)

    def _receive_last_piece(self, requests: Sequence[Any], size: int) -> None:
        """A request that came in pieces is complete. If it is handled in slices it still counts as incomplete, because
        it stays in memory until then."""
        if self._requests or self._flow.write_paused or self._pending.request is not None:
            self._queue_requests(requests, size)
        else:
            self._requests.extend(requests)
            self._handle_requests()
        if not self._pending.is_sliced:
            self._registry.end_incomplete(self)

    def _queue_requests(self, requests: Sequence[Any], size: int) -> None:
        self._requests.extend(requests)
        self._flow.add_read_ahead(size)

    def _schedule_requests(self) -> None:
        """Handle queued requests after other connections were served. Does nothing while something blocks."""
        if self._handle_scheduled or self._closing or self._flow.write_paused or self._pending.request is not None:
            return
        if self._requests:
            self._handle_scheduled = True
            self._clock.call_soon(self._handle_requests)
        elif not self._flow.reading:  # all that was read ahead is the beginning of one request
            self._flow.read_ahead = 0
            self._flow.update()

    def _handle_requests(self) -> None:
        """Handle queued requests until one blocks, or other connections must be served."""
        continued, self._handle_scheduled = self._handle_scheduled, False
        if self._closing:  # since it was scheduled; the session may have ended
            return
        session, requests, flow, replies = self._session, self._requests, self._flow, self.replies
        before = self._commit.open_replies
        left, until = REQUESTS_A_PASS, time.monotonic() + PASS_S
        while requests and left and not flow.write_paused and not replies.is_full():
            left -= 1
            answer = self._handle_next()
            if type(answer) is bytes:
                self.replies.send(answer)
            if self._handshake is not None and session.identified:
                self._admit()  # before an answer that may take minutes
            if type(answer) is not bytes and (self._closing or not self.accept_answer(answer)):
                break
            if time.monotonic() > until:
                left = 0
        if continued:
            self._commit.discount(before)
        if requests:
            if not left:
                self._schedule_requests()
            flow.update()
        elif not self._closing:
            flow.read_ahead = 0
            broken = session.broken()
            if broken is not None:
                self._registry.end_incomplete(self)  # the invalid request is dropped; its error reply may be delayed
                self.accept_answer(broken)
            elif not flow.reading:
                flow.update()

    def _handle_next(self) -> Answer:
        request = self._requests.popleft()
        try:
            return self._handle(request)
        except Exception as error:  # noqa: BLE001 see `ConnectionLog.request_failed`
            return self.log.request_failed(error)

    # Answers

    def accept_answer(self, answer: Answer) -> bool:
        """Send an answer, or start to wait or work for it. Returns True if the next request may be handled."""
        if isinstance(answer, bytes):
            self._send(answer)
            return True
        if isinstance(answer, Grant):
            self.replies.send(answer.reply, answer.leases)
            return True
        if isinstance(answer, Close):
            self._requests.clear()
            self._send(answer.reply)
            self._closing = self._ending = True
            return False
        if isinstance(answer, Wait):
            if self._ended:
                return self.accept_answer(Close(b""))
            self._pending.wait(answer)
            return False
        result = self._pending.work(answer)
        return result is not None and self.accept_answer(result)

    def _send(self, reply: bytes) -> None:
        if type(reply) is ErrorReply:
            self._protocol.errors += 1
        self.replies.send(reply)

    def _answered(self, answer: Answer) -> None:
        """The pending request has an answer."""
        if self.incomplete_bytes and self._pending.is_sliced:
            self._registry.end_incomplete(self)
        if self._idle is not None:  # the peer could not send anything while it waited
            self._idle.restart()
        self._pending.end()
        if self.accept_answer(answer):
            self._schedule_requests()

    def push(self, data: bytes) -> None:
        """Send a message that the peer did not request. A peer that does not read is disconnected: publishers do not
        wait for it."""
        if not self._closing and not self.replies.push(data):
            self.abort()

    def deliver(self, reply: bytes, leases: list[LeaseRef] | None) -> None:
        """Called by the group commit when this reply, and all replies before it, may be sent."""
        self.replies.unreleased -= len(reply)
        if self._ending:
            self._deliver_last(reply, leases)
            return
        if reply:
            write = self._write
            write(reply)
            if self._flow.write_paused:
                self.replies.written_unread(len(reply), leases)
        if self._requests:
            self._schedule_requests()

    def _deliver_last(self, reply: bytes, leases: list[LeaseRef] | None) -> None:
        """Deliver a reply to a connection that is closing, or whose peer sends no more. This may give back leases and
        end the session. The group commit releases replies outside of a pass, so a pass is entered here."""
        self._clock.enter()
        replies = self.replies
        if replies.lost or (self._ended and leases is not None):
            if leases is not None:
                self._give_back(leases)
            if not replies.lost:
                self._flow.close()
            self._lose_peer()
            return
        if reply:
            self._write(reply)
            if self._flow.write_paused:
                replies.written_unread(len(reply), leases)
        if self._closing:
            if not replies.unreleased:
                self._flow.close_gracefully(self.abort)
        elif self._requests:
            self._schedule_requests()
        elif not self._has_work():
            self.accept_answer(Close(b""))

    def deliver_large(self, reply: LargeReply, leases: list[LeaseRef] | None) -> None:
        self.replies.released_large(reply)
        self.deliver(reply.data, leases)
        self._registry.count_replies(self)
        if reply.is_part and not self.replies.lost:
            self._pending.part_written(make_next=not self._flow.write_paused)

    def _give_back(self, leases: list[LeaseRef]) -> None:
        """End leases whose reply never reached the peer."""
        self._commit.do(GiveBack(self._protocol.name, leases))

    def handshake_timed_out(self) -> None:
        self.log.report("handshake-timeout", f"no handshake within {self._protocol.handshake_s:g} s")
        self.abort()

    def log_commands(self, on: bool) -> None:
        """Log the name of each command from now on, or no more. Without it a request does no work for the log."""
        if not self._session_ended:
            self._handle = self.log.each_command(self._session.handle) if on else self._session.handle

    def is_closing(self) -> bool:
        return self._closing

    def is_busy(self) -> bool:
        """Whether the peer waits for a reply."""
        is_working = self.replies.unreleased or self._pending.request is not None
        return bool(is_working or (self._requests and not self._flow.write_paused))

    def _has_work(self) -> bool:
        return bool(self.replies.unreleased or self._requests or self._pending.request is not None)

    def _admit(self) -> None:
        """The peer is identified."""
        if self._handshake is not None:
            self._handshake.cancel()
            self._handshake = None
        if not self._registry.admit(self):
            self.log.report("connection-refused", "limits.connections is reached")
            refusal = self._session.crowded(len(self._registry.admitted) + 1)
            if refusal is not None:
                self.accept_answer(refusal)

    # Closing

    def abort(self) -> None:
        """Close at once, and send nothing more."""
        self._requests.clear()
        self._closing = self._ending = True
        self.replies.drop()
        self._flow.abort()

    def _lose_peer(self) -> None:
        """Nothing reaches the peer any more."""
        self.replies.lost = self._closing = self._ending = True
        for leases in self.replies.unsent_leases():
            self._give_back(leases)
        self._pending.drop()
        self._requests.clear()
        if not self.replies.unreleased and not self._session_ended:
            self._session_ended = True
            work = self._session.closed()
            if work is not None:
                self._commit.slices.run(work)
            # These refer to each other: the garbage collector would free an incomplete request much later.
            del self._session, self._receive, self._handle

    def shut_down(self, give_up: float) -> None:
        """Answer what was read, end a wait with its empty answer, send the farewell, close. A request that would still
        wait gets no answer, nor do the requests behind it: the client would take their answers for its own. Sliced work
        continues until `give_up` (monotonic)."""
        pending = self._pending
        while not self._closing:
            pending.finish(give_up)
            if self._closing:  # the answer was a Close
                return
            if pending.is_sliced and self.replies.is_full():  # a long reply ends here
                pending.drop()
                self.accept_answer(Close(b""))
            elif pending.is_sliced:
                self.abort()
            elif self._requests and pending.request is None:
                answer = self._handle_next()
                self.accept_answer(
                    guarded_wait(answer, self.log.request_failed).ask(True) if isinstance(answer, Wait) else answer
                )
            else:
                pending.drop()
                self.accept_answer(Close(self._session.farewell()))
