"""The next jobs of a queue: leased to a worker by pop, only shown by peek."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from crossdock.engine.qless.quirks import surfacing
from crossdock.model.commands.qless import CatchUp, Pop
from crossdock.model.job import Job
from crossdock.protocols.redis.keys.values import REPLY_BYTES
from crossdock.protocols.redis.qless import job_text, settings
from crossdock.protocols.redis.qless.arguments import number, refuse_part, span
from crossdock.protocols.redis.qless.call import VIA, Call, Reply
from crossdock.protocols.redis.qless.job_lists import merged
from crossdock.protocols.redis.qless.settle import EXHAUSTED

#: Shown by one call: about a tenth of a second in which nobody else is served.
PEEKED_AT_MOST: Final = 10_000

_COUNT: Final = {word: f'Pop(): Arg "{word}" missing or not a number: ' for word in ("count", "limit")}
_POP: Final = ("Queue(): no queue name provided", 'Pop(): Arg "worker" missing')


def pop(call: Call) -> Reply:
    queue, worker = call.names(0, _POP)
    count = call.number(2, _COUNT[call.dialect.count])
    if count != 1.0 and not is_paused(call, queue):
        refuse_part(count)
    call.writes()
    return job_text.texts(call.state, popped(call, queue, worker, count), call.dialect)


def is_paused(call: Call, queue: str) -> bool:
    """The scripts look at this before they use the count."""
    known = call.state.queues.get(queue)
    return known is not None and known.paused


def popped(call: Call, queue: str, worker: str, count: float) -> list[Job]:
    dialect = call.dialect
    abrupt = EXHAUSTED if dialect.in_scripts else ""
    term = settings.heartbeat(call.state, queue)
    limitless = dialect.throttled or dialect.in_scripts  # `max-concurrency` is of the unified scripts only
    pop = Pop(VIA, call.t, queue, worker, count, term, None, dialect.old, abrupt, limitless, dialect.php)
    jobs = call.dispatcher.do(pop)
    if jobs:
        call.grant(jobs)
    return jobs


def peek(call: Call) -> Reply:
    queue = call.queue()
    # Older servers took the script of 0.13 for the one before it, and what they loaded is remembered.
    if call.dialect.paged or (call.dialect.throttled and call[2] is not None):
        return _page(call, queue)
    asked = number(call[1], 'Peek(): Arg "count" missing or not a number: ')
    refuse_part(asked)
    count = int(max(0.0, min(PEEKED_AT_MOST, asked)))
    call.writes()
    return job_text.texts(call.state, peeked(call, queue, count), call.dialect, REPLY_BYTES)


def _page(call: Call, queue: str) -> Reply:
    """What is before it is moved to where it belongs as well."""
    names = ("offset", call.dialect.count)
    offset, count = span(call[1], call[2], 'Peek(): Arg "%s" missing or not a number: ', names, None)
    count = min(count, PEEKED_AT_MOST)
    call.writes()
    found = peeked(call, queue, max(0, min(1_000_000, offset + count))) if count > 0 else []
    page = found[offset:] if offset >= 0 else []  # the script's own list begins with nothing then
    return job_text.texts(call.state, page, call.dialect, REPLY_BYTES)


def peeked(call: Call, queue: str, count: int) -> list[Job]:
    state = call.state
    lazy = state.lazy.of(queue)
    over: Sequence[Any] = list(lazy.locks.front(min(count, lazy.expired(call.t))))
    if state.qless.stray_entries.jobs:
        over = sorted([*over, *surfacing.locks(state, queue, call.t)])[:count]
    found = [state.jobs[number_] for _, _, number_ in over]
    left = count - len(found)
    abrupt = EXHAUSTED if call.dialect.in_scripts else ""
    call.dispatcher.do(CatchUp(VIA, queue, call.t, left, leases=False, abrupt=abrupt))
    known = state.queues.get(queue)
    if known is not None:
        places = surfacing.work(state, queue)
        if known.lanes is None or places:
            first = merged(list(known.ready.front(left)), places)
            found += [state.jobs[place[4]] for place in first[:left]]
        else:
            found += [state.jobs[number_] for number_ in islice(known.in_turn(), max(0, left))]
    return found
