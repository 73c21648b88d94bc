"""A walk over jobs in slices. It follows the engine's indexes from key to key and never copies a whole index.

Jobs come state by state: ready jobs queue by queue in the order of leasing, others by their due time. Jobs of a tag
come in the order in which they were tagged, jobs of a failure group newest first. A walk resumes after the key of the
last job it examined, in this request or in a later one. Jobs that come and go meanwhile do not disturb it.
"""

from collections.abc import Callable, Collection, Generator, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from crossdock.engine.index.failures import key as failure_key
from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.job_view import listed_in, state_index_key
from crossdock.engine.jobs.admin import not_movable
from crossdock.engine.qless.queries import jobs_by_tag, tagged_since
from crossdock.engine.queries.jobs import failure_group, failure_groups, indexed_jobs, indexed_states
from crossdock.engine.queries.queues import queue_named, queues_by_name
from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState
from crossdock.model.job import Job
from crossdock.model.states import State
from crossdock.protocols.admin import leases
from crossdock.protocols.admin.matchers import ENDED
from crossdock.protocols.admin.pages import PAUSE_S, Cursor, first_names
from crossdock.protocols.admin.selection import ORDER, Selection, find_jobs, matching, states

#: Jobs per slice: less than a millisecond.
SLICE: Final = 1_000

#: Jobs examined per request. A walk that has found less than a page by then returns its cursor.
EXAMINED_AT_MOST: Final = 30_000

_QUEUES: Final = 1_000


#: Bytes of payloads and errors that a walk searches, in one slice and for one request. Jobs may have any size.
_SLICE_SEARCHED: Final = 256 * 1024
SEARCHED_AT_MOST: Final = 64 * 1024 * 1024


#: With more matchers slices are shorter, each further group of this many by one part.
_MATCHERS: Final = 4


class Slice(NamedTuple):
    jobs: list[Job]  #: the selected ones
    examined: int
    cursor: Cursor  #: of the last job
    searched: int = 0  #: bytes


def cursor_of(job: Job, state: EngineState, wanted: Selection) -> Cursor:
    if wanted.ids is not None:
        return Cursor(None, "", (job.number,))
    if wanted.tag is not None:
        return Cursor(None, "", (tagged_since(state, wanted.tag, job), job.jid, job.number))
    if wanted.failure is not None:
        return Cursor(None, "", failure_key(job))
    if wanted.failure_prefix is not None:
        return Cursor(None, listed_in(job), failure_key(job))
    if job.state is State.READY:
        return Cursor(job.state, job.queue, job.sort_key or ())
    if job.state is State.HELD and job.extra is not None and job.extra.resqu_batch:
        return Cursor(job.state, job.extra.resqu_batch, (job.number,))
    return Cursor(job.state, "", (job.lease.end, job.number) if job.lease is not None else state_index_key(job))


def walk(
    state: EngineState,
    wanted: Selection,
    cursor: Cursor | None,
    take: Callable[[Slice], Cursor | None],
    size: int = SLICE,
) -> Generator[float, None, tuple[int, Cursor | None]]:
    """Pass each slice to `take`, which returns a cursor once it has enough. Other connections are served in between.

    Returns the number of examined jobs and the cursor, None at the end of the walk.
    """
    size = max(1, size // (1 + len(wanted.matchers) // _MATCHERS))
    examined = since = searched = paused_at = 0
    for some in _walk(state, wanted, cursor, size):
        examined += some.examined
        since += some.examined
        searched += some.searched
        enough = take(some)
        if enough is not None:
            return examined, enough
        if examined >= EXAMINED_AT_MOST or searched >= SEARCHED_AT_MOST:
            return examined, some.cursor
        if since >= size or searched - paused_at >= _SLICE_SEARCHED:
            since, paused_at = 0, searched
            yield PAUSE_S
    return examined, None


def _walk(state: EngineState, wanted: Selection, cursor: Cursor | None, size: int) -> Iterator[Slice]:
    listed = _list(state, wanted)
    if listed is not None:
        yield from _slices(state, wanted, cursor or Cursor(None, "", ()), size, listed)
        return
    if wanted.failure_prefix is not None:
        yield from _groups(state, wanted, cursor, size)
        return
    for job_state in states(state):
        if job_state not in wanted.states or (cursor is not None and _is_before(job_state, cursor)):
            continue
        begin = cursor if cursor is not None and cursor.state is job_state else Cursor(job_state, "", ())
        if job_state is State.READY:
            yield from _ready(state, wanted, begin, size)
        elif job_state is State.HELD:
            yield from _held(state, wanted, begin, size)
        else:
            yield from _slices(state, wanted, begin, size, _state_index(state, job_state))


def _is_before(state: State, cursor: Cursor) -> bool:
    return cursor.state is not None and ORDER.index(state) < ORDER.index(cursor.state)


#: Looks an index up. Between two slices a queue may be removed, and a FLUSH replaces all indexes.
_Index = Callable[[], SortedList[Any] | None]


def _ready(state: EngineState, wanted: Selection, begin: Cursor, size: int) -> Iterator[Slice]:
    if wanted.queue:
        begin = begin if begin.name == wanted.queue else Cursor(State.READY, wanted.queue, ())
        yield from _slices(state, wanted, begin, size, _queue_index(state, wanted.queue))
        return
    if begin.key:
        yield from _slices(state, wanted, begin, size, _queue_index(state, begin.name))
    yield from _by_name(state, wanted, begin, size, lambda: queues_by_name(state), _queue_index)


def _groups(state: EngineState, wanted: Selection, cursor: Cursor | None, size: int) -> Iterator[Slice]:
    """The failure groups that begin with a text, by name."""
    prefix = wanted.failure_prefix or ""

    def names() -> list[str]:
        return [name for name in failure_groups(state) if name.startswith(prefix)]

    if cursor is not None and cursor.key:
        yield from _slices(state, wanted, cursor, size, _group_index(state, cursor.name))
    elif "" in names():
        yield from _slices(state, wanted, Cursor(None, "", ()), size, _group_index(state, ""))
    yield from _by_name(state, wanted, cursor or Cursor(None, "", ()), size, names, _group_index)


def _group_index(state: EngineState, name: str) -> _Index:
    return lambda: failure_group(state, name)


def _held(state: EngineState, wanted: Selection, begin: Cursor, size: int) -> Iterator[Slice]:
    """Jobs in an allocator's buffer first, then committed batches by name. Uncommitted batches are not shown."""
    if not begin.name:
        yield from _slices(state, wanted, begin, size, _state_index(state, State.HELD))
    elif begin.key:
        yield from _slices(state, wanted, begin, size, _batch_index(state, begin.name))
    yield from _by_name(state, wanted, begin, size, lambda: queries.batches(state), _batch_index)


def _by_name(
    state: EngineState,
    wanted: Selection,
    begin: Cursor,
    size: int,
    all_names: Callable[[], Collection[str]],
    index: Callable[[EngineState, str], _Index],
) -> Iterator[Slice]:
    """The indexes of all names after the cursor's, in alphabetical order."""
    job_state, name = begin.state, begin.name
    while True:
        names: list[str] = []
        for best in first_names(all_names(), name, _QUEUES):
            names = best
            yield Slice([], min(size, len(all_names())), Cursor(job_state, name, ()))
        for name in names:
            yield from _slices(state, wanted, Cursor(job_state, name, ()), size, index(state, name))
        if len(names) < _QUEUES:
            return


def _batch_index(state: EngineState, name: str) -> _Index:
    return lambda: queries.committed_index(state, name)


def _list(state: EngineState, wanted: Selection) -> _Index | None:
    """The index of IDs, a tag or a failure group, which is shorter than those of the states."""
    ids, tag, failure = wanted.ids, wanted.tag, wanted.failure
    if ids is not None:
        return lambda: SortedList(sorted({(job.number,) for each in ids for job in find_jobs(state, each)}))
    if tag is not None:
        return lambda: jobs_by_tag(state).get(tag)
    if failure is not None:
        return lambda: failure_group(state, failure)
    return None


def _queue_index(state: EngineState, queue: str) -> _Index:
    return lambda: known.ready if (known := queue_named(state, queue)) is not None else None


def _state_index(state: EngineState, job_state: State) -> _Index:
    return lambda: indexed_states(state).get(job_state)


def _slices(state: EngineState, wanted: Selection, cursor: Cursor, size: int, lookup: _Index) -> Iterator[Slice]:
    while index := lookup():
        keys = list(islice(index.irange(cursor.key or None, inclusive=(False, True)), size))
        if not keys:
            return
        jobs = list(indexed_jobs(state, (key[-1] for key in keys)))
        is_last = len(keys) < size
        searched = 0
        if wanted.searches:
            few, searched = _affordable(jobs)
            is_last = is_last and len(few) == len(jobs)
            jobs, keys = few, keys[: len(few)]
        cursor = Cursor(cursor.state, cursor.name, keys[-1])
        found = matching(jobs, cursor.state, wanted)
        if wanted.to:
            found = [job for job in found if not not_movable(state, job, wanted.to)]
        if wanted.connected is not None:
            found = [job for job in found if not leases.not_releasable(job, wanted.connected)]
        yield Slice(found, len(keys), cursor, searched)
        if is_last:
            return


def _affordable(jobs: list[Job]) -> tuple[list[Job], int]:
    """The first of these jobs whose texts one slice may search, at least one, and the size of the texts."""
    searched = 0
    for at, job in enumerate(jobs, 1):
        searched += len(job.payload)
        if job.extra is not None and job.extra.error is not None:
            searched += len(job.extra.error.message)
        if searched >= _SLICE_SEARCHED:
            return jobs[:at], searched
    return jobs, searched


def count_at_once(state: EngineState, wanted: Selection) -> int | None:
    """The number of jobs, if it is known without a walk."""
    listed = _list(state, wanted)
    if listed is not None:
        tagged = Selection(frozenset(states(state)), tag=wanted.tag)
        failed = Selection(ENDED, failure=wanted.failure)
        return len(listed() or ()) if wanted in (tagged, failed) else None
    if (
        wanted.matchers
        or wanted.failure_prefix is not None
        or wanted.kind
        or wanted.before is not None
        or (wanted.queue and wanted.states != {State.READY})
    ):
        return None
    if wanted.queue:
        queue = queue_named(state, wanted.queue)
        return len(queue.ready) if queue is not None else 0
    ready = sum(len(queue.ready) for queue in queues_by_name(state).values()) if State.READY in wanted.states else 0
    batched = sum(queries.length(state, name) for name in queries.batches(state) if queries.committed(state, name))
    ready += batched if State.HELD in wanted.states else 0
    return ready + sum(len(index) for job_state, index in indexed_states(state).items() if job_state in wanted.states)
