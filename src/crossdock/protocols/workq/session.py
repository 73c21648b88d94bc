"""One Workq connection: a reply to each command, in order. Some commands may wait (workq.md section 5)."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from crossdock import logs
from crossdock.engine.job_view import qless_data
from crossdock.engine.jobs.lease import more_candidates
from crossdock.engine.queries.jobs import job_by_number
from crossdock.engine.queries.queues import queue_count
from crossdock.model.commands.admin import Remove
from crossdock.model.commands.core import Claim, Enqueue, Fail, LeaseNext, LeaseTerms, Succeed, Verdict
from crossdock.model.job import Job, Lease, Number, Spec
from crossdock.model.states import State
from crossdock.protocols.base import (
    Answer,
    Close,
    Dispatcher,
    Grant,
    JobResult,
    Report,
    Wait,
    ask_again,
    give_back,
    unreported,
)
from crossdock.protocols.issued_leases import IssuedLeases
from crossdock.protocols.payload import as_bytes
from crossdock.protocols.rejection_delay import Long, answer_long
from crossdock.protocols.workq import codec
from crossdock.protocols.workq import job as workq_job
from crossdock.protocols.workq.codec import OK, TIMEOUT, Codec, Flags, InvalidCommand, WorkqRequest, name
from crossdock.protocols.workq.inspect import find, inspect
from crossdock.protocols.workq.job import DAY_MS, LEASE_S, added, foreground, outcome, scheduled, timeout

if TYPE_CHECKING:
    from crossdock.protocols.workq.protocol import WorkqProtocol

VIA: Final = "workq"
NAMES_AT_MOST: Final = 1_000  #: in one lease
_NAMES_KEPT: Final = 64
MESSAGE_BYTES: Final = 1_000

#: A lease registers the queues that it names, as upstream does. Above this number it does not: they stay forever.
QUEUES_AT_MOST: Final = 100_000
TERMS: Final = LeaseTerms(LEASE_S, 0.001, DAY_MS / 1_000, registers=True)
_TERMS_WITHOUT_REGISTERING: Final = LeaseTerms(LEASE_S, 0.001, DAY_MS / 1_000)

_FREE: Final = Claim(VIA, "", free=True)
_ALL: Final = frozenset(State) - {State.GONE}
_UNLEASED: Final = _ALL - {State.LEASED}
_SETTLED: Final = {
    Verdict.DONE: OK,
    Verdict.UNKNOWN: codec.NOT_FOUND,
    Verdict.FINISHED: codec.DUPLICATE_RESULT,
}


class WorkqSession:
    def __init__(self, protocol: "WorkqProtocol", dispatcher: Dispatcher) -> None:
        self._protocol = protocol
        self._dispatcher = dispatcher
        self.receive = Codec().receive
        self.report: Report = unreported
        self.identified = True  #: there is no handshake
        self._leases = IssuedLeases()
        self._worker = ""  #: the name in its leases, from the first lease on
        self._running: Number = 0  #: the foreground job that this connection waits for

    def greeting(self) -> bytes:
        return b""

    def handle(self, request: WorkqRequest) -> Answer:
        if request is None:
            self.report("protocol-error", "the input cannot be parsed")
            return Close(b"")
        if isinstance(request, bytes):
            self.report("protocol-error", logs.shown(request[1:].rstrip()))
            return request
        if isinstance(request, Long):
            return answer_long(self._dispatcher, self.handle, request)
        words, flags, block = request
        self._protocol.commands += 1
        try:
            return _VERBS[words[0]](self, words, flags, block)
        except InvalidCommand as refused:
            return refused.reply

    def broken(self) -> None:
        """Nothing: the codec reports it in order, as a request of None."""

    def crowded(self, connections: int) -> Close:
        return Close(codec.server_error(f"Too many connections: {connections}"))

    def farewell(self) -> bytes:
        """Nothing: a client would read it as the reply to its next command."""
        return b""

    def closed(self) -> None:
        """Remove the job of an unfinished `run`, whose result has no receiver. A worker that has leased it may go
        on."""
        self._protocol.connections -= 1
        self._protocol.worker_names.free(self._worker)
        if self._running:
            self._remove(self._running, "abandoned", _UNLEASED)

    def _add(self, words: list[bytes], flags: Flags, block: bytes) -> Answer:
        return self._enqueue(added(words, flags, block)) or OK

    def _schedule(self, words: list[bytes], flags: Flags, block: bytes) -> Answer:
        return self._enqueue(scheduled(words, flags, block, self._dispatcher.now)) or OK

    def _enqueue(self, spec: Spec) -> bytes | None:
        """The error reply, None if the job was accepted."""
        if spec.jid.startswith(workq_job.MADE_UP) and find(self._dispatcher, spec.jid) is not None:
            return codec.DUPLICATE_JOB
        no_room = self._dispatcher.no_room(1)
        if no_room is not None:
            return codec.server_error(no_room)
        return codec.DUPLICATE_JOB if self._dispatcher.do(Enqueue(VIA, [spec], unless_live=True)) else None

    def _run(self, words: list[bytes], flags: Flags, block: bytes) -> Answer:
        """Wait for a worker, then for its result. An expired lease ends the wait (workq.md section 10, row 12)."""
        spec, wait = foreground(words, flags, block)
        refused = self._enqueue(spec)
        if refused is not None:
            return refused
        ident = spec.jid
        job = find(self._dispatcher, ident)
        number = self._running = 0 if job is None else job.number

        def on_result(ended: JobResult) -> Answer:
            self._running = 0
            if ended.settled:
                return codec.result(ident, ended.ok, ended.body)
            return TIMEOUT if ended.lease_expired else codec.NOT_FOUND

        def at_deadline(_: bool) -> Answer:
            job = job_by_number(self._dispatcher.state, number)
            if job is not None and job.lease is not None and job.lease.end > self._dispatcher.now.steady:
                return Wait((), job.lease.end, at_deadline, number, on_result)
            self._running = 0
            self._remove(number, "abandoned", _ALL)
            return TIMEOUT

        return Wait((), self._dispatcher.now.steady + wait / 1_000, at_deadline, number, on_result)

    def _result(self, words: list[bytes], flags: Flags, block: bytes) -> Answer:
        ident = _ident(words, flags)
        wait = timeout(words[2])
        job = find(self._dispatcher, ident)
        if job is None:
            return codec.NOT_FOUND
        over = outcome(job)
        if over is not None:
            return codec.result(ident, *over)
        if not wait:
            return TIMEOUT

        def on_result(ended: JobResult) -> Answer:
            return codec.result(ident, ended.ok, ended.body) if ended.settled else codec.NOT_FOUND

        return Wait((), self._dispatcher.now.steady + wait / 1_000, lambda late: TIMEOUT, job.number, on_result)

    def _lease(self, words: list[bytes], flags: Flags, block: bytes) -> Answer:
        if flags or len(words) > NAMES_AT_MOST + 2:
            return codec.INVALID_ARGS
        wait = timeout(words[-1])
        if not self._worker:
            self._worker = self._protocol.worker_names.take()
        return self._try_lease(_names(words[1:-1]), self._dispatcher.now.steady + wait / 1_000, not wait)

    def _try_lease(self, queues: tuple[str, ...], until: float, late: bool = False) -> Answer:
        dispatcher = self._dispatcher
        terms = TERMS if queue_count(dispatcher.state) < QUEUES_AT_MOST else _TERMS_WITHOUT_REGISTERING
        command = LeaseNext(VIA, queues, self._worker, terms, len(queues) > 1)
        job = dispatcher.do(command)
        if job is None or job.lease is None:
            if more_candidates(dispatcher.state, command, dispatcher.now):
                return ask_again(dispatcher, until, partial(self._try_lease, queues, until))
            return TIMEOUT if late else Wait(queues, until, partial(self._try_lease, queues, until))
        leases = [(job.number, job.lease.token)]
        try:
            return Grant(self._leased(job, job.lease), leases)
        except Exception:
            give_back(dispatcher, VIA, leases)
            raise

    def _leased(self, job: Job, lease: Lease) -> bytes:
        if job.origin == VIA and qless_data(job) is None:  # this lease may have created the job of a qless schedule
            ident, payload = job.jid, job.payload
        else:
            ident, payload = workq_job.shown(job), as_bytes(job)
        self._leases.remember(ident, job, self._dispatcher)
        ttr = b"%d " % round((lease.end - lease.began) * 1_000) if self._protocol.lease_ttr else b""
        return codec.ONE + b"%b %b %b%d\r\n%b\r\n" % (ident.encode(), job.queue.encode(), ttr, len(payload), payload)

    def _complete(self, words: list[bytes], flags: Flags, block: bytes) -> Answer:
        ident = _ident(words, flags)
        jid, claim = self._claim(ident)
        return self._settled(ident, self._dispatcher.do(Succeed(jid, claim, block)))

    def _fail(self, words: list[bytes], flags: Flags, block: bytes) -> Answer:
        ident = _ident(words, flags)
        jid, claim = self._claim(ident)
        message = block[:MESSAGE_BYTES].decode("utf-8", "replace") or "failed"
        return self._settled(ident, self._dispatcher.do(Fail(jid, claim, "failed", message, result=block)))

    def _claim(self, ident: str) -> tuple[str, Claim]:
        """The jid and the claim for that ID. A lease of this connection is claimed. Without one Workq may settle any
        job that is not leased through another protocol."""
        held = self._leases.newest(ident)
        number = 0
        if (
            ident.startswith(workq_job.MADE_UP)
            and (job := find(self._dispatcher, ident)) is not None
            and job.jid != ident
        ):
            ident, number = job.jid, job.number
        return ident, _FREE if held is None and not number else Claim(VIA, "", held, True, number)

    def _settled(self, ident: str, verdict: Verdict) -> bytes:
        if verdict is Verdict.DONE:
            self._leases.forget(ident)
        return _SETTLED[verdict]

    def _delete(self, words: list[bytes], flags: Flags, block: bytes) -> Answer:
        """Accepts any UUID. One that no job can have is not found (workq.md section 10, row 17)."""
        if flags:
            return codec.INVALID_ARGS
        ident = workq_job.parse(words[1])
        if ident is None:
            return codec.INVALID_ID
        job = find(self._dispatcher, ident)
        if job is None or not self._remove(job.number, "deleted", _ALL):
            return codec.NOT_FOUND
        return OK

    def _remove(self, number: Number, why: str, states: frozenset[State]) -> int:
        return self._dispatcher.do(Remove(VIA, why, [number], states))

    def _inspect(self, words: list[bytes], flags: Flags, block: bytes) -> Answer:
        return inspect(self._protocol, self._dispatcher, words, flags)


def _ident(words: list[bytes], flags: Flags) -> str:
    """The ID in `complete`, `fail` and `result`, which take no flags. Raises InvalidCommand."""
    if flags:
        raise InvalidCommand(codec.INVALID_ARGS)
    ident = workq_job.read(words[1])
    if ident is None:
        raise InvalidCommand(codec.INVALID_ID)
    return ident


def _names(words: list[bytes]) -> tuple[str, ...]:
    """Cached, because workers send the same names with each lease. Long lists are not cached."""
    return _read_names(tuple(words)) if len(words) <= _NAMES_KEPT else _read_names.__wrapped__(tuple(words))


@lru_cache(maxsize=256)
def _read_names(words: tuple[bytes, ...]) -> tuple[str, ...]:
    """Without duplicates, so that each queue is equally likely."""
    found: dict[str, None] = {}
    for word in words:
        queue = name(word)
        if queue is None:
            raise InvalidCommand(codec.INVALID_NAME)
        found[queue] = None
    return tuple(found)


_VERBS: Final[dict[bytes, Callable[[WorkqSession, list[bytes], Flags, bytes], Answer]]] = {
    b"add": WorkqSession._add,
    b"lease": WorkqSession._lease,
    b"complete": WorkqSession._complete,
    b"fail": WorkqSession._fail,
    b"schedule": WorkqSession._schedule,
    b"run": WorkqSession._run,
    b"result": WorkqSession._result,
    b"delete": WorkqSession._delete,
    b"inspect": WorkqSession._inspect,
}
