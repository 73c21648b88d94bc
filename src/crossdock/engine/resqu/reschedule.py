"""Decides and applies a reschedule: a worker ends its job, as a success or as a failure, and the same job or another
one is enqueued (resqu.md section 10.6)."""

from random import Random

from msgspec.structs import replace

from crossdock.engine.decision import Decision, FollowUps, just_after, later
from crossdock.engine.index import placement
from crossdock.engine.index.sort_keys import stamped
from crossdock.engine.job_view import pushed_at
from crossdock.engine.jobs import enqueue
from crossdock.engine.jobs.complete import DONE, UNKNOWN, claimed, room, success
from crossdock.engine.jobs.release import closing, end_lease, leased_via
from crossdock.engine.jobs.retry_policy import FailureReport, failure
from crossdock.engine.records import links
from crossdock.engine.records.stats import FAILURE, RUN
from crossdock.engine.resqu.unique_ids import lock_of, resqu_data, routed
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Refused, Succeed, Verdict
from crossdock.model.commands.resqu import Reschedule
from crossdock.model.events import AnyEvent
from crossdock.model.events.resqu import Rescheduled
from crossdock.model.job import Extra, Failure, Job, Lease, Spec
from crossdock.model.states import State

RETRY_MESSAGE = "the worker asked for a retry"


def reschedule(state: EngineState, command: Reschedule, now: Now, random: Random) -> Decision[Verdict]:
    found = claimed(state, command.jid, command.claim)
    if found is None:
        return (), UNKNOWN, ()
    if command.same:
        event = next_run(state, *found, command.spec, command.claim.via, now, failed=command.failed)
        return (event,), DONE, woken(state, found[0], event)
    return _another(state, *found, command, now, random)


def next_run(
    state: EngineState, job: Job, lease: Lease, spec: Spec, via: str, now: Now, *, failed: bool
) -> Rescheduled:
    """The event that enqueues the same job again as the spec describes it. A job of another protocol is enqueued
    unchanged."""
    failures = max(spec.failures, job.failures + 1) if failed else job.failures
    due = spec.due if spec.due > now.wall else 0.0
    if resqu_data(job) is not None:
        to = replace(routed(state, spec), priority=job.priority, policy=job.policy, due=due)
    else:
        to = Spec(job.jid, job.queue, job.kind, job.payload, job.form, job.priority, job.policy, due)
    at = just_after(later(state, now))  # the job joins the tail, also behind jobs of the same clock reading
    message = RETRY_MESSAGE if failed else ""
    close = closing(job, lease, at, via)
    return Rescheduled(*close, failed, to, failures, message, leased_via(lease, via), pushed_at(job))


def woken(state: EngineState, job: Job, event: Rescheduled) -> tuple[str, ...]:
    """The queues in which a job may have become leasable."""
    queues = dict.fromkeys(room(state, job))
    if not event.to.due:
        queues[event.to.queue] = None
    return tuple(queues)


def rescheduled(state: EngineState, follow_ups: FollowUps, event: Rescheduled) -> None:
    job, to = state.jobs[event.number], event.to
    end_lease(state, follow_ups, job, State.SCHEDULED if to.due else State.READY)
    _book(state, job, event)
    linked = job.extra.links if job.extra is not None else None
    if linked is not None:
        if event.failed:
            links.failed(state, follow_ups, job, linked, event.at, "failed")
        elif linked.tracked:
            links.report_progress(state, follow_ups, job, event.at, "success")
    _replace_job(state, job, event)
    if linked is not None:
        if linked.lock is not None:
            state.resqu.running.discard(linked.lock.name)
        if linked.tracked:
            links.report_progress(state, follow_ups, job, event.at, "enqueued")


def _book(state: EngineState, job: Job, event: Rescheduled) -> None:
    state.counters.processed += 1
    if event.failed:
        state.counters.failures += 1
        state.stats.book(job.queue, event.at, FAILURE, 1.0)
    else:
        state.stats.book(job.queue, event.at, RUN, event.run_s)


def _replace_job(state: EngineState, job: Job, event: Rescheduled) -> None:
    to, extra = event.to, job.extra or Extra()
    if to.jid != job.jid:
        state.resqu.once.mark(job.jid, event.at)  # a repeat of its first push is still recognised
        state.rename(job, to.jid)
    if extra.resqu_batch:
        extra = replace(extra, resqu_batch="")
    if to.extra is not None and to.extra.protocol_data is not None:
        extra = replace(extra, protocol_data=to.extra.protocol_data)
    if event.failed:
        first_at = extra.error.first_at if extra.error is not None else event.at
        error = Failure("", event.message, (), first_at, event.at, to.due or event.at, False)
        extra = replace(extra, error=error)
    else:
        extra = replace(extra, pushed_at=event.at)
    job.extra = extra
    job.kind, job.payload, job.form = state.share(to.kind), to.payload, to.form
    job.failures, job.due, job.since = event.failures, to.due, event.at
    job.queue = state.queue(to.queue, event.at).name
    job.sort_key = None if to.due else stamped(job, event.at)
    placement.insert(state, job)


def _another(
    state: EngineState, job: Job, lease: Lease, command: Reschedule, now: Now, random: Random
) -> Decision[Verdict]:
    """Ends the job and pushes another one, which may take over its lock."""
    spec = routed(state, command.spec)
    refused = enqueue.refusals(state, [spec], now)
    lock = lock_of(spec)
    own = lock in state.locks and state.locks[lock].holder == job.number
    if refused and not (own and refused[0] is Refused.NOT_UNIQUE):
        return (), UNKNOWN, ()
    claim, at = command.claim, later(state, now)
    end: AnyEvent
    if command.failed:
        report = FailureReport(claim.via, claim.worker, "", "rescheduled as a failure", counted=False)
        end = failure(state, job, lease, now, report, random, final=True)
    else:
        end = success(job, lease, Succeed(command.jid, claim), at, now)
    number = state.counters.number + 1
    spec = enqueue.resolved(state, spec, number, number)
    event = enqueue.push_event(claim.via, [spec], number, max(at, end.at), now)
    return (end, event), DONE, (*room(state, job), *enqueue.ready_queues([spec], now))
