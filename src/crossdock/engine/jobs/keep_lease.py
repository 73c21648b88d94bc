"""Leases that a worker extends, and jobs that it snoozes."""

from math import inf

from crossdock.engine import hooks
from crossdock.engine.decision import Decision, FollowUps, later
from crossdock.engine.index import placement
from crossdock.engine.job_view import pushed_at
from crossdock.engine.jobs.complete import DONE, UNKNOWN, claimed, room
from crossdock.engine.jobs.release import closing, end_lease, leased_via
from crossdock.engine.records import links
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Verdict
from crossdock.model.commands.extensions import ExtendLeases, LeaseClaim, Snooze
from crossdock.model.events import AnyEvent, Renewed
from crossdock.model.events.extensions import Snoozed
from crossdock.model.job import Job, Lease, LeaseBinding
from crossdock.model.states import SCHEDULED


def extend_leases(state: EngineState, command: ExtendLeases, now: Now) -> Decision[list[str]]:
    """A lease that already lasts longer is left as it is."""
    at, end = later(state, now), now.steady + command.lease_s
    events: list[AnyEvent] = []
    lost: list[str] = []
    for each in command.leases:
        found = _held(state, each)
        if found is None:
            lost.append(each.jid)
            continue
        job, lease = found
        if lease.late is None:
            if end > lease.end:
                events.append(Renewed(at, job.number, lease.token, end))
        elif end > lease.late:
            events.append(Renewed(at, job.number, lease.token, inf, until=lease.until, late=end))
    return events, lost, ()


def _held(state: EngineState, wanted: LeaseClaim) -> tuple[Job, Lease] | None:
    """The lease that the worker was given. Unlike a settlement, this never accepts the lease of another worker: a
    worker that lost its lease must learn it.
    """
    claim = wanted.claim
    if claim.held is not None:
        return claimed(state, wanted.jid, claim)
    if claim.worker:
        for job in state.named(wanted.jid):
            lease = job.lease
            if lease is not None and (lease.via, lease.worker) == (claim.via, claim.worker):
                return None if lease.bound is LeaseBinding.CONNECTION else (job, lease)
    return None


def snooze(state: EngineState, command: Snooze, now: Now) -> Decision[Verdict]:
    claim = command.claim
    found = claimed(state, command.jid, claim)
    if found is None:
        return (), UNKNOWN, ()
    job, lease = found
    event = Snoozed(
        *closing(job, lease, later(state, now), claim.via),
        due=now.wall + command.delay_s,
        reason=command.reason,
        leased_via=leased_via(lease, claim.via),
        pushed_at=pushed_at(job),
    )
    return (event,), DONE, room(state, job)


def snoozed(state: EngineState, follow_ups: FollowUps, event: Snoozed) -> None:
    job = state.jobs[event.number]
    end_lease(state, follow_ups, job, SCHEDULED)
    placement.leave_batch(job)
    job.sort_key = None
    job.due = event.due
    data = job.extra.protocol_data if job.extra is not None else None
    if data is not None and (hook := hooks.SCHEDULED.get(type(data))) is not None:
        hook(state, job)
    placement.insert(state, job)
    if job.extra is not None and job.extra.links is not None and job.extra.links.tracked:
        links.report_progress(state, follow_ups, job, event.at, "enqueued")
