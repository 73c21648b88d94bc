"""A walk over jobs in slices: from one key to the next in the engine's own orders, never a copy of all of them.

Jobs come state by state, ready ones queue by queue in the order in which they would be leased, the others by when they
are due; those of a tag in the order in which they got it, those of a group of failures newest first. The key of the
last job looked at is all a walk needs to go on, in this request or in a later one; jobs that come or go meanwhile do
not disturb it.
"""

from collections.abc import Callable, Collection, Generator, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from crossdock.engine.index.failures import key as failure_key
from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.job_view import state_index_key
from crossdock.engine.jobs.admin import not_movable
from crossdock.engine.qless.queries import jobs_by_tag, tagged_since
from crossdock.engine.queries.failures import failure_group
from crossdock.engine.queries.jobs import indexed_jobs, indexed_states
from crossdock.engine.queries.queues import queue_named, queues_by_name
from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState
from crossdock.model.job import Job
from crossdock.model.states import State
from crossdock.protocols.admin import leases
from crossdock.protocols.admin.cursor import Spot
from crossdock.protocols.admin.selection import ENDED, ORDER, Wanted, sieve, states

#: Jobs looked at in one go: less than a millisecond between the turns of others.
SLICE: Final = 1_000

#: After each slice. A walk goes on in the same loop that answers everybody and waits for the disk: one that never rests
#: takes every other turn of it.
PAUSE_S: Final = 0.001

#: Jobs looked at for one request. A walk that found less than a page by then hands out its cursor.
LOOKED_AT_MOST: Final = 30_000

#: Names looked at in one go: about as long.
_NAMES: Final = 2_000
_QUEUES: Final = 1_000


class Looked(NamedTuple):
    """One slice."""

    jobs: list[Job]  #: those wanted
    number: int  #: looked at
    spot: Spot  #: of the last one


def spot_of(job: Job, state: EngineState, wanted: Wanted) -> Spot:
    if wanted.tag is not None:
        return Spot(None, "", (tagged_since(state, wanted.tag, job), job.jid, job.number))
    if wanted.failure is not None:
        return Spot(None, "", failure_key(job))
    if job.state is State.READY:
        return Spot(job.state, job.queue, job.sort_key or ())
    if job.state is State.HELD and job.extra is not None and job.extra.stage:
        return Spot(job.state, job.extra.stage, (job.number,))
    return Spot(job.state, "", (job.lease.end, job.number) if job.lease is not None else state_index_key(job))


def go(
    state: EngineState, wanted: Wanted, spot: Spot | None, take: Callable[[Looked], Spot | None], size: int = SLICE
) -> Generator[float, None, tuple[int, Spot | None]]:
    """Hand slice after slice to `take`, which says where to go on once it has enough. Others are served in between.

    Gives how many were looked at, and from where to go on; None: that was the end.
    """
    looked = since = 0
    for some in _walk(state, wanted, spot, size):
        looked += some.number
        since += some.number
        enough = take(some)
        if enough is not None:
            return looked, enough
        if looked >= LOOKED_AT_MOST:
            return looked, some.spot
        if since >= size:
            since = 0
            yield PAUSE_S
    return looked, None


def _walk(state: EngineState, wanted: Wanted, spot: Spot | None, size: int) -> Iterator[Looked]:
    listed = _list(state, wanted)
    if listed is not None:
        yield from _slices(state, wanted, spot or Spot(None, "", ()), size, listed)
        return
    for job_state in states(state):
        if job_state not in wanted.states or (spot is not None and _is_behind(spot, job_state)):
            continue
        begin = spot if spot is not None and spot.state is job_state else Spot(job_state, "", ())
        if job_state is State.READY:
            yield from _ready(state, wanted, begin, size)
        elif job_state is State.HELD:
            yield from _held(state, wanted, begin, size)
        else:
            yield from _slices(state, wanted, begin, size, _shelf(state, job_state))


def _is_behind(spot: Spot, state: State) -> bool:
    return spot.state is not None and ORDER.index(state) < ORDER.index(spot.state)


#: The order as it is now: between two slices a queue may be forgotten, and a FLUSH puts others in place of all.
_Current = Callable[[], SortedList[Any] | None]


def _ready(state: EngineState, wanted: Wanted, begin: Spot, size: int) -> Iterator[Looked]:
    if wanted.queue:
        begin = begin if begin.queue == wanted.queue else Spot(State.READY, wanted.queue, ())
        yield from _slices(state, wanted, begin, size, _lane(state, wanted.queue))
        return
    if begin.key:
        yield from _slices(state, wanted, begin, size, _lane(state, begin.queue))
    yield from _by_name(state, wanted, begin, size, lambda: queues_by_name(state), _lane)


def _held(state: EngineState, wanted: Wanted, begin: Spot, size: int) -> Iterator[Looked]:
    """What was taken by an allocator, then batch by batch, by name. Nobody sees what is not committed."""
    if not begin.queue:
        yield from _slices(state, wanted, begin, size, _shelf(state, State.HELD))
    elif begin.key:
        yield from _slices(state, wanted, begin, size, _batch(state, begin.queue))
    yield from _by_name(state, wanted, begin, size, lambda: queries.batches(state), _batch)


def _by_name(
    state: EngineState,
    wanted: Wanted,
    begin: Spot,
    size: int,
    those: Callable[[], Collection[str]],
    order: Callable[[EngineState, str], _Current],
) -> Iterator[Looked]:
    """The orders of all names behind the one where it begins."""
    job_state, name = begin.state, begin.queue
    while True:
        names: list[str] = []
        for best in first_names(those(), name, _QUEUES):
            names = best
            yield Looked([], min(size, len(those())), Spot(job_state, name, ()))
        for name in names:
            yield from _slices(state, wanted, Spot(job_state, name, ()), size, order(state, name))
        if len(names) < _QUEUES:
            return


def _batch(state: EngineState, name: str) -> _Current:
    return lambda: queries.committed_index(state, name)


def _list(state: EngineState, wanted: Wanted) -> _Current | None:
    """One that has all jobs wanted, if there is a shorter one than those of their states."""
    tag, failure = wanted.tag, wanted.failure
    if tag is not None:
        return lambda: jobs_by_tag(state).get(tag)
    if failure is not None:
        return lambda: failure_group(state, failure)
    return None


def _lane(state: EngineState, queue: str) -> _Current:
    return lambda: known.ready if (known := queue_named(state, queue)) is not None else None


def _shelf(state: EngineState, job_state: State) -> _Current:
    return lambda: indexed_states(state).get(job_state)


def _slices(state: EngineState, wanted: Wanted, spot: Spot, size: int, order_now: _Current) -> Iterator[Looked]:
    while order := order_now():
        keys = list(islice(order.irange(spot.key or None, inclusive=(False, True)), size))
        if not keys:
            return
        jobs = list(indexed_jobs(state, (key[-1] for key in keys)))
        spot = Spot(spot.state, spot.queue, keys[-1])
        found = sieve(jobs, spot.state, wanted)
        if wanted.to:
            found = [job for job in found if not not_movable(state, job, wanted.to)]
        if wanted.but is not None:
            found = [job for job in found if not leases.hindrance(job, wanted.but)]
        yield Looked(found, len(keys), spot)
        if len(keys) < size:
            return


def count_at_once(state: EngineState, wanted: Wanted) -> int | None:
    """How many there are, if that is known without a walk."""
    listed = _list(state, wanted)
    if listed is not None:
        tagged, failed = Wanted(frozenset(states(state)), tag=wanted.tag), Wanted(ENDED, failure=wanted.failure)
        return len(listed() or ()) if wanted in (tagged, failed) else None
    if wanted.kind or wanted.before is not None or (wanted.queue and wanted.states != {State.READY}):
        return None
    if wanted.queue:
        queue = queue_named(state, wanted.queue)
        return len(queue.ready) if queue is not None else 0
    ready = sum(len(queue.ready) for queue in queues_by_name(state).values()) if State.READY in wanted.states else 0
    staged = sum(queries.length(state, name) for name in queries.batches(state) if queries.committed(state, name))
    ready += staged if State.HELD in wanted.states else 0
    return ready + sum(len(index) for job_state, index in indexed_states(state).items() if job_state in wanted.states)


def first_names(names: Collection[str], after: str | None, most: int) -> Iterator[list[str]]:
    """The first names behind `after`, in order: the last list is the answer, those before are on the way to it."""
    best: list[str] = []
    rest = iter(list(names))
    while some := list(islice(rest, _NAMES)):
        best = sorted(best + [name for name in some if after is None or name > after])[:most]
        yield best
