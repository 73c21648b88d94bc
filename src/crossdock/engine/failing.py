"""Failing: reported by a worker, or found out when a lease has run out; and what the job's rules make of it."""

from random import Random

from crossdock.engine import links
from crossdock.engine.decision import Decision, later
from crossdock.engine.lease import closing, end_lease, to_old_place
from crossdock.engine.memory import GONE, Memory
from crossdock.engine.settle import ENDS, claimed
from crossdock.engine.stats import FAILURE
from crossdock.model.clock import Now
from crossdock.model.commands import Fail
from crossdock.model.errors import Damaged
from crossdock.model.events import AnyEvent, Failed, Lapsed
from crossdock.model.job import Extra, Failure, Job, Lease
from crossdock.model.rules import DEAD_FOR, Backoff, Lapse
from crossdock.model.states import State


def fail(memory: Memory, command: Fail, now: Now, random: Random) -> Decision[bool]:
    found = claimed(memory, command.jid, command.claim)
    if found is None:
        return (), False, ()
    job, lease = found
    at = later(memory, now)
    event = _failure(
        job,
        lease,
        at,
        now.wall,
        command.claim.via,
        random,
        command.group,
        command.message,
        command.backtrace,
        lost=False,
    )
    return (event,), True, (job.queue,) if memory.throttles else ()


def lapse(memory: Memory, job: Job, now: Now, random: Random) -> AnyEvent:
    """What the end of a lease means to its job; called by the timer."""
    lease = job.lease
    if lease is None:
        raise Damaged(f"job {job.number} stands among the leased without a lease")
    at = later(memory, now)
    used_up = 0 < job.rules.max_attempts <= job.attempts
    if job.rules.lapse is Lapse.FAILURE or used_up:
        return _failure(
            job, lease, at, now.wall, "", random, "lease-expired", "the lease ran out", (), lost=True, final=used_up
        )
    return Lapsed(*closing(job, lease, at, ""))


def _failure(
    job: Job,
    lease: Lease,
    at: float,
    wall: float,
    via: str,
    random: Random,
    group: str,
    message: str,
    backtrace: tuple[str, ...],
    *,
    lost: bool,
    final: bool = False,
) -> Failed:
    before = job.extra.error if job.extra else None
    next_at = before.next_at if before else 0.0
    if final or job.failures >= job.rules.max_failures:
        then = ENDS[job.rules.exhausted]
        due = wall + DEAD_FOR
    else:
        then = State.RETRYING
        due = next_at = wall + delay(job.rules.backoff, job.failures, random)
    failure = Failure(group, message, backtrace, before.first_at if before else at, at, next_at, lost)
    return Failed(*closing(job, lease, at, via), lost, then, due, failure)


def delay(backoff: Backoff, failures: int, random: Random) -> float:
    """Seconds until the next try of a job that had `failures` before this one."""
    if backoff is Backoff.POLYNOMIAL:
        return float(failures**4 + 15 + random.randrange(30) * (failures + 1))
    if backoff is Backoff.QUARTIC:
        return float((failures + 1) ** 4)
    return 0.0


def failed(memory: Memory, event: Failed) -> None:
    job = memory.jobs[event.number]
    end_lease(memory, job, event.then)
    job.place = None
    job.failures += 1
    memory.counters.processed += 1
    memory.counters.failures += 1
    memory.stats.book(job.queue, event.at, FAILURE, 1.0)
    linked = job.extra.links if job.extra is not None else None
    if event.then is GONE:
        memory.drop(job)
        if linked is not None:
            links.gone(memory, job, linked, event.at, success=False)
        return
    job.due = event.due
    extra = job.extra or Extra()
    job.extra = Extra(extra.custom, extra.face, event.failure, linked)
    memory.place(job)
    if linked is not None:
        links.failed(memory, job, linked, event.at, "dead" if event.then is State.DEAD else "failed")


def lapsed(memory: Memory, event: Lapsed) -> None:
    to_old_place(memory, memory.jobs[event.number])
