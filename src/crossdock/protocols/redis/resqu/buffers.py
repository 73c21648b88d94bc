"""The buffers of allocators and workers: `allocator:<node>:<code>` and `worker:<id>` (model.md section 10).

Popping a job into the buffer of a worker leases it to that worker. Popping it into the buffer of an allocator takes it
out of its queue until it is pushed to the list of a pool. If the buffer is full when its owner pops again, the reply
was lost, and the same job is returned again. The buffer of an allocator may also hold the id of a batch; then it is a
plain key.
"""

from typing import Final

from crossdock.engine.jobs.lease import more_candidates
from crossdock.engine.keyspace.store import Entry
from crossdock.engine.queries.jobs import job_by_number
from crossdock.engine.queries.keyspace import live_entry
from crossdock.engine.resqu import queries
from crossdock.engine.resqu.queries import KEY_PREFIX
from crossdock.model.commands.core import LeaseNext
from crossdock.model.commands.resqu import (
    BUFFER_TERMS,
    UNASSIGNED,
    DiscardBuffer,
    EmptyBuffer,
    FillBuffer,
    LeaseFromResquBatch,
    LoseBuffer,
    PutOn,
    TakeNext,
)
from crossdock.model.job import Job
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.values import members
from crossdock.protocols.redis.resp.values import Error, parse_int
from crossdock.protocols.redis.resqu import job_view, keys
from crossdock.protocols.redis.resqu.keys import KeyKind, KeyName
from crossdock.protocols.redis.resqu.specs import VIA

#: Attempts of one pop. Each skips some hundred expired jobs.
_ATTEMPTS: Final = 20

_WORKER: Final = b"worker:"


def key_of(key: bytes) -> str:
    return key[len(KEY_PREFIX) :].decode()


def take(context: Context, source: KeyName, target: KeyName, buffer: bytes) -> bytes | None:
    """Pop a job from a list into a buffer, and return its text; None if there is no job."""
    unanswered = _again(context, buffer)
    if unanswered is not None:
        return unanswered
    state = context.dispatcher.state
    with context.dispatcher.together():
        job = _next(context, source, target)
        if job is None:
            return None
        text = job_view.popped(job)
        token = 0 if job.lease is None else job.lease.token
        context.dispatcher.do(FillBuffer(key_of(buffer), job.number, token, text))
    if token and job_by_number(state, job.number) is not None:
        context.grant([(job.number, token)])
    return text


def _again(context: Context, buffer: bytes) -> bytes | None:
    """The job that is still in the buffer, because the reply of its pop was lost. If its lease has ended since, the
    buffer is emptied instead."""
    state = context.dispatcher.state
    full = queries.buffer(state, key_of(buffer))
    if full is None:
        return None
    if queries.in_hand(state, key_of(buffer)) is not None:
        return full.text
    context.dispatcher.do(EmptyBuffer(VIA, key_of(buffer), lost=True))
    return None


def _next(context: Context, source: KeyName, target: KeyName) -> Job | None:
    dispatcher = context.dispatcher
    if target.kind is KeyKind.ALLOCATOR:
        return dispatcher.do(TakeNext(VIA, UNASSIGNED))
    worker = target.name.decode()
    if source.kind is KeyKind.COMMITTED_BATCH:
        return dispatcher.do(LeaseFromResquBatch(VIA, source.name.decode(), worker, BUFFER_TERMS))
    command = LeaseNext(VIA, (queue_of(source),), worker, BUFFER_TERMS)
    for _ in range(_ATTEMPTS):
        job = dispatcher.do(command)
        if job is not None or not more_candidates(dispatcher.state, command, dispatcher.now):
            return job
    return None


def queue_of(name: KeyName) -> str:
    return UNASSIGNED if name.kind is KeyKind.UNASSIGNED else name.name.decode()


def put_on(context: Context, buffer: bytes, target: KeyName) -> bytes | None:
    """RPOPLPUSH from the buffer of an allocator to the list of a pool, or back to `unassigned`."""
    return context.dispatcher.do(PutOn(VIA, key_of(buffer), queue_of(target)))


def rpop(context: Context, name: KeyName, args: list[bytes]) -> bytes | None:
    """Empty the buffer of a worker. A registered worker has finished its job; that of any other worker is lost."""
    if len(args) > 1:
        raise Error(b"ERR RPOP of '%b' takes no count: it holds one element" % args[0][:128])
    lost = name.name not in members(context, queries.worker_set(name.name))
    return context.dispatcher.do(EmptyBuffer(VIA, key_of(args[0]), lost=lost))


def discard(context: Context, args: list[bytes]) -> int:
    """LREM allocator:… 1 <text>. Resqu's server discards invalid payloads with it, which this server never accepts."""
    parse_int(args[1])
    return int(context.dispatcher.do(DiscardBuffer(VIA, key_of(args[0]), args[2])))


def workers_left(context: Context, workers: list[bytes]) -> None:
    """The workers were removed from their set: their buffered jobs are lost."""
    for worker in workers:
        try:
            key = (_WORKER + worker).decode()
        except UnicodeDecodeError:
            continue
        if queries.buffer(context.dispatcher.state, key) is not None:
            context.dispatcher.do(LoseBuffer(VIA, key))


def read(context: Context, key: bytes) -> Entry | None:
    state = context.dispatcher.state
    full = queries.buffer(state, key_of(key))
    if full is not None:
        return keys.listed(key, [full.text])
    return live_entry(state, key, context.dispatcher.now)


def holds(context: Context, key: bytes) -> bool:
    """Whether the buffer holds a job."""
    return queries.buffer(context.dispatcher.state, key_of(key)) is not None
