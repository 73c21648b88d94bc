"""`delayed:<second>` and `delayed_queue_schedule`: jobs that wait for their time (protocol page 7).

The server releases them by itself, in the instant they are due. So what is due is not there any more when Resqu's own
scheduler looks for it: it finds nothing to do.
"""

from itertools import islice
from typing import Final

from crossdock.engine.keyspace.store import Entry
from crossdock.engine.queries.jobs import scheduled_jobs
from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.decode import integer
from crossdock.protocols.redis.resp.numbers import whole
from crossdock.protocols.redis.resp.values import SYNTAX, Error, Result
from crossdock.protocols.redis.resqu import entries, job_view
from crossdock.protocols.redis.resqu.keys import Name
from crossdock.protocols.redis.resqu.payload import LATEST
from crossdock.protocols.redis.resqu.queue_lists import push, refuse_if_full
from crossdock.protocols.redis.resqu.specs import Specs

_PUSHED: Final = "resqu delayed"  #: in a connection's memo: the second it pushed to last, and how many there were then


def second(key: bytes, name: bytes) -> int:
    found = integer(name)
    if found is None or abs(found) > LATEST:
        raise Error(b"ERR '%b' does not end in a second since 1970" % key[:128])
    return found


def rpush(specs: Specs, name: Name, context: Context, args: list[bytes]) -> Result:
    at = second(args[0], name.name)
    refuse_if_full(context, len(args) - 1)
    found = [specs.delayed(text, at) for text in args[1:]]
    with context.dispatcher.together():
        for spec in found:
            push(context, spec)
        there = max(len(found), length(context.dispatcher.state, at))
    context.memo[_PUSHED] = (at, there == len(found))
    return there


def zadd(context: Context, args: list[bytes]) -> Result:
    """It follows each RPUSH, which has done all there is to do."""
    pairs = args[1:]
    if len(pairs) % 2:
        raise SYNTAX
    new = 0
    for score, member in zip(pairs[::2], pairs[1::2], strict=True):
        if whole(score) != whole(member):
            raise Error(b"ERR each member of '%b' is its own score" % args[0][:128])
        new += context.memo.pop(_PUSHED, None) == (whole(score), True)
    return new


def length(state: EngineState, at: int) -> int:
    return queries.delayed_counts(state).get(at, 0)


def read(state: EngineState, key: bytes, at: int) -> Entry | None:
    """Of those of a second, a deferred one's may be a fraction behind it."""
    there = length(state, at)
    if not there:
        return None
    ours = (
        job_view.base(job)
        for job in scheduled_jobs(state, float(at), float(at + 1))
        if job_view.face_of(job) is not None
    )
    return entries.listed(key, islice(ours, there))


def times(state: EngineState, key: bytes) -> Entry | None:
    seconds = queries.delayed_counts(state)
    entries.refuse_if_long(key, len(seconds))
    return entries.seconds(seconds)
