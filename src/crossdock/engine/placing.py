"""Where a job stands: in exactly one order, its queue's `ready` while it is ready, its batch's lane while it is held
there, the shelf of its state otherwise. An apply function changes a job between `displace` and `place`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crossdock.engine import kept
from crossdock.engine.order import entry
from crossdock.engine.resqu import lanes
from crossdock.engine.standing import blocked_key, lease_of, needs_of, place_of, shelf_key
from crossdock.model.job import Job, Lease, Place
from crossdock.model.protocol_data import QlessFace
from crossdock.model.states import BLOCKED, COMPLETE, DEAD, FAILED, HELD, LEASED, READY, RETRYING, SCHEDULED

if TYPE_CHECKING:
    from crossdock.engine.lazy import ByCaller
    from crossdock.engine.memory import Memory


def place(memory: "Memory", job: Job) -> None:
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
        lanes.stand(memory, job, job.extra.stage)
    elif state is COMPLETE:
        memory.shelves[COMPLETE].add((job.due, job.number))
        if job.extra is not None and type(job.extra.face) is QlessFace:
            kept.keep(memory, job, job.extra.face)
    else:
        key = shelf_key(job)
        memory.shelves[state].add(key)
        if job.extra is not None and type(job.extra.face) is QlessFace:
            kept.keep(memory, job, job.extra.face)
        if state is SCHEDULED:
            kept.schedule(memory, job)
        elif state is RETRYING:
            entry(memory.retrying_in, job.queue).add(key)
        elif state is BLOCKED:
            kept.block(memory, job)
        elif state is FAILED or state is DEAD:
            memory.failures.add(job)
        elif state is HELD:
            kept.hold(memory, job)
    if job.extra is not None and job.extra.links is not None and job.extra.links.needs:
        kept.need(memory, job)


def lend(memory: "Memory", job: Job, lease: Lease) -> None:
    """A ready job is leased. `place` and `displace` would do; every job goes this way."""
    queue = memory.queues[job.queue]
    queue.ready.take(job.place or place_of(job))
    if queue.lanes is not None:
        queue.lanes.move_to_end("")
    job.state = LEASED
    job.lease = lease
    memory.shelves[LEASED].add((lease.end, job.number))
    memory.leased_in[job.queue] += 1


def unblock(memory: "Memory", jobs: Sequence[Job]) -> None:
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


def ready(memory: "Memory", jobs: Sequence[Job]) -> None:
    """As `place`, of jobs that are ready."""
    places: dict[str, list[Place]] = {}
    for job in jobs:
        places.setdefault(job.queue, []).append(place_of(job))
        if needs_of(job):
            kept.need(memory, job)
    for queue, its in places.items():
        memory.queues[queue].ready.add_all(its)
    if memory.strays.jobs:
        for job in jobs:
            memory.strays.ready(job.number, job.queue)


def displace(memory: "Memory", job: Job) -> None:
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
        lanes.leave(memory, job)
    else:
        key = shelf_key(job)
        memory.shelves[state].take(key)
        if job.extra is not None and type(job.extra.face) is QlessFace:
            kept.keep_no_more(memory, job, job.extra.face)
        if state is SCHEDULED:
            kept.schedule_no_more(memory, job)
        elif state is RETRYING:
            kept.take(memory.retrying_in, job.queue, key)
        elif state is BLOCKED:
            kept.block_no_more(memory, job)
        elif state is FAILED or state is DEAD:
            memory.failures.take(job)
        elif state is HELD:
            kept.hold_no_more(memory, job)
    if job.extra is not None and job.extra.links is not None and job.extra.links.needs:
        kept.need_no_more(memory, job)
