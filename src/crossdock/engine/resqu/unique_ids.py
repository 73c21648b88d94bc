"""Unique ids (resqu.md section 6): decides and applies their reservation and release, deferred jobs, and the outcome
that a worker reports through them.

A lock in `EngineState.locks` has the number of its holder, or 0 while a connection has it reserved. The child process
of a Resqu worker reports the outcome of a job only by what it does to the keys of the job's unique id; the functions
here translate that.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from crossdock.engine.decision import Decision, FollowUps, later
from crossdock.engine.jobs.complete import room, success
from crossdock.engine.jobs.enqueue import push_event
from crossdock.engine.records import links
from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState, Lock
from crossdock.model.clock import Now
from crossdock.model.commands import resqu as c
from crossdock.model.commands.core import Claim, Succeed
from crossdock.model.commands.resqu import Buffer
from crossdock.model.events import AnyEvent, Started
from crossdock.model.events import resqu as e
from crossdock.model.job import Job, Lease, Number, ResquData, Spec

_FOR_EVER = float("inf")


def resqu_data(spec: Spec | Job) -> ResquData | None:
    protocol_data = spec.extra.protocol_data if spec.extra is not None else None
    return protocol_data if type(protocol_data) is ResquData else None


def routed(state: EngineState, spec: Spec) -> Spec:
    """The job in the queue of its pool."""
    queue = state.resqu.queue_of(spec)
    return spec if queue == spec.queue else replace(spec, queue=queue)


def buffered(state: EngineState, number: Number) -> tuple[str, Buffer, Job, Lease] | None:
    """The buffer that a job is leased into (its key and content), the job and the lease; None if there is none."""
    job, key = state.jobs.get(number), state.resqu.in_buffer.get(number)
    if job is None or job.lease is None or key is None:
        return None
    buffer = state.resqu.buffers[key]
    return (key, buffer, job, job.lease) if buffer.held == (number, job.lease.token) else None


def reserve(state: EngineState, command: c.Reserve, now: Now) -> Decision[bool]:
    """Reserves a unique id for a connection. A child that reported the end of its job may reserve the id that the job
    still holds: it is about to push the next try."""
    number = queries.named(state, command.uid)
    found = buffered(state, number)
    if found is not None:
        buffer = found[1]
        return (), buffer.said is e.Said.OVER and buffer.by in (command.by, 0), ()
    if command.uid.startswith(c.SHOWN_AS):
        return (), number not in state.jobs, ()
    name = c.unique(command.uid).name
    if name in state.locks:
        return (), state.resqu.reserved.get(name) == command.by, ()
    return (e.Reserved(later(state, now), name, command.by),), True, ()


def reserved(state: EngineState, event: e.Reserved | e.Handed) -> None:
    state.locks[event.name] = Lock(0, _FOR_EVER)
    state.resqu.running.discard(event.name)
    state.resqu.reserve(event.name, event.by)


def release(state: EngineState, command: c.Release, now: Now) -> Decision[None]:
    """Frees the unique ids that a closed connection had reserved."""
    names = list(state.resqu.reserved_by.get(command.by, ()))
    return ((e.Unreserved(later(state, now), names),) if names else ()), None, ()


def unreserved(state: EngineState, follow_ups: FollowUps, event: e.Unreserved) -> None:
    for name in event.names:
        links.free(state, follow_ups, name)


def _is_running(state: EngineState, lock: str) -> bool:
    held = state.locks.get(lock)
    holder = state.jobs.get(held.holder) if held is not None else None
    return holder is not None and queries.is_running(state, holder, lock)


def defers(state: EngineState, spec: Spec) -> bool:
    """Whether a job whose lock is taken can be deferred: it is deferrable, the holder is running, the slot is free."""
    protocol_data, lock = resqu_data(spec), lock_of(spec)
    can = protocol_data is not None and protocol_data.defer is not None
    return can and lock not in state.resqu.deferred and _is_running(state, lock)


def defer(state: EngineState, command: c.Defer, now: Now) -> Decision[bool | None]:
    name = lock_of(command.spec)
    if not _is_running(state, name):
        return (), None, ()
    if name in state.resqu.deferred:
        return (), False, ()
    return (e.Deferred(later(state, now), name, command.via, command.spec),), True, ()


def lock_of(spec: Spec) -> str:
    """The name of the job's lock; empty if it has none."""
    linked = spec.extra.links if spec.extra is not None else None
    return linked.lock.name if linked is not None and linked.lock is not None else ""


def deferred(state: EngineState, event: e.Deferred) -> None:
    state.resqu.deferred[event.name] = (event.via, event.spec)


def deferral_dropped(state: EngineState, event: e.DeferralDropped) -> None:
    del state.resqu.deferred[event.name]


def mark(state: EngineState, command: c.Mark, now: Now) -> Decision[bool]:
    """Decides `SET unique:<uid>:state`. For a job in a worker's buffer, `queued` announces its next run."""
    number = queries.named(state, command.uid)
    found = buffered(state, number)
    at, name = later(state, now), c.unique(command.uid).name
    if found is not None:
        said = e.Said.NOTHING if command.running else e.Said.AGAIN
        if command.running and found[1].said is said:
            return (), True, ()
        # Running after an end was reported: the worker received the job again and another child has started it.
        return (e.BufferSaid(at, found[0], said, command.by),), True, ()
    job = state.jobs.get(number)
    if job is None:
        return (), name in state.resqu.reserved, ()
    if name in state.locks and job.lease is None and command.running is not (name in state.resqu.running):
        return (e.UniqueMarked(at, name, command.running),), True, ()
    return (), True, ()


def unique_marked(state: EngineState, event: e.UniqueMarked) -> None:
    if event.running:
        state.resqu.running.add(event.name)
    else:
        state.resqu.running.discard(event.name)


def unlock(state: EngineState, command: c.Unlock, now: Now) -> Decision[int]:
    """Decides `DEL unique:<uid>:state unique:<uid>:deferred`. For a job in a worker's buffer this reports a failure;
    otherwise the lock is freed, unless the job is leased."""
    at, name, number = later(state, now), c.unique(command.uid).name, queries.named(state, command.uid)
    has_deferred = name in state.resqu.deferred
    has_state = command.state and (name in state.locks or number in state.jobs)
    count = int(has_state) + int(command.deferred and has_deferred)
    found = buffered(state, number)
    if found is not None:
        return ((e.BufferSaid(at, found[0], e.Said.OVER, command.by),) if command.state else ()), count, ()
    job = state.jobs.get(number)
    if name not in state.locks or (job is not None and job.lease is not None):
        return (), count, ()
    events: list[AnyEvent] = []
    if command.deferred and has_deferred:
        events.append(e.DeferralDropped(at, name))
    if command.state:
        events.append(e.Unlocked(at, name))
    return events, count, ()


def unlocked(state: EngineState, follow_ups: FollowUps, event: e.Unlocked) -> None:
    links.free(state, follow_ups, event.name)


def finalise(state: EngineState, command: c.Finalise, now: Now) -> Decision[c.Finalised]:
    """Decides `UNIQUE_FINALIZE`: the job in a worker's buffer succeeded. A deferred job is handed to the connection
    together with the lock, because the child pushes it next."""
    name, number = c.unique(command.uid).name, queries.named(state, command.uid)
    text = queries.deferred(state, command.uid) or b""
    events: list[AnyEvent] = []
    if text:
        events.append(e.Handed(later(state, now), name, command.by))
    found = buffered(state, number)
    if found is not None:
        _, _, job, lease = found
        settlement = Succeed(job.jid, Claim(command.via, lease.worker, (number, lease.token)))
        events.append(success(job, lease, settlement, later(state, now), now))
        return events, c.Finalised(True, text), room(state, job)
    if name not in state.resqu.running:
        return (), c.Finalised(False), ()
    return events or [e.Unlocked(later(state, now), name)], c.Finalised(True, text), ()


def follow(state: EngineState, names: Iterable[str], first: Number, now: Now) -> tuple[list[AnyEvent], list[Spec]]:
    """Pushes the deferred jobs of freed locks. A job whose lock is taken again stays deferred."""
    at = later(state, now)
    events: list[AnyEvent] = []
    specs: list[Spec] = []
    for name in names:
        if name in state.resqu.deferred and name not in state.locks:
            via, spec = state.resqu.deferred[name]
            spec = released(state, spec, now)
            events += [e.DeferralDropped(at, name), push_event(via, [spec], first + len(specs), at, now)]
            specs.append(spec)
    return events, specs


def released(state: EngineState, spec: Spec, now: Now) -> Spec:
    """A deferred job as it is pushed: delayed by its `deferrableBy`."""
    protocol_data = resqu_data(spec)
    delay = protocol_data.defer if protocol_data is not None else None
    return replace(routed(state, spec), due=now.wall + delay if delay else 0.0)


def started(state: EngineState, follow_ups: FollowUps, event: Started) -> None:
    """After a restart no connection is left: reservations are freed, and outcomes that were reported for buffers belong
    to no connection."""
    resqu = state.resqu
    for name in list(resqu.reserved):
        links.free(state, follow_ups, name)
    for key, buffer in resqu.buffers.items():
        if buffer.by:
            resqu.buffers[key] = replace(buffer, by=0)
