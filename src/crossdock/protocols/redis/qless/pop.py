"""pop leases the next jobs of a queue to a worker; peek shows them."""

from typing import Final

from crossdock.engine.qless import queries
from crossdock.engine.queries.queues import is_paused
from crossdock.model.commands.qless import CatchUp, Pop
from crossdock.model.job import Job
from crossdock.protocols.redis.keys.values import REPLY_BYTES
from crossdock.protocols.redis.qless import job
from crossdock.protocols.redis.qless.arguments import number, refuse_fraction, span
from crossdock.protocols.redis.qless.call import VIA, Call, Reply
from crossdock.protocols.redis.qless.settle import EXHAUSTED

#: Jobs that one peek shows: about 0.1 s, during which no other client is served.
PEEKED_AT_MOST: Final = 10_000

_COUNT: Final = {word: f'Pop(): Arg "{word}" missing or not a number: ' for word in ("count", "limit")}
_POP: Final = ("Queue(): no queue name provided", 'Pop(): Arg "worker" missing')


def pop(call: Call) -> Reply:
    queue, worker = call.names(0, _POP)
    count = call.number(2, _COUNT[call.dialect.count])
    if count != 1.0 and not is_paused(call.state, queue):  # the scripts check the pause before they use the count
        refuse_fraction(count)
    call.check_time()
    return job.texts(call.state, popped(call, queue, worker, count), call.dialect)


def popped(call: Call, queue: str, worker: str, count: float) -> list[Job]:
    dialect = call.dialect
    abrupt = EXHAUSTED if dialect.per_script else ""
    term = queries.heartbeat(call.state, queue)
    limitless = dialect.throttled or dialect.per_script  # only the unified scripts have `max-concurrency`
    # Positional arguments, because keywords cost more and every pop comes here.
    pop = Pop(VIA, call.t, queue, worker, count, term, None, dialect.old, abrupt, limitless, dialect.php)
    jobs = call.dispatcher.do(pop)
    if jobs:
        call.grant(jobs)
    return jobs


def peek(call: Call) -> Reply:
    queue = call.queue()
    if call.dialect.peek_offset:
        return _page(call, queue)
    wanted = number(call[1], 'Peek(): Arg "count" missing or not a number: ')
    refuse_fraction(wanted)
    count = int(max(0.0, min(PEEKED_AT_MOST, wanted)))
    call.check_time()
    return job.texts(call.state, peeked(call, queue, count), call.dialect, REPLY_BYTES)


def _page(call: Call, queue: str) -> Reply:
    """peek with an offset. Due jobs before the offset are moved as well."""
    names = ("offset", call.dialect.count)
    offset, count = span(call[1], call[2], 'Peek(): Arg "%s" missing or not a number: ', names, None)
    count = min(count, PEEKED_AT_MOST)
    call.check_time()
    found = peeked(call, queue, max(0, min(1_000_000, offset + count))) if count > 0 else []
    page = found[offset:] if offset >= 0 else []  # the script's list is empty then
    return job.texts(call.state, page, call.dialect, REPLY_BYTES)


def peeked(call: Call, queue: str, count: int) -> list[Job]:
    found = queries.expired_jobs(call.state, queue, call.t, count)
    left = count - len(found)
    abrupt = EXHAUSTED if call.dialect.per_script else ""
    call.dispatcher.do(CatchUp(VIA, queue, call.t, left, leases=False, abrupt=abrupt))
    return found + queries.next_jobs(call.state, queue, left)
