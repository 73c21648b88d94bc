"""One Masenko connection: a line in, a reply out (page 3), and the leases it was given."""

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from crossdock.engine.jobs.lease import more_candidates
from crossdock.engine.queries.jobs import last_job_number
from crossdock.model.commands.core import Claim, DrawNumbers, Enqueue, Fail, LeaseNext, LeaseTerms, LoseLease, Succeed
from crossdock.model.job import LeaseBinding, Number, Token
from crossdock.protocols.base import Answer, Close, Dispatcher, Grant, Slices, Wait, again, give_back
from crossdock.protocols.line_reader import TOO_LONG, Lines
from crossdock.protocols.masenko import commands, push
from crossdock.protocols.masenko.atomic import Atomic, blocked
from crossdock.protocols.masenko.commands import info, newest, shown
from crossdock.protocols.masenko.messages import ECHO, EMPTY, OK, PONG, VIA, InvalidRequest, error, task
from crossdock.protocols.rejection_delay import Long, gathered, is_in_vain, late, refused_late, rested

if TYPE_CHECKING:
    from crossdock.protocols.masenko.protocol import MasenkoProtocol

_EVER: Final = float("inf")
TERMS: Final = LeaseTerms(_EVER, _EVER, _EVER, LeaseBinding.CONNECTION)

_NOT_ACQUIRED: Final = error("task not acquired")
_NO_HEARTBEAT: Final = Close(error("no heartbeat"))
_QUIT: Final = Close(OK)

#: A line that is refused so late as `wire.rest` has it: what is not spelled as most are is read key by key.
_LONG: Final = 2 * 1024

#: Leases ended in one go when the connection ends: about 5 ms between the turns of others.
SLICE: Final = 500


class MasenkoSession:
    def __init__(self, protocol: "MasenkoProtocol", dispatcher: Dispatcher) -> None:
        self._protocol = protocol
        self._dispatcher = dispatcher
        self._lines = Lines(protocol.line_bytes)
        self.receive = self._lines.receive
        self.identified = True  # there is no handshake
        self.silence_s = protocol.heartbeat_s
        self.heard = dispatcher.now.steady
        self._held: dict[Number, Token] = {}
        self._atomic: Atomic | None = None

    def greeting(self) -> bytes:
        return b""

    def handle(self, line: bytes, timed: bool = False) -> Answer:
        if len(line) > _LONG and not timed:
            return rested(self._dispatcher, partial(self.handle, timed=True), Long(line, gathered(len(line))))
        verb, _, body = line.partition(b" ")
        if self._atomic is not None:
            return self._within(self._atomic, verb.upper(), body)
        self.heard = self._dispatcher.now.steady
        act = _VERBS.get(verb) or _VERBS.get(verb.upper())
        if act is None:
            return error(f"unknown verb {verb[:ECHO].decode('utf-8', 'replace')}")
        return act(self, body)

    def broken(self) -> Answer | None:
        return refused_late(Close(error(TOO_LONG)), self._protocol.line_bytes) if self._lines.overrun else None

    def crowded(self, connections: int) -> Close:
        return Close(error(f"too many connections: {connections}"))

    def silent(self) -> Close:
        self._let_go()
        return _NO_HEARTBEAT

    def farewell(self) -> bytes:
        """The server stops. What is leased is ready again when it starts, in its old place and uncounted (page 7)."""
        self._held.clear()
        return error("shutdown in progress")

    def closed(self) -> Slices | None:
        self._let_go()
        return self._let_all_go() if self._held else None

    def _let_go(self) -> None:
        """The connection ends, and so do its leases, the first of them at once: to its own tasks that is a NACK
        (page 3.7), to others what the end of a lease is."""
        for number in list(islice(self._held, SLICE)):
            self._dispatcher.do(LoseLease(VIA, (number, self._held.pop(number))))

    def _let_all_go(self) -> Slices:
        while self._held:
            yield
            self._let_go()
        return b""

    def _claim(self, number: Number) -> Claim:
        """To be made once: the lease is forgotten with it."""
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
        number = last_job_number(dispatcher.state) + 1  # nothing refuses it, so this is the next job's
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
        return self._try_fetch(queues, self._dispatcher.now.steady + timeout_ns / 1e9)

    def _try_fetch(self, queues: tuple[str, ...], until: float, late: bool = False) -> Answer:
        """The heartbeat's clock starts anew with the answer: a client that waits cannot speak."""
        dispatcher = self._dispatcher
        command = LeaseNext(VIA, queues, "", TERMS)
        job = dispatcher.do(command)
        if job is not None and job.lease is not None:
            self.heard = dispatcher.now.steady
            self._held[job.number] = job.lease.token
            leases = [(job.number, job.lease.token)]
            try:
                return Grant(task(job), leases)
            except Exception:
                give_back(dispatcher, VIA, leases)
                raise
        if more_candidates(dispatcher.state, command, dispatcher.now):
            return again(dispatcher, until, partial(self._try_fetch, queues, until))
        if late:
            self.heard = dispatcher.now.steady
            return EMPTY
        return Wait(queues, until, partial(self._try_fetch, queues, until))

    def _ack(self, body: bytes) -> Answer:
        try:
            number = newest(commands.read_ack(body, "ack"), self._dispatcher, self._held)
        except InvalidRequest as refused:
            return error(str(refused))
        if number is None:
            return _NOT_ACQUIRED
        return OK if self._dispatcher.do(Succeed("", self._claim(number))) else _NOT_ACQUIRED

    def _nack(self, body: bytes) -> Answer:
        try:
            number = newest(commands.read_ack(body, "nack"), self._dispatcher, self._held)
        except InvalidRequest as refused:
            return error(str(refused))
        if number is None:
            return _NOT_ACQUIRED
        return OK if self._dispatcher.do(Fail("", self._claim(number), "", "")) else _NOT_ACQUIRED

    def _info(self, body: bytes) -> Answer:
        return info(self._dispatcher.state)

    def _quit(self, body: bytes) -> Answer:
        self._let_go()
        return _QUIT

    def _begin(self, body: bytes) -> Answer:
        self._atomic = Atomic()
        return b""

    def _within(self, atomic: Atomic, verb: bytes, body: bytes) -> Answer:
        """A line of a transaction has no reply of its own, and is no heartbeat (page 2)."""
        dispatcher = self._dispatcher
        if verb != b"DONE":
            began = dispatcher.held_up() if len(body) > _LONG else None
            atomic.add(verb, body)
            if began is not None:
                atomic.took += dispatcher.held_up() - began
            return b""
        self._atomic = None
        self.heard = dispatcher.now.steady
        reply, settled = atomic.done(dispatcher, self._held)
        for number in settled:
            del self._held[number]
        return late(reply, atomic.took) if atomic.took and is_in_vain(reply, dispatcher) else reply


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
