"""Where a job stands: in exactly one order, its queue's `ready` while it is ready, its batch's lane while it is held
there, the shelf of its state otherwise. An apply function changes a job between `remove` and `insert`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from crossdock.engine.hooks import BATCH, INDEXED, UNINDEXED
from crossdock.engine.index import lists
from crossdock.engine.index.sorted_list import entry
from crossdock.engine.job_view import blocked_key, lease_of, sort_key_of, state_index_key
from crossdock.model.job import Job, Lease, SortKey
from crossdock.model.records import ResquBatch
from crossdock.model.states import BLOCKED, COMPLETE, DEAD, FAILED, HELD, LEASED, READY, RETRYING, SCHEDULED

if TYPE_CHECKING:
    from crossdock.engine.index.lazy_deadlines import ByCaller
    from crossdock.engine.state import EngineState


def insert(state: "EngineState", job: Job) -> None:
    job_state = job.state
    if job_state is READY:
        state.queues[job.queue].ready.add(sort_key_of(job))
    elif job_state is LEASED:
        lease = lease_of(job)
        state.by_state[LEASED].add((lease.end, job.number))
        state.leased_in[job.queue] += 1
        if lease.until is not None or lease.late is not None:
            state.lazy.lend(job, lease)
    elif job_state is HELD and job.extra is not None and job.extra.stage:
        pass  # it is in its batch
    elif job_state is COMPLETE:
        state.by_state[COMPLETE].add((job.due, job.number))
    else:
        key = state_index_key(job)
        state.by_state[job_state].add(key)
        if job_state is SCHEDULED:
            lists.schedule(state, job)
        elif job_state is RETRYING:
            entry(state.retrying_in, job.queue).add(key)
        elif job_state is BLOCKED:
            lists.block(state, job)
        elif job_state is FAILED or job_state is DEAD:
            state.failures.add(job)
        elif job_state is HELD:
            lists.hold(state, job)
    extra = job.extra
    if extra is not None:
        data = extra.protocol_data
        if data is not None and (indexed := INDEXED.get(type(data))) is not None:
            indexed(state, job, data)
        if extra.links is not None and extra.links.depends_on:
            lists.add_dependencies(state, job)


def mark_leased(state: "EngineState", job: Job, lease: Lease) -> None:
    """A ready job is leased. `insert` and `remove` would do; every job goes this way."""
    queue = state.queues[job.queue]
    queue.ready.take(job.sort_key or sort_key_of(job))
    if queue.lanes is not None:
        queue.lanes.move_to_end("")
    job.state = LEASED
    job.lease = lease
    state.by_state[LEASED].add((lease.end, job.number))
    state.leased_in[job.queue] += 1


def unblock(state: "EngineState", jobs: Sequence[Job]) -> None:
    """Blocked jobs need nothing any more. `remove` would do; very many may have waited for the same one."""
    state.by_state[BLOCKED].take_all([(job.due, job.number) for job in jobs])
    waiting: dict[str, list[ByCaller]] = {}
    for job in jobs:
        waiting.setdefault(job.queue, []).append(blocked_key(job))
    for queue, keys in waiting.items():
        order = state.blocked_in[queue]
        order.take_all(keys)
        if not order:
            del state.blocked_in[queue]


def ready(state: "EngineState", jobs: Sequence[Job]) -> None:
    """As `insert`, of jobs that are ready."""
    places: dict[str, list[SortKey]] = {}
    for job in jobs:
        places.setdefault(job.queue, []).append(job.sort_key or sort_key_of(job))
        extra = job.extra
        if extra is not None:
            data = extra.protocol_data
            if data is not None and (indexed := INDEXED.get(type(data))) is not None:
                indexed(state, job, data)
            if extra.links is not None and extra.links.depends_on:
                lists.add_dependencies(state, job)
    for queue, its in places.items():
        state.queues[queue].ready.add_all(its)


def remove(state: "EngineState", job: Job) -> None:
    job_state = job.state
    if job_state is READY:
        state.queues[job.queue].ready.take(sort_key_of(job))
    elif job_state is LEASED:
        lease = lease_of(job)
        state.by_state[LEASED].take((lease.end, job.number))
        state.leased_in[job.queue] -= 1
        if lease.until is not None or lease.late is not None:
            state.lazy.lend_no_more(job, lease)
    elif job_state is HELD and job.extra is not None and job.extra.stage:
        pass  # it is in its batch
    else:
        key = state_index_key(job)
        state.by_state[job_state].take(key)
        if job_state is SCHEDULED:
            lists.schedule_no_more(state, job)
        elif job_state is RETRYING:
            lists.take(state.retrying_in, job.queue, key)
        elif job_state is BLOCKED:
            lists.block_no_more(state, job)
        elif job_state is FAILED or job_state is DEAD:
            state.failures.take(job)
        elif job_state is HELD:
            lists.hold_no_more(state, job)
    extra = job.extra
    if extra is not None:
        data = extra.protocol_data
        if data is not None and (unindexed := UNINDEXED.get(type(data))) is not None:
            unindexed(state, job, data)
        if extra.links is not None and extra.links.depends_on:
            lists.remove_dependencies(state, job)


def batch_of(state: "EngineState", job: Job) -> ResquBatch | None:
    """The batch that holds the job until its turn comes, or held it before and takes it back."""
    extra = job.extra
    if extra is None or not extra.stage or extra.protocol_data is None:
        return None
    batch = BATCH.get(type(extra.protocol_data))
    return None if batch is None else batch(state, job)


def ready_since(state: "EngineState", job: Job) -> float:
    """When the job could first be leased. A batch becomes ready as a whole."""
    batch = batch_of(state, job)
    return job.since if batch is None else batch.since


def leave_batch(job: Job) -> None:
    """From now on it is a job like others."""
    if job.extra is not None and job.extra.stage:
        job.extra = replace(job.extra, stage="")
