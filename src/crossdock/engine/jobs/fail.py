"""Failures: reported by a worker, or found when a lease expired. The retry policy is in `retry_policy`."""

from random import Random

from msgspec.structs import replace

from crossdock.engine import hooks
from crossdock.engine.decision import Decision, FollowUps, later
from crossdock.engine.index import placement
from crossdock.engine.index.sort_keys import stamped
from crossdock.engine.job_view import pushed_at
from crossdock.engine.jobs import complete
from crossdock.engine.jobs.complete import DONE, claimed, room
from crossdock.engine.jobs.release import closing, end_lease, last_rows, leased_via, to_old_place
from crossdock.engine.jobs.retry_policy import FailureReport, failure, used_up
from crossdock.engine.records import dependencies, links
from crossdock.engine.records.stats import FAILURE, RETRY
from crossdock.engine.redaction import Redact, shown
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Fail, LoseLease, Verdict
from crossdock.model.errors import Damaged
from crossdock.model.events import AnyEvent, Failed, LeaseExpired, Removed
from crossdock.model.job import BAND_NORMAL, Extra, Job, Lease, Result
from crossdock.model.policies import LeaseExpiry
from crossdock.model.states import GONE, READY, State

_FINAL = frozenset({State.GONE, State.DEAD, State.FAILED})


def fail(
    state: EngineState, command: Fail, now: Now, random: Random, redact: Redact | None = None
) -> Decision[Verdict]:
    claim = command.claim
    found = claimed(state, command.jid, claim) or complete.claimed_without_lease(state, command.jid, claim)
    if found is None:
        return (), complete.verdict(state, command.jid, claim), ()
    job, lease = found
    report = FailureReport(
        via=claim.via,
        worker=claim.worker,
        group=command.group,
        message=command.message,
        backtrace=command.backtrace,
        result=command.result,
        counted=not command.final or command.counts,
        t=command.t,
        payload=command.payload,
        delay=command.delay,
        qless=command.qless,
    )
    event = failure(state, job, lease, now, report, random, final=command.final)
    if redact is not None:
        event.shown = shown(redact, job, event.failure, command.payload)
    woken = dict.fromkeys(room(state, job))
    if event.then is READY and (event.token or event.to_queue):
        woken[event.to_queue or job.queue] = None
    return (event,), DONE, tuple(woken)


def lose(state: EngineState, command: LoseLease, now: Now, random: Random) -> Decision[None]:
    number, token = command.lease
    job = state.jobs.get(number)
    if job is None or job.lease is None or job.lease.token != token:
        return (), None, ()
    event = expire_lease(state, job, now, random, command.via)
    return (event,), None, queues_woken_by(event, job)


def queues_woken_by(event: AnyEvent, job: Job) -> tuple[str, ...]:
    """The queues in which the end of this lease left a ready job, or room for one."""
    return (job.queue, event.to_queue) if isinstance(event, Failed) and event.to_queue else (job.queue,)


def expire_lease(state: EngineState, job: Job, now: Now, random: Random, via: str = "") -> AnyEvent:
    """The event of an expired lease. `via` is the protocol that knows that the holder is gone; empty: the timer expired
    it.
    """
    lease = job.lease
    if lease is None:
        raise Damaged(f"job {job.number} is in the index of leased jobs without a lease")
    policy, at = job.policy, later(state, now)
    if policy.lease_expiry is LeaseExpiry.DROP:
        return Removed(at, "lease-expired", via, last_rows([job], at))
    if policy.lease_expiry is LeaseExpiry.RETURN and not used_up(job):
        close = closing(job, lease, at, via)
        return LeaseExpired(*close, leased_via=leased_via(lease, via), pushed_at=pushed_at(job))
    data = job.extra.protocol_data if job.extra is not None else None
    if data is not None and (hook := hooks.EXPIRED.get(type(data))) is not None:
        return hook(state, job, lease, via, now)
    counted = policy.lease_expiry is LeaseExpiry.FAILURE
    report = FailureReport(via, lease.worker, "lease-expired", "the lease ran out", lost=True, counted=counted)
    return failure(state, job, lease, now, report, random, final=not counted)


def failed(state: EngineState, follow_ups: FollowUps, event: Failed) -> None:
    job = state.jobs[event.number]
    then = event.then
    lease = job.lease
    stays = not event.token and not event.to_queue and then is job.state
    data = job.extra.protocol_data if job.extra is not None else None
    hook = hooks.FAILED.get(type(data)) if data is not None else None
    listed = None if lease is None else _still_listed(state, job, lease, event)
    if not stays:
        end_lease(state, follow_ups, job, then)
    _count(state, job, event)
    if hook is None and event.counted and event.token:
        state.stats.book(job.queue, event.at if event.t is None else event.t, FAILURE, 1.0)
    if event.payload is not None:
        job.carry(event.payload)
    linked = job.extra.links if job.extra is not None else None
    if then is GONE:
        state.remove_job(job, event)
        if linked is not None:
            links.ended(state, follow_ups, job, linked, event.at, success=False)
    else:
        if then in _FINAL or event.qless is None or not event.qless.unrecorded:
            job.extra = replace(job.extra or Extra(), error=event.failure, resqu_batch="")
        if hook is not None:
            hook(state, job, event, lease)
        if listed is not None and lease is not None:
            state.workers.add_lease(lease.worker, job.jid, listed)
        if event.to_queue:
            _to_dead_queue(state, job, event)
        elif then is READY:
            state.return_queue(job, event.at)
            if event.stamp is not None:
                job.since = event.at
                job.sort_key = stamped(job, event.stamp)
        elif not stays:
            job.sort_key = None
            job.due, job.due_steady = event.due, event.due_steady
            complete.keep_result(state, job, Result(False, event.body), event.end)
        if not stays:
            placement.insert(state, job)
        if linked is not None:
            links.failed(state, follow_ups, job, linked, event.at, "dead" if then is State.DEAD else "failed")
    if state.dependents and not stays and (then in _FINAL or event.to_queue):
        dependencies.lost(state, follow_ups, event.number)


def _still_listed(state: EngineState, job: Job, lease: Lease, event: Failed) -> float | None:
    """Until when the worker is still listed with the job. An old script removes the job only from the list of the
    worker that reports the failure.
    """
    if event.failure.worker in ("", lease.worker) or not state.workers.has(lease.worker, job.jid):
        return None
    return lease.until


def _count(state: EngineState, job: Job, event: Failed) -> None:
    if event.token:
        state.counters.processed += 1
    if event.counted:
        job.failures += 1
        if event.token:
            state.counters.failures += 1


def _to_dead_queue(state: EngineState, job: Job, event: Failed) -> None:
    """Reset the job as if new, for the tail of its dead queue. The caller indexes it there."""
    extra = job.extra or Extra()
    linked = replace(extra.links, depends_on=()) if extra.links is not None else None
    job.extra = replace(extra, links=linked, deadqueue="", spent=True)
    job.queue = state.queue(event.to_queue, event.at).name
    job.failures = 0
    job.due = 0.0
    job.since = event.at
    job.sort_key = (-job.priority, BAND_NORMAL, event.at, b"", job.number)


def lease_expired(state: EngineState, follow_ups: FollowUps, event: LeaseExpired) -> None:
    job = state.jobs[event.number]
    if event.counted:
        job.failures += 1
    if event.retried:
        state.stats.book(job.queue, event.at if event.t is None else event.t, RETRY, 1.0)
    if job.extra is not None and job.extra.warned:
        job.extra = replace(job.extra, warned=False)
    to_old_place(state, follow_ups, job, keeps=event.handed)
