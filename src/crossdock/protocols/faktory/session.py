"""One Faktory connection: the handshake, then a reply to each request (faktory.md sections 2, 3 and 5)."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from crossdock import logs
from crossdock.engine.jobs.lease import more_candidates
from crossdock.model.commands.admin import Flush
from crossdock.model.commands.core import Claim, LeaseNext, LeaseTerms, Succeed
from crossdock.protocols.base import Answer, Close, Dispatcher, Grant, Report, Wait, ask_again, give_back, unreported
from crossdock.protocols.faktory import extensions
from crossdock.protocols.faktory.admin import QUEUES_AT_MOST, info, mutate, names, queue
from crossdock.protocols.faktory.batch import batch
from crossdock.protocols.faktory.extensions import ANNOUNCED, welcome
from crossdock.protocols.faktory.failure import FailBody, fail_command
from crossdock.protocols.faktory.job import show
from crossdock.protocols.faktory.messages import (
    NULL,
    OK,
    SILENT,
    WRONG_PASSWORD,
    BeatBody,
    MutateBody,
    bulk,
    error,
    newcomer,
    read_hello,
)
from crossdock.protocols.faktory.progress import track
from crossdock.protocols.faktory.push import push, push_bulk, push_bulk_large, push_large
from crossdock.protocols.issued_leases import IssuedLeases
from crossdock.protocols.line_reader import TOO_LONG, Lines
from crossdock.protocols.rejection_delay import LARGE, Long, answer_long, close_delayed, gathered
from crossdock.protocols.worker_registry import RUNNING, Worker

if TYPE_CHECKING:
    from crossdock.protocols.faktory.protocol import FaktoryProtocol

VIA: Final = "faktory"
TERMS: Final = LeaseTerms(default_s=1_800.0, least_s=60.0, most_s=86_400.0)
BLOCK_S: Final = 2.0  #: Go and Ruby clients give up reading after 5 s
BEFORE_HELLO: Final = 8 * 1024
#: Limit of bodies that name one job or worker: decoding a million keys in 16 MiB would be wasted.
SMALL_BYTES: Final = 64 * 1024
#: Limit of lists of names and of backtraces. Only jobs may be as long as a line.
OTHERS_BYTES: Final = 1024 * 1024

_ack_body = msgspec.json.Decoder(dict[str, str]).decode
_fail_body = msgspec.json.Decoder(FailBody).decode
_beat_body = msgspec.json.Decoder(BeatBody).decode
_mutate_body = msgspec.json.Decoder(MutateBody).decode


class FaktorySession:
    def __init__(self, protocol: "FaktoryProtocol", dispatcher: Dispatcher, hang_up: Callable[[], None]) -> None:
        self.protocol = protocol
        self.dispatcher: Dispatcher = dispatcher
        self._hang_up = hang_up
        self._lines = Lines(protocol.line_bytes, first=BEFORE_HELLO)
        self.receive = self._lines.receive
        self.report: Report = unreported
        self._challenge = protocol.challenge()
        self.worker: Worker | None = None
        self.leases = IssuedLeases()
        self.wid = ""
        self.identified = False
        self._verbs, self._large = _VERBS, _LARGE

    def greeting(self) -> bytes:
        if self._challenge is None:
            return b'+HI {"v":2}\r\n'
        return b'+HI {"v":2,"i":%d,"s":"%b"}\r\n' % (self._challenge.iterations, self._challenge.salt.encode())

    def handle(self, line: bytes) -> Answer:
        if not self.identified:
            return self._hello(line)
        if len(line) > LARGE:
            return answer_long(self.dispatcher, self._handle_large, Long(line, gathered(len(line))))
        verb, blank, body = line.partition(b" ")
        act = self._verbs.get(verb)
        if act is None:
            return self._unknown(verb)
        self.protocol.commands += 1
        if not blank and verb in _NO_ARGUMENT:
            return _NO_ARGUMENT[verb]
        return act(self, body)

    def _handle_large(self, line: bytes) -> Answer:
        """Avoids copies, and does not decode bodies over their command's limit."""
        verb = line[:LARGE].partition(b" ")[0]
        act = self._verbs.get(verb)
        if act is None:
            return self._unknown(verb)
        self.protocol.commands += 1
        body = memoryview(line)[len(verb) + 1 :]
        act_large = self._large.get(verb)
        if act_large is not None:
            return act_large(self, body)
        most = SMALL_BYTES if verb in _SMALL else OTHERS_BYTES
        if len(body) > most:
            return error(b"%b takes at most %d bytes" % (verb, most))
        return act(self, bytes(body))

    def _unknown(self, verb: bytes) -> Answer:
        self.report("unknown-command", f"unknown command {logs.shown(verb)}")
        return error(b"unknown command " + verb)

    def broken(self) -> Answer | None:
        if not self._lines.overrun:
            return None
        self.report("protocol-error", TOO_LONG)
        return close_delayed(Close(error(TOO_LONG)), self.protocol.line_bytes) if self.identified else SILENT

    def crowded(self, connections: int) -> Close:
        return Close(error(f"too many connections: {connections}"))

    def farewell(self) -> bytes:
        return error("shutdown in progress") if self.identified else b""

    def closed(self) -> None:
        if self.identified:
            self.identified = False
            self.protocol.connections -= 1
            if self.worker is not None:
                self.protocol.workers.leave(self.worker, self._hang_up)

    def _hello(self, line: bytes) -> Answer:
        hello = read_hello(self.protocol, self._challenge, line)
        if isinstance(hello, Close):
            wrong = hello is WRONG_PASSWORD
            self.report("wrong-password", "wrong password") if wrong else self.report("protocol-error", "invalid HELLO")
            return hello
        self.identified = True
        self.protocol.connections += 1
        if hello.wid:
            self.worker = self.protocol.workers.join(newcomer(hello, self.dispatcher.now), self._hang_up)
            self.leases = self.worker.leases
            self.wid = hello.wid
        if hello.extensions != ANNOUNCED:
            return OK
        self._verbs, self._large = _EXTENDED_VERBS, _EXTENDED_LARGE
        return welcome(self.protocol.line_bytes)

    def _end(self, body: bytes) -> Answer:
        return Close(OK)

    def _push(self, body: bytes) -> Answer:
        return push(self.dispatcher, VIA, body)

    def _push_bulk(self, body: bytes) -> Answer:
        return push_bulk(self.dispatcher, VIA, body)

    def _push_large(self, body: memoryview) -> Answer:
        return push_large(self.dispatcher, VIA, body)

    def _push_bulk_large(self, body: memoryview) -> Answer:
        return push_bulk_large(self.dispatcher, VIA, body)

    def _fetch(self, body: bytes) -> Answer:
        if body.count(b" ") >= QUEUES_AT_MOST:
            return error(f"FETCH takes at most {QUEUES_AT_MOST} queues")
        queues = names(body) if len(body) <= 1_024 else names.__wrapped__(body)
        return self._try_fetch(queues, self.dispatcher.now.steady + BLOCK_S)

    def _try_fetch(self, queues: tuple[str, ...], until: float, late: bool = False) -> Answer:
        worker = self.worker
        if worker is not None and worker.state != RUNNING:
            return NULL if late else Wait((), until, partial(self._try_fetch, queues, until))
        command = LeaseNext(VIA, queues, self.wid, TERMS)
        job = self.dispatcher.do(command)
        if job is not None and job.lease is not None:
            self.leases.remember(job.jid, job, self.dispatcher)
            leases = [(job.number, job.lease.token)]
            try:
                return Grant(bulk(show(job)), leases)
            except Exception:
                give_back(self.dispatcher, VIA, leases)
                raise
        if late:
            return NULL
        if more_candidates(self.dispatcher.state, command, self.dispatcher.now):
            return ask_again(self.dispatcher, until, partial(self._try_fetch, queues, until))
        return Wait(queues, until, partial(self._try_fetch, queues, until))

    def claim(self, jid: str) -> Claim:
        return Claim(VIA, self.wid, self.leases.newest(jid))

    def _ack(self, body: bytes) -> Answer:
        try:
            jid = _ack_body(body)["jid"]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
            return error(b"invalid ACK " + body)
        claim = self.claim(jid)
        if self.dispatcher.do(Succeed(jid, claim)):
            self.leases.forget(jid, claim.held)
        return OK  # for an unknown jid, too: clients rely on it (faktory.md section 14, Q12)

    def _fail(self, body: bytes) -> Answer:
        try:
            failure = _fail_body(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return error(b"invalid FAIL " + body)
        jid = failure.jid
        if not jid:
            return error("missing JID")
        claim = self.claim(jid)
        if not self.dispatcher.do(fail_command(failure, jid, claim)):
            return error(f"Job not found {jid}")
        self.leases.forget(jid, claim.held)
        return OK

    def _beat(self, body: bytes) -> Answer:
        try:
            beat = _beat_body(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return error(b"invalid BEAT " + body)
        worker = self.protocol.workers.by_wid.get(beat.wid or "")
        if worker is None:
            return error(f"unknown worker {beat.wid or ''}")
        worker.beat_at = self.dispatcher.now.steady
        worker.rss_kb = beat.rss_kb or worker.rss_kb
        worker.signal(beat.current_state or "")
        return OK if worker.state == RUNNING else bulk(b'{"state":"%b"}' % worker.state.encode())

    def _info(self, body: bytes) -> Answer:
        return bulk(info(self.protocol, self.dispatcher))

    def _flush(self, body: bytes) -> Answer:
        if not self.protocol.may_flush:
            return error("FLUSH is disabled while a listener is reachable from other hosts; set server.flush = true")
        self.dispatcher.do(Flush(VIA))
        return OK

    def _mutate(self, body: bytes) -> Answer:
        try:
            request = _mutate_body(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return error("invalid format")
        work = mutate(self.dispatcher, VIA, request)
        return error(work) if isinstance(work, str) else work

    def _queue(self, body: bytes) -> Answer:
        return queue(self.dispatcher, VIA, body)

    def _batch(self, body: bytes) -> Answer:
        return batch(self.dispatcher, VIA, body)

    def _track(self, body: bytes) -> Answer:
        return track(self.dispatcher, body)


_VERBS: Final[dict[bytes, Callable[[FaktorySession, bytes], Answer]]] = {
    b"END": FaktorySession._end,
    b"PUSH": FaktorySession._push,
    b"PUSHB": FaktorySession._push_bulk,
    b"FETCH": FaktorySession._fetch,
    b"ACK": FaktorySession._ack,
    b"FAIL": FaktorySession._fail,
    b"BEAT": FaktorySession._beat,
    b"INFO": FaktorySession._info,
    b"FLUSH": FaktorySession._flush,
    b"MUTATE": FaktorySession._mutate,
    b"BATCH": FaktorySession._batch,
    b"TRACK": FaktorySession._track,
    b"QUEUE": FaktorySession._queue,
}
#: The same for bodies that may be as long as a line.
_LARGE: Final[dict[bytes, Callable[[FaktorySession, memoryview], Answer]]] = {
    b"PUSH": FaktorySession._push_large,
    b"PUSHB": FaktorySession._push_bulk_large,
}
#: The same for a session that announced the extensions. Other sessions do not know these verbs.
_EXTENDED_VERBS: Final = {**_VERBS, **extensions.VERBS}
_EXTENDED_LARGE: Final = {**_LARGE, **extensions.LARGE}
_SMALL: Final = frozenset({b"ACK", b"BEAT", b"INFO", b"FLUSH", b"END"})
#: The error of a verb that needs an argument and has none (faktory.md section 3.3).
_NO_ARGUMENT: Final = {
    **dict.fromkeys(
        (b"PUSH", b"PUSHB", b"ACK", b"FAIL", b"BEAT", b"QUEUE", b"BATCH", b"TRACK"), error("internal error")
    ),
    b"FETCH": error("must call fetch with at least one queue"),
    b"MUTATE": error("invalid format"),
}
