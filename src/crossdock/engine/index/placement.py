"""Where a job stands: in exactly one order, its queue's `ready` while it is ready, its batch's lane while it is held
there, the shelf of its state otherwise. An apply function changes a job between `displace` and `place`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crossdock.engine.index import lists
from crossdock.engine.index.sorted_list import entry
from crossdock.engine.job_view import blocked_key, dependencies_of, lease_of, place_of, state_index_key
from crossdock.engine.resqu import batch_queues
from crossdock.model.job import Job, Lease, SortKey
from crossdock.model.protocol_data import QlessData
from crossdock.model.states import BLOCKED, COMPLETE, DEAD, FAILED, HELD, LEASED, READY, RETRYING, SCHEDULED

if TYPE_CHECKING:
    from crossdock.engine.qless.lazy_deadlines import ByCaller
    from crossdock.engine.state import EngineState


def place(memory: "EngineState", job: Job) -> None:
    state = job.state
    if state is READY:
        memory.queues[job.queue].ready.add(place_of(job))
        if memory.strays.jobs:
            memory.strays.ready(job.number, job.queue)
    elif state is LEASED:
        lease = lease_of(job)
        memory.shelves[LEASED].add((lease.end, job.number))
        memory.leased_in[job.queue] += 1
        if lease.until is not None or lease.late is not None:
            memory.lazy.lend(job, lease)
    elif state is HELD and job.extra is not None and job.extra.stage:
        batch_queues.stand(memory, job, job.extra.stage)
    elif state is COMPLETE:
        memory.shelves[COMPLETE].add((job.due, job.number))
        if job.extra is not None and type(job.extra.face) is QlessData:
            lists.keep(memory, job, job.extra.face)
    else:
        key = state_index_key(job)
        memory.shelves[state].add(key)
        if job.extra is not None and type(job.extra.face) is QlessData:
            lists.keep(memory, job, job.extra.face)
        if state is SCHEDULED:
            lists.schedule(memory, job)
        elif state is RETRYING:
            entry(memory.retrying_in, job.queue).add(key)
        elif state is BLOCKED:
            lists.block(memory, job)
        elif state is FAILED or state is DEAD:
            memory.failures.add(job)
        elif state is HELD:
            lists.hold(memory, job)
    if job.extra is not None and job.extra.links is not None and job.extra.links.needs:
        lists.need(memory, job)


def lend(memory: "EngineState", job: Job, lease: Lease) -> None:
    """A ready job is leased. `place` and `displace` would do; every job goes this way."""
    queue = memory.queues[job.queue]
    queue.ready.take(job.place or place_of(job))
    if queue.lanes is not None:
        queue.lanes.move_to_end("")
    job.state = LEASED
    job.lease = lease
    memory.shelves[LEASED].add((lease.end, job.number))
    memory.leased_in[job.queue] += 1


def unblock(memory: "EngineState", jobs: Sequence[Job]) -> None:
    """Blocked jobs need nothing any more. `displace` would do; very many may have waited for the same one."""
    memory.shelves[BLOCKED].take_all([(job.due, job.number) for job in jobs])
    waiting: dict[str, list[ByCaller]] = {}
    for job in jobs:
        waiting.setdefault(job.queue, []).append(blocked_key(job))
    for queue, keys in waiting.items():
        order = memory.blocked_in[queue]
        order.take_all(keys)
        if not order:
            del memory.blocked_in[queue]


def ready(memory: "EngineState", jobs: Sequence[Job]) -> None:
    """As `place`, of jobs that are ready."""
    places: dict[str, list[SortKey]] = {}
    for job in jobs:
        places.setdefault(job.queue, []).append(place_of(job))
        if dependencies_of(job):
            lists.need(memory, job)
    for queue, its in places.items():
        memory.queues[queue].ready.add_all(its)
    if memory.strays.jobs:
        for job in jobs:
            memory.strays.ready(job.number, job.queue)


def displace(memory: "EngineState", job: Job) -> None:
    state = job.state
    if state is READY:
        memory.queues[job.queue].ready.take(place_of(job))
    elif state is LEASED:
        lease = lease_of(job)
        memory.shelves[LEASED].take((lease.end, job.number))
        memory.leased_in[job.queue] -= 1
        if lease.until is not None or lease.late is not None:
            memory.lazy.lend_no_more(job, lease)
    elif state is HELD and job.extra is not None and job.extra.stage:
        batch_queues.leave(memory, job)
    else:
        key = state_index_key(job)
        memory.shelves[state].take(key)
        if job.extra is not None and type(job.extra.face) is QlessData:
            lists.keep_no_more(memory, job, job.extra.face)
        if state is SCHEDULED:
            lists.schedule_no_more(memory, job)
        elif state is RETRYING:
            lists.take(memory.retrying_in, job.queue, key)
        elif state is BLOCKED:
            lists.block_no_more(memory, job)
        elif state is FAILED or state is DEAD:
            memory.failures.take(job)
        elif state is HELD:
            lists.hold_no_more(memory, job)
    if job.extra is not None and job.extra.links is not None and job.extra.links.needs:
        lists.need_no_more(memory, job)
