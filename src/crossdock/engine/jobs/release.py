"""The end of a lease: given back, returned to the queue, or ended with its job."""

from collections.abc import Iterable
from math import floor, inf
from typing import TypeAlias

from crossdock.engine import hooks
from crossdock.engine.decision import Decision, FollowUps, later
from crossdock.engine.index import placement
from crossdock.engine.job_view import pushed_at, row
from crossdock.engine.records import links, throttles
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import GiveBack
from crossdock.model.errors import Damaged
from crossdock.model.events import AnyEvent, EndedLease, JobRow, Returned
from crossdock.model.job import Job, Lease
from crossdock.model.protocol_data import QlessDialect
from crossdock.model.states import HELD, LEASED, READY, State, move


def give_back(state: EngineState, command: GiveBack, now: Now) -> Decision[None]:
    at = later(state, now)
    events: list[AnyEvent] = []
    woken: dict[str, None] = {}
    for number, token in dict.fromkeys(command.leases):
        job = state.jobs.get(number)
        if job is not None and job.lease is not None and job.lease.token == token:
            close = closing(job, job.lease, at, command.via)
            events.append(Returned(*close, leased_via(job.lease, command.via), now.steady, pushed_at(job)))
            woken[job.queue] = None
    return events, None, tuple(woken)


def returned(state: EngineState, follow_ups: FollowUps, event: Returned) -> None:
    undo_lease(state, follow_ups, state.jobs[event.number], event.steady)


def undo_lease(state: EngineState, follow_ups: FollowUps, job: Job, steady: float) -> None:
    """Undo a lease that its holder never received."""
    job.attempts -= 1
    data = job.extra.protocol_data if job.extra is not None else None
    if data is not None and job.lease is not None and (hook := hooks.RETURNED.get(type(data))) is not None:
        hook(state, job, job.lease)
    to_old_place(state, follow_ups, job, steady)


def end_lease(
    state: EngineState, follow_ups: FollowUps, job: Job, job_state: State, *, keeps: bool = False
) -> Lease | None:
    """End the lease and return it. The job has its new state and is in no index. `keeps`: it keeps its places in
    throttles.
    """
    after = move(job.state, job_state)
    lease = job.lease
    if lease is None:
        placement.remove(state, job)
    else:
        state.by_state[LEASED].take((lease.end, job.number))
        state.leased_in[job.queue] -= 1
        if lease.until is not None or lease.late is not None:
            state.lazy.lend_no_more(job, lease)
            state.workers.remove_lease(lease.worker, job.jid)
        if state.throttles:
            throttles.let_go(state, follow_ups, job, lease, keeps=keeps)
        job.lease = None
    job.state = after
    return lease


def to_old_place(
    state: EngineState, follow_ups: FollowUps, job: Job, steady: float = inf, *, keeps: bool = False
) -> None:
    """Make a leased job ready at its old sort key. Its queue may have been forgotten meanwhile.

    `steady` is set if the lease does not count: a lock that the lease freed is then taken again, unless the lock has
    ended by that time.
    """
    if job.sort_key is None:
        raise Damaged(f"job {job.number} is leased and has no sort key to return to")
    if placement.batch_of(state, job) is not None:
        end_lease(state, follow_ups, job, HELD, keeps=keeps)
    else:
        end_lease(state, follow_ups, job, READY, keeps=keeps)
        placement.leave_batch(job)
        state.return_queue(job, state.counters.at)
    placement.insert(state, job)
    if job.extra is not None and job.extra.links is not None:
        links.back(state, follow_ups, job, job.extra.links, state.counters.at, steady)


# The fields of events and rows about a lease that ends.


#: The fields of a closing event, in their order (model/events/base.py).
Closing: TypeAlias = tuple[
    float, int, str, str, str, str, str, str, int, int | float, int, int, float, float, float, int
]


def closing(
    job: Job, lease: Lease, at: float, via: str, t: float | None = None, qless: QlessDialect | None = None
) -> Closing:
    """The fields of an event that ends this lease. A run time by the caller's clock may be negative."""
    if t is None:
        ran = at - lease.at
        if ran < 0:
            ran = 0.0
    else:
        began = lease.at if lease.t is None else lease.t
        ran = t - began if qless is None or not qless.oldest else float(floor(t) - floor(began))
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
    """The protocol the job was leased through, if it is not `via`; as closing events store it."""
    return "" if lease is None or lease.via == via else lease.via


def unleased(job: Job, at: float, via: str, worker: str) -> Closing:
    """The same fields for a job that is settled without a lease."""
    head = (at, job.number, job.jid, job.queue, job.kind, job.origin, via, worker)
    return (*head, job.attempts, job.priority, len(job.payload), 0, 0.0, 0.0, 0.0, 0)


def last_rows(jobs: Iterable[Job], at: float) -> list[JobRow]:
    """Rows of jobs that end, with the leases that end with them."""
    return [row(job, None if job.lease is None else ended(job.lease, at), pushed_at(job)) for job in jobs]


def ended(lease: Lease, at: float) -> EndedLease:
    ran = max(0.0, at - lease.at)
    return EndedLease(
        token=lease.token,
        via=lease.via,
        worker=lease.worker,
        leased_at=lease.at,
        wait_s=lease.wait_s,
        run_s=ran,
        beats=lease.beats,
    )
