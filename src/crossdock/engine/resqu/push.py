"""Decides what the push of a Resqu job is: a new job, a repeated push, a duplicate unique id, or the next try of the
job in a worker's buffer (resqu.md sections 3 and 6)."""

from random import Random
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from crossdock.engine.decision import Decision, later
from crossdock.engine.jobs import enqueue
from crossdock.engine.jobs.fail import queues_woken_by
from crossdock.engine.jobs.retry_policy import FailureReport, failure
from crossdock.engine.resqu import queries, reschedule
from crossdock.engine.resqu.reschedule import RETRY_MESSAGE
from crossdock.engine.resqu.unique_ids import buffered, lock_of, resqu_data
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.resqu import SHOWN_AS, Buffer, Pushing, PushJob, uid_of
from crossdock.model.events import AnyEvent, Pushed
from crossdock.model.events.resqu import DeferralDropped, Said
from crossdock.model.job import Job, Lease, Number, Spec

# A module constant, because looking up an enum member costs as much as a call.
_PUSHED: Final = Pushing.PUSHED


def push(random: Random, state: EngineState, command: PushJob, now: Now) -> Decision[Pushing]:
    spec = command.spec
    queue = state.resqu.queue_of(spec)
    if queue != spec.queue:
        spec = replace(spec, queue=queue)
    jid, extra = spec.jid, spec.extra
    if jid in state.resqu.once.ids:
        return (), Pushing.REPEATED, ()
    if jid in state.jids:
        return (), Pushing.DUPLICATE if resqu_data(next(state.named(jid))) is None else Pushing.REPEATED, ()
    if extra is not None and extra.links is not None:
        return _linked(state, command, spec, now, random)
    counters, wall = state.counters, now.wall
    if wall >= counters.at:
        event = Pushed(wall, counters.number + 1, command.via, [spec])
    else:
        event = Pushed(counters.at, counters.number + 1, command.via, [spec], wall)
    return (event,), _PUSHED, (queue,) if spec.due <= wall else ()


def _linked(state: EngineState, command: PushJob, spec: Spec, now: Now, random: Random) -> Decision[Pushing]:
    """Decides the push of a job that has a unique id or is monitored."""
    lock = lock_of(spec)
    events: list[AnyEvent] = []
    if lock:
        uid = uid_of(lock)
        number = queries.named(state, uid)
        found = buffered(state, number)
        if found is not None and found[1].said is not Said.NOTHING and _continues(found[1], found[2], command):
            return _next_try(state, found[2], found[3], spec, command.via, now, random, found[1].said)
        if uid.startswith(SHOWN_AS):
            return (), Pushing.REPEATED, ()  # the job has ended, or another worker holds it by now
        refused = _refused(state, lock, number, spec, command.by)
        if refused is not None:
            return (), refused, ()
        if lock in state.resqu.deferred:
            events.append(DeferralDropped(later(state, now), lock))
    number = state.counters.number + 1
    events.append(enqueue.push_event(command.via, [spec], number, later(state, now), now))
    return events, _PUSHED, enqueue.ready_queues([spec], now)


def _refused(state: EngineState, lock: str, holder: Number, spec: Spec, by: int) -> Pushing | None:
    """Why a job with this lock cannot be pushed; None if it can. A push without an id of its own is a repeat if the
    holder of the lock has the same text."""
    if lock not in state.locks or state.resqu.reserved.get(lock) == by:
        return None
    protocol_data, job = resqu_data(spec), state.jobs.get(holder)
    if protocol_data is not None and not protocol_data.stamped and job is not None and job.lease is None:
        known = resqu_data(job)
        if known is not None and known.text == protocol_data.text:
            return Pushing.REPEATED
    return Pushing.NOT_UNIQUE


def _continues(buffer: Buffer, job: Job, command: PushJob) -> bool:
    """Whether this push is the next try of the job in a buffer. It is if it comes from the connection that reported the
    end of the last try. After a restart the connection is another one, and the push must be of the same job."""
    if buffer.by == command.by or resqu_data(job) is None:
        return True
    spec = command.spec
    return job.kind == spec.kind and _value(job.payload) == _value(spec.payload)


def _value(payload: bytes) -> Any:
    return msgspec.json.decode(payload) if payload else None


def _next_try(
    state: EngineState, job: Job, lease: Lease, spec: Spec, via: str, now: Now, random: Random, said: Said
) -> Decision[Pushing]:
    """Ends the lease and continues the job with this spec. A job of another protocol fails under its own policy."""
    if said is Said.OVER and resqu_data(job) is None:
        report = FailureReport(via, lease.worker, "", RETRY_MESSAGE)
        event = failure(state, job, lease, now, report, random)
        return (event,), Pushing.CONTINUED, queues_woken_by(event, job)
    run = reschedule.next_run(state, job, lease, spec, via, now, failed=said is Said.OVER)
    return (run,), Pushing.CONTINUED, reschedule.woken(state, job, run)
