"""Settling without a lease: Workq's freedom, and results that are kept.

A job that came by a door whose claims are free is settled through that door in any live state, late, or in place of
whoever holds it, while no other door does. It is the one exception to fencing.
"""

from msgspec.structs import replace

from crossdock.engine.memory import Memory
from crossdock.model.commands import Claim, Verdict
from crossdock.model.job import Extra, Job, Result
from crossdock.model.states import OVER, State

_KEEPS_RESULT = frozenset({State.COMPLETE, State.FAILED})


def target(memory: Memory, jid: str, claim: Claim) -> Job | Verdict:
    """The job that a free claim without a valid lease may settle all the same, or what to tell it."""
    found = list(memory.numbered(claim.number) if claim.number else memory.named(jid))
    if not found:
        return Verdict.UNKNOWN
    job = found[-1]
    if job.state in OVER:
        return Verdict.FINISHED
    if job.origin != claim.via or (job.lease is not None and job.lease.via != claim.via):
        return Verdict.UNKNOWN
    return job


def leave(memory: Memory, job: Job, result: Result, end: float) -> None:
    """The job is kept: so is its result, for as long as the job."""
    if job.state in _KEEPS_RESULT:
        job.extra = replace(job.extra or Extra(), result=result)
        if end:
            memory.end_at(job, end)
