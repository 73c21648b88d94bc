"""From the filters and IDs of a request to the jobs they select."""

from collections.abc import Iterable
from typing import Final

import msgspec

from crossdock.engine.job_view import listed_in
from crossdock.engine.queries.jobs import failure_group, indexed_states, job_by_number, jobs_of_jid
from crossdock.engine.queries.queues import has_queue
from crossdock.engine.queries.records import totals
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.job import Job, Number
from crossdock.model.policies import DEAD_FOR
from crossdock.model.states import State
from crossdock.protocols.admin.messages import Invalid, JobFilter

#: The order of a walk: jobs being worked on first, ended jobs last.
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

#: States that a job enters with its last error.
_BY_ERROR: Final = frozenset({State.RETRYING, State.FAILED})

#: States of jobs that have failed for good.
ENDED: Final = frozenset({State.FAILED, State.DEAD})


def states(state: EngineState) -> list[State]:
    """The states that a job may be in, in the order of a walk."""
    return [job_state for job_state in ORDER if job_state is State.READY or job_state in indexed_states(state)]


class Selection(msgspec.Struct, frozen=True):
    """Which jobs a request selects. An empty text matches all."""

    states: frozenset[State]
    queue: str = ""
    kind: str = ""
    tag: str | None = None
    failure: str | None = None  #: failed or dead, in this group
    before: float | None = None  #: wall; in its state since then or longer
    to: str = ""  #: only jobs that can be moved to this queue
    connected: frozenset[str] | None = None  #: only jobs whose lease can be released, with these workers connected


def state_since(job: Job) -> float:
    """Wall: when the job entered its state."""
    if job.state is State.READY:
        return job.since
    if job.lease is not None:
        return job.lease.at
    if job.state is State.DEAD:
        return job.due - DEAD_FOR
    if job.state in _BY_ERROR and job.extra is not None and job.extra.error is not None:
        return job.extra.error.at
    return job.created


def matching(jobs: list[Job], state: State | None, wanted: Selection) -> list[Job]:
    """The selected jobs. `state` is the state of them all, if known. One loop for each filter: a call for each job
    would cost three times as much."""
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
            jobs = [job for job in jobs if _was_in_state(job, before)]
        else:
            jobs = [job for job in jobs if state_since(job) <= before]
    return jobs


def _was_in_state(job: Job, before: float) -> bool:
    """Was the job in its state by then? For dead jobs the sum is compared, because the difference may be rounded."""
    return job.due <= before + DEAD_FOR if job.state is State.DEAD else state_since(job) <= before


#: model.md section 12.
NAME_BYTES: Final = 255


def event_time(state: EngineState, now: Now) -> float:
    """The time that the next event will have at least. Jobs that change their state from now on do so later."""
    return max(now.wall, totals(state).at)


def select(request: JobFilter, state: EngineState, now: Now, allowed: Iterable[State] | None = None) -> Selection:
    """A request without states selects all allowed ones. Raises Invalid."""
    can = states(state) if allowed is None else list(allowed)
    words = {job_state.name.lower(): job_state for job_state in can}
    chosen = set()
    for word in request.states:
        if word not in words:
            raise Invalid(f'state "{word[:64]}" cannot be selected here; choose from {", ".join(words)}')
        chosen.add(words[word])
    before = request.as_of
    if request.older_than is not None:
        before = (event_time(state, now) if before is None else before) - request.older_than
    among = frozenset(chosen or can)
    if request.failure is not None:
        among &= ENDED
    return Selection(among, request.queue or "", request.kind or "", request.tag, request.failure, before)


def missing(request: JobFilter, state: EngineState) -> dict[str, list[str]]:
    """The filters that name an unknown queue or failure group, for the first reply to a request. Jobs may match anyway,
    for example dead jobs of a removed queue. Later replies say nothing, because the request itself may have emptied
    the queue or group."""
    if request.after is not None or request.as_of is not None:
        return {}
    queue = request.queue is not None and not has_queue(state, request.queue)
    failure = request.failure is not None and failure_group(state, request.failure) is None
    found = [name for name, is_missing in (("queue", queue), ("failure", failure)) if is_missing]
    return {"missing": found} if found else {}


def find_jobs(state: EngineState, name: int | str) -> list[Job]:
    """All live jobs with that jid, oldest first, or else the job with that number."""
    if isinstance(name, str):
        jobs = list(jobs_of_jid(state, name))
        if jobs or not (name.isascii() and name.isdecimal()):
            return jobs
    job = job_by_number(state, Number(int(name)))
    return [] if job is None else [job]


def new_name(name: str) -> str:
    """Check the name of a queue or job that need not exist. Raises Invalid."""
    if not name or "\0" in name or len(name.encode()) > NAME_BYTES:
        raise Invalid(f"a name must have 1 to {NAME_BYTES} bytes and must not contain NUL")
    return name
