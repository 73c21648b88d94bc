"""qless's hooks (`engine.hooks`): they keep its lists, its history and its display fields up to date when an event is
applied to a qless job, and decide what the expiry of its lease means."""

from msgspec.structs import replace

from crossdock.engine.decision import FollowUps, later
from crossdock.engine.index import lists, placement
from crossdock.engine.index.sort_keys import stamped
from crossdock.engine.index.sorted_list import entry
from crossdock.engine.job_view import group_of, pushed_at, qless_data
from crossdock.engine.jobs.release import closing, leased_via
from crossdock.engine.jobs.retry_policy import FailureReport, exhausted, put_off
from crossdock.engine.qless import history, settings
from crossdock.engine.qless.catch_up import UNRECORDED, expiry_backoff, retries_exhausted
from crossdock.engine.records.stats import CURRENTLY_FAILED, FAILURE
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import FollowUp
from crossdock.model.events import AnyEvent, Failed, LeaseExpired, Readied, Removed, Rerouted, Succeeded
from crossdock.model.job import Extra, Job, Lease, Result
from crossdock.model.protocol_data import QlessData, QlessDialect
from crossdock.model.states import COMPLETE, FAILED, READY, RETRYING, SCHEDULED, State

_FINAL = frozenset({State.DEAD, State.FAILED})


def indexed(state: EngineState, job: Job, data: QlessData) -> None:
    """Adds a job to the qless list of its state."""
    job_state = job.state
    if job_state is READY:
        if state.qless.stray_entries.jobs:
            state.qless.stray_entries.ready(job.number, job.queue)
    elif job_state is COMPLETE:
        state.qless.completed.add((data.time, job.jid, job.number))
    elif job_state is SCHEDULED or job_state is RETRYING:
        if data.due is not None:
            state.lazy.wait(job, data.due)
    elif job_state is FAILED:
        entry(state.qless.failed_in, group_of(job)).add((data.order, job.number))


def unindexed(state: EngineState, job: Job, data: QlessData) -> None:
    """Removes a job from the qless list of its state."""
    job_state = job.state
    if job_state is SCHEDULED or job_state is RETRYING:
        if data.due is not None:
            state.lazy.wait_no_more(job, data.due)
    elif job_state is FAILED:
        lists.take(state.qless.failed_in, group_of(job), (data.order, job.number))
    elif job_state is COMPLETE:
        state.qless.completed.take((data.time, job.jid, job.number))


def removed(state: EngineState, job: Job, data: QlessData, event: AnyEvent) -> None:
    """Forgets what the qless state holds about a removed job."""
    if type(event) is Removed and (event.qless is None or not event.qless.uncounted):
        history.unfailed(state, job, job.queue)
    if data.sticky:
        state.tags.lose(job.number, job.jid, data.sticky)
    lists.remove_dependencies(state, job)
    state.qless.stale_listings.forget(job.number)
    state.qless.stray_entries.forget(job.number)


def expired(state: EngineState, job: Job, lease: Lease, via: str, now: Now) -> AnyEvent:
    """Ends the lease of a worker that is known to be gone. There is no grace period, because no worker is left to
    renew the lease."""
    at = later(state, now)
    if job.failures >= job.policy.max_failures:
        return exhausted(job, lease, at, now, retries_exhausted(job, lease, via))
    delay = expiry_backoff(state, job)
    if delay > 0:
        report = FailureReport(via, lease.worker, "", "", lost=True, delay=delay, qless=UNRECORDED)
        return put_off(job, lease, at, now, report)
    close = closing(job, lease, at, via)
    return LeaseExpired(*close, None, True, True, leased_via=leased_via(lease, via), pushed_at=pushed_at(job))


def succeeded(state: EngineState, follow_ups: FollowUps, job: Job, event: Succeeded, lease: Lease | None) -> None:
    if event.qless is not None and event.qless.booked_queue:
        history.leave_lock(state, job, lease, event.qless.booked_queue)
    elif state.qless.stray_entries.jobs:
        state.qless.stray_entries.out_of(job.number, job.queue)
    t = event.at if event.t is None else event.t
    history.succeeded(state, job, t, Result(True, event.result))
    if event.end:
        state.end_at(job, event.end)
    job.due_steady = event.steady
    placement.insert(state, job)
    if settings.may_retire(state, t):
        follow_ups.append(FollowUp(retire=t, own=t == event.at))
    if state.qless.stale_listings.jobs:
        state.qless.stale_listings.undone(job)


def failed(state: EngineState, job: Job, event: Failed, lease: Lease | None) -> None:
    dialect = event.qless or QlessDialect()
    if event.then is FAILED and not dialect.uncounted:
        day = event.at if event.t is None else event.t
        state.stats.book(dialect.booked_queue or job.queue, day, FAILURE, 1.0)
        state.stats.book(dialect.booked_queue or job.queue, day, CURRENTLY_FAILED, 1.0)
    if state.qless.stray_entries.jobs and event.then in _FINAL:
        state.qless.stray_entries.out_of(job.number, job.queue)
    history.failed(state, job, event, lease)
    if dialect.booked_queue and dialect.booked_queue != job.queue and event.then not in _FINAL:
        history.move_keeping_shown_queue(job, dialect.booked_queue)


def readied(state: EngineState, job: Job, data: QlessData, event: Readied) -> None:
    """Clears the due time of a job that becomes ready. The pop of the per-script dialect leaves the displayed state as
    it was."""
    if job.queue not in state.queues:
        state.unlisted_queue(job.queue, event.at)
    shown = (data.state or "scheduled") if event.qless is not None and event.qless.still_scheduled else ""
    if job.extra is not None and (data.due is not None or data.state != shown):
        job.extra = replace(job.extra, protocol_data=replace(data, due=None, state=shown))
    t = event.t
    job.sort_key = stamped(job, 0.0 if event.first else event.at if t is None else t)


def scheduled(state: EngineState, job: Job) -> None:
    """Schedules a job whose dependencies are met for the due time stored with it. The scripts keep that time until it
    is used, even if the job is put again in the meantime."""
    data = qless_data(job)
    if data is not None and data.parked is not None and job.extra is not None:
        due, job.due = data.parked
        job.extra = replace(job.extra, protocol_data=replace(data, due=due, parked=None))


def buried(state: EngineState, job: Job) -> None:
    """Clears the displayed state and the due times of a job that becomes dead."""
    data = qless_data(job)
    if data is not None:
        history.write(state, job, replace(data, state="", due=None, parked=None))


def rerouted(state: EngineState, job: Job, event: Rerouted) -> None:
    """Shows a job that was moved in its new queue, and drops its stray entries in the old one."""
    data = qless_data(job)
    if data is not None:
        state.qless.stray_entries.out_of(job.number, data.queue or job.queue)
        data = replace(data, queue="", due=None, state="") if event.freed else replace(data, queue="")
        job.extra = replace(job.extra or Extra(), protocol_data=data)
