"""Resqu's lists of jobs: `unassigned`, the lists of pools, delayed jobs, and RPOPLPUSH between them."""

from collections.abc import Callable
from itertools import islice
from typing import Final

from crossdock.engine.keyspace.store import Entry
from crossdock.engine.queries.jobs import scheduled_jobs
from crossdock.engine.queries.queues import jobs_in_turn, queue_named
from crossdock.engine.resqu import queries
from crossdock.engine.resqu.queries import waiting_beside
from crossdock.engine.state import EngineState
from crossdock.model.commands.resqu import Pushing, PushJob
from crossdock.model.job import Spec
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys import lists
from crossdock.protocols.redis.resp.decode import integer
from crossdock.protocols.redis.resp.values import NULL_ARRAY, SYNTAX, Block, Error, Result, parse_int
from crossdock.protocols.redis.resqu import buffers, job_view, keys
from crossdock.protocols.redis.resqu.keys import KeyKind, KeyName, read_key
from crossdock.protocols.redis.resqu.payload import LATEST
from crossdock.protocols.redis.resqu.specs import VIA, Specs

# Bound once, because the lookup of an enum member costs as much as a call.
_NOT_UNIQUE: Final = Pushing.NOT_UNIQUE
_DUPLICATE: Final = Pushing.DUPLICATE

#: Jobs of one command. A command is one step, during which no other client is served.
PUSHED_AT_MOST: Final = 5_000


def refuse_if_full(context: Context, jobs: int = 1) -> None:
    """Raise if the server does not accept this many jobs. Called before their payloads are parsed."""
    if jobs > PUSHED_AT_MOST:
        raise Error(f"ERR {jobs} jobs in one command; push at most {PUSHED_AT_MOST} at a time")
    no_room = context.dispatcher.no_room(jobs)
    if no_room is not None:
        raise Error(f"OOM {no_room}")


def push(context: Context, spec: Spec) -> None:
    """Push a job. Raises Error if it is not accepted. A repeated push of the same job has the same reply."""
    outcome = context.dispatcher.do(PushJob(VIA, context.number, spec))
    if outcome is _NOT_UNIQUE:
        links = spec.extra.links if spec.extra is not None else None
        uid = links.lock.name.partition(":")[2] if links is not None and links.lock is not None else ""
        raise Error(f"ERR the unique id '{uid}' is held by another job, or reserved by another client")
    if outcome is _DUPLICATE:
        raise Error(f"ERR a job with the id '{spec.jid}' already exists, pushed through another protocol")


def lpush(specs: Specs, name: KeyName, context: Context, args: list[bytes]) -> Result:
    """LPUSH unassigned: enqueue jobs. The reply is the length of the list that the last job went to."""
    refuse_if_full(context, len(args) - 1)
    if len(args) == 2:
        spec = specs.queued(args[1])
        push(context, spec)
    else:
        found = [specs.queued(text) for text in args[1:]]
        spec = found[-1]
        with context.dispatcher.together():
            for each in found:
                push(context, each)
    return waiting_beside(context.dispatcher.state, spec) or 1


def read_list(state: EngineState, key: bytes, queue: str) -> Entry | None:
    found = queue_named(state, queue)
    if found is None or not found.waiting:
        return None
    keys.refuse_if_long(key, found.waiting)
    jobs = list(jobs_in_turn(state, found))
    return keys.listed(key, (job_view.text(job) for job in reversed(jobs)))


# RPOPLPUSH and BRPOPLPUSH between Resqu's lists and buffers.


_JOBS = frozenset({KeyKind.UNASSIGNED, KeyKind.POOL, KeyKind.COMMITTED_BATCH})
_PLAIN = frozenset({KeyKind.PLAIN, KeyKind.ALLOCATOR})


def _names(args: list[bytes]) -> tuple[KeyName, KeyName]:
    return read_key(args[0]), read_key(args[1])


def _refused(args: list[bytes]) -> Error:
    return Error(b"ERR elements cannot be moved from '%b' to '%b'" % (args[0][:128], args[1][:128]))


def _fits(source: KeyName, target: KeyName) -> bool:
    """An allocator takes jobs from `unassigned`, a worker from any list of jobs."""
    if target.kind is KeyKind.ALLOCATOR:
        return source.kind is KeyKind.UNASSIGNED
    return target.kind is KeyKind.WORKER and source.kind in _JOBS


def rpoplpush(context: Context, args: list[bytes]) -> Result:
    source, target = _names(args)
    if _fits(source, target):
        return buffers.take(context, source, target, args[1])
    if source.kind is KeyKind.ALLOCATOR and target.kind in (KeyKind.POOL, KeyKind.UNASSIGNED):
        return buffers.put_on(context, args[0], target)
    if source.kind in _PLAIN and target.kind in _PLAIN and not _has_job(context, source, args[0]):
        return lists.rpoplpush(context, args)  # the id of a batch
    raise _refused(args)


def brpoplpush(context: Context, args: list[bytes]) -> Result:
    source, target = _names(args)
    if _fits(source, target) and source.kind is not KeyKind.COMMITTED_BATCH:
        until = lists.deadline(context, args[2])
        topic = buffers.queue_of(source)
        return _wait(lambda: buffers.take(context, source, target, args[1]), topic, until)
    if source.kind in _PLAIN and target.kind in _PLAIN and not _has_job(context, source, args[0]):
        return lists.brpoplpush(context, args)
    raise _refused(args)


def _wait(attempt: Callable[[], bytes | None], topic: str, until: float) -> Result:
    found = attempt()
    if found is not None:
        return found
    return Block((topic,), until, lambda: _wait(attempt, topic, until), NULL_ARRAY, None)


def _has_job(context: Context, name: KeyName, key: bytes) -> bool:
    return name.kind is KeyKind.ALLOCATOR and buffers.holds(context, key)


# Delayed jobs: `delayed:<second>` and `delayed_queue_schedule` (resqu.md section 7).
#
# The server itself releases jobs when they are due. So Resqu's scheduler finds no due jobs.


#: Memo of a connection: the second of its last push, and whether the list was empty before.
_PUSHED: Final = "resqu delayed"


def second(key: bytes, name: bytes) -> int:
    found = integer(name)
    if found is None or abs(found) > LATEST:
        raise Error(b"ERR '%b' does not end in a time in seconds since 1970" % key[:128])
    return found


def rpush(specs: Specs, name: KeyName, context: Context, args: list[bytes]) -> Result:
    at = second(args[0], name.name)
    refuse_if_full(context, len(args) - 1)
    found = [specs.delayed(text, at) for text in args[1:]]
    with context.dispatcher.together():
        for spec in found:
            push(context, spec)
        there = max(len(found), delayed_length(context.dispatcher.state, at))
    context.memo[_PUSHED] = (at, there == len(found))
    return there


def zadd(context: Context, args: list[bytes]) -> Result:
    """The ZADD that follows each RPUSH. RPUSH has scheduled the job already, so this only replies."""
    pairs = args[1:]
    if len(pairs) % 2:
        raise SYNTAX
    new = 0
    for score, member in zip(pairs[::2], pairs[1::2], strict=True):
        if parse_int(score) != parse_int(member):
            raise Error(b"ERR score and member of '%b' must be equal" % args[0][:128])
        new += context.memo.pop(_PUSHED, None) == (parse_int(score), True)
    return new


def delayed_length(state: EngineState, at: int) -> int:
    return queries.delayed_counts(state).get(at, 0)


def read_delayed(state: EngineState, key: bytes, at: int) -> Entry | None:
    """The jobs of a second. The due time of a deferred job may have a fraction."""
    there = delayed_length(state, at)
    if not there:
        return None
    ours = (
        job_view.base(job)
        for job in scheduled_jobs(state, float(at), float(at + 1))
        if job_view.resqu_data(job) is not None
    )
    return keys.listed(key, islice(ours, there))


def times(state: EngineState, key: bytes) -> Entry | None:
    seconds = queries.delayed_counts(state)
    keys.refuse_if_long(key, len(seconds))
    return keys.seconds(seconds)
