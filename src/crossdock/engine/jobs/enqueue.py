"""Enqueueing new jobs."""

from collections.abc import Collection, Sequence
from math import isinf

from msgspec.structs import replace

from crossdock.engine.decision import Decision, FollowUps, later
from crossdock.engine.index import placement
from crossdock.engine.index.sort_keys import due_sort_key, tie
from crossdock.engine.records import links
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Enqueue, Refused
from crossdock.model.events import Pushed
from crossdock.model.job import BAND_NORMAL, Job, Number, SortKey, Spec
from crossdock.model.policies import DependencyLoss, intern
from crossdock.model.states import BLOCKED, COMPLETE, OVER, READY, SCHEDULED


def enqueue(state: EngineState, command: Enqueue, now: Now) -> Decision[Sequence[Refused | None]]:
    specs = command.specs
    if command.unless_live:
        return enqueue_linked(state, command, now)
    for spec in specs:
        if spec.extra is not None and spec.extra.links is not None:
            return enqueue_linked(state, command, now)
    if not specs:
        return (), (), ()
    counters = state.counters
    wall = now.wall
    if wall >= counters.at:
        event = Pushed(wall, counters.number + 1, command.via, specs)
    else:
        event = Pushed(counters.at, counters.number + 1, command.via, specs, wall)
    if len(specs) == 1:
        return (event,), (), (spec.queue,) if spec.due <= wall else ()
    return (event,), (), tuple({spec.queue: None for spec in specs if spec.due <= wall})


def pushed(state: EngineState, follow_ups: FollowUps, event: Pushed) -> None:
    at = event.at
    number = event.number
    via = event.via
    origin = state.names.get(via) or state.share(via)
    for spec in event.specs:
        enter(state, follow_ups, spec, number, at, origin, event.wall or at, event.t)
        number += 1
    state.counters.number = number - 1
    if event.once is not None:
        state.once.remember([spec.jid for spec in event.specs], event.once)
    if event.ends:
        for behind, end in enumerate(event.ends):
            if end:
                state.end_at(state.jobs[event.number + behind], end)


def enter(
    state: EngineState,
    follow_ups: FollowUps,
    spec: Spec,
    number: Number,
    at: float,
    origin: str,
    wall: float,
    t: float | None = None,
    *,
    listed: bool = True,
    tagged: float | None = None,
) -> None:
    """Create a job from a spec, for a push, a callback or a schedule. It is ready if it is due at `wall`.

    `t` is the caller's time. `tagged` is the time of its tags, if it is another.
    """
    queue = state.queues.get(spec.queue)
    if queue is None or (listed and not queue.listed):
        queue = state.queue(spec.queue, at, t) if listed else state.unlisted_queue(spec.queue, at)
    sort_key: SortKey | None = None
    extra, due, priority = spec.extra, spec.due, spec.priority
    if extra is not None and extra.links is not None and extra.links.depends_on:
        job_state = BLOCKED
    elif due <= wall:
        job_state = READY
        if due:
            sort_key = due_sort_key(priority, spec.policy, due, at, number)
        elif t is None:
            sort_key = (-priority, BAND_NORMAL, at, b"", number)
        else:
            sort_key = (-priority, BAND_NORMAL, 0.0 if isinf(priority) else t, tie(spec.jid), number)
        queue.ready.add(sort_key)  # as `placement.insert` does it; measured to be worth the shortcut
    else:
        job_state = SCHEDULED
    job = Job(  # positional: keywords cost a measured part of this path
        number,
        spec.jid,
        queue.name,
        state.names.get(spec.kind) or state.share(spec.kind),
        origin,
        spec.payload,
        spec.form,
        priority,
        intern(spec.policy),
        job_state,
        at,
        at,
        due,
        sort_key,
        0,
        spec.failures,
        None,
        extra,
    )
    state.add_job(job)
    if sort_key is None:
        placement.insert(state, job)
    if extra is not None:
        if extra.links is not None:
            links.entered(state, follow_ups, job, extra.links, at)
        for tag in extra.tags:
            state.tags.add(number, job.jid, tag, tagged if tagged is not None else at if t is None else t)


# Jobs with links: a lock, a batch, dependencies, a time to live, or a jid that must be unique.


def enqueue_linked(state: EngineState, command: Enqueue, now: Now) -> Decision[Sequence[Refused | None]]:
    specs = command.specs
    refused = refusals(state, specs, now, unless_live=command.unless_live)
    if refused:
        specs = [spec for spec, why in zip(specs, refused, strict=True) if why is None]
    if not specs:
        return (), refused, ()
    first = state.counters.number + 1
    specs = [resolved(state, spec, first + behind, first) for behind, spec in enumerate(specs)]
    return (push_event(command.via, specs, first, later(state, now), now),), refused, ready_queues(specs, now)


def refusals(
    state: EngineState, specs: Sequence[Spec], now: Now, *, unless_live: bool = False
) -> Sequence[Refused | None]:
    """Why each spec is refused, empty if none is. Of two jobs of one push with the same lock or jid, the first is
    accepted.
    """
    found: list[Refused | None] = []
    locks: set[str] = set()
    names: set[str] = set()
    for spec in specs:
        why: Refused | None = None
        wanted = spec.extra.links if spec.extra is not None else None
        lock = wanted.lock if wanted is not None else None
        if unless_live and (spec.jid in state.jids or spec.jid in names):
            why = Refused.DUPLICATE
        elif wanted is not None and wanted.batch and wanted.batch not in state.batches:
            why = Refused.NO_BATCH
        elif lock is not None and (lock.name in locks or _is_held(state, lock.name, now)):
            why = Refused.NOT_UNIQUE
        if why is None:
            if lock is not None:
                locks.add(lock.name)
            if unless_live:
                names.add(spec.jid)
        found.append(why)
    return found if any(found) else ()


def _is_held(state: EngineState, name: str, now: Now) -> bool:
    """Whether a job that runs or will run holds the lock. A holder that has expired loses it."""
    held = state.locks.get(name)
    if held is None or held.end <= now.steady:
        return False
    if not held.holder:
        return True  # a connection is about to push the job that will hold it
    holder = state.jobs[held.holder]
    return holder.lease is not None or not links.expired(state, holder, now)


def resolved(state: EngineState, spec: Spec, number: Number, first: Number, settled: Collection[Number] = ()) -> Spec:
    """The spec with its dependencies as numbers of jobs that can still succeed. Other dependencies are dropped.

    Jobs from `first` on are pushed together with it. Those in `settled` will have succeeded by then.
    """
    extra = spec.extra
    if extra is None or extra.links is None or not extra.links.depends_on:
        return spec
    waits = spec.policy.lost is DependencyLoss.WAITS_ON
    wanted = dict.fromkeys(
        number + dependency if dependency < 0 else dependency for dependency in extra.links.depends_on
    )
    depends_on = tuple(
        dependency
        for dependency in wanted
        if first <= dependency < number or (dependency not in settled and _can_succeed(state, dependency, waits=waits))
    )
    return replace(spec, extra=replace(extra, links=replace(extra.links, depends_on=depends_on)))


def _can_succeed(state: EngineState, number: Number, *, waits: bool = False) -> bool:
    """`waits`: the dependent waits while a failed job is kept, because that may be retried."""
    job = state.jobs.get(number)
    if job is None or (job.extra is not None and job.extra.spent):
        return False
    return job.state not in OVER or (waits and job.state is not COMPLETE)


def push_event(via: str, specs: list[Spec], first: Number, at: float, now: Now) -> Pushed:
    ends = [_end(spec, now) for spec in specs]
    return Pushed(at, first, via, specs, 0.0 if now.wall >= at else now.wall, tuple(ends) if any(ends) else ())


def _end(spec: Spec, now: Now) -> float:
    """Steady: when its time to live ends. The time of a job that is not due does not run."""
    linked = spec.extra.links if spec.extra is not None else None
    if linked is None or not linked.ttl_s or spec.due > now.wall:
        return 0.0
    return now.steady + linked.ttl_s - (now.wall - spec.due if spec.due else 0.0)


def ready_queues(specs: Sequence[Spec], now: Now) -> tuple[str, ...]:
    """The queues in which one of these jobs is ready."""
    return tuple({spec.queue: None for spec in specs if spec.due <= now.wall and not _blocked(spec)})


def _blocked(spec: Spec) -> bool:
    return spec.extra is not None and spec.extra.links is not None and bool(spec.extra.links.depends_on)
