"""Throttles: how many leases of a queue there may be at a time. A full one looks empty to whoever would lease."""

from crossdock.engine.decision import Decision, later
from crossdock.engine.memory import LEASED, Memory
from crossdock.model.clock import Now
from crossdock.model.commands import SetThrottles
from crossdock.model.events import ThrottlesSet
from crossdock.model.job import Job, Lease
from crossdock.model.records import Throttle

_FOR_EVER = float("inf")


def set_throttles(memory: Memory, command: SetThrottles, now: Now) -> Decision[None]:
    wanted = list(command.throttles)
    if wanted == [(each.queue, each.maximum, each.per, each.timeout_s) for each in memory.throttles.values()]:
        return (), None, ()
    return (ThrottlesSet(later(memory, now), wanted),), None, tuple(memory.throttles)


def throttles_set(memory: Memory, event: ThrottlesSet) -> None:
    memory.throttles = {
        queue: Throttle(queue, maximum, per, timeout) for queue, maximum, per, timeout in event.throttles
    }
    for _, number in memory.shelves[LEASED]:
        job = memory.jobs[number]
        if job.lease is not None:
            hold(memory, job, job.lease)


def hold(memory: Memory, job: Job, lease: Lease) -> None:
    """A lease begins, or began before the throttle was set: its time counts from its own beginning."""
    throttle = memory.throttles.get(job.queue)
    if throttle is not None:
        end = lease.began + throttle.timeout_s if throttle.timeout_s else _FOR_EVER
        throttle.holders[lease.token] = (lease.worker, end)


def let_go(memory: Memory, job: Job, lease: Lease) -> None:
    throttle = memory.throttles.get(job.queue)
    if throttle is not None:
        throttle.holders.pop(lease.token, None)
