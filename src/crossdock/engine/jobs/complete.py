"""Settling, and who may settle (MODEL section 6).

Failing is in `failing`, what a job with a freer door allows in `freely`."""

from msgspec.structs import replace

from crossdock.engine import hooks
from crossdock.engine.decision import Decision, later
from crossdock.engine.index import placement
from crossdock.engine.jobs.expire import kept
from crossdock.engine.jobs.release import closing, end_lease, unleased
from crossdock.engine.records import dependencies, links
from crossdock.engine.records.stats import RUN
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Claim, Succeed, Verdict
from crossdock.model.events import Succeeded
from crossdock.model.job import Extra, Job, Lease, LeaseBinding, Result
from crossdock.model.policies import STATE_AFTER
from crossdock.model.states import COMPLETE, GONE, OVER, State

UNKNOWN, DONE = Verdict.UNKNOWN, Verdict.DONE


def claimed(state: EngineState, jid: str, claim: Claim) -> tuple[Job, Lease] | None:
    """The job this claim may settle. A lease it was given and that is over means: none, whoever holds the job now.

    One that was given none may end a lease that its own door gave: no door breaks the leases of another.
    """
    if claim.held is not None:
        number, token = claim.held
        job = state.jobs.get(number)
        if job is None or job.lease is None or job.lease.token != token:
            return None
        return job, job.lease
    oldest: tuple[Job, Lease] | None = None
    for job in state.numbered(claim.number) if claim.number else state.named(jid):
        lease = job.lease
        if lease is None or lease.via != claim.via:
            continue
        if claim.worker and lease.worker == claim.worker and lease.bound is not LeaseBinding.CONNECTION:
            return job, lease
        if lease.bound is not LeaseBinding.NOBODY or _another_before_restart(state, lease, claim):
            continue
        if oldest is None or lease.token < oldest[1].token:
            oldest = job, lease
    return oldest


def _another_before_restart(state: EngineState, lease: Lease, claim: Claim) -> bool:
    """What a session was given before a restart is forgotten; then the name recorded on the lease must do."""
    return bool(lease.token < state.counters.first_token and claim.worker and lease.worker)


def succeed(state: EngineState, command: Succeed, now: Now) -> Decision[Verdict]:
    claim = command.claim
    found = claimed(state, command.jid, claim) or claimed_without_lease(state, command.jid, claim)
    if found is None:
        return (), verdict(state, command.jid, claim), ()
    job, lease = found
    if lease is not None and job.extra is None and command.t is None:
        event = Succeeded(
            *closing(job, lease, later(state, now), claim.via), STATE_AFTER[job.policy.success], command.result
        )
        if lease.via != claim.via:
            event.leased_via = lease.via
    else:
        event = success(job, lease, command, later(state, now), now)
    return (event,), DONE, (job.queue,) if state.throttles or state.limits else ()


def room(state: EngineState, job: Job) -> tuple[str, ...]:
    """The end of a lease may be what somebody waits for."""
    return (job.queue,) if state.throttles or state.limits else ()


def success(job: Job, lease: Lease | None, command: Succeed, at: float, now: Now) -> Succeeded:
    claim, t = command.claim, command.t
    if lease is not None:
        close = closing(job, lease, at, claim.via, t, whole=command.qless.whole)
    else:
        close = unleased(job, at, claim.via, claim.worker)
    then = STATE_AFTER[job.policy.success]
    end = kept(job, then, now) if job.extra is not None and job.extra.links is not None else 0.0
    event = Succeeded(*close, then, command.result, end, t, command.payload, command.qless.under)
    if lease is not None and lease.via != claim.via:
        event.leased_via = lease.via
    if then is COMPLETE:
        event.steady = now.steady
    return event


def succeeded(state: EngineState, event: Succeeded) -> None:
    job = state.jobs[event.number]
    lease = end_lease(state, job, event.then)
    if event.then is GONE:
        state.drop(job, event)
    else:
        job.due = 0.0
        if event.payload is not None:
            job.carry(event.payload)
        data = job.extra.protocol_data if job.extra is not None else None
        hook = hooks.SUCCEEDED.get(type(data)) if data is not None else None
        if hook is not None:
            hook(state, job, event, lease)
        else:
            keep_result(state, job, Result(True, event.result), event.end)
            placement.insert(state, job)
    if event.token:
        state.counters.processed += 1
        if event.t is None:
            state.stats.book(job.queue, event.at, RUN, event.run_s)
        else:
            state.stats.book(event.under or job.queue, event.t, RUN, event.run_s)
    if job.extra is not None and job.extra.links is not None:
        links.gone(state, job, job.extra.links, event.at, success=True)
    if state.dependents:
        dependencies.met(state, event.number)


# Settling without a lease: Workq's freedom, and results that are kept.
#
# A job that came by a door whose claims are free is settled through that door in any live state, late, or in place of
# whoever holds it, while no other door does. It is the one exception to fencing.


_KEEPS_RESULT = frozenset({State.COMPLETE, State.FAILED})


def claimed_without_lease(state: EngineState, jid: str, claim: Claim) -> tuple[Job, Lease | None] | None:
    """The job that a claim without a valid lease may settle all the same."""
    job = _newest(state, jid, claim)
    if job is None or job.state in OVER or job.origin != claim.via:
        return None
    return None if job.lease is not None and job.lease.via != claim.via else (job, job.lease)


def verdict(state: EngineState, jid: str, claim: Claim) -> Verdict:
    """What to tell a claim that settles nothing."""
    job = _newest(state, jid, claim)
    return Verdict.FINISHED if job is not None and job.state in OVER else Verdict.UNKNOWN


def _newest(state: EngineState, jid: str, claim: Claim) -> Job | None:
    found = list(state.numbered(claim.number) if claim.number else state.named(jid)) if claim.free else []
    return found[-1] if found else None


def keep_result(state: EngineState, job: Job, result: Result, end: float) -> None:
    """The job is kept: so is its result, for as long as the job."""
    if job.state in _KEEPS_RESULT:
        job.extra = replace(job.extra or Extra(), result=result)
        if end:
            state.end_at(job, end)
