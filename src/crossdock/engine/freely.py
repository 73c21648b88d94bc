"""Settling without a lease: Workq's freedom, and results that are kept.

A job that came by a door whose claims are free is settled through that door in any live state, late, or in place of
whoever holds it, while no other door does. It is the one exception to fencing.
"""

from msgspec.structs import replace

from crossdock.engine.memory import Memory
from crossdock.model.commands.core import Claim, Verdict
from crossdock.model.job import Extra, Job, Lease, Result
from crossdock.model.states import OVER, State

_KEEPS_RESULT = frozenset({State.COMPLETE, State.FAILED})


def claimed(memory: Memory, jid: str, claim: Claim) -> tuple[Job, Lease | None] | None:
    """The job that a claim without a valid lease may settle all the same."""
    job = _newest(memory, jid, claim)
    if job is None or job.state in OVER or job.origin != claim.via:
        return None
    return None if job.lease is not None and job.lease.via != claim.via else (job, job.lease)


def verdict(memory: Memory, jid: str, claim: Claim) -> Verdict:
    """What to tell a claim that settles nothing."""
    job = _newest(memory, jid, claim)
    return Verdict.FINISHED if job is not None and job.state in OVER else Verdict.UNKNOWN


def _newest(memory: Memory, jid: str, claim: Claim) -> Job | None:
    found = list(memory.numbered(claim.number) if claim.number else memory.named(jid)) if claim.free else []
    return found[-1] if found else None


def leave(memory: Memory, job: Job, result: Result, end: float) -> None:
    """The job is kept: so is its result, for as long as the job."""
    if job.state in _KEEPS_RESULT:
        job.extra = replace(job.extra or Extra(), result=result)
        if end:
            memory.end_at(job, end)
