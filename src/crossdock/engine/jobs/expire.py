"""Time to live: a job is removed at a given time in any state.

`Job.end` is on the steady clock, which continues over a restart. The time of a scheduled job begins when it is due. A
change of the wall clock adds nothing to that, because a wrong clock must not end a job.
"""

from collections.abc import Iterator, Sequence
from math import inf

from crossdock.engine.decision import later, purge_clock
from crossdock.engine.jobs.release import last_rows
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.events import Removed
from crossdock.model.job import Job
from crossdock.model.states import State

_KEPT = frozenset({State.COMPLETE, State.FAILED})


def _not_running(job: Job) -> float:
    """The time to live of a job whose time does not run yet. 0: it has none, or its time runs."""
    if job.end or job.extra is None or job.extra.links is None:
        return 0.0
    return job.extra.links.ttl_s


def end_if_kept(job: Job, then: State, now: Now) -> float:
    """The end of a job that is settled and kept: the time that its result is kept, or its time to live if it was
    settled before it was due. That time counts from its due time.
    """
    if then not in _KEPT:
        return 0.0
    if job.extra is not None and job.extra.links is not None and job.extra.links.keep_result_s and not job.end:
        return now.steady + job.extra.links.keep_result_s
    ttl_s = _not_running(job)
    return now.steady + max(0.0, job.due - now.wall) + ttl_s if ttl_s else 0.0


def begun(job: Job, now: Now, looked: float = -inf) -> float:
    """The end of a job that becomes ready. 0: it has none, or it is already set. A late timer adds nothing.

    At the steady time `looked` the job was not due, so it cannot be later than the time since then.
    """
    ttl_s = _not_running(job)
    if not ttl_s:
        return 0.0
    late = max(0.0, now.wall - job.due) if job.due else 0.0
    return now.steady + ttl_s - min(late, now.steady - looked)


def readied(jobs: Sequence[Job], now: Now, looked: float = -inf) -> tuple[float, ...]:
    """The ends of several jobs, in order. Empty if none has one."""
    ends = [begun(job, now, looked) for job in jobs]
    return tuple(ends) if any(ends) else ()


def removals(state: EngineState, jobs: Sequence[Job], now: Now) -> Iterator[Removed]:
    """Events that remove jobs whose time to live was over, or that had expired, when a lease found them in a queue."""
    at, purge = later(state, now), purge_clock(state, now)
    ended = [job for job in jobs if 0 < job.end <= purge]
    if ended:
        yield Removed(at, "ttl", "", last_rows(ended, at))
    if len(ended) < len(jobs):
        yield Removed(at, "expired", "", last_rows([job for job in jobs if not 0 < job.end <= purge], at))


def over(state: EngineState, steady: float, limit: int) -> list[Job]:
    jobs: list[Job] = []
    for end, number in state.job_ends.front(limit):
        if end > steady:
            break
        jobs.append(state.jobs[number])
    return jobs
