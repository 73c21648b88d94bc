"""Whether a job that failed is tried again, and when: what its rules make of a failure, as an event."""

from math import floor
from random import Random
from typing import NamedTuple

from crossdock.engine.decision import just_after, later
from crossdock.engine.jobs.expire import kept
from crossdock.engine.jobs.release import closing, leased_via, unleased
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.qless_settle import QlessFailure
from crossdock.model.events import Failed
from crossdock.model.job import Failure, Job, Lease
from crossdock.model.policies import DEAD_FOR, STATE_AFTER, Backoff, Disposition
from crossdock.model.states import GONE, READY, State


class FailureReport(NamedTuple):
    """What is said about a failure, and by whom."""

    via: str
    worker: str
    group: str
    message: str
    backtrace: tuple[str, ...] = ()
    result: bytes = b""
    lost: bool = False
    counted: bool = True
    t: float | None = None
    payload: bytes | None = None
    delay: float | None = None
    qless: QlessFailure = QlessFailure()


def failure(
    state: EngineState,
    job: Job,
    lease: Lease | None,
    now: Now,
    told: FailureReport,
    random: Random,
    *,
    final: bool = False,
) -> Failed:
    at = later(state, now)
    if final or job.failures >= job.policy.max_failures or used_up(job):
        return exhausted(job, lease, at, now, told)
    before = job.extra.error if job.extra else None
    if lease is None and told.delay is None:
        next_at = before.next_at if before else 0.0
        return _event(job, lease, at, now, told, job.state, job.due, job.due_steady, next_at)
    if told.delay is not None:
        then, wait = State.RETRYING if told.delay > 0 else READY, max(0.0, told.delay)
    elif job.policy.backoff is Backoff.NONE:
        then, wait = READY, 0.0
    else:
        then, wait = State.RETRYING, delay(job.policy.backoff, job.failures, random)
    due = now.wall + wait
    return _event(job, lease, at, now, told, then, due, now.steady + wait, due)


def put_off(job: Job, lease: Lease, at: float, now: Now, told: FailureReport) -> Failed:
    """A try is over and the next one waits as long as is told."""
    wait = told.delay or 0.0
    due = now.wall + wait
    return _event(job, lease, at, now, told, State.RETRYING, due, now.steady + wait, due)


def exhausted(job: Job, lease: Lease | None, at: float, now: Now, told: FailureReport) -> Failed:
    """The job's tries are over, however many it had left."""
    before = job.extra.error if job.extra else None
    policy, to_queue = job.policy, ""
    if policy.exhausted is Disposition.DEAD_QUEUE:
        to_queue = job.extra.deadqueue if job.extra is not None else ""
        then = READY if to_queue else GONE
        if to_queue and not told.lost:  # several lapses of one look at the clock are one instant
            at = just_after(at)
    else:
        then = STATE_AFTER[policy.exhausted]
    next_at = before.next_at if before else 0.0
    due, due_steady = now.wall + DEAD_FOR, now.steady + DEAD_FOR
    return _event(job, lease, at, now, told, then, due, due_steady, next_at, to_queue, told.result)


def used_up(job: Job) -> bool:
    return 0 < job.policy.max_attempts <= job.attempts


def _event(
    job: Job,
    lease: Lease | None,
    at: float,
    now: Now,
    told: FailureReport,
    then: State,
    due: float,
    due_steady: float,
    next_at: float,
    to_queue: str = "",
    result: bytes = b"",
) -> Failed:
    before = job.extra.error if job.extra else None
    data = job.extra.protocol_data if job.extra else None
    first_at = before.first_at if before else at
    t = told.t
    qless = told.qless
    when = t if t is None or not qless.said else float(floor(t))
    worker = told.worker if t is not None and (qless.said or qless.named) else ""
    error = Failure(told.group, told.message, told.backtrace, first_at, at, next_at, told.lost, when, worker)
    close = closing(job, lease, at, told.via, t) if lease is not None else unleased(job, at, told.via, told.worker)
    event = Failed(
        *close,
        told.lost,
        then,
        due,
        error,
        result,
        to_queue,
        told.counted,
        kept(job, then, now),
        t,
        told.payload,
        booked=qless.booked,
        unbooked=qless.unbooked,
        quiet=qless.quiet,
        leased_via="" if lease is None else leased_via(lease, told.via),
        faced=data is not None and data.books_kept_failures,
        due_steady=due_steady,
    )
    if told.delay is not None:
        event.stamp = at if t is None else t
        event.due_t = None if t is None or then is READY else t + told.delay
        event.said = qless.said
    return event


def delay(backoff: Backoff, failures: int, random: Random) -> float:
    """Seconds until the next try of a job that had `failures` before this one."""
    if backoff is Backoff.POLYNOMIAL:
        return float(failures**4 + 15 + random.randrange(30) * (failures + 1))
    if backoff is Backoff.QUARTIC:
        return float((failures + 1) ** 4)
    return 0.0
