"""FETCHB: lease many jobs with one request, and wait longer than FETCH does."""

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import Meta

from crossdock.engine.jobs.lease import more_candidates
from crossdock.model.commands.core import LeaseNext, LeaseTerms
from crossdock.model.job import Job, LeaseRef, ResquData
from crossdock.model.policies import Disposition
from crossdock.model.protocol_data import QlessData
from crossdock.protocols.base import Answer, Grant, Wait, ask_again, give_back
from crossdock.protocols.faktory.admin import QUEUES_AT_MOST
from crossdock.protocols.faktory.job import show
from crossdock.protocols.faktory.messages import bulk, error
from crossdock.protocols.job_spec import NAME_BYTES
from crossdock.protocols.worker_registry import RUNNING

if TYPE_CHECKING:
    from crossdock.protocols.faktory.session import FaktorySession

VIA: Final = "faktory"
NOTHING: Final = bulk(b"[]")
FETCH_AT_MOST: Final = 1_000
WAIT_AT_MOST_S: Final = 60

#: A reply may have fewer jobs than were asked for: it ends when it has this many bytes, or took this many seconds, so
#: that other connections are not held up.
_REPLY_BYTES: Final = 1024 * 1024
_REPLY_S: Final = 0.005
_LOOKED_AFTER: Final = 16  #: jobs between two looks at the clock

_CACHED_BYTES: Final = 1_024

#: Without `lease_s` a lease is as long as FETCH makes it.
_TERMS: Final = LeaseTerms(default_s=1_800.0, least_s=60.0, most_s=86_400.0)


class FetchBody(msgspec.Struct, frozen=True):
    queues: Annotated[list[str], Meta(min_length=1, max_length=QUEUES_AT_MOST)]
    count: Annotated[int, Meta(ge=1, le=FETCH_AT_MOST)] = 1
    wait_s: Annotated[float, Meta(ge=0, le=WAIT_AT_MOST_S)] = 2.0
    lease_s: Annotated[float, Meta(ge=1, le=86_400)] | None = None
    order: Literal["ordered", "random"] = "ordered"


class _Fetch(msgspec.Struct, frozen=True):
    """A request that was checked."""

    queues: tuple[str, ...]
    count: int
    wait_s: float
    terms: LeaseTerms
    at_random: bool


_decode = msgspec.json.Decoder(FetchBody).decode
_quote = msgspec.json.Encoder().encode


def fetch_many(session: "FaktorySession", body: bytes) -> Answer:
    try:
        asked = _read(body) if len(body) <= _CACHED_BYTES else _read.__wrapped__(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        return error(f"invalid FETCHB: {wrong}")
    now = session.dispatcher.now.steady
    return _try(session, asked, now + asked.wait_s, not asked.wait_s)


@lru_cache(maxsize=1_024)
def _read(body: bytes) -> _Fetch:
    """Cached, because a worker sends the same request again and again."""
    asked = _decode(body)
    queues = tuple(dict.fromkeys(name[: NAME_BYTES + 1] for name in asked.queues))
    terms = _TERMS if asked.lease_s is None else LeaseTerms(asked.lease_s, asked.lease_s, asked.lease_s)
    return _Fetch(queues, asked.count, asked.wait_s, terms, asked.order == "random" and len(queues) > 1)


def _try(session: "FaktorySession", asked: _Fetch, until: float, late: bool = False) -> Answer:
    worker = session.worker
    if worker is not None and worker.state != RUNNING:
        return NOTHING if late else Wait((), until, partial(_try, session, asked, until))
    dispatcher = session.dispatcher
    command = LeaseNext(VIA, asked.queues, session.wid, asked.terms, asked.at_random)
    leases: list[LeaseRef] = []
    parts: list[bytes] = []
    size, began = 0, dispatcher.held_up()
    try:
        while len(parts) < asked.count and size < _REPLY_BYTES:
            if parts and len(parts) % _LOOKED_AFTER == 0 and dispatcher.held_up() - began > _REPLY_S:
                break
            job = dispatcher.do(command)
            if job is None or job.lease is None:
                break
            leases.append((job.number, job.lease.token))
            session.leases.remember(job.jid, job, dispatcher)
            parts.append(fetched(job))
            size += len(parts[-1])
        if parts:
            return Grant(bulk(b"[%b]" % b",".join(parts)), leases)
    except Exception:
        give_back(dispatcher, VIA, leases)
        raise
    if more_candidates(dispatcher.state, command, dispatcher.now):
        return ask_again(dispatcher, until, partial(_try, session, asked, until))
    return NOTHING if late else Wait(asked.queues, until, partial(_try, session, asked, until))


def fetched(job: Job) -> bytes:
    """The job as FETCH shows it, with the members that a worker of any protocol's jobs needs."""
    extra = job.extra
    tags, batch, resqu, keeps = b"[]", b'""', b"", job.policy.success is Disposition.COMPLETE
    if extra is not None:
        data, links = extra.protocol_data, extra.links
        if extra.tags:
            tags = _quote(extra.tags)
        if links is not None:
            batch = _quote(links.batch) if links.batch else batch
            keeps = keeps or links.foreground
        if type(data) is QlessData:
            keeps = False
        elif type(data) is ResquData and _is_text(data.text):
            resqu = b',"resqu":%b' % data.text
    return b'%b,"attempt":%d,"origin":%b,"number":%d,"tags":%b,"batch":%b,"keep_result":%b%b}' % (
        show(job)[:-1],
        job.attempts,
        _quote_name(job.origin),
        job.number,
        tags,
        batch,
        b"true" if keeps else b"false",
        resqu,
    )


@lru_cache(maxsize=64)
def _quote_name(name: str) -> bytes:
    return _quote(name)


def _is_text(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
