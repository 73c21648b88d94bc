"""What qless adds to the handling of its jobs: its lists, its history and what it shows (`engine.hooks`)."""

from msgspec.structs import replace

from crossdock.engine.decision import later
from crossdock.engine.index import lists, placement
from crossdock.engine.index.sort_keys import stamped
from crossdock.engine.index.sorted_list import entry
from crossdock.engine.job_view import group_of, qless_data
from crossdock.engine.jobs.release import closing, leased_via
from crossdock.engine.jobs.retry_policy import FailureReport, exhausted, put_off
from crossdock.engine.qless import history, settings
from crossdock.engine.qless.tries import UNSAID, lapse_backoff, out_of_retries
from crossdock.engine.records.stats import CURRENTLY_FAILED, FAILURE
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import FollowUp
from crossdock.model.events import AnyEvent, Failed, LeaseExpired, Readied, Removed, Rerouted, Succeeded
from crossdock.model.job import Extra, Job, Lease, Result
from crossdock.model.protocol_data import QlessData
from crossdock.model.states import COMPLETE, FAILED, READY, RETRYING, SCHEDULED, State

_FINAL = frozenset({State.DEAD, State.FAILED})


def indexed(state: EngineState, job: Job, data: QlessData) -> None:
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
    job_state = job.state
    if job_state is SCHEDULED or job_state is RETRYING:
        if data.due is not None:
            state.lazy.wait_no_more(job, data.due)
    elif job_state is FAILED:
        lists.take(state.qless.failed_in, group_of(job), (data.order, job.number))
    elif job_state is COMPLETE:
        state.qless.completed.take((data.time, job.jid, job.number))


def removed(state: EngineState, job: Job, data: QlessData, event: AnyEvent) -> None:
    if type(event) is Removed and not event.unbooked:
        history.unfailed(state, job, job.queue)
    if data.sticky:
        state.tags.lose(job.number, job.jid, data.sticky)
    lists.remove_dependencies(state, job)
    state.qless.stale_listings.forget(job.number)
    state.qless.stray_entries.forget(job.number)


def expired(state: EngineState, job: Job, lease: Lease, via: str, now: Now) -> AnyEvent:
    """Its holder is gone for certain: there is nobody to warn."""
    at = later(state, now)
    if job.failures >= job.policy.max_failures:
        return exhausted(job, lease, at, now, out_of_retries(job, lease, via))
    delay = lapse_backoff(state, job)
    if delay > 0:
        report = FailureReport(via, lease.worker, "", "", lost=True, delay=delay, qless=UNSAID)
        return put_off(job, lease, at, now, report)
    return LeaseExpired(*closing(job, lease, at, via), None, True, True, leased_via=leased_via(lease, via))


def succeeded(state: EngineState, job: Job, event: Succeeded, lease: Lease | None) -> None:
    if event.under:
        history.leave_lock(state, job, lease, event.under)
    elif state.qless.stray_entries.jobs:
        state.qless.stray_entries.out_of(job.number, job.queue)
    t = event.at if event.t is None else event.t
    history.succeeded(state, job, t, Result(True, event.result))
    if event.end:
        state.end_at(job, event.end)
    job.due_steady = event.steady
    placement.insert(state, job)
    if settings.may_retire(state, t):
        state.follow_ups.append(FollowUp(retire=t, own=t == event.at))
    if state.qless.stale_listings.jobs:
        state.qless.stale_listings.undone(job)


def failed(state: EngineState, job: Job, event: Failed, lease: Lease | None) -> None:
    if event.then is FAILED and not event.unbooked:
        day = event.at if event.t is None else event.t
        state.stats.book(event.booked or job.queue, day, FAILURE, 1.0)
        state.stats.book(event.booked or job.queue, day, CURRENTLY_FAILED, 1.0)
    if state.qless.stray_entries.jobs and event.then in _FINAL:
        state.qless.stray_entries.out_of(job.number, job.queue)
    history.failed(state, job, event, lease)
    if event.booked and event.booked != job.queue and event.then not in _FINAL:
        history.elsewhere(job, event.booked)


def readied(state: EngineState, job: Job, data: QlessData, event: Readied) -> None:
    if job.queue not in state.queues:
        state.standing(job.queue, event.at)
    shown = (data.state or "scheduled") if event.unsaid else ""
    if job.extra is not None and (data.due is not None or data.state != shown):
        job.extra = replace(job.extra, protocol_data=replace(data, due=None, state=shown))
    t = event.t
    job.sort_key = stamped(job, 0.0 if event.first else event.at if t is None else t)


def scheduled(state: EngineState, job: Job) -> None:
    """The script keeps the time it was put off to until it is used, whatever was put meanwhile."""
    data = qless_data(job)
    if data is not None and data.parked is not None and job.extra is not None:
        due, job.due = data.parked
        job.extra = replace(job.extra, protocol_data=replace(data, due=due, parked=None))


def buried(state: EngineState, job: Job) -> None:
    data = qless_data(job)
    if data is not None:
        history.write(state, job, replace(data, state="", due=None, parked=None))


def rerouted(state: EngineState, job: Job, event: Rerouted) -> None:
    data = qless_data(job)
    if data is not None:
        state.qless.stray_entries.out_of(job.number, data.queue or job.queue)
        data = replace(data, queue="", due=None, state="") if event.freed else replace(data, queue="")
        job.extra = replace(job.extra or Extra(), protocol_data=data)
