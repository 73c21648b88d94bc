"""One Masenko connection: a reply to each line (masenko.md section 3), and the leases of the connection."""

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from crossdock import logs
from crossdock.engine.jobs.lease import more_candidates
from crossdock.engine.queries.jobs import last_job_number
from crossdock.model.commands.core import (
    Claim,
    Command,
    DrawNumbers,
    Enqueue,
    Fail,
    LeaseNext,
    LeaseTerms,
    LoseLease,
    Succeed,
    Verdict,
)
from crossdock.model.job import LeaseBinding, Number, Token
from crossdock.protocols.base import (
    Answer,
    Close,
    Dispatcher,
    Grant,
    Report,
    Slices,
    Wait,
    ask_again,
    give_back,
    unreported,
)
from crossdock.protocols.line_reader import TOO_LONG, Lines
from crossdock.protocols.masenko import commands, push
from crossdock.protocols.masenko.atomic import Atomic, blocked
from crossdock.protocols.masenko.commands import info, newest, shown
from crossdock.protocols.masenko.messages import ECHO, EMPTY, OK, PONG, VIA, InvalidRequest, error, task
from crossdock.protocols.rejection_delay import Long, answer_long, close_delayed, delayed, gathered, is_rejection

if TYPE_CHECKING:
    from crossdock.protocols.masenko.protocol import MasenkoProtocol

_EVER: Final = float("inf")
TERMS: Final = LeaseTerms(_EVER, _EVER, _EVER, LeaseBinding.CONNECTION)

_NOT_ACQUIRED: Final = error("task not acquired")
_NO_HEARTBEAT: Final = Close(error("no heartbeat"))
_QUIT: Final = Close(OK)

#: Rejections of longer lines are delayed, because unusual spellings are read key by key.
_LONG: Final = 2 * 1024

#: Leases ended per slice when the connection ends: about 5 ms.
SLICE: Final = 500


class MasenkoSession:
    def __init__(self, protocol: "MasenkoProtocol", dispatcher: Dispatcher) -> None:
        self._protocol = protocol
        self._dispatcher = dispatcher
        self._lines = Lines(protocol.line_bytes)
        self.receive = self._lines.receive
        self.report: Report = unreported
        self.identified = True  # there is no handshake
        self.idle_timeout_s = protocol.heartbeat_s
        self.last_active = dispatcher.now.steady
        self._held: dict[Number, Token] = {}
        self._worker = ""  #: the name in its leases, from the first FETCH on
        self._atomic: Atomic | None = None

    def greeting(self) -> bytes:
        return b""

    def handle(self, line: bytes, timed: bool = False) -> Answer:
        if len(line) > _LONG and not timed:
            return answer_long(self._dispatcher, partial(self.handle, timed=True), Long(line, gathered(len(line))))
        verb, _, body = line.partition(b" ")
        self._protocol.commands += 1
        if self._atomic is not None:
            return self._within(self._atomic, verb.upper(), body)
        self.last_active = self._dispatcher.now.steady
        act = _VERBS.get(verb) or _VERBS.get(verb.upper())
        if act is None:
            self.report("unknown-command", f"unknown verb {logs.shown(verb)}")
            return error(f"unknown verb {verb[:ECHO].decode('utf-8', 'replace')}")
        return act(self, body)

    def broken(self) -> Answer | None:
        if not self._lines.overrun:
            return None
        self.report("protocol-error", TOO_LONG)
        return close_delayed(Close(error(TOO_LONG)), self._protocol.line_bytes)

    def crowded(self, connections: int) -> Close:
        return Close(error(f"too many connections: {connections}"))

    def close_idle(self) -> Close:
        self._end_leases()
        return _NO_HEARTBEAT

    def farewell(self) -> bytes:
        """Leases are not ended: recovery makes their jobs ready in their old place, without counting the attempt
        (masenko.md section 7)."""
        self._held.clear()
        return error("shutdown in progress")

    def closed(self) -> Slices | None:
        self._protocol.worker_names.free(self._worker)
        self._end_leases()
        return self._end_all_leases() if self._held else None

    def _end_leases(self) -> None:
        """End the first slice of the connection's leases. For Masenko's own tasks that is a NACK (masenko.md section
        3.7), for other jobs a lease expiry."""
        for number in list(islice(self._held, SLICE)):
            self._dispatcher.do(LoseLease(VIA, (number, self._held.pop(number))))

    def _end_all_leases(self) -> Slices:
        while self._held:
            yield
            self._end_leases()
        return b""

    def _claim(self, number: Number) -> Claim:
        """The claim to a leased job. Removes the lease from the session."""
        return Claim(VIA, "", (number, self._held.pop(number)), number=number)

    def _ping(self, body: bytes) -> Answer:
        return PONG

    def _push(self, body: bytes) -> Answer:
        dispatcher = self._dispatcher
        try:
            read = push.read(body)
        except InvalidRequest as refused:
            return error(str(refused))
        spec = read.spec
        if read.blockers:
            if min(read.blockers) <= 0:
                return error("cannot use relative blocked by outside of a transaction")
            spec = blocked(dispatcher, spec, read.blockers)
        no_room = dispatcher.no_room(1)
        if no_room is not None:
            return error(no_room)
        if read.too_big:
            dispatcher.do(DrawNumbers(1))
            return error(f"cannot push to queue: wall append: serialize operation: input: {read.too_big}")
        number = last_job_number(dispatcher.state) + 1  # the job cannot be refused, so it gets this number
        dispatcher.do(Enqueue(VIA, [spec]))
        return b'OK {"id":%d}\n' % shown(number)

    def _fetch(self, body: bytes) -> Answer:
        protocol = self._protocol
        try:
            queues, timeout_ns = commands.read_fetch(body)
        except InvalidRequest as refused:
            return error(str(refused))
        if timeout_ns is None:
            timeout_ns = protocol.heartbeat_ns // 2
        elif timeout_ns > protocol.heartbeat_ns:
            return error(f"timeout must be smaller than the heartbeat frequency {protocol.heartbeat}")
        if not queues:
            return EMPTY
        if not self._worker:
            self._worker = protocol.worker_names.take()
        return self._try_fetch(queues, self._dispatcher.now.steady + timeout_ns / 1e9)

    def _try_fetch(self, queues: tuple[str, ...], until: float, late: bool = False) -> Answer:
        """The reply restarts the idle timeout: a client that waits cannot send a heartbeat."""
        dispatcher = self._dispatcher
        command = LeaseNext(VIA, queues, self._worker, TERMS)
        job = dispatcher.do(command)
        if job is not None and job.lease is not None:
            self.last_active = dispatcher.now.steady
            self._held[job.number] = job.lease.token
            leases = [(job.number, job.lease.token)]
            try:
                return Grant(task(job), leases)
            except Exception:
                give_back(dispatcher, VIA, leases)
                raise
        if more_candidates(dispatcher.state, command, dispatcher.now):
            return ask_again(dispatcher, until, partial(self._try_fetch, queues, until))
        if late:
            self.last_active = dispatcher.now.steady
            return EMPTY
        return Wait(queues, until, partial(self._try_fetch, queues, until))

    def _ack(self, body: bytes) -> Answer:
        return self._settle(body, "ack", lambda claim: Succeed("", claim))

    def _nack(self, body: bytes) -> Answer:
        return self._settle(body, "nack", lambda claim: Fail("", claim, "", ""))

    def _settle(self, body: bytes, verb: str, command: Callable[[Claim], Command[Verdict]]) -> Answer:
        try:
            number = newest(commands.read_ack(body, verb), self._dispatcher, self._held)
        except InvalidRequest as refused:
            return error(str(refused))
        if number is None:
            return _NOT_ACQUIRED
        return OK if self._dispatcher.do(command(self._claim(number))) else _NOT_ACQUIRED

    def _info(self, body: bytes) -> Answer:
        return info(self._dispatcher.state)

    def _quit(self, body: bytes) -> Answer:
        self._end_leases()
        return _QUIT

    def _begin(self, body: bytes) -> Answer:
        self._atomic = Atomic()
        return b""

    def _within(self, atomic: Atomic, verb: bytes, body: bytes) -> Answer:
        """A line of a transaction has no reply of its own, and is no heartbeat (masenko.md section 2)."""
        dispatcher = self._dispatcher
        if verb != b"DONE":
            began = dispatcher.held_up() if len(body) > _LONG else None
            atomic.add(verb, body)
            if began is not None:
                atomic.took += dispatcher.held_up() - began
            return b""
        self._atomic = None
        self.last_active = dispatcher.now.steady
        reply, settled = atomic.done(dispatcher, self._held)
        for number in settled:
            del self._held[number]
        return delayed(reply, atomic.took) if atomic.took and is_rejection(reply, dispatcher) else reply


_VERBS: Final[dict[bytes, Callable[[MasenkoSession, bytes], Answer]]] = {
    b"PUSH": MasenkoSession._push,
    b"FETCH": MasenkoSession._fetch,
    b"ACK": MasenkoSession._ack,
    b"NACK": MasenkoSession._nack,
    b"PING": MasenkoSession._ping,
    b"INFO": MasenkoSession._info,
    b"ATOMIC": MasenkoSession._begin,
    b"QUIT": MasenkoSession._quit,
}
