"""The end of a lease, whatever the reason: off the leased shelf, back to its old place, given back unseen."""

from collections.abc import Iterable
from math import floor, inf
from typing import TypeAlias

from crossdock.engine import hooks
from crossdock.engine.decision import Decision, later
from crossdock.engine.index import placement
from crossdock.engine.job_view import row
from crossdock.engine.records import links, throttles
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import GiveBack
from crossdock.model.errors import Damaged
from crossdock.model.events import AnyEvent, EndedLease, JobRow, Returned
from crossdock.model.job import Job, Lease
from crossdock.model.states import HELD, LEASED, READY, State, move


def give_back(state: EngineState, command: GiveBack, now: Now) -> Decision[None]:
    at = later(state, now)
    events: list[AnyEvent] = []
    woken: dict[str, None] = {}
    for number, token in dict.fromkeys(command.leases):
        job = state.jobs.get(number)
        if job is not None and job.lease is not None and job.lease.token == token:
            close = closing(job, job.lease, at, command.via)
            events.append(Returned(*close, leased_via(job.lease, command.via), now.steady))
            woken[job.queue] = None
    return events, None, tuple(woken)


def returned(state: EngineState, event: Returned) -> None:
    undo_lease(state, state.jobs[event.number], event.steady)


def undo_lease(state: EngineState, job: Job, steady: float) -> None:
    """A lease that nobody saw leaves no trace."""
    job.attempts -= 1
    data = job.extra.protocol_data if job.extra is not None else None
    if data is not None and job.lease is not None and (hook := hooks.RETURNED.get(type(data))) is not None:
        hook(state, job, job.lease)
    to_old_place(state, job, steady)


def end_lease(state: EngineState, job: Job, job_state: State, *, keeps: bool = False) -> Lease | None:
    """The lease that ended. The job is in its new state and in no index. `keeps`: it hands on its throttles."""
    after = move(job.state, job_state)
    lease = job.lease
    if lease is None:
        placement.remove(state, job)
    else:
        state.by_state[LEASED].take((lease.end, job.number))
        state.leased_in[job.queue] -= 1
        if lease.until is not None or lease.late is not None:
            state.lazy.lend_no_more(job, lease)
            state.workers.let_go(lease.worker, job.jid)
        if state.throttles:
            throttles.let_go(state, job, lease, keeps=keeps)
        job.lease = None
    job.state = after
    return lease


def to_old_place(state: EngineState, job: Job, steady: float = inf, *, keeps: bool = False) -> None:
    """A leased job becomes ready again where it stood before. Its queue may have been forgotten meanwhile. `steady`:
    its start was none, and a lock that it freed is taken again if its time is not over by then."""
    if job.sort_key is None:
        raise Damaged(f"job {job.number} is leased and has no place to return to")
    if placement.batch_of(state, job) is not None:
        end_lease(state, job, HELD, keeps=keeps)
    else:
        end_lease(state, job, READY, keeps=keeps)
        placement.leave_batch(job)
        state.stand_in(job, state.counters.at)
    placement.insert(state, job)
    if job.extra is not None and job.extra.links is not None:
        links.back(state, job, job.extra.links, state.counters.at, steady)


# What is said of a lease that ends: the fields that every closing event has, and those of rows.


#: The fields of a closing event, in its order (model/events/base.py).
Closing: TypeAlias = tuple[
    float, int, str, str, str, str, str, str, int, int | float, int, int, float, float, float, int
]


def closing(job: Job, lease: Lease, at: float, via: str, t: float | None = None, *, whole: bool = False) -> Closing:
    """All that every event says which ends a lease. Run times by a caller's clock are told as they are."""
    if t is None:
        ran = at - lease.at
        if ran < 0:
            ran = 0.0
    else:
        ran = float(floor(t) - floor(_began(lease))) if whole else t - _began(lease)
    return (
        at,
        job.number,
        job.jid,
        job.queue,
        job.kind,
        job.origin,
        via,
        lease.worker,
        job.attempts,
        job.priority,
        len(job.payload),
        lease.token,
        lease.at,
        lease.wait_s,
        ran,
        lease.beats,
    )


def leased_via(lease: Lease | None, via: str) -> str:
    """The door a lease went out by, as an event says it that ends it through `via`."""
    return "" if lease is None or lease.via == via else lease.via


def _began(lease: Lease) -> float:
    """By the clock that its caller is nearest to."""
    return lease.at if lease.t is None else lease.t


def unleased(job: Job, at: float, via: str, worker: str) -> Closing:
    """The same of a job that is settled without a lease: there is nothing to say about one."""
    head = (at, job.number, job.jid, job.queue, job.kind, job.origin, via, worker)
    return (*head, job.attempts, job.priority, len(job.payload), 0, 0.0, 0.0, 0.0, 0)


def last_rows(jobs: Iterable[Job], at: float) -> list[JobRow]:
    """Of jobs that are removed, with all about the leases that go with them."""
    return [row(job) if job.lease is None else row(job, ended(job.lease, at)) for job in jobs]


def ended(lease: Lease, at: float) -> EndedLease:
    ran = max(0.0, at - lease.at)
    return EndedLease(lease.token, lease.via, lease.worker, lease.at, lease.wait_s, ran, lease.beats)
