"""From the filters and ids of a request to the jobs they mean."""

from collections.abc import Iterable
from typing import Final

import msgspec

from crossdock.engine.job_view import listed_in
from crossdock.engine.queries.failures import failure_group
from crossdock.engine.queries.jobs import indexed_states, job_by_number, jobs_of_jid
from crossdock.engine.queries.queues import has_queue
from crossdock.engine.queries.records import totals
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.job import Job, Number
from crossdock.model.policies import DEAD_FOR
from crossdock.model.states import State
from crossdock.protocols.admin.messages import Chosen, Invalid

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


def states(state: EngineState) -> list[State]:
    """Those a job may be in, in the order of a walk."""
    return [job_state for job_state in ORDER if job_state is State.READY or job_state in indexed_states(state)]


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


#: MODEL section 12.
NAME_BYTES: Final = 255


def instant(state: EngineState, now: Now) -> float:
    """Now, as events will have it: jobs that change their state from here on will have done so later."""
    return max(now.wall, totals(state).at)


def wanted(request: Chosen, state: EngineState, now: Now, allowed: Iterable[State] | None = None) -> Wanted:
    """Without states: all that are allowed. Raises Invalid."""
    can = states(state) if allowed is None else list(allowed)
    words = {job_state.name.lower(): job_state for job_state in can}
    chosen = set()
    for word in request.states:
        if word not in words:
            raise Invalid(f'state "{word[:64]}" cannot be chosen here; there are {", ".join(words)}')
        chosen.add(words[word])
    before = request.as_of
    if request.older_than is not None:
        before = (instant(state, now) if before is None else before) - request.older_than
    among = frozenset(chosen or can)
    if request.failure is not None:
        among &= ENDED
    return Wanted(among, request.queue or "", request.kind or "", request.tag, request.failure, before)


def missing(request: Chosen, state: EngineState) -> dict[str, list[str]]:
    """Filters that name a queue or a group of failures that is not there, for the first answer to a request. Jobs may
    be found all the same: a dead one in a queue that was forgotten. A later page says nothing: what the request does
    may have emptied them."""
    if request.after is not None or request.as_of is not None:
        return {}
    queue = request.queue is not None and not has_queue(state, request.queue)
    failure = request.failure is not None and failure_group(state, request.failure) is None
    found = [name for name, is_missing in (("queue", queue), ("failure", failure)) if is_missing]
    return {"missing": found} if found else {}


def named(state: EngineState, name: int | str) -> list[Job]:
    """All live jobs that this means, oldest first: those of that jid, or else the one of that number."""
    if isinstance(name, str):
        jobs = list(jobs_of_jid(state, name))
        if jobs or not (name.isascii() and name.isdecimal()):
            return jobs
    job = job_by_number(state, Number(int(name)))
    return [] if job is None else [job]


def new_name(name: str) -> str:
    """Of a queue or a job that need not be there yet. Raises Invalid."""
    if not name or "\0" in name or len(name.encode()) > NAME_BYTES:
        raise Invalid(f"a name has 1 to {NAME_BYTES} bytes, and no NUL in it")
    return name
