"""Requests that read, a page at a time. A request that examines many jobs does so in slices, up to a limit."""

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

import msgspec

from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.queries.jobs import (
    failure_group,
    failure_groups,
    indexed_states,
    job_by_number,
    job_count,
    newest_failure,
    state_index,
)
from crossdock.engine.queries.queues import (
    leased_counts,
    queue_count,
    queue_named,
    queues_by_name,
    retrying_counts,
    scheduled_counts,
)
from crossdock.engine.queries.records import batches_by_name, locks_by_name, totals
from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState
from crossdock.model.job import Job, Number
from crossdock.model.states import State
from crossdock.protocols.admin import leases, messages, schedules, selection, views
from crossdock.protocols.admin.codec import error, reply
from crossdock.protocols.admin.job_counts import jobs_by_state
from crossdock.protocols.admin.job_walk import Slice, count_at_once, cursor_of, walk
from crossdock.protocols.admin.measurements import Demand, StatusSource
from crossdock.protocols.admin.pages import Cursor, by_name, largest, read_cursor, write_cursor
from crossdock.protocols.admin.selection import Selection
from crossdock.protocols.admin.waiting_reasons import why_waiting
from crossdock.protocols.base import Answer, Dispatcher, Slices
from crossdock.protocols.worker_registry import WorkerRegistry

#: See `selection.missing`.
Missing = dict[str, list[str]]

#: A state with more jobs is not counted by queue or worker.
TALLIED_AT_MOST: Final = 20_000

#: Maximum children of a batch that are named.
_CHILDREN: Final = 100


def status(dispatcher: Dispatcher, source: StatusSource, workers: WorkerRegistry) -> bytes:
    state = dispatcher.state
    total = totals(state)
    shown = msgspec.to_builtins(source.server_status()) | {
        "now": views.when(dispatcher.now.wall),
        "jobs": job_count(state),
        "states": jobs_by_state(state),
        "queues": queue_count(state),
        "workers": len(workers.by_wid),
        "batches": len(batches_by_name(state)) + len(queries.batches(state)),
        "locks": len(locks_by_name(state)),
        "schedules": schedules.counts(state),
        "pushed": total.number,
        "processed": total.processed,
        "failures": total.failures,
    }
    return reply({"status": shown})


def jobs(dispatcher: Dispatcher, request: messages.Jobs) -> Answer:
    wanted = selection.select(request, dispatcher.state, dispatcher.now)
    cursor = read_cursor(request.after, wanted)
    return _jobs(dispatcher, wanted, cursor, request.limit, selection.missing(request, dispatcher.state))


def _jobs(dispatcher: Dispatcher, wanted: Selection, cursor: Cursor | None, limit: int, missing: Missing) -> Slices:
    rows: list[views.View] = []

    def take(some: Slice) -> Cursor | None:
        room = limit - len(rows)
        rows.extend(views.row(job, dispatcher.now) for job in some.jobs[:room])
        return cursor_of(some.jobs[room - 1], dispatcher.state, wanted) if len(some.jobs) >= room else None

    examined, after = yield from walk(dispatcher.state, wanted, cursor, take)
    return reply({"jobs": rows, "examined": examined, "after": write_cursor(after)} | missing)


def count(dispatcher: Dispatcher, request: messages.Count) -> Answer:
    """A count has a cursor like a page. The client adds the counts up until there is none."""
    state = dispatcher.state
    wanted = selection.select(request, state, dispatcher.now)
    cursor = read_cursor(request.after, wanted)
    as_of = selection.event_time(state, dispatcher.now) if request.as_of is None else request.as_of
    known = count_at_once(state, wanted) if cursor is None else None
    missing = selection.missing(request, state)
    if known is not None:
        return reply({"count": known, "examined": 0, "as_of": as_of, "after": None} | missing)
    return counted(state, wanted, cursor, as_of, missing)


def counted(state: EngineState, wanted: Selection, cursor: Cursor | None, as_of: float, missing: Missing) -> Slices:
    found = 0

    def take(some: Slice) -> None:
        nonlocal found
        found += len(some.jobs)

    examined, after = yield from walk(state, wanted, cursor, take)
    return reply({"count": found, "examined": examined, "as_of": as_of, "after": write_cursor(after)} | missing)


def job(dispatcher: Dispatcher, demand: Demand, request: messages.Job) -> bytes:
    """The newest live job with that ID, or the progress that is still known of a job that is gone."""
    found = selection.find_jobs(dispatcher.state, request.id)
    if found:
        newest = found[-1]
        others = [each.number for each in found[:-1]]
        state, now = dispatcher.state, dispatcher.now
        why = why_waiting(newest, state, demand, now)
        shown = views.whole(newest, state, now) | {"why": why and {"reason": why.reason, "text": why.text}}
        return reply({"job": shown, "same_jid": others})
    progress = views.progress(dispatcher.state, str(request.id), dispatcher.now)
    if progress is not None:
        return reply({"job": None, "progress": progress})
    return error(f"job {request.id} not found (completed and deleted jobs are not kept)")


def states(dispatcher: Dispatcher, request: messages.States) -> bytes:
    """The state of each job, in the order of the request. None: the server does not have it, or no longer."""
    found = (job_by_number(dispatcher.state, Number(each)) for each in request.numbers)
    return reply({"states": [None if job is None else job.state.name.lower() for job in found]})


def queues(dispatcher: Dispatcher, source: StatusSource, demand: Demand, request: messages.Queues) -> Slices:
    state = dispatcher.state
    tallies: dict[State, Mapping[str, int] | None] = {}
    if request.by_state:
        for job_state in indexed_states(state):
            tallies[job_state] = yield from _by_queue(state, job_state)
    after: str | None = None
    if request.by == "ready":
        chosen = yield from largest(queues_by_name(state).values(), request.limit, lambda queue: len(queue.ready))
    else:
        names, after = yield from by_name(queues_by_name(state), request)
        chosen = [queue for name in names if (queue := queue_named(state, name)) is not None]
    rows = []
    for queue in chosen:
        counts = {
            job_state.name.lower(): None if tally is None else tally.get(queue.name, 0)
            for job_state, tally in tallies.items()
        }
        rates = source.queue_rates(queue.name)
        rows.append(views.queue(queue, state, demand, dispatcher.now) | counts | {"rates": rates})
    return reply({"queues": rows, "after": after})


def queue(dispatcher: Dispatcher, source: StatusSource, demand: Demand, request: messages.Queue) -> Answer:
    if queue_named(dispatcher.state, request.name) is None:
        return error(f"queue {request.name} not found")
    return _queue(dispatcher, source, demand, request.name)


def _queue(dispatcher: Dispatcher, source: StatusSource, demand: Demand, name: str) -> Slices:
    """One queue, with the number of its jobs in each state."""
    state = dispatcher.state
    states: dict[str, int | None] = {}
    for job_state in indexed_states(state):
        tally = yield from _by_queue(state, job_state)
        states[job_state.name.lower()] = None if tally is None else tally.get(name, 0)
    found = queue_named(state, name)
    if found is None:
        return error(f"queue {name} not found")
    shown = {"ready": found.waiting} | states
    wait, run = source.times(name)
    times = {"rates": source.queue_rates(name), "wait": wait, "run": run}
    return reply({"queue": views.queue(found, state, demand, dispatcher.now) | {"states": shown} | times})


def workers(dispatcher: Dispatcher, registry: WorkerRegistry, demand: Demand, request: messages.Workers) -> Slices:
    held = yield from _tally(dispatcher.state, State.LEASED, lambda job: job.lease.worker if job.lease else "")
    known = registry.by_wid
    names, after = yield from by_name({*known, *leases.resqu_worker_names(dispatcher.state)}, request)
    found = [
        views.worker(known[each], held, dispatcher.now) if each in known else leases.resqu_worker(dispatcher, each)
        for each in names
    ]
    rows = [row | {"queues": demand.last_asked(str(row["worker"]))} for row in found if row is not None]
    return reply({"workers": rows, "after": after})


def batches(dispatcher: Dispatcher, request: messages.Batches) -> Slices:
    """Faktory's and Resqu's batches in one list."""
    state, now = dispatcher.state, dispatcher.now
    faktory, resqu = batches_by_name(state), queries.batches(state)
    names, after = yield from by_name([*faktory, *(name for name in resqu if name not in faktory)], request)
    rows = [views.batch(faktory[name], now) for name in names if name in faktory]
    rows += [views.resqu_batch(resqu[name], state, now) for name in names if name in resqu]
    return reply({"batches": sorted(rows, key=lambda row: str(row["batch"])), "after": after})


def batch(dispatcher: Dispatcher, request: messages.Batch) -> bytes:
    state, now = dispatcher.state, dispatcher.now
    faktory, resqu = batches_by_name(state).get(request.name), queries.batches(state).get(request.name)
    if faktory is not None:
        children = [each.name for each in batches_by_name(state).values() if each.parent == faktory.name]
        more = {"children": children[:_CHILDREN], "callbacks": views.callbacks(faktory)}
        return reply({"batch": views.batch(faktory, now) | more})
    if resqu is not None:
        return reply({"batch": views.resqu_batch(resqu, state, now)})
    return error(f"batch {request.name} not found")


def failures(dispatcher: Dispatcher, request: messages.Failures) -> Slices:
    """Failed and dead jobs of all protocols by failure group, which is the error's type as a worker reported it."""
    state = dispatcher.state
    groups = failure_groups(state)
    after = None
    if request.by == "jobs":
        names = yield from largest(groups, request.limit, lambda name: len(groups.get(name, ())))
    else:
        names, after = yield from by_name(groups, request)
    found = ((name, failure_group(state, name)) for name in names)
    rows = [_failure(dispatcher, name, group) for name, group in found if group is not None]
    return reply({"failures": rows, "after": after})


def _failure(dispatcher: Dispatcher, name: str, group: SortedList[tuple[float, Number]]) -> dict[str, Any]:
    newest = newest_failure(dispatcher.state, group)
    return {"failure": name, "jobs": len(group), "newest": views.row(newest, dispatcher.now)}


def _by_queue(state: EngineState, job_state: State) -> Generator[float, None, Mapping[str, int] | None]:
    """The number of jobs in that state by queue, from the engine's counts where it has them."""
    if job_state is State.LEASED:
        return leased_counts(state)
    if job_state is State.RETRYING:
        return retrying_counts(state)
    if job_state is State.SCHEDULED:
        return scheduled_counts(state)
    return (yield from _tally(state, job_state, lambda job: job.queue))


def _tally(
    state: EngineState, job_state: State, key: Callable[[Job], str]
) -> Generator[float, None, Mapping[str, int] | None]:
    """The number of jobs in that state by `key`. None: there are too many to count."""
    if len(state_index(state, job_state)) >= TALLIED_AT_MOST:
        return None
    tally: Counter[str] = Counter()
    yield from walk(state, Selection(frozenset({job_state})), None, lambda some: tally.update(map(key, some.jobs)))
    return tally
