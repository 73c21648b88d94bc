"""qless's put: creates a job, or moves a known one to a queue from any state under its old number (model.md section 6,
qless.md section 5)."""

from collections.abc import Iterable
from functools import lru_cache
from math import floor

from msgspec.structs import replace

from crossdock.engine.decision import Decision, FollowUps, later
from crossdock.engine.index import dependents, placement
from crossdock.engine.index.sort_keys import stamped
from crossdock.engine.index.tags import name
from crossdock.engine.job_view import dependencies_of, edges_of, failed_at, group_of, pushed_at, qless_data
from crossdock.engine.jobs.release import ended
from crossdock.engine.qless import history
from crossdock.engine.qless.history import unfailed
from crossdock.engine.queries.jobs import newest_job
from crossdock.engine.records import job_history, throttles
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.qless import Put
from crossdock.model.events import Held, Moved, Pushed
from crossdock.model.job import Extra, Form, Job, Links, Number, Spec
from crossdock.model.policies import DependencyLoss, Disposition, LeaseExpiry, Policy, intern
from crossdock.model.protocol_data import HistoryEntry, HistoryKind, QlessData
from crossdock.model.states import BLOCKED, OVER, READY, SCHEDULED, State, move

RETRIES = 5
_MAX_TRIES = 2**53
_PUT = HistoryKind.PUT


@lru_cache(maxsize=256)
def policy_for(retries: float) -> Policy:
    """The policy of a qless job (model.md section 6)."""
    tries = floor(max(-1.0, min(retries, _MAX_TRIES)))
    return intern(
        Policy(
            tries,
            exhausted=Disposition.FAILED,
            success=Disposition.COMPLETE,
            lease_expiry=LeaseExpiry.LAZY,
            lost=DependencyLoss.WAITS_ON,
        )
    )


def open_needs(state: EngineState, jids: Iterable[str], itself: str = "", number: Number = 0) -> tuple[Number, ...]:
    """The numbers of the named jobs that exist and are not complete. A job may depend on itself and then waits for
    ever, as with the scripts."""
    found: dict[Number, None] = {}
    for jid in jids:
        if jid == itself:
            found[number] = None
            continue
        job = newest_job(state, jid)
        if job is not None and job.state is not State.COMPLETE:
            found[job.number] = None
    return tuple(found)


def put(state: EngineState, command: Put, now: Now) -> Decision[None]:
    job = newest_job(state, command.jid)
    if job is None:
        return _put_new(state, command, now)
    t, at = command.t, later(state, now)
    delayed = command.delay > 0
    due, due_t = (now.wall + command.delay, t + command.delay) if delayed else (0.0, None)
    depends_on = open_needs(state, command.depends_on, command.jid, job.number)
    before = qless_data(job)
    retries = command.retries if command.retries is not None else RETRIES if before is None else before.retries
    backoff = command.backoff if command.backoff is not None or before is None else before.backoff
    protocol_data = QlessData(retries, t, due_t, old=command.old, backoff=backoff)
    if due_t is not None and depends_on:
        protocol_data = replace(protocol_data, parked=(due_t, due))
    tags = command.tags
    old = tuple(dependency for dependency in edges_of(job) if dependency in state.jobs)
    if state.unresolved:
        old = tuple(dependency for dependency in old if not dependents.postponed(state, dependency, job.number))
    if command.depends_on and not command.sticky:
        named = frozenset(command.depends_on)
        old = tuple(dependency for dependency in old if state.jobs[dependency].jid in named)
    depends_on = tuple(dict.fromkeys((*old, *depends_on)))
    if before is not None:
        parked = (due_t, due) if due_t is not None and depends_on else before.parked
        protocol_data = replace(protocol_data, spawned_from=before.spawned_from, parked=parked, sticky=before.sticky)
    if job.extra is not None and job.extra.tags and (command.sticky or protocol_data.sticky):
        had = {name(tag) for tag in job.extra.tags}
        others = (tag for tag in protocol_data.sticky if name(tag) not in had)
        protocol_data = replace(
            protocol_data, sticky=(*others, *dict.fromkeys(job.extra.tags if command.sticky else ()))
        )
    if tags is None:
        tags = job.extra.tags if job.extra is not None else ()
    extra = Extra(
        protocol_data=protocol_data, links=Links(depends_on=depends_on), tags=tags, throttles=command.throttles
    )
    priority = job.priority if command.priority is None else command.priority
    holder = job.lease.worker if job.lease is not None else before.worker if before is not None else ""
    head = (job.number, job.jid, job.queue, job.kind, job.origin, command.via, holder)
    move = Moved(
        at,
        *head,
        job.attempts,
        job.priority,
        len(job.payload),
        None if job.lease is None else ended(job.lease, at),
        t,
        _spec(command, priority, policy_for(retries), due, extra),
        bool(holder) and holder != command.worker,
        command.keeps,
        failed_at(job),
        job.state in OVER,
        pushed_at(job),
    )
    woken = {job.queue: None} if job.lease is not None and (state.throttles or state.limits) else {}
    if not delayed and not depends_on:
        full = _held(state, command, job.number, priority, now, job)
        if full is not None:
            return (move, full), None, tuple(woken)
        woken[command.queue] = None
    return (move,), None, tuple(woken)


def _put_new(state: EngineState, command: Put, now: Now) -> Decision[None]:
    t, at, wall = command.t, later(state, now), now.wall
    number = state.counters.number + 1
    due, due_t = (wall + command.delay, t + command.delay) if command.delay > 0 else (0.0, None)
    depends_on = open_needs(state, command.depends_on, command.jid, number) if command.depends_on else ()
    retries = RETRIES if command.retries is None else command.retries
    protocol_data = QlessData(retries, t, due_t, old=command.old, backoff=command.backoff)
    if due_t is not None and depends_on:
        protocol_data = replace(protocol_data, parked=(due_t, due))
    extra = Extra(
        protocol_data=protocol_data,
        links=Links(depends_on=depends_on) if depends_on else None,
        tags=command.tags or (),
        history=(HistoryEntry(t // 1, _PUT, command.queue),),
        throttles=command.throttles,
    )
    spec = _spec(command, command.priority or 0, policy_for(retries), due, extra)
    event = Pushed(at, number, command.via, [spec], 0.0 if wall >= at else wall, (), t)
    if due or depends_on:
        return (event,), None, ()
    full = _held(state, command, number, spec.priority, now) if command.throttles else None
    return ((event,), None, (command.queue,)) if full is None else ((event, full), None, ())


def _held(
    state: EngineState, command: Put, number: Number, priority: float, now: Now, job: Job | None = None
) -> Held | None:
    """The event that holds a job whose throttle is full when it is put; None if none is full."""
    known = ((name, state.throttles.get(name)) for name in command.throttles)
    full = next((name for name, throttle in known if throttle is not None and throttle.full("", now.steady)), None)
    if full is None:
        return None
    origin, attempts = (command.via, 0) if job is None else (job.origin, job.attempts)
    head = (later(state, now), number, command.jid, command.queue, command.kind, origin, command.via, "")
    return Held(*head, attempts, priority, len(command.payload), command.t, full)


def _spec(command: Put, priority: float, policy: Policy, due: float, extra: Extra) -> Spec:
    form: Form = command.form  # positional for speed: a hot path
    return Spec(command.jid, command.queue, command.kind, command.payload, form, priority, policy, due, extra)


def moved(state: EngineState, follow_ups: FollowUps, event: Moved) -> None:
    job, to, t = state.jobs[event.number], event.to, event.t
    lines = history.lines(job)
    placement.remove(state, job)
    if state.unresolved:
        dependents.leave(state, job, ())
    before = qless_data(job)
    if job.state is not State.COMPLETE:  # a complete job has no queue to the scripts
        state.qless.stray_entries.out_of(job.number, before.queue if before is not None and before.queue else job.queue)
    if job.lease is not None:
        if state.throttles:
            throttles.let_go(state, follow_ups, job, job.lease, keeps=event.keeps)
        job.lease = None
    elif state.throttles and not event.keeps:
        throttles.let_go(state, follow_ups, job, None)
    state.workers.remove_lease(event.worker, job.jid)
    unfailed(state, job, to.queue)
    if state.qless.stale_listings.jobs:
        if job.state is State.FAILED:
            state.qless.stale_listings.unfailed(job, group_of(job))
        elif job.state is State.COMPLETE:
            state.qless.stale_listings.undone(job)
    _retag(state, job, to, t)
    old, new = job.extra or Extra(), to.extra or Extra()
    depends_on = new.links.depends_on if new.links is not None else ()
    links = Links(depends_on=depends_on) if depends_on else None
    if old.links is not None:
        links = replace(old.links, depends_on=depends_on, ttl_s=0.0)
    data = new.protocol_data if isinstance(new.protocol_data, QlessData) else None
    lines = job_history.add(state, lines, job_history.entry(HistoryKind.PUT, t, to.queue), data)
    extra = replace(old, protocol_data=new.protocol_data, links=links, tags=new.tags, history=lines, result=None)
    began = event.at if event.over else old.pushed_at
    job.extra = replace(extra, throttles=new.throttles, resqu_batch="", pushed_at=began, held_by="")
    if job.end:  # a qless job has no time to live
        state.job_ends.take((job.end, job.number))
        job.end = 0.0
    job.kind = state.share(to.kind)
    job.payload, job.form, job.priority, job.policy = to.payload, to.form, to.priority, intern(to.policy)
    job.failures = 0
    job.due = to.due
    insert_into_queue(state, job, to.queue, event.at, t, listed=True)


def _retag(state: EngineState, job: Job, to: Spec, t: float) -> None:
    """Replaces the job's tags in the tag index, except for old tags that still lead to it (`QlessData.sticky`)."""
    if job.extra is not None:
        protocol_data = to.extra.protocol_data if to.extra is not None else None
        sticky = {name(tag) for tag in protocol_data.sticky} if isinstance(protocol_data, QlessData) else ()
        dropped = [tag for tag in job.extra.tags if name(tag) not in sticky]
        state.tags.drop(job.number, job.jid, dropped, clean=bool(job.extra.throttles))
    if to.extra is not None:
        for tag in to.extra.tags:
            state.tags.add(job.number, job.jid, tag, t)


def insert_into_queue(
    state: EngineState, job: Job, queue: str, at: float, t: float, *, listed: bool, waits: bool | None = None
) -> None:
    """Inserts a job that was removed from its indexes into a queue: blocked by dependencies, scheduled, or ready with
    `t` in its sort key. `waits` overrides whether it is blocked. `listed` registers the queue if it is new."""
    protocol_data = qless_data(job)
    job.queue = (state.queue(queue, at, t) if listed else state.unlisted_queue(queue, at)).name
    timed = bool(job.due) and protocol_data is not None and protocol_data.due is not None
    if waits is None:
        waits = bool(dependencies_of(job)) and not (timed and protocol_data is not None and protocol_data.old)
    if waits:
        job_state = BLOCKED
    elif timed:
        job_state = SCHEDULED
    else:
        job_state = READY
    job.state = move(job.state, job_state)
    job.since = at
    job.sort_key = stamped(job, t) if job_state is READY else None
    placement.insert(state, job)
