"""Settling: who may end a lease (MODEL section 6), and success."""

from crossdock.engine import links
from crossdock.engine.decision import Decision, later
from crossdock.engine.lease import closing, end_lease
from crossdock.engine.memory import GONE, Memory
from crossdock.engine.stats import RUN
from crossdock.model.clock import Now
from crossdock.model.commands import Claim, Succeed
from crossdock.model.events import Succeeded
from crossdock.model.job import Bound, Job, Lease
from crossdock.model.rules import Then
from crossdock.model.states import State

ENDS = {Then.GONE: State.GONE, Then.DEAD: State.DEAD, Then.COMPLETE: State.COMPLETE, Then.FAILED: State.FAILED}


def claimed(memory: Memory, jid: str, claim: Claim) -> tuple[Job, Lease] | None:
    """The job this claim may settle. A lease it was given and that is over means: none, whoever holds the job now."""
    if claim.held is not None:
        number, token = claim.held
        job = memory.jobs.get(number)
        if job is None or job.lease is None or job.lease.token != token:
            return None
        return job, job.lease
    oldest: tuple[Job, Lease] | None = None
    for job in memory.named(jid):
        lease = job.lease
        if lease is None:
            continue
        if claim.worker and lease.worker == claim.worker and lease.bound is not Bound.CONNECTION:
            return job, lease
        if lease.bound is not Bound.NOBODY or _another_before_restart(memory, lease, claim):
            continue
        if oldest is None or lease.token < oldest[1].token:
            oldest = job, lease
    return oldest


def _another_before_restart(memory: Memory, lease: Lease, claim: Claim) -> bool:
    """What a session was given before a restart is forgotten; then the name recorded on the lease must do."""
    return bool(lease.token < memory.counters.first_token and claim.worker and lease.worker)


def succeed(memory: Memory, command: Succeed, now: Now) -> Decision[bool]:
    found = claimed(memory, command.jid, command.claim)
    if found is None:
        return (), False, ()
    job, lease = found
    event = Succeeded(*closing(job, lease, later(memory, now), command.claim.via), ENDS[job.rules.success])
    return (event,), True, (job.queue,) if memory.throttles else ()


def succeeded(memory: Memory, event: Succeeded) -> None:
    job = memory.jobs[event.number]
    end_lease(memory, job, event.then)
    if event.then is GONE:
        memory.drop(job)
    else:
        job.due = 0.0
        memory.place(job)
    memory.counters.processed += 1
    memory.stats.book(job.queue, event.at, RUN, event.run_s)
    if job.extra is not None and job.extra.links is not None:
        links.gone(memory, job, job.extra.links, event.at, success=True)
