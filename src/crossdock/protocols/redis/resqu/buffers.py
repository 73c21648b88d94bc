"""What allocators and workers have in hand: `allocator:<node>:<code>` and `worker:<id>` (MODEL section 10).

Popping a job into a worker's buffer leases it to that worker; popping it into an allocator's takes it until it is put
on a pool's list. A buffer that is full when its owner pops again means that the answer was lost: it is given once more.
An allocator's buffer may hold a batch's id instead; that is a plain key.
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
from crossdock.protocols.redis.resp.values import Error, whole
from crossdock.protocols.redis.resqu import job_view, keys
from crossdock.protocols.redis.resqu.keys import KeyKind, KeyName
from crossdock.protocols.redis.resqu.specs import VIA

#: Rows of expired jobs, some hundred each, that one pop passes over.
_ROWS: Final = 20

_WORKER: Final = b"worker:"


def key_of(key: bytes) -> str:
    return key[len(KEY_PREFIX) :].decode()


def take(context: Context, source: KeyName, target: KeyName, buffer: bytes) -> bytes | None:
    """Pop from a list of jobs into a buffer; the answer, None while there is none."""
    lost = _again(context, target, buffer)
    if lost is not None:
        return lost
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


def _again(context: Context, target: KeyName, buffer: bytes) -> bytes | None:
    """What was popped before and never put on: the answer to it was lost. What a worker has lost meanwhile is not."""
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
    if source.kind is KeyKind.BATCH:
        return dispatcher.do(LeaseFromResquBatch(VIA, source.name.decode(), worker, BUFFER_TERMS))
    command = LeaseNext(VIA, (queue_of(source),), worker, BUFFER_TERMS)
    for _ in range(_ROWS):
        job = dispatcher.do(command)
        if job is not None or not more_candidates(dispatcher.state, command, dispatcher.now):
            return job
    return None


def queue_of(name: KeyName) -> str:
    return UNASSIGNED if name.kind is KeyKind.UNASSIGNED else name.name.decode()


def put_on(context: Context, buffer: bytes, target: KeyName) -> bytes | None:
    """RPOPLPUSH from an allocator's buffer to a pool's list, or back."""
    return context.dispatcher.do(PutOn(VIA, key_of(buffer), queue_of(target)))


def rpop(context: Context, name: KeyName, args: list[bytes]) -> bytes | None:
    """A worker that is in its set is done with its job; of one that is not, it was lost."""
    if len(args) > 1:
        raise Error(b"ERR '%b' holds one element: RPOP takes no count there" % args[0][:128])
    lost = name.name not in members(context, queries.worker_set(name.name))
    return context.dispatcher.do(EmptyBuffer(VIA, key_of(args[0]), lost=lost))


def discard(context: Context, args: list[bytes]) -> int:
    """LREM allocator:… 1 <text>: of what cannot be read, upstream; that is refused here before it gets in."""
    whole(args[1])
    return int(context.dispatcher.do(DiscardBuffer(VIA, key_of(args[0]), args[2])))


def gone(context: Context, workers: list[bytes]) -> None:
    """They left their set."""
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
    """A job; else it may hold a batch's id."""
    return queries.buffer(context.dispatcher.state, key_of(key)) is not None
