"""RPOPLPUSH and its like between Resqu's lists: which is popped into which buffer, and put on which list."""

from collections.abc import Callable

from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys import blocking, lists
from crossdock.protocols.redis.resp.values import NULL_ARRAY, Block, Error, Result
from crossdock.protocols.redis.resqu import buffers
from crossdock.protocols.redis.resqu.keys import Kind, Name, read

_JOBS = frozenset({Kind.UNASSIGNED, Kind.POOL, Kind.BATCH})
_PLAIN = frozenset({Kind.PLAIN, Kind.ALLOCATOR})


def _names(args: list[bytes]) -> tuple[Name, Name]:
    return read(args[0]), read(args[1])


def _refused(args: list[bytes]) -> Error:
    return Error(b"ERR nothing is moved from '%b' to '%b'" % (args[0][:128], args[1][:128]))


def _fits(source: Name, target: Name) -> bool:
    """An allocator takes from what is unassigned, a worker from a pool's list or a batch."""
    if target.kind is Kind.ALLOCATOR:
        return source.kind is Kind.UNASSIGNED
    return target.kind is Kind.WORKER and source.kind in _JOBS


def rpoplpush(context: Context, args: list[bytes]) -> Result:
    source, target = _names(args)
    if _fits(source, target):
        return buffers.take(context, source, target, args[1])
    if source.kind is Kind.ALLOCATOR and target.kind in (Kind.POOL, Kind.UNASSIGNED):
        return buffers.put_on(context, args[0], target)
    if source.kind in _PLAIN and target.kind in _PLAIN and not _has_job(context, source, args[0]):
        return lists.rpoplpush(context, args)  # a batch's id on its way
    raise _refused(args)


def brpoplpush(context: Context, args: list[bytes]) -> Result:
    source, target = _names(args)
    if _fits(source, target) and source.kind is not Kind.BATCH:
        until = blocking.deadline(context, args[2])
        topic = buffers.queue_of(source)
        return _wait(lambda: buffers.take(context, source, target, args[1]), topic, until)
    if source.kind in _PLAIN and target.kind in _PLAIN and not _has_job(context, source, args[0]):
        return blocking.brpoplpush(context, args)
    raise _refused(args)


def _wait(attempt: Callable[[], bytes | None], topic: str, until: float) -> Result:
    found = attempt()
    if found is not None:
        return found
    return Block((topic,), until, lambda: _wait(attempt, topic, until), NULL_ARRAY, None)


def _has_job(context: Context, name: Name, key: bytes) -> bool:
    return name.kind is Kind.ALLOCATOR and buffers.holds(context, key)
