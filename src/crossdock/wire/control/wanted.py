"""Which jobs a walk is for, and which of a slice are among them."""

from typing import Final

import msgspec

from crossdock.engine.job_view import listed_in
from crossdock.engine.state import Memory
from crossdock.model.job import Job
from crossdock.model.policies import DEAD_FOR
from crossdock.model.states import State

#: What is being worked on first, what has ended last.
ORDER: Final = (
    State.LEASED,
    State.READY,
    State.RETRYING,
    State.SCHEDULED,
    State.BLOCKED,
    State.HELD,
    State.FAILED,
    State.DEAD,
    State.COMPLETE,
)

#: States that began with the last error.
_BY_ERROR: Final = frozenset({State.RETRYING, State.FAILED})

#: In which a job has failed for good.
ENDED: Final = frozenset({State.FAILED, State.DEAD})


def states(memory: Memory) -> list[State]:
    """Those a job may be in, in the order of a walk."""
    return [state for state in ORDER if state is State.READY or state in memory.shelves]


class Wanted(msgspec.Struct, frozen=True):
    """Which jobs; an empty text lets all pass."""

    states: frozenset[State]
    queue: str = ""
    kind: str = ""
    tag: str | None = None
    failure: str | None = None  #: failed or dead, in this group
    before: float | None = None  #: wall; in its state since then or longer
    to: str = ""  #: only those that can be taken to this queue
    but: frozenset[str] | None = None  #: only those whose lease can be released: of none of these workers


def entered(job: Job) -> float:
    """Wall: since when it is in its state."""
    if job.state is State.READY:
        return job.since
    if job.lease is not None:
        return job.lease.at
    if job.state is State.DEAD:
        return job.due - DEAD_FOR
    if job.state in _BY_ERROR and job.extra is not None and job.extra.error is not None:
        return job.extra.error.at
    return job.created


def sieve(jobs: list[Job], state: State | None, wanted: Wanted) -> list[Job]:
    """One plain loop a filter: a call for each job would cost three times as much."""
    if state is None:
        jobs = [job for job in jobs if job.state in wanted.states]
        if wanted.failure is not None:
            jobs = [job for job in jobs if listed_in(job) == wanted.failure]
    if wanted.queue and state is not State.READY:
        jobs = [job for job in jobs if job.queue == wanted.queue]
    if wanted.kind:
        jobs = [job for job in jobs if job.kind == wanted.kind]
    before = wanted.before
    if before is not None:
        if state is None or state is State.DEAD:
            jobs = [job for job in jobs if _since(job, before)]
        else:
            jobs = [job for job in jobs if entered(job) <= before]
    return jobs


def _since(job: Job, before: float) -> bool:
    """In its state by then. A dead one's time is compared as it was added up, so that it is exact."""
    return job.due <= before + DEAD_FOR if job.state is State.DEAD else entered(job) <= before
