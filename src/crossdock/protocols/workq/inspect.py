"""`inspect` (workq.md section 5.8): reads of the engine's state, a page at a time. No flags, one object word."""

from collections.abc import Callable, Iterable
from copy import copy
from typing import TYPE_CHECKING, Final

from crossdock.engine.index.queue import Queue
from crossdock.engine.queries.jobs import job_by_number, newest_job
from crossdock.engine.queries.queues import (
    listed_queues,
    page_of_ready,
    page_of_scheduled,
    queue_named,
    queues_by_name,
    scheduled_count,
)
from crossdock.engine.queries.records import totals
from crossdock.model.job import Job
from crossdock.protocols.base import Answer, Dispatcher, Slices
from crossdock.protocols.workq import codec
from crossdock.protocols.workq import job as workq_job
from crossdock.protocols.workq.codec import Flags, InvalidCommand, name, spells, stamp, unsigned
from crossdock.protocols.workq.job import record

if TYPE_CHECKING:
    from crossdock.protocols.workq.protocol import WorkqProtocol

LIMIT: Final = 100
_OFFSET: Final = 2**32 - 1

#: Queue names per slice.
SLICE: Final = 1_000

#: A longer page of jobs is sent in parts of this size, at least a job each. A hundred jobs may have 100 MiB.
PART_BYTES: Final = 64 * 1024

Words = list[bytes]


def inspect(protocol: "WorkqProtocol", dispatcher: Dispatcher, words: Words, flags: Flags) -> Answer:
    """`inspect <object> …`. Raises InvalidCommand."""
    known = _OBJECTS.get(words[1])
    if known is None:
        raise InvalidCommand(codec.UNKNOWN_COMMAND)
    count, look = known
    if len(words) != count or flags:
        raise InvalidCommand(codec.INVALID_ARGS)
    return look(protocol, dispatcher, words)


def _server(protocol: "WorkqProtocol", dispatcher: Dispatcher, words: Words) -> bytes:
    """Three keys. Upstream announces two (workq.md section 10, row 3)."""
    return codec.ONE + b"server 3\r\nactive-clients %d\r\nevicted-jobs %d\r\nstarted %b\r\n" % (
        protocol.connections,
        totals(dispatcher.state).evicted,
        stamp(protocol.started),
    )


def _queue(protocol: "WorkqProtocol", dispatcher: Dispatcher, words: Words) -> bytes:
    return _replies([_lengths(dispatcher, _known(dispatcher, _named(words[2])))])


def _queues(protocol: "WorkqProtocol", dispatcher: Dispatcher, words: Words) -> Answer:
    """In byte order. Queues with names that are invalid in Workq are not listed (model.md section 7)."""
    offset, limit = _page(words)
    names = [queue.name for queue in listed_queues(dispatcher.state)]
    if len(names) <= SLICE:
        return _page_of_queues(dispatcher, _spelled(names), offset, limit)
    return _in_slices(dispatcher, names, offset, limit)


def _in_slices(dispatcher: Dispatcher, names: list[str], offset: int, limit: int) -> Slices:
    """Slices are sorted one by one: sorting their concatenation then takes a fraction of the time."""
    found: list[str] = []
    for first in range(0, len(names), SLICE):
        found += _spelled(names[first : first + SLICE])
        yield
    return _page_of_queues(dispatcher, sorted(found), offset, limit)


def _spelled(names: list[str]) -> list[str]:
    return sorted(each for each in names if spells(each))


def _page_of_queues(dispatcher: Dispatcher, names: list[str], offset: int, limit: int) -> bytes:
    """A queue that was removed meanwhile is left out."""
    queues = queues_by_name(dispatcher.state)
    listed = (queues[each] for each in names[offset : offset + limit] if each in queues)
    return _replies([_lengths(dispatcher, queue) for queue in listed])


def _lengths(dispatcher: Dispatcher, queue: Queue) -> bytes:
    later = scheduled_count(dispatcher.state, queue.name)
    return b"%b 2\r\nready-len %d\r\nscheduled-len %d\r\n" % (queue.name.encode(), queue.waiting, later)


def _jobs(protocol: "WorkqProtocol", dispatcher: Dispatcher, words: Words) -> Answer:
    """Ready jobs only, in the order of leasing (workq.md section 10, row 23)."""
    queue, offset, limit = _page_of(dispatcher, words)
    return _page_of_jobs(page_of_ready(dispatcher.state, queue, offset, offset + limit))


def _scheduled_jobs(protocol: "WorkqProtocol", dispatcher: Dispatcher, words: Words) -> Answer:
    """By priority, then by time (workq.md section 5.8)."""
    queue, offset, limit = _page_of(dispatcher, words)
    if not scheduled_count(dispatcher.state, queue.name):
        return codec.NONE
    return _page_of_jobs(page_of_scheduled(dispatcher.state, queue, offset, offset + limit))


def _page_of_jobs(jobs: list[Job]) -> Answer:
    if sum(len(job.payload) for job in jobs) <= PART_BYTES:
        return _replies(map(record, jobs))
    return _in_parts([copy(job) for job in jobs])


def _in_parts(jobs: list[Job]) -> Slices:
    """Send copies of the jobs: the number of jobs was announced, and a job may change while the peer reads. A copy
    shares the payload with its job."""
    part = b"+OK %d\r\n" % len(jobs)
    jobs.reverse()
    while jobs:
        part += record(jobs.pop())
        if len(part) >= PART_BYTES:
            yield part
            part = b""
    return part


def _job(protocol: "WorkqProtocol", dispatcher: Dispatcher, words: Words) -> bytes:
    """Accepts any UUID."""
    ident = workq_job.parse(words[2])
    if ident is None:
        raise InvalidCommand(codec.INVALID_ID)
    job = find(dispatcher, ident)
    return codec.NOT_FOUND if job is None else _replies([record(job)])


def find(dispatcher: Dispatcher, ident: str) -> Job | None:
    """The job that Workq shows under that ID: the newest of that jid, or the one of that number."""
    state = dispatcher.state
    job = newest_job(state, ident)
    if job is not None:
        return job
    if ident.startswith(workq_job.MADE_UP):
        job = job_by_number(state, workq_job.number(ident))
        if job is not None and workq_job.shown(job) == ident:
            return job
    return None


def _named(text: bytes) -> str:
    queue = name(text)
    if queue is None:
        raise InvalidCommand(codec.INVALID_NAME)
    return queue


def _known(dispatcher: Dispatcher, queue: str) -> Queue:
    known = queue_named(dispatcher.state, queue)
    if known is None:
        raise InvalidCommand(codec.NOT_FOUND)
    return known


def _page(words: Words) -> tuple[int, int]:
    """The last two words."""
    offset, limit = unsigned(words[-2], _OFFSET), unsigned(words[-1], LIMIT)
    if offset is None:
        raise InvalidCommand(codec.INVALID_OFFSET)
    if not limit:
        raise InvalidCommand(codec.INVALID_LIMIT)
    return offset, limit


def _page_of(dispatcher: Dispatcher, words: Words) -> tuple[Queue, int, int]:
    """The queue is looked up last: an invalid page is reported before an unknown queue."""
    queue, (offset, limit) = _named(words[2]), _page(words)
    return _known(dispatcher, queue), offset, limit


def _replies(found: Iterable[bytes]) -> bytes:
    each = list(found)
    return b"+OK %d\r\n%b" % (len(each), b"".join(each))


#: The number of words, including `inspect` and the object, and the function.
_OBJECTS: Final[dict[bytes, tuple[int, Callable[["WorkqProtocol", Dispatcher, Words], Answer]]]] = {
    b"server": (2, _server),
    b"queue": (3, _queue),
    b"queues": (4, _queues),
    b"jobs": (5, _jobs),
    b"scheduled-jobs": (5, _scheduled_jobs),
    b"job": (3, _job),
}
