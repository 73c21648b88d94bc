"""One connection of any protocol: hands requests to the session, sends its answers, and ends when either side does.

A client that pipelines is served a few requests at a time, between those of other clients.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, cast

from crossdock.model.commands.core import GiveBack
from crossdock.model.errors import HalfDone
from crossdock.model.job import LeaseRef
from crossdock.protocols.base import (
    Answer,
    Close,
    Grant,
    IdleLimited,
    Slices,
    Subscriber,
    Wait,
    WireProtocol,
)
from crossdock.server.connection_registry import ConnectionRegistry
from crossdock.server.flow_control import FlowControl
from crossdock.server.group_commit import GroupCommit
from crossdock.server.idle_timeout import Deadline, IdleTimeout
from crossdock.server.limits import LARGE_REPLY, PASS_S, PIECE, REQUESTS_A_PASS
from crossdock.server.pending import SlicedRequest, WaitingRequest, guarded_wait, guarded_work
from crossdock.server.reply_queue import LargeReply, ReplyQueue

log = logging.getLogger("crossdock")


class Connection(asyncio.Protocol):
    def __init__(
        self,
        registry: ConnectionRegistry,
        protocol: WireProtocol,
        commit: GroupCommit,
    ) -> None:
        self._registry = registry
        self._protocol = protocol
        self._commit = commit
        self._clock = commit.clock
        self._clock.enter()
        reply_buffer = registry.limits.unread_bytes
        self._flow = FlowControl(commit.clock, reply_buffer)
        self._replies = ReplyQueue(self, commit.reply, self._flow, reply_buffer, self._count_replies)
        self._session = protocol.session(commit, self.abort)
        if isinstance(self._session, Subscriber):
            self._session.push = self.push
        # Called as `self._session.handle(…)` a method is looked up on the class first, for every request.
        self._receive = self._session.receive
        self._handle = self._session.handle
        self._reply = commit.reply
        self._requests: deque[Any] = deque()  #: read, and not handled yet
        #: A request that is not answered yet; those behind it wait
        self._pending: WaitingRequest | SlicedRequest | None = None
        self._handle_scheduled = False
        self._part_sent = False  #: a part of a long reply was written; the next one waits for the peer
        self._handshake: Deadline | None = None
        self._idle: IdleTimeout | None = None
        self._closing = False
        self._ended = False  #: the peer sends no more
        self._ending = False  #: one of these two
        self._session_ended = False
        self.unfinished = 0  #: kept by the registry
        self.unread = 0  #: kept by the registry

    # The transport's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._flow.attach(cast(asyncio.Transport, transport))
        self._write = self._flow.write
        if not self._registry.enter(self):
            self.abort()
            return
        greeting = self._session.greeting()
        if greeting:
            self._write(greeting)
        if self._protocol.handshake_s:
            self._await_handshake()
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
            self._registry.gather(self, len(data))
        elif self.unfinished:
            self._receive_last_piece(requests, len(data))
            return
        if self._requests or self._flow.write_paused or self._pending is not None:
            self._queue_requests(requests, len(data))
        elif len(requests) == 1 and self._handshake is None:
            handle = self._handle
            try:
                answer = handle(requests[0])
            except Exception as error:  # noqa: BLE001 see `_request_failed`
                answer = self._request_failed(error)
            # What `ReplyQueue.send` does, without its calls.
            if type(answer) is bytes and (size := len(answer)) <= LARGE_REPLY:
                self._replies.unreleased += size
                reply = self._reply
                reply(self, answer, None)
            elif type(answer) is Grant and (size := len(answer.reply)) <= LARGE_REPLY:
                self._replies.unreleased += size
                reply = self._reply
                reply(self, answer.reply, answer.leases)
            else:
                self._accept_answer(answer)
        else:
            self._requests.extend(requests)
            self._handle_requests()

    def pause_writing(self) -> None:
        self._flow.pause_writing()

    def resume_writing(self) -> None:
        self._clock.enter()
        self._replies.peer_reads()
        self._flow.resume_writing()
        self._schedule_requests()
        self._make_next_part()

    def eof_received(self) -> bool:
        """The peer sends no more. It may or may not still read. Its requests are answered, but it waits for nothing and
        gets no job, which would be lost with it. True: keep the connection."""
        self._clock.enter()
        self._ended = self._ending = True
        if isinstance(self._pending, WaitingRequest):
            self._drop_pending()
            self._accept_answer(Close(b""))
        return self._has_work()

    def connection_lost(self, error: Exception | None) -> None:
        self._clock.enter()
        self._registry.leave(self)
        self._flow.detach()
        if self._handshake is not None:
            self._handshake.cancel()
        if self._idle is not None:
            self._idle.end()
            self._idle = None
        self._lose_peer()

    # Requests

    def _receive_pieces(self, data: bytes, at: int) -> None:
        """One read may hold tens of thousands of pipelined requests. They are parsed piece by piece, other connections
        are served in between, and nothing more is read meanwhile. The middle of one long request is passed on whole."""
        self._flow.yield_to_others()
        end = len(data) if self.unfinished else at + PIECE
        self.data_received(data[at:end])
        if end < len(data) and not self._closing:
            self._clock.call_soon(self._receive_pieces, data, end)
        else:
            self._clock.call_soon(self._flow.end_yield)

    def _receive_last_piece(self, requests: Sequence[Any], size: int) -> None:
        """A request that came in pieces is complete. If it is handled in slices it still counts as incomplete, because
        it is kept meanwhile."""
        if self._requests or self._flow.write_paused or self._pending is not None:
            self._queue_requests(requests, size)
        else:
            self._requests.extend(requests)
            self._handle_requests()
        if not isinstance(self._pending, SlicedRequest):
            self._registry.finish(self)

    def _queue_requests(self, requests: Sequence[Any], size: int) -> None:
        """Behind a request that is not answered yet."""
        self._requests.extend(requests)
        self._flow.add_read_ahead(size)

    def _schedule_requests(self) -> None:
        """Handle queued requests after other connections were served. Does nothing while something blocks."""
        if self._handle_scheduled or self._closing or self._flow.write_paused or self._pending is not None:
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
        session, requests, flow, replies = self._session, self._requests, self._flow, self._replies
        before = self._commit.held
        left, until = REQUESTS_A_PASS, time.monotonic() + PASS_S
        while requests and left and not flow.write_paused and not replies.is_full():
            left -= 1
            answer = self._handle_next()
            if type(answer) is bytes:
                replies.send(answer)
                if self._handshake is not None and session.identified:
                    self._admit()
            else:
                if self._handshake is not None and session.identified:
                    self._admit()  # the peer is identified, though the answer may take minutes
                    if self._closing:
                        break
                if not self._accept_answer(answer):
                    break
            if time.monotonic() > until:
                left = 0
        if continued:
            self._commit.overlook(before)
        if requests:
            if not left:
                self._schedule_requests()
            flow.update()
        elif not self._closing:
            flow.read_ahead = 0
            broken = session.broken()
            if broken is not None:
                self._registry.finish(self)  # it is not kept, and the answer may be late
                self._accept_answer(broken)
            elif not flow.reading:
                flow.update()

    def _handle_next(self) -> Answer:
        request = self._requests.popleft()
        try:
            return self._session.handle(request)
        except Exception as error:  # noqa: BLE001 see `_request_failed`
            return self._request_failed(error)

    def _request_failed(self, error: Exception) -> Close:
        """An exception in a session is a defect of the server. It closes the connection that sent the request, and
        affects no other: not the one whose push woke this request."""
        if not isinstance(error, HalfDone):  # that stops the server, which reports it
            log.error("a %s request failed; its connection is closed", self._protocol.name, exc_info=error)
        return Close(b"")

    # Answers

    def _accept_answer(self, answer: Answer) -> bool:
        """Send an answer, or begin to wait or work for it. True: the next request may be handled."""
        if isinstance(answer, bytes):
            self._replies.send(answer)
            return True
        if isinstance(answer, Grant):
            self._replies.send(answer.reply, answer.leases)
            return True
        if isinstance(answer, Close):
            self._requests.clear()
            self._replies.send(answer.reply)
            self._closing = self._ending = True
            return False
        if isinstance(answer, Wait):
            if self._ended:
                return self._accept_answer(Close(b""))
            self._pending = WaitingRequest(guarded_wait(answer, self._request_failed), self._commit, self._answered)
            return False
        work = self._pending = SlicedRequest(
            guarded_work(answer, self._request_failed),
            self._commit,
            answered=self._answered,
            part=self._replies.send_part,
            reserve=self._replies.reserve,
        )
        return self._run_slice(work)

    def _run_slice(self, work: SlicedRequest) -> bool:
        """True if that was the last one, and the next request may be handled."""
        answer = work.step()
        if answer is None:
            return False
        self._end_pending()
        return self._accept_answer(answer)

    def _answered(self, answer: Answer) -> None:
        """The pending request has an answer."""
        if self.unfinished and isinstance(self._pending, SlicedRequest):
            self._registry.finish(self)
        if self._idle is not None:  # the peer could not send anything while it waited
            self._idle.answered()
        self._end_pending()
        if self._accept_answer(answer):
            self._schedule_requests()

    def _end_pending(self) -> None:
        self._pending = None
        self._replies.end_reserve()

    def _drop_pending(self) -> None:
        """It gets no answer."""
        if self._pending is not None:
            self._pending.leave()
            self._end_pending()

    def _make_next_part(self) -> None:
        """Of a long reply, if the peer reads."""
        if self._part_sent and not self._flow.write_paused and isinstance(self._pending, SlicedRequest):
            self._part_sent = False
            self._pending.go_on()

    def push(self, data: bytes) -> None:
        """Send a message that the peer did not ask for. A peer that does not read is disconnected, because nobody else
        can be made to wait for it."""
        if not self._closing and not self._replies.push(data):
            self.abort()

    def deliver(self, reply: bytes, leases: list[LeaseRef] | None) -> None:
        """Called by the group commit when this reply, and all before it, may leave."""
        self._replies.unreleased -= len(reply)
        if self._ending:
            self._deliver_last(reply, leases)
            return
        if reply:
            write = self._write
            write(reply)
            if self._flow.write_paused:
                self._replies.written_unread(len(reply), leases)
        if self._requests:
            self._schedule_requests()

    def _deliver_last(self, reply: bytes, leases: list[LeaseRef] | None) -> None:
        """A reply of a connection that is closing, or whose peer sends no more. Leases may be given back and the
        session may end here, and the group commit releases replies outside of a pass."""
        self._clock.enter()
        replies = self._replies
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
            self._accept_answer(Close(b""))

    def deliver_large(self, reply: LargeReply, leases: list[LeaseRef] | None) -> None:
        self._replies.released_large(reply)
        self.deliver(reply.data, leases)
        self._count_replies()
        if reply.is_part and not self._replies.lost:
            self._part_sent = True
            self._make_next_part()

    def _give_back(self, leases: list[LeaseRef]) -> None:
        """The peer never learns of these leases."""
        self._commit.do(GiveBack(self._protocol.name, leases))

    # The registry's and the idle timeout's view

    def _count_replies(self) -> None:
        self._registry.count_replies(self)

    def waiting_bytes(self) -> int:
        return self._replies.waiting_bytes()

    def unsent_bytes(self) -> int:
        return self._replies.unsent_bytes()

    def describe(self) -> str:
        return f"{self._protocol.name} {self._flow.peer_name()}"

    def is_closing(self) -> bool:
        return self._closing

    def is_busy(self) -> bool:
        """The peer waits for a reply."""
        return bool(
            self._pending is not None or self._replies.unreleased or (self._requests and not self._flow.write_paused)
        )

    def _has_work(self) -> bool:
        return bool(self._replies.unreleased or self._requests or self._pending is not None)

    # Beginning and end

    def _await_handshake(self) -> None:
        self._handshake = Deadline(self._clock, self._protocol.handshake_s, self._handshake_timeout)

    def _handshake_timeout(self) -> None:
        """The peer is not late while the server works on its request."""
        if self.is_busy():
            self._await_handshake()
        else:
            self.abort()

    def _admit(self) -> None:
        """The peer is identified."""
        if self._handshake is not None:
            self._handshake.cancel()
            self._handshake = None
        if not self._registry.welcome(self):
            refusal = self._session.crowded(len(self._registry.welcomed) + 1)
            if refusal is not None:
                self._accept_answer(refusal)

    def close_with(self, last: Close) -> None:
        self._accept_answer(last)

    def abort(self) -> None:
        """Close at once, and send nothing more."""
        self._requests.clear()
        self._closing = self._ending = True
        self._replies.drop()
        self._flow.abort()

    def _lose_peer(self) -> None:
        """Nothing reaches the peer any more."""
        self._replies.lost = self._closing = self._ending = True
        for leases in self._replies.unsent_leases():
            self._give_back(leases)
        self._drop_pending()
        self._requests.clear()
        if not self._replies.unreleased:
            self._end_session()

    def _end_session(self) -> None:
        """The peer is gone, and leases that it never learned of were given back."""
        if not self._session_ended:
            self._session_ended = True
            self._run_closing_work(self._session.closed())
            # These refer to each other: a half-sent request would wait for the garbage collector, which comes late.
            del self._session, self._receive, self._handle

    def _run_closing_work(self, work: Slices | None) -> None:
        if work is not None and next(work, self) is not self:
            self._clock.call_soon(self._run_closing_work, work)

    def shut_down(self, give_up: float) -> None:
        """Answer what was read, end a wait with its empty answer, send the farewell, close. A request that would wait
        all the same gets no answer, nor do those behind it: their answers would be taken for its own."""
        if self._closing:
            return
        self._end_wait()
        while not self._closing:
            while (
                isinstance(self._pending, SlicedRequest) and not self._replies.is_full() and time.monotonic() < give_up
            ):
                self._run_slice(self._pending)
            self._end_wait()  # of a FETCH that went on in slices and then waits
            if self._closing:  # the answer was a Close
                return
            if isinstance(self._pending, SlicedRequest) and self._replies.is_full():  # a long reply ends here
                self._drop_pending()
                self._accept_answer(Close(b""))
            elif isinstance(self._pending, SlicedRequest):
                self.abort()
            elif self._requests and self._pending is None:
                answer = self._handle_next()
                self._accept_answer(
                    guarded_wait(answer, self._request_failed).ask(True) if isinstance(answer, Wait) else answer
                )
            else:
                self._drop_pending()
                self._accept_answer(Close(self._session.farewell()))

    def _end_wait(self) -> None:
        if isinstance(self._pending, WaitingRequest):
            self._pending.too_late()
