"""Time to live: a job that is gone at an instant, whatever state it is in.

`Job.end` is on the steady clock and goes on over a restart. The time of a scheduled job begins when it is due. What a
wall clock that was set adds to that is not counted: a wrong one must not end a job.
"""

from collections.abc import Iterator, Sequence
from math import inf

from crossdock.engine.decision import later, purge_clock
from crossdock.engine.job_view import row
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.events import Removed
from crossdock.model.job import Job
from crossdock.model.states import State

_KEPT = frozenset({State.COMPLETE, State.FAILED})


def _not_running(job: Job) -> float:
    """The time to live of a job whose time does not run yet; 0: it has none, or it runs."""
    if job.end or job.extra is None or job.extra.links is None:
        return 0.0
    return job.extra.links.ttl_s


def kept(job: Job, then: State, now: Now) -> float:
    """The end of a job that is settled before it was due, and kept: its time counts from when it would have been."""
    ttl_s = _not_running(job)
    return now.steady + max(0.0, job.due - now.wall) + ttl_s if ttl_s and then in _KEPT else 0.0


def begun(job: Job, now: Now, looked: float = -inf) -> float:
    """The end of a job that becomes ready, 0: it has none, or it runs already. A timer that ran late adds nothing.
    `looked`: steady; it was not due then, so that it cannot be late by more than what has passed since."""
    ttl_s = _not_running(job)
    if not ttl_s:
        return 0.0
    late = max(0.0, now.wall - job.due) if job.due else 0.0
    return now.steady + ttl_s - min(late, now.steady - looked)


def readied(jobs: Sequence[Job], now: Now, looked: float = -inf) -> tuple[float, ...]:
    """Of several, one each; empty when none has one."""
    ends = [begun(job, now, looked) for job in jobs]
    return tuple(ends) if any(ends) else ()


def removals(state: EngineState, jobs: Sequence[Job], now: Now) -> Iterator[Removed]:
    """Jobs that a lease found in a queue after their time to live, or after they had expired."""
    at, purge = later(state, now), purge_clock(state, now)
    ended = [job for job in jobs if 0 < job.end <= purge]
    if ended:
        yield Removed(at, "ttl", "", [row(job) for job in ended])
    if len(ended) < len(jobs):
        yield Removed(at, "expired", "", [row(job) for job in jobs if not 0 < job.end <= purge])


def over(state: EngineState, steady: float, limit: int) -> list[Job]:
    jobs: list[Job] = []
    for end, number in state.job_ends.front(limit):
        if end > steady:
            break
        jobs.append(state.jobs[number])
    return jobs
