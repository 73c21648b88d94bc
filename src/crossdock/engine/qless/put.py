"""qless' put: a new job, or one that is known moved on from whatever state, under its number (MODEL section 6)."""

from collections.abc import Iterable
from functools import lru_cache
from math import floor

from msgspec.structs import replace

from crossdock.engine.decision import Decision, later
from crossdock.engine.index import dependents, placement
from crossdock.engine.index.sort_keys import stamped
from crossdock.engine.index.tags import name
from crossdock.engine.job_view import dependencies_of, edges_of, failed_at, group_of, qless_data
from crossdock.engine.jobs.release import ended
from crossdock.engine.qless import history
from crossdock.engine.qless.history import unfailed
from crossdock.engine.records import throttles
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.qless import Put
from crossdock.model.events import Held, Moved, Pushed
from crossdock.model.job import Extra, Form, Job, Links, Number, Spec
from crossdock.model.policies import DependencyLoss, Disposition, LeaseExpiry, Policy, intern
from crossdock.model.protocol_data import HistoryEntry, HistoryKind, QlessData
from crossdock.model.states import BLOCKED, OVER, READY, SCHEDULED, State, move

RETRIES = 5
_TRIES_AT_MOST = 2**53
_PUT = HistoryKind.PUT


@lru_cache(maxsize=256)
def rules(retries: float) -> Policy:
    """qless' row of MODEL section 6."""
    tries = floor(max(-1.0, min(retries, _TRIES_AT_MOST)))
    return intern(
        Policy(
            tries,
            exhausted=Disposition.FAILED,
            success=Disposition.COMPLETE,
            lapse=LeaseExpiry.LAZY,
            lost=DependencyLoss.WAITS_ON,
        )
    )


def newest(memory: EngineState, jid: str) -> Job | None:
    """The live or kept job of that name; the newest, where a door allows several."""
    number = memory.jids.newest(jid)
    return None if number is None else memory.jobs[number]


def open_needs(memory: EngineState, jids: Iterable[str], itself: str = "", number: Number = 0) -> tuple[Number, ...]:
    """Those of these jobs that may still succeed. A job may need itself, and then waits for ever."""
    found: dict[Number, None] = {}
    for jid in jids:
        if jid == itself:
            found[number] = None
            continue
        job = newest(memory, jid)
        if job is not None and job.state is not State.COMPLETE:
            found[job.number] = None
    return tuple(found)


def put(memory: EngineState, command: Put, now: Now) -> Decision[None]:
    job = newest(memory, command.jid)
    if job is None:
        return _put_new(memory, command, now)
    t, at = command.t, later(memory, now)
    delayed = command.delay > 0
    due, due_t = (now.wall + command.delay, t + command.delay) if delayed else (0.0, None)
    needs = open_needs(memory, command.needs, command.jid, job.number)
    before = qless_data(job)
    retries = command.retries if command.retries is not None else RETRIES if before is None else before.retries
    backoff = command.backoff if command.backoff is not None or before is None else before.backoff
    face = QlessData(retries, t, due_t, old=command.old, backoff=backoff)
    if due_t is not None and needs:
        face = replace(face, parked=(due_t, due))
    tags = command.tags
    old = tuple(need for need in edges_of(job) if need in memory.jobs)
    if memory.unresolved:
        old = tuple(need for need in old if not dependents.postponed(memory, need, job.number))
    if command.needs and not command.sticky:
        named = frozenset(command.needs)
        old = tuple(need for need in old if memory.jobs[need].jid in named)
    needs = tuple(dict.fromkeys((*old, *needs)))
    if before is not None:
        parked = (due_t, due) if due_t is not None and needs else before.parked
        face = replace(face, spawned_from=before.spawned_from, parked=parked, sticky=before.sticky)
    if job.extra is not None and job.extra.tags and (command.sticky or face.sticky):
        had = {name(tag) for tag in job.extra.tags}
        others = (tag for tag in face.sticky if name(tag) not in had)
        face = replace(face, sticky=(*others, *dict.fromkeys(job.extra.tags if command.sticky else ())))
    if tags is None:
        tags = job.extra.tags if job.extra is not None else ()
    extra = Extra(face=face, links=Links(needs=needs), tags=tags, throttles=command.throttles)
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
        _spec(command, priority, rules(retries), due, extra),
        bool(holder) and holder != command.worker,
        command.keeps,
        failed_at(job),
        job.state in OVER,
    )
    stirred = {job.queue: None} if job.lease is not None and (memory.throttles or memory.limits) else {}
    if not delayed and not needs:
        full = _held(memory, command, job.number, priority, now, job)
        if full is not None:
            return (move, full), None, tuple(stirred)
        stirred[command.queue] = None
    return (move,), None, tuple(stirred)


def _put_new(memory: EngineState, command: Put, now: Now) -> Decision[None]:
    t, at, wall = command.t, later(memory, now), now.wall
    number = memory.counters.number + 1
    due, due_t = (wall + command.delay, t + command.delay) if command.delay > 0 else (0.0, None)
    needs = open_needs(memory, command.needs, command.jid, number) if command.needs else ()
    retries = RETRIES if command.retries is None else command.retries
    face = QlessData(retries, t, due_t, old=command.old, backoff=command.backoff)
    if due_t is not None and needs:
        face = replace(face, parked=(due_t, due))
    extra = Extra(
        face=face,
        links=Links(needs=needs) if needs else None,
        tags=command.tags or (),
        history=(HistoryEntry(t // 1, _PUT, command.queue),),
        throttles=command.throttles,
    )
    spec = _spec(command, command.priority or 0, rules(retries), due, extra)
    event = Pushed(at, number, command.via, [spec], 0.0 if wall >= at else wall, (), t)
    if due or needs:
        return (event,), None, ()
    full = _held(memory, command, number, spec.priority, now) if command.throttles else None
    return ((event,), None, (command.queue,)) if full is None else ((event, full), None, ())


def _held(
    memory: EngineState, command: Put, number: Number, priority: float, now: Now, job: Job | None = None
) -> Held | None:
    """Of a job that finds a throttle full as soon as it is put."""
    known = ((name, memory.throttles.get(name)) for name in command.throttles)
    full = next((name for name, each in known if each is not None and each.full("", now.steady)), None)
    if full is None:
        return None
    origin, attempts = (command.via, 0) if job is None else (job.origin, job.attempts)
    head = (later(memory, now), number, command.jid, command.queue, command.kind, origin, command.via, "")
    return Held(*head, attempts, priority, len(command.payload), command.t, full)


def _spec(command: Put, priority: float, its_rules: Policy, due: float, extra: Extra) -> Spec:
    form: Form = command.form
    return Spec(command.jid, command.queue, command.kind, command.payload, form, priority, its_rules, due, extra)


def moved(memory: EngineState, event: Moved) -> None:
    job, to, t = memory.jobs[event.number], event.to, event.t
    lines = history.lines(job)
    placement.displace(memory, job)
    if memory.unresolved:
        dependents.leave(memory, job, ())
    before = qless_data(job)
    if job.state is not State.COMPLETE:  # then it names no queue
        memory.strays.out_of(job.number, before.queue if before is not None and before.queue else job.queue)
    if job.lease is not None:
        if memory.throttles:
            throttles.let_go(memory, job, job.lease, keeps=event.keeps)
        job.lease = None
    elif memory.throttles and not event.keeps:
        throttles.let_go(memory, job, None)
    memory.workers.let_go(event.worker, job.jid)
    unfailed(memory, job, to.queue)
    if memory.stale.jobs:
        if job.state is State.FAILED:
            memory.stale.unfailed(job, group_of(job))
        elif job.state is State.COMPLETE:
            memory.stale.undone(job)
    _retag(memory, job, to, t)
    old, new = job.extra or Extra(), to.extra or Extra()
    needs = new.links.needs if new.links is not None else ()
    links = Links(needs=needs) if needs else None
    if old.links is not None:
        links = replace(old.links, needs=needs, ttl_s=0.0)
    its_face = new.face if isinstance(new.face, QlessData) else None
    lines = history.history(memory, lines, history.entry(HistoryKind.PUT, t, to.queue), its_face)
    extra = replace(old, face=new.face, links=links, tags=new.tags, history=lines, result=None)
    job.extra = replace(extra, throttles=new.throttles, stage="")
    if job.end:  # another door's time to live: its new rules know none
        memory.job_ends.take((job.end, job.number))
        job.end = 0.0
    job.kind = memory.share(to.kind)
    job.payload, job.form, job.priority, job.rules = to.payload, to.form, to.priority, intern(to.rules)
    job.failures = 0
    job.due = to.due
    stand(memory, job, to.queue, event.at, t, listed=True)


def _retag(memory: EngineState, job: Job, to: Spec, t: float) -> None:
    """It is found no longer under the tags it had, but for those that are to stay."""
    if job.extra is not None:
        face = to.extra.face if to.extra is not None else None
        stay = {name(tag) for tag in face.sticky} if isinstance(face, QlessData) else ()
        left = [tag for tag in job.extra.tags if name(tag) not in stay]
        memory.tags.drop(job.number, job.jid, left, clean=bool(job.extra.throttles))
    if to.extra is not None:
        for tag in to.extra.tags:
            memory.tags.add(job.number, job.jid, tag, t)


def stand(
    memory: EngineState, job: Job, queue: str, at: float, t: float, *, listed: bool, waits: bool | None = None
) -> None:
    """Place a job that was taken out of wherever it stood: blocked while it needs others, scheduled while it waits for
    a time, else ready by `t`. `waits`: for others, whatever it needs."""
    face = qless_data(job)
    job.queue = (memory.queue(queue, at, t) if listed else memory.standing(queue, at)).name
    timed = bool(job.due) and face is not None and face.due is not None
    if waits is None:
        waits = bool(dependencies_of(job)) and not (timed and face is not None and face.old)
    if waits:
        state = BLOCKED
    elif timed:
        state = SCHEDULED
    else:
        state = READY
    job.state = move(job.state, state)
    job.since = at
    job.place = stamped(job, t) if state is READY else None
    placement.place(memory, job)
