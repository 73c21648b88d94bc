"""What ends a lease and is neither success nor failure: on to another queue, taken back to the front, renewed."""

from msgspec.structs import replace

from crossdock.engine.decision import Decision, later
from crossdock.engine.index import placement
from crossdock.engine.index.sort_keys import front
from crossdock.engine.job_view import edges_of, qless_data
from crossdock.engine.jobs.complete import room
from crossdock.engine.jobs.release import closing, end_lease, leased_via
from crossdock.engine.qless import history
from crossdock.engine.qless.put import RETRIES, open_needs, policy_for, stand
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


def _held(state: EngineState, number: int) -> tuple[Job, Lease]:
    job = state.jobs[number]
    if job.lease is None:
        raise Damaged(f"job {number} is not leased")
    return job, job.lease


def advance(state: EngineState, command: Advance, now: Now) -> Decision[None]:
    job, lease = _held(state, command.number)
    depends_on = open_needs(state, command.depends_on, job.jid, job.number)
    # A delay is for those who name no needs, or have to wait for some: else the script forgets it.
    delayed = command.delay > 0 and (bool(depends_on) or not command.depends_on)
    due, due_t = (now.wall + command.delay, command.t + command.delay) if delayed else (0.0, None)
    at = later(state, now)
    event = Advanced(
        *closing(job, lease, at, command.via, command.t, whole=command.whole),
        command.t,
        command.queue,
        command.payload,
        due,
        due_t,
        depends_on,
        command.under,
        leased_via(lease, command.via),
    )
    woken = dict.fromkeys(room(state, job))
    if not delayed and not depends_on:
        woken[command.queue] = None
    return (event,), None, tuple(woken)


def advanced(state: EngineState, event: Advanced) -> None:
    job, t = state.jobs[event.number], event.t
    state.counters.processed += 1
    state.stats.book(event.under or job.queue, t, RUN, event.run_s)
    if event.under:
        history.leave_lock(state, job, job.lease, event.under)
    elif state.qless.stray_entries.jobs:
        state.qless.stray_entries.out_of(job.number, job.queue)
    lines = history.lines(job)
    end_lease(state, job, READY)
    before = qless_data(job) or _qless_from_now_on(state, job)
    # The script says `scheduled` and leaves the job's own word for it as it was (protocol page, qless 5, complete).
    odd = "waiting" if event.due_t is not None and not event.depends_on else ""
    protocol_data = QlessData(before.retries, t, event.due_t, state=odd, spawned_from=before.spawned_from)
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
    job.extra = replace(extra, protocol_data=protocol_data, history=lines, error=None, stage="")
    job.carry(event.payload)
    job.failures = 0
    job.due = event.due
    stand(state, job, event.to_queue, event.at, t, listed=True, waits=bool(event.depends_on))


def _qless_from_now_on(state: EngineState, job: Job) -> QlessData:
    """Another door's job that is moved on: as with a put its rules are qless', with as many tries as it had. Where the
    end of a lease cost it none, it has as many as a put gives."""
    tries = job.policy.max_failures if job.policy.lease_expiry is LeaseExpiry.FAILURE else RETRIES
    job.policy = policy_for(tries)
    if job.extra is not None and job.extra.links is not None:
        job.extra = replace(job.extra, links=replace(job.extra.links, ttl_s=0.0))
    if job.end:  # another door's time to live: its new rules know none
        state.job_ends.take((job.end, job.number))
        job.end = 0.0
    return QlessData(job.policy.max_failures)


def take_back(state: EngineState, command: TakeBack, now: Now) -> Decision[None]:
    at = later(state, now)
    held = [_held(state, number) for number in dict.fromkeys(command.numbers)]
    via, t, rid = command.via, command.t, command.rid
    events = [Stalled(*closing(job, lease, at, via, t), t, rid, leased_via(lease, via)) for job, lease in held]
    return events, None, tuple({job.queue: None for job, _ in held})


def stalled(state: EngineState, event: Stalled) -> None:
    job, lease = _held(state, event.number)
    listed = state.workers.has(lease.worker, job.jid)
    end_lease(state, job, READY)
    if listed and lease.until is not None:
        state.workers.give(lease.worker, job.jid, lease.until)
    protocol_data = qless_data(job)
    if protocol_data is not None:
        shown = replace(protocol_data, state="stalled", worker="" if event.rid else lease.worker, expires=0.0)
        history.write(state, job, shown, job_history.entry(HistoryKind.TIMED_OUT, event.t))
    job.since = event.at
    job.sort_key = front(job)
    state.stand_in(job, event.at)
    placement.insert(state, job)


def renew(state: EngineState, command: Renew, now: Now) -> Decision[None]:
    job, lease = _held(state, command.number)
    at, end = later(state, now), now.steady + command.term
    # One that another door gave stays by the server's clock: no caller's time may end it.
    until = None if lease.until is None else command.t + command.term
    lazy = job.policy.lease_expiry is LeaseExpiry.LAZY
    event = Renewed(at, job.number, lease.token, float("inf") if lazy else end, command.t)
    event.until, event.late, event.payload = until, end if lazy else None, command.payload
    return (event,) if command.unseen else (WorkerSeen(at, lease.worker, command.t), event), None, ()
