"""Insert a job into the indexes, and remove it.

A job is in exactly one of these: the ready list of its queue, the list of its batch while it is held there, or the
index of its state. An apply function calls `remove`, changes the job, and calls `insert`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from crossdock.engine.hooks import BATCH, INDEXED, UNINDEXED, JobBatch
from crossdock.engine.index import lists
from crossdock.engine.index.sorted_list import entry
from crossdock.engine.job_view import blocked_key, lease_of, sort_key_of, state_index_key
from crossdock.model.job import Job, Lease, SortKey
from crossdock.model.states import BLOCKED, COMPLETE, DEAD, FAILED, HELD, LEASED, READY

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
    elif job_state is COMPLETE:  # the end of every qless job; it is in no list
        state.by_state[COMPLETE].add((job.due, job.number))
    elif job_state is not HELD or not _in_batch(job):
        state.by_state[job_state].add(state_index_key(job))
        listed = lists.list_of(state, job)
        if listed is not None:
            entry(listed[0], job.queue).add(listed[1])
        elif job_state is FAILED or job_state is DEAD:
            state.failures.add(job)
    if job.extra is not None:
        _inserted(state, job)


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
    elif job_state is not HELD or not _in_batch(job):
        state.by_state[job_state].take(state_index_key(job))
        listed = lists.list_of(state, job)
        if listed is not None:
            lists.take(listed[0], job.queue, listed[1])
        elif job_state is FAILED or job_state is DEAD:
            state.failures.take(job)
    extra = job.extra
    if extra is not None:
        data = extra.protocol_data
        if data is not None and (unindexed := UNINDEXED.get(type(data))) is not None:
            unindexed(state, job, data)
        if extra.held_by:
            state.rate_index.remove(job, extra.held_by)
        if extra.links is not None and extra.links.depends_on:
            lists.remove_dependencies(state, job)


def _in_batch(job: Job) -> bool:
    """Whether its batch lists it. The protocol of the batch does that, by the hooks."""
    return job.state is HELD and job.extra is not None and bool(job.extra.resqu_batch)


def _inserted(state: "EngineState", job: Job) -> None:
    """Call the protocol's hook, and enter the job as a dependent."""
    extra = job.extra
    if extra is not None:
        data = extra.protocol_data
        if data is not None and (indexed := INDEXED.get(type(data))) is not None:
            indexed(state, job, data)
        if extra.held_by:
            state.rate_index.insert(job, extra.held_by)
        if extra.links is not None and extra.links.depends_on:
            lists.add_dependencies(state, job)


# Shortcuts for many jobs. `insert` and `remove` give the same result; these are measured to be faster.


def mark_leased(state: "EngineState", job: Job, lease: Lease) -> None:
    """Move a ready job to the leased ones. Every job takes this path."""
    queue = state.queues[job.queue]
    queue.ready.take(job.sort_key or sort_key_of(job))
    if queue.lanes is not None:
        queue.lanes.move_to_end("")
    job.state = LEASED
    job.lease = lease
    state.by_state[LEASED].add((lease.end, job.number))
    state.leased_in[job.queue] += 1


def unblock(state: "EngineState", jobs: Sequence[Job]) -> None:
    """Remove blocked jobs that depend on nothing any more. Very many may have waited for the same job."""
    state.by_state[BLOCKED].take_all([(job.due, job.number) for job in jobs])
    waiting: dict[str, list[ByCaller]] = {}
    for job in jobs:
        waiting.setdefault(job.queue, []).append(blocked_key(job))
    for queue, keys in waiting.items():
        order = state.blocked_in[queue]
        order.take_all(keys)
        if not order:
            del state.blocked_in[queue]


def insert_ready(state: "EngineState", jobs: Sequence[Job]) -> None:
    """Insert jobs that are all ready."""
    sort_keys: dict[str, list[SortKey]] = {}
    for job in jobs:
        sort_keys.setdefault(job.queue, []).append(job.sort_key or sort_key_of(job))
        extra = job.extra
        if extra is not None:  # as `_inserted` does it: a call for each job is measured to be too slow
            data = extra.protocol_data
            if data is not None and (indexed := INDEXED.get(type(data))) is not None:
                indexed(state, job, data)
            if extra.held_by:
                state.rate_index.insert(job, extra.held_by)
            if extra.links is not None and extra.links.depends_on:
                lists.add_dependencies(state, job)
    for queue, added in sort_keys.items():
        state.queues[queue].ready.add_all(added)


# Batches that hold jobs until it is their turn.


def batch_of(state: "EngineState", job: Job) -> JobBatch | None:
    """The batch that holds the job, or that takes it back when its lease is given back."""
    extra = job.extra
    if extra is None or not extra.resqu_batch or extra.protocol_data is None:
        return None
    batch = BATCH.get(type(extra.protocol_data))
    return None if batch is None else batch(state, job)


def ready_since(state: "EngineState", job: Job) -> float:
    """When the job could first be leased. All jobs of a batch become ready together."""
    batch = batch_of(state, job)
    return job.since if batch is None else batch.since


def leave_batch(job: Job) -> None:
    """The job does not belong to its batch any more."""
    if job.extra is not None and job.extra.resqu_batch:
        job.extra = replace(job.extra, resqu_batch="")


def not_held_by_rate(job: Job) -> None:
    """The job was leased, moved or buried, or something else than a rate limit holds it now."""
    if job.extra is not None and job.extra.held_by:
        job.extra = replace(job.extra, held_by="")
