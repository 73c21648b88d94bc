"""What a request comes to: said at once, waited for, worked on in slices or told in parts; and how it reaches the peer.

Replies leave in the order of their requests, each when the turn releases it.
"""

import asyncio
import logging
from abc import abstractmethod
from collections import deque
from typing import Any

from crossdock.model.commands.core import GiveBack
from crossdock.model.errors import HalfDone
from crossdock.model.job import LeaseRef
from crossdock.protocols.base import Answer, Close, Grant, JobResult, Session, Slices, Wait
from crossdock.server.flow_control import Flow, low_water
from crossdock.server.group_commit import GroupCommit
from crossdock.server.limits import LARGE_REPLY, PUSHED_UNREAD
from crossdock.server.pending import SlicedRequest, WaitingRequest
from crossdock.server.slices import LargeReply

log = logging.getLogger("crossdock")


class Answering(Flow):
    def __init__(
        self, session: Session, via: str, turn: GroupCommit, loop: asyncio.AbstractEventLoop, unread_bytes: int
    ) -> None:
        """`via` names the door."""
        super().__init__(loop, unread_bytes)
        self._session = session
        self._via = via
        self._turn = turn
        self._requests: deque[Any] = deque()  #: read, and not handled yet
        self._unreleased = 0  #: bytes of replies the turn still holds
        self._large: set[LargeReply] = set()  #: those of them that are large
        self._kept = 0  #: bytes that the work under way keeps for its answer
        self.unread = 0  #: of all these and of what the socket has not taken, as last counted
        self._pending: WaitingRequest | SlicedRequest | None = (
            None  #: a request that is not answered yet; those behind it wait
        )
        #: Replies said since the peer no longer reads: their bytes, and the leases that they tell of
        self._unsent: list[tuple[int, list[LeaseRef] | None]] = []
        self._parted = False  #: the socket has a part of its answer; what follows waits for the peer
        self._ended = False  #: the peer sends no more
        self._lost = False

    @abstractmethod
    def _lose(self) -> None:
        """Nothing reaches the peer any more."""

    @abstractmethod
    def _count_replies(self) -> None:
        """What waits for this peer has become more or less."""

    def waiting_bytes(self) -> int:
        """Memory of replies that have not left yet, and of those that are being made."""
        if self._lost:
            return 0
        return self._unreleased + self._kept + self._transport.get_write_buffer_size()

    def unsent_bytes(self) -> int:
        return 0 if self._lost else self._transport.get_write_buffer_size()

    def _say(self, reply: bytes, granted: list[LeaseRef] | None = None) -> None:
        if len(reply) > LARGE_REPLY:
            self._say_large(reply, granted, is_part=False)
        else:
            self._unreleased += len(reply)
            self._turn.reply(self, reply, granted)

    def _say_large(self, data: bytes, granted: list[LeaseRef] | None, *, is_part: bool) -> None:
        if self._lost:  # its work went on for a moment
            data = b""
        reply = LargeReply(self, data, is_part=is_part)
        self._unreleased += len(data)
        self._large.add(reply)
        self._turn.reply(reply, b"", granted)
        self._count_replies()

    def _take(self, answer: Answer) -> bool:
        """Carry out an answer. True: the next request may be handled."""
        if isinstance(answer, bytes):
            self._say(answer)
            return True
        if isinstance(answer, Grant):
            self._say(answer.reply, answer.leases)
            return True
        if isinstance(answer, Close):
            self._requests.clear()
            self._say(answer.reply)
            self._closing = True
            return False
        if isinstance(answer, Wait):
            if self._ended:
                return self._take(Close(b""))
            self._pending = WaitingRequest(self._patient(answer), self._turn, self._loop, self._answered)
            return False
        steps = self._working(answer)
        work = self._pending = SlicedRequest(steps, self._turn, self._loop, self._answered, self._part, self._keep)
        return self._slice(work)

    def _fault(self, error: Exception) -> Close:
        """A request that its session cannot cope with is a defect of ours. It costs whoever sent it the connection, and
        nobody else anything: not the client that happened to push what this one waits for."""
        if not isinstance(error, HalfDone):  # then all of them end, and that is told
            log.error("a request at the door %s failed; its connection is closed", self._via, exc_info=error)
        return Close(b"")

    def _patient(self, wait: Wait) -> Wait:
        def ask(late: bool) -> Answer:
            try:
                return wait.ask(late)
            except Exception as error:  # noqa: BLE001 see there
                return self._fault(error)

        def told(how: JobResult) -> Answer:
            try:
                return wait.ask(False) if wait.told is None else wait.told(how)
            except Exception as error:  # noqa: BLE001 see there
                return self._fault(error)

        return wait._replace(ask=ask, told=told)

    def _working(self, work: Slices) -> Slices:
        try:
            return (yield from work)
        except Exception as error:  # noqa: BLE001 see there
            return self._fault(error)

    def _slice(self, work: SlicedRequest) -> bool:
        """One step of it. True when it has ended and was answered."""
        answer = work.step()
        if answer is None:
            return False
        self._work_is_over()
        return self._take(answer)

    def _part(self, data: bytes) -> None:
        self._kept = max(0, self._kept - len(data))  # it was counted as kept, and is a reply now
        self._say_large(data, None, is_part=True)

    def _keep(self, size: int) -> None:
        """So much more is kept for the answer to come."""
        self._kept += size
        self._count_replies()

    def _work_is_over(self) -> None:
        self._pending = None
        if self._kept:
            self._kept = 0
            self._count_replies()

    def deliver_large(self, reply: LargeReply, granted: list[LeaseRef] | None) -> None:
        self._large.discard(reply)
        self.deliver(reply.data, granted)
        self._count_replies()
        if reply.is_part and not self._lost:
            self._parted = True
            self._next_part()

    def _next_part(self) -> None:
        """Of a long answer, if the peer reads."""
        if self._parted and not self._choked and isinstance(self._pending, SlicedRequest):
            self._parted = False
            self._pending.go_on()

    def resume_writing(self) -> None:
        self._unsent.clear()
        self._count_replies()
        super().resume_writing()
        self._next_part()

    def _answered(self, answer: Answer) -> None:
        """What was pending has come to this."""
        self._work_is_over()
        if self._take(answer):
            self._go_on()

    def _leave_pending(self) -> None:
        """Unheard."""
        if self._pending is not None:
            self._pending.leave()
            self._work_is_over()

    def is_owed(self) -> bool:
        return bool(self._pending is not None or self._unreleased or (self._requests and not self._choked))

    def cut_off(self, last: Close) -> None:
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

    def deliver(self, reply: bytes, granted: list[LeaseRef] | None) -> None:
        """Called by the turn when this reply, and all before it, may leave."""
        self._unreleased -= len(reply)
        if self._lost or (self._ended and granted is not None):
            if granted is not None:
                self._give_back(granted)
            if not self._lost:
                self._transport.close()
            self._lose()
            return
        if reply:
            write = self._write
            write(reply)
            if self._choked:
                self._unsent.append((len(reply), granted))
                self._count_replies()
        if self._closing:
            if not self._unreleased:
                self._hang_up()
        elif self._requests:
            self._go_on()
        elif self._ended and not self._owes():
            self._take(Close(b""))

    def abort(self) -> None:
        """What was made for this peer goes now: the turn may hold it for a while, and others need the memory."""
        self._lost = True
        for reply in self._large:
            self._unreleased -= len(reply.data)
            reply.data = b""
        super().abort()

    def _give_back(self, granted: list[LeaseRef]) -> None:
        """Nobody will ever know of these leases."""
        self._turn.begin()
        self._turn.do(GiveBack(self._via, granted))

    def _give_back_unsent(self) -> None:
        """Of a peer that stopped to read and is gone. So much at least of what was said last never reached the socket:
        its buffer has not been below that since."""
        left = low_water(self._unread_bytes) if self._choked else 0
        while self._unsent and left > 0:
            size, granted = self._unsent.pop()
            left -= size
            if granted is not None:
                self._give_back(granted)
        self._unsent.clear()

    def _owes(self) -> bool:
        return bool(self._unreleased or self._requests or self._pending is not None)

    def _is_much(self) -> bool:
        return self._unreleased > self._unread_bytes

    def _end_wait(self) -> None:
        if isinstance(self._pending, WaitingRequest):
            self._pending.too_late()
