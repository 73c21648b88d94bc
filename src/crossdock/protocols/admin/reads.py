"""What can be looked at, a page at a time. Whatever has to look at many jobs does so in slices, within a bound."""

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from typing import Final

import msgspec

from crossdock.engine.queries.jobs import indexed_states, job_count, state_index
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
from crossdock.model.job import Job
from crossdock.model.states import State
from crossdock.protocols.admin import batches as batch_views
from crossdock.protocols.admin import cursor, messages, resqu_workers, schedules, selection, views
from crossdock.protocols.admin.job_walk import Looked, count_at_once, go, spot_of
from crossdock.protocols.admin.messages import error, reply
from crossdock.protocols.admin.pages import by_name, longest
from crossdock.protocols.admin.selection import Wanted
from crossdock.protocols.admin.server_status import House
from crossdock.protocols.base import Answer, Dispatcher, Slices
from crossdock.protocols.worker_registry import WorkerRegistry

#: Names in the filters of a request that are not there; see `choose.missing`.
Missing = dict[str, list[str]]

#: Jobs of a state that are counted by queue or worker on the way to another answer.
TALLIED_AT_MOST: Final = 20_000


#: Children of a batch that are named.
_CHILDREN: Final = 100


def status(dispatcher: Dispatcher, house: House, workers: WorkerRegistry) -> bytes:
    state = dispatcher.state
    jobs, total = job_count(state), totals(state)
    sizes = {job_state.name.lower(): len(index) for job_state, index in indexed_states(state).items()}
    sizes["held"] += queries.batched_count(state)
    shown = msgspec.to_builtins(house.server_status()) | {
        "now": views.when(dispatcher.now.wall),
        "jobs": jobs,
        "states": {"ready": jobs - sum(sizes.values())} | sizes,
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
    wanted = selection.wanted(request, dispatcher.state, dispatcher.now)
    return _jobs(dispatcher, wanted, cursor.read(request), request.limit, selection.missing(request, dispatcher.state))


def _jobs(dispatcher: Dispatcher, wanted: Wanted, spot: cursor.Spot | None, limit: int, missing: Missing) -> Slices:
    rows: list[views.View] = []

    def take(some: Looked) -> cursor.Spot | None:
        room = limit - len(rows)
        rows.extend(views.row(job, dispatcher.now) for job in some.jobs[:room])
        return spot_of(some.jobs[room - 1], dispatcher.state, wanted) if len(some.jobs) >= room else None

    looked, after = yield from go(dispatcher.state, wanted, spot, take)
    return reply({"jobs": rows, "looked": looked, "after": cursor.write(after)} | missing)


def count(dispatcher: Dispatcher, request: messages.Count) -> Answer:
    """With a cursor like a page: whoever counts adds up, until there is none."""
    state = dispatcher.state
    wanted = selection.wanted(request, state, dispatcher.now)
    spot = cursor.read(request)
    as_of = selection.instant(state, dispatcher.now) if request.as_of is None else request.as_of
    known = count_at_once(state, wanted) if spot is None else None
    missing = selection.missing(request, state)
    if known is not None:
        return reply({"count": known, "looked": 0, "as_of": as_of, "after": None} | missing)
    return counted(state, wanted, spot, as_of, missing)


def counted(state: EngineState, wanted: Wanted, spot: cursor.Spot | None, as_of: float, missing: Missing) -> Slices:
    found = 0

    def take(some: Looked) -> None:
        nonlocal found
        found += len(some.jobs)

    looked, after = yield from go(state, wanted, spot, take)
    return reply({"count": found, "looked": looked, "as_of": as_of, "after": cursor.write(after)} | missing)


def job(dispatcher: Dispatcher, request: messages.Job) -> bytes:
    """The newest live job of that name. Of one that is gone its track may still be known."""
    found = selection.named(dispatcher.state, request.id)
    if found:
        newest = found[-1]
        others = [each.number for each in found[:-1]]
        return reply({"job": views.whole(newest, dispatcher.state, dispatcher.now), "same_jid": others})
    track = views.track(dispatcher.state, str(request.id), dispatcher.now)
    if track is not None:
        return reply({"job": None, "track": track})
    return error(f"job {request.id} not found (completed and deleted jobs are not kept)")


def queues(dispatcher: Dispatcher, request: messages.Queues) -> Slices:
    state = dispatcher.state
    tallies: dict[State, Mapping[str, int] | None] = {}
    if request.by_state:
        for job_state in indexed_states(state):
            known = _known(state, job_state)
            tallies[job_state] = (
                (yield from _tally(state, job_state, lambda job: job.queue)) if known is None else known
            )
    after: str | None = None
    if request.by == "ready":
        chosen = yield from longest(queues_by_name(state).values(), request.limit, lambda queue: len(queue.ready))
    else:
        names, after = yield from by_name(queues_by_name(state), request)
        chosen = [queue for name in names if (queue := queue_named(state, name)) is not None]
    rows = []
    for queue in chosen:
        counts = {
            job_state.name.lower(): None if tally is None else tally.get(queue.name, 0)
            for job_state, tally in tallies.items()
        }
        rows.append(views.queue(queue, state, dispatcher.now) | counts)
    return reply({"queues": rows, "after": after})


def queue(dispatcher: Dispatcher, request: messages.Queue) -> Answer:
    if queue_named(dispatcher.state, request.name) is None:
        return error(f"queue {request.name} not found")
    return _queue(dispatcher, request.name)


def _queue(dispatcher: Dispatcher, name: str) -> Slices:
    """One queue, with its jobs in every state that can be counted."""
    state = dispatcher.state
    states: dict[str, int | None] = {}
    for job_state in indexed_states(state):
        known = _known(state, job_state)
        tally = (yield from _tally(state, job_state, lambda job: job.queue)) if known is None else known
        states[job_state.name.lower()] = None if tally is None else tally.get(name, 0)
    found = queue_named(state, name)
    if found is None:
        return error(f"queue {name} not found")
    shown = {"ready": found.waiting} | states
    return reply({"queue": views.queue(found, state, dispatcher.now) | {"states": shown}})


def workers(dispatcher: Dispatcher, registry: WorkerRegistry, request: messages.Workers) -> Slices:
    leases = yield from _tally(dispatcher.state, State.LEASED, lambda job: job.lease.worker if job.lease else "")
    known = registry.by_wid
    names, after = yield from by_name({*known, *resqu_workers.names(dispatcher.state)}, request)
    found = [
        views.worker(known[each], leases, dispatcher.now) if each in known else resqu_workers.shown(dispatcher, each)
        for each in names
    ]
    rows = [row for row in found if row is not None]
    return reply({"workers": rows, "after": after})


def batches(dispatcher: Dispatcher, request: messages.Batches) -> Slices:
    """Of both kinds: jobs that are counted and have callbacks, and jobs that become visible all at once."""
    state, now = dispatcher.state, dispatcher.now
    groups, stages = batches_by_name(state), queries.batches(state)
    names, after = yield from by_name([*groups, *(name for name in stages if name not in groups)], request)
    rows = [batch_views.batch(groups[name], now) for name in names if name in groups]
    rows += [batch_views.stage(stages[name], state, now) for name in names if name in stages]
    return reply({"batches": sorted(rows, key=lambda row: str(row["batch"])), "after": after})


def batch(dispatcher: Dispatcher, request: messages.Batch) -> bytes:
    state, now = dispatcher.state, dispatcher.now
    group, staged = batches_by_name(state).get(request.name), queries.batches(state).get(request.name)
    if group is not None:
        children = [each.name for each in batches_by_name(state).values() if each.parent == group.name]
        return reply({"batch": batch_views.batch(group, now) | {"children": children[:_CHILDREN]}})
    if staged is not None:
        return reply({"batch": batch_views.stage(staged, state, now)})
    return error(f"batch {request.name} not found")


def _known(state: EngineState, job_state: State) -> Mapping[str, int] | None:
    """How many jobs of that state each queue has, where the engine keeps count."""
    if job_state is State.LEASED:
        return leased_counts(state)
    if job_state is State.RETRYING:
        return retrying_counts(state)
    if job_state is State.SCHEDULED:
        return scheduled_counts(state)
    return None


def _tally(
    state: EngineState, job_state: State, key: Callable[[Job], str]
) -> Generator[float, None, Mapping[str, int] | None]:
    """How many jobs of that state fall to each; None: there are too many to count them by the way."""
    if len(state_index(state, job_state)) >= TALLIED_AT_MOST:
        return None
    tally: Counter[str] = Counter()
    yield from go(state, Wanted(frozenset({job_state})), None, lambda some: tally.update(map(key, some.jobs)))
    return tally
