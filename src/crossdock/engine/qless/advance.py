"""Decides and applies three changes of a leased job that are neither success nor failure: `complete` with a next queue,
`timeout` (back to the front of its queue) and `heartbeat` (qless.md section 5)."""

from msgspec.structs import replace

from crossdock.engine.decision import Decision, FollowUps, later
from crossdock.engine.index import placement
from crossdock.engine.index.sort_keys import front
from crossdock.engine.job_view import edges_of, pushed_at, qless_data
from crossdock.engine.jobs.complete import room
from crossdock.engine.jobs.release import closing, end_lease, leased_via
from crossdock.engine.qless import history
from crossdock.engine.qless.put import RETRIES, insert_into_queue, open_needs, policy_for
from crossdock.engine.records import job_history
from crossdock.engine.records.stats import RUN
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.qless import Advance, Renew, TakeBack
from crossdock.model.errors import Damaged
from crossdock.model.events import Advanced, Renewed, Stalled, WorkerSeen
from crossdock.model.job import Extra, Job, Lease, Links
from crossdock.model.policies import LeaseExpiry
from crossdock.model.protocol_data import HistoryKind, QlessData
from crossdock.model.states import READY


def _leased_job(state: EngineState, number: int) -> tuple[Job, Lease]:
    job = state.jobs[number]
    if job.lease is None:
        raise Damaged(f"job {number} is not leased")
    return job, job.lease


def advance(state: EngineState, command: Advance, now: Now) -> Decision[None]:
    job, lease = _leased_job(state, command.number)
    depends_on = open_needs(state, command.depends_on, job.jid, job.number)
    # As in the script, a delay is ignored if the command names dependencies and all of them are met.
    delayed = command.delay > 0 and (bool(depends_on) or not command.depends_on)
    due, due_t = (now.wall + command.delay, command.t + command.delay) if delayed else (0.0, None)
    at = later(state, now)
    event = Advanced(
        *closing(job, lease, at, command.via, command.t, command.qless),
        command.t,
        command.queue,
        command.payload,
        due,
        due_t,
        depends_on,
        command.qless.booked_queue if command.qless is not None else "",
        leased_via(lease, command.via),
        pushed_at(job),
    )
    woken = dict.fromkeys(room(state, job))
    if not delayed and not depends_on:
        woken[command.queue] = None
    return (event,), None, tuple(woken)


def advanced(state: EngineState, follow_ups: FollowUps, event: Advanced) -> None:
    job, t = state.jobs[event.number], event.t
    state.counters.processed += 1
    state.stats.book(event.booked_queue or job.queue, t, RUN, event.run_s)
    if event.booked_queue:
        history.leave_lock(state, job, job.lease, event.booked_queue)
    elif state.qless.stray_entries.jobs:
        state.qless.stray_entries.out_of(job.number, job.queue)
    lines = history.lines(job)
    end_lease(state, follow_ups, job, READY)
    before = qless_data(job) or _convert_to_qless(state, job)
    # The script replies `scheduled` and leaves the state field at `waiting` (qless.md section 5, complete).
    shown_state = "waiting" if event.due_t is not None and not event.depends_on else ""
    protocol_data = QlessData(before.retries, t, event.due_t, state=shown_state, spawned_from=before.spawned_from)
    protocol_data = replace(
        protocol_data, old=before.old, sticky=before.sticky, parked=before.parked, backoff=before.backoff
    )
    if event.depends_on and event.due_t is not None:
        protocol_data = replace(protocol_data, parked=(event.due_t, event.due))
    extra = job.extra or Extra()
    if event.depends_on or extra.links is not None:
        depends_on = tuple(dict.fromkeys((*edges_of(job), *event.depends_on)))
        extra = replace(extra, links=replace(extra.links or Links(), depends_on=depends_on))
    lines = job_history.add(state, lines, job_history.entry(HistoryKind.DONE, t), protocol_data)
    lines = job_history.add(state, lines, job_history.entry(HistoryKind.PUT, t, event.to_queue), protocol_data)
    job.extra = replace(extra, protocol_data=protocol_data, history=lines, error=None, resqu_batch="")
    job.carry(event.payload)
    job.failures = 0
    job.due = event.due
    insert_into_queue(state, job, event.to_queue, event.at, t, listed=True, waits=bool(event.depends_on))


def _convert_to_qless(state: EngineState, job: Job) -> QlessData:
    """Gives a job of another protocol the qless policy, as a put does. It keeps its number of tries if an expired lease
    counts as a failure under its own policy; otherwise it gets the default of a put."""
    tries = job.policy.max_failures if job.policy.lease_expiry is LeaseExpiry.FAILURE else RETRIES
    job.policy = policy_for(tries)
    if job.extra is not None and job.extra.links is not None:
        job.extra = replace(job.extra, links=replace(job.extra.links, ttl_s=0.0))
    if job.end:  # a qless job has no time to live
        state.job_ends.take((job.end, job.number))
        job.end = 0.0
    return QlessData(job.policy.max_failures)


def take_back(state: EngineState, command: TakeBack, now: Now) -> Decision[None]:
    at = later(state, now)
    leased = [_leased_job(state, number) for number in dict.fromkeys(command.numbers)]
    via, t, rid = command.via, command.t, command.rid
    events = [
        Stalled(*closing(job, lease, at, via, t), t, rid, leased_via(lease, via), pushed_at(job))
        for job, lease in leased
    ]
    return events, None, tuple({job.queue: None for job, _ in leased})


def stalled(state: EngineState, follow_ups: FollowUps, event: Stalled) -> None:
    job, lease = _leased_job(state, event.number)
    listed = state.workers.has(lease.worker, job.jid)
    end_lease(state, follow_ups, job, READY)
    if listed and lease.until is not None:
        state.workers.add_lease(lease.worker, job.jid, lease.until)
    protocol_data = qless_data(job)
    if protocol_data is not None:
        shown = replace(protocol_data, state="stalled", worker="" if event.rid else lease.worker, expires=0.0)
        history.write(state, job, shown, job_history.entry(HistoryKind.TIMED_OUT, event.t))
    job.since = event.at
    job.sort_key = front(job)
    state.return_queue(job, event.at)
    placement.insert(state, job)


def renew(state: EngineState, command: Renew, now: Now) -> Decision[None]:
    job, lease = _leased_job(state, command.number)
    at, end = later(state, now), now.steady + command.term
    # A lease from another protocol has no expiry by callers' clocks, so that a wrong client clock cannot end it.
    until = None if lease.until is None else command.t + command.term
    lazy = job.policy.lease_expiry is LeaseExpiry.LAZY
    event = Renewed(at, job.number, lease.token, float("inf") if lazy else end, command.t)
    event.until, event.late, event.payload = until, end if lazy else None, command.payload
    return (event,) if command.unseen else (WorkerSeen(at, lease.worker, command.t), event), None, ()
