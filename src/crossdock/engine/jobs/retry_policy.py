"""Retry policy: whether a failed job is tried again, and when."""

from random import Random
from typing import NamedTuple

from crossdock.engine.decision import just_after, later
from crossdock.engine.job_view import pushed_at
from crossdock.engine.jobs.expire import end_if_kept
from crossdock.engine.jobs.release import closing, leased_via, unleased
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.events import Failed
from crossdock.model.job import Failure, Job, Lease
from crossdock.model.policies import DEAD_FOR, STATE_AFTER, Backoff, Disposition
from crossdock.model.protocol_data import QlessDialect
from crossdock.model.states import GONE, READY, State


class FailureReport(NamedTuple):
    """A failure as a worker reports it, or as the engine found it."""

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
    qless: QlessDialect | None = None


def failure(
    state: EngineState,
    job: Job,
    lease: Lease | None,
    now: Now,
    report: FailureReport,
    random: Random,
    *,
    final: bool = False,
) -> Failed:
    """The event of a failure. `final`: the job is not tried again, however many tries it has left."""
    at = later(state, now)
    if final or job.failures >= job.policy.max_failures or used_up(job):
        return exhausted(job, lease, at, now, report)
    if report.delay is not None:
        return _retry(job, lease, at, now, report, max(0.0, report.delay), ready=report.delay <= 0)
    if lease is None:
        next_at = job.extra.error.next_at if job.extra is not None and job.extra.error is not None else 0.0
        return _event(
            job, lease, at, now, report, then=job.state, due=job.due, due_steady=job.due_steady, next_at=next_at
        )
    backoff = job.policy.backoff
    wait = delay(backoff, job.failures, random)
    return _retry(job, lease, at, now, report, wait, ready=backoff is Backoff.NONE)


def put_off(job: Job, lease: Lease, at: float, now: Now, report: FailureReport) -> Failed:
    """The event of a failure after which the job waits for the delay of the report."""
    return _retry(job, lease, at, now, report, report.delay or 0.0, ready=False)


def _retry(
    job: Job, lease: Lease | None, at: float, now: Now, report: FailureReport, wait: float, *, ready: bool
) -> Failed:
    due, then = now.wall + wait, READY if ready else State.RETRYING
    return _event(job, lease, at, now, report, then=then, due=due, due_steady=now.steady + wait, next_at=due)


def exhausted(job: Job, lease: Lease | None, at: float, now: Now, report: FailureReport) -> Failed:
    """The event of a failure after which the job is not tried again, however many tries it has left."""
    before = job.extra.error if job.extra is not None else None
    policy, to_queue = job.policy, ""
    if policy.exhausted is Disposition.DEAD_QUEUE:
        to_queue = job.extra.deadqueue if job.extra is not None else ""
        then = READY if to_queue else GONE
        if to_queue and not report.lost:  # leases that one tick ends have one time
            at = just_after(at)
    else:
        then = STATE_AFTER[policy.exhausted]
    return _event(
        job,
        lease,
        at,
        now,
        report,
        then=then,
        due=now.wall + DEAD_FOR,
        due_steady=now.steady + DEAD_FOR,
        next_at=before.next_at if before is not None else 0.0,
        to_queue=to_queue,
        result=report.result,
    )


def used_up(job: Job) -> bool:
    return 0 < job.policy.max_attempts <= job.attempts


def _event(
    job: Job,
    lease: Lease | None,
    at: float,
    now: Now,
    report: FailureReport,
    *,
    then: State,
    due: float,
    due_steady: float,
    next_at: float,
    to_queue: str = "",
    result: bytes = b"",
) -> Failed:
    before = job.extra.error if job.extra is not None else None
    data = job.extra.protocol_data if job.extra is not None else None
    via, t = report.via, report.t
    when, worker = (None, "") if t is None else (report.qless or QlessDialect()).shown_failure(t, report.worker)
    error = Failure(
        group=report.group,
        message=report.message,
        backtrace=report.backtrace,
        first_at=before.first_at if before is not None else at,
        at=at,
        next_at=next_at,
        lost=report.lost,
        when=when,
        worker=worker,
    )
    event = Failed(
        *(closing(job, lease, at, via, t) if lease is not None else unleased(job, at, via, report.worker)),
        lost=report.lost,
        then=then,
        due=due,
        failure=error,
        result=result,
        to_queue=to_queue,
        counted=report.counted,
        end=end_if_kept(job, then, now),
        t=t,
        payload=report.payload,
        qless=report.qless,
        leased_via=leased_via(lease, via),
        books_kept=data is not None and data.books_kept_failures,
        due_steady=due_steady,
        pushed_at=pushed_at(job),
    )
    if report.delay is not None:
        event.stamp = at if t is None else t
        event.due_t = None if t is None or then is READY else t + report.delay
    return event


def delay(backoff: Backoff, failures: int, random: Random) -> float:
    """Seconds until the next try of a job that had `failures` before this one."""
    if backoff is Backoff.POLYNOMIAL:
        return float(failures**4 + 15 + random.randrange(30) * (failures + 1))
    if backoff is Backoff.QUARTIC:
        return float((failures + 1) ** 4)
    return 0.0
