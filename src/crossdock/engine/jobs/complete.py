"""Completing a job, and which claims may settle it (model.md section 6).

Failures are in `fail`.
"""

from msgspec.structs import replace

from crossdock.engine import hooks
from crossdock.engine.decision import Decision, FollowUps, later
from crossdock.engine.index import placement
from crossdock.engine.jobs.expire import end_if_kept
from crossdock.engine.jobs.release import closing, end_lease, unleased
from crossdock.engine.records import dependencies, links
from crossdock.engine.records.stats import RUN
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Claim, Succeed, Verdict
from crossdock.model.events import Succeeded
from crossdock.model.job import Extra, Job, Lease, LeaseBinding, Result
from crossdock.model.policies import STATE_AFTER, Disposition
from crossdock.model.states import COMPLETE, GONE, OVER, State

UNKNOWN, DONE = Verdict.UNKNOWN, Verdict.DONE
_GONE = Disposition.GONE


def claimed(state: EngineState, jid: str, claim: Claim) -> tuple[Job, Lease] | None:
    """The job that this claim may settle, with its lease. If the claim names a lease that has ended, there is none,
    even if another worker holds the job now.

    A claim that names no lease may end a lease of its own protocol. No protocol can end leases of another.
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
        if lease.bound is not LeaseBinding.UNBOUND or _another_before_restart(state, lease, claim):
            continue
        if oldest is None or lease.token < oldest[1].token:
            oldest = job, lease
    return oldest


def _another_before_restart(state: EngineState, lease: Lease, claim: Claim) -> bool:
    """Whether the lease of another worker was given before a restart. Sessions forget their leases at a restart, so the
    worker's name decides.
    """
    return bool(lease.token < state.counters.first_token and claim.worker and lease.worker)


def succeed(state: EngineState, command: Succeed, now: Now) -> Decision[Verdict]:
    claim = command.claim
    found = claimed(state, command.jid, claim) or claimed_without_lease(state, command.jid, claim)
    if found is None:
        return (), verdict(state, command.jid, claim), ()
    job, lease = found
    if command.t is None and lease is not None and ((extra := job.extra) is None or job.policy.success is _GONE):
        # the most frequent case, quicker than `success`
        then = STATE_AFTER[job.policy.success]
        event = Succeeded(*closing(job, lease, later(state, now), claim.via), then, command.result)
        event.pushed_at = job.created if extra is None or extra.pushed_at is None else extra.pushed_at
        if lease.via != claim.via:
            event.leased_via = lease.via
    else:
        event = success(job, lease, command, later(state, now), now)
    return (event,), DONE, (job.queue,) if state.throttles or state.limits else ()


def room(state: EngineState, job: Job) -> tuple[str, ...]:
    """The end of a lease may make room that a client waits for."""
    return (job.queue,) if state.throttles or state.limits else ()


def success(job: Job, lease: Lease | None, command: Succeed, at: float, now: Now) -> Succeeded:
    claim, t = command.claim, command.t
    if lease is not None:
        close = closing(job, lease, at, claim.via, t, command.qless)
    else:
        close = unleased(job, at, claim.via, claim.worker)
    then = STATE_AFTER[job.policy.success]
    extra = job.extra
    end = end_if_kept(job, then, now) if extra is not None and extra.links is not None else 0
    event = Succeeded(*close, then, command.result, end, t, command.payload, command.qless)
    event.pushed_at = job.created if extra is None or extra.pushed_at is None else extra.pushed_at
    if lease is not None and lease.via != claim.via:
        event.leased_via = lease.via
    if then is COMPLETE:
        event.steady = now.steady
    return event


def succeeded(state: EngineState, follow_ups: FollowUps, event: Succeeded) -> None:
    job = state.jobs[event.number]
    lease = end_lease(state, follow_ups, job, event.then)
    if event.then is GONE:
        state.remove_job(job, event)
    else:
        job.due = 0.0
        if event.payload is not None:
            job.carry(event.payload)
        data = job.extra.protocol_data if job.extra is not None else None
        hook = hooks.SUCCEEDED.get(type(data)) if data is not None else None
        if hook is not None:
            hook(state, follow_ups, job, event, lease)
        else:
            keep_result(state, job, Result(True, event.result), event.end)
            placement.insert(state, job)
    if event.token:
        state.counters.processed += 1
        if event.t is None:
            state.stats.book(job.queue, event.at, RUN, event.run_s)
        else:
            booked = event.qless.booked_queue if event.qless is not None else ""
            state.stats.book(booked or job.queue, event.t, RUN, event.run_s)
    if job.extra is not None and job.extra.links is not None:
        links.ended(state, follow_ups, job, job.extra.links, event.at, success=True)
    if state.dependents:
        dependencies.met(state, follow_ups, event.number)


# Settling without a lease (Workq), and results that are kept.
#
# Workq may settle a job that it pushed in any live state, late, or in place of its holder, unless another protocol
# holds the job. It is the only exception to fencing.


_KEEPS_RESULT = frozenset({State.COMPLETE, State.FAILED})


def claimed_without_lease(state: EngineState, jid: str, claim: Claim) -> tuple[Job, Lease | None] | None:
    """The job that a claim without a valid lease may settle."""
    job = _newest(state, jid, claim)
    if job is None or job.state in OVER or job.origin != claim.via:
        return None
    return None if job.lease is not None and job.lease.via != claim.via else (job, job.lease)


def verdict(state: EngineState, jid: str, claim: Claim) -> Verdict:
    """The outcome of a claim that settles nothing."""
    job = _newest(state, jid, claim)
    return Verdict.FINISHED if job is not None and job.state in OVER else Verdict.UNKNOWN


def _newest(state: EngineState, jid: str, claim: Claim) -> Job | None:
    found = list(state.numbered(claim.number) if claim.number else state.named(jid)) if claim.free else []
    return found[-1] if found else None


def keep_result(state: EngineState, job: Job, result: Result, end: float) -> None:
    """Store the result with a kept job. It is kept as long as the job."""
    if job.state in _KEEPS_RESULT:
        job.extra = replace(job.extra or Extra(), result=result)
        if end:
            state.end_at(job, end)
