"""Throttles: how many leases of a queue there may be at a time. A full one looks empty to whoever would lease."""

from collections.abc import Sequence

from crossdock.engine.decision import Decision, later
from crossdock.engine.memory import LEASED, Memory
from crossdock.model.clock import Now
from crossdock.model.commands import SetThrottles
from crossdock.model.events import ThrottlesSet
from crossdock.model.job import Job, Lease, Token
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
    leased = [memory.jobs[number] for _, number in memory.shelves[LEASED]]
    for job in sorted(leased, key=lambda job: job.lease.token if job.lease is not None else 0):
        if job.lease is not None:
            hold(memory, job, job.lease)


def hold(memory: Memory, job: Job, lease: Lease) -> None:
    """A lease begins, or began before the throttle was set: its time counts from its own beginning."""
    throttle = memory.throttles.get(job.queue)
    if throttle is not None:
        end = lease.began + throttle.timeout_s if throttle.timeout_s else _FOR_EVER
        throttle.holders[lease.token] = (lease.worker, end)


def next_end(memory: Memory) -> float:
    """Steady; when the next holder's time is over."""
    ends = [next(iter(each.holders.values()))[1] for each in memory.throttles.values() if each.holders]
    return min(ends, default=_FOR_EVER)


def over(memory: Memory, steady: float, limit: int) -> list[tuple[str, Token]]:
    """Holders that count no longer: queue and lease."""
    found: list[tuple[str, Token]] = []
    for throttle in memory.throttles.values():
        for token, (_, end) in throttle.holders.items():
            if end > steady or len(found) >= limit:
                break
            found.append((throttle.queue, token))
    return found


def time_over(memory: Memory, holders: Sequence[tuple[str, Token]]) -> None:
    """An event of the same tick may have ended the lease as well."""
    for queue, token in holders:
        memory.throttles[queue].holders.pop(token, None)


def let_go(memory: Memory, job: Job, lease: Lease) -> None:
    throttle = memory.throttles.get(job.queue)
    if throttle is not None:
        throttle.holders.pop(lease.token, None)
