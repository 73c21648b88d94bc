"""Where a job stands: in exactly one order, its queue's `ready` while it is ready, its batch's lane while it is held
there, the shelf of its state otherwise. An apply function changes a job between `remove` and `insert`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crossdock.engine.index import lists
from crossdock.engine.index.sorted_list import entry
from crossdock.engine.job_view import blocked_key, dependencies_of, lease_of, sort_key_of, state_index_key
from crossdock.engine.resqu import batch_queues
from crossdock.model.job import Job, Lease, SortKey
from crossdock.model.protocol_data import QlessData
from crossdock.model.states import BLOCKED, COMPLETE, DEAD, FAILED, HELD, LEASED, READY, RETRYING, SCHEDULED

if TYPE_CHECKING:
    from crossdock.engine.qless.lazy_deadlines import ByCaller
    from crossdock.engine.state import EngineState


def insert(state: "EngineState", job: Job) -> None:
    job_state = job.state
    if job_state is READY:
        state.queues[job.queue].ready.add(sort_key_of(job))
        if state.stray_entries.jobs:
            state.stray_entries.ready(job.number, job.queue)
    elif job_state is LEASED:
        lease = lease_of(job)
        state.by_state[LEASED].add((lease.end, job.number))
        state.leased_in[job.queue] += 1
        if lease.until is not None or lease.late is not None:
            state.lazy.lend(job, lease)
    elif job_state is HELD and job.extra is not None and job.extra.stage:
        batch_queues.stand(state, job, job.extra.stage)
    elif job_state is COMPLETE:
        state.by_state[COMPLETE].add((job.due, job.number))
        if job.extra is not None and type(job.extra.protocol_data) is QlessData:
            lists.keep(state, job, job.extra.protocol_data)
    else:
        key = state_index_key(job)
        state.by_state[job_state].add(key)
        if job.extra is not None and type(job.extra.protocol_data) is QlessData:
            lists.keep(state, job, job.extra.protocol_data)
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
    if job.extra is not None and job.extra.links is not None and job.extra.links.depends_on:
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
        places.setdefault(job.queue, []).append(sort_key_of(job))
        if dependencies_of(job):
            lists.add_dependencies(state, job)
    for queue, its in places.items():
        state.queues[queue].ready.add_all(its)
    if state.stray_entries.jobs:
        for job in jobs:
            state.stray_entries.ready(job.number, job.queue)


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
        batch_queues.leave(state, job)
    else:
        key = state_index_key(job)
        state.by_state[job_state].take(key)
        if job.extra is not None and type(job.extra.protocol_data) is QlessData:
            lists.keep_no_more(state, job, job.extra.protocol_data)
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
    if job.extra is not None and job.extra.links is not None and job.extra.links.depends_on:
        lists.remove_dependencies(state, job)
