"""Buffers (MODEL section 10): what Resqu's workers and allocators popped, and what becomes of it."""

from random import Random

from crossdock.engine.decision import Decision, just_after, later
from crossdock.engine.index import placement
from crossdock.engine.job_view import row
from crossdock.engine.jobs.complete import room, success
from crossdock.engine.jobs.fail import lapse, stirred_by
from crossdock.engine.jobs.release import last_rows
from crossdock.engine.jobs.retry_policy import FailureReport, failure
from crossdock.engine.resqu import queries
from crossdock.engine.resqu.unique_ids import buffered
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands import resqu as c
from crossdock.model.commands.core import Claim, Succeed
from crossdock.model.events import AnyEvent, Removed
from crossdock.model.events import resqu as e
from crossdock.model.job import BAND_NORMAL, Job, Lease
from crossdock.model.states import HELD, READY, move


def take_next(memory: EngineState, command: c.TakeNext, now: Now) -> Decision[Job | None]:
    queue = memory.queues.get(command.queue)
    if queue is None or queue.paused or not queue.ready:
        return (), None, ()
    job = memory.jobs[queue.ready.first()[4]]
    head = (later(memory, now), job.number, job.jid, job.queue, job.kind, job.origin, command.via, "")
    return (e.Taken(*head, job.attempts, job.priority, len(job.payload)),), job, ()


def taken(memory: EngineState, event: e.Taken) -> None:
    job = memory.jobs[event.number]
    state = move(job.state, HELD)
    placement.displace(memory, job)
    job.state = state
    placement.place(memory, job)


def fill(memory: EngineState, command: c.FillBuffer, now: Now, random: Random) -> Decision[None]:
    """A buffer holds one job: whatever was left in it is lost to who left it."""
    events, stirred = _lost(memory, command.key, "", now, random)
    events.append(e.BufferFilled(later(memory, now), command.key, command.number, command.token, command.text))
    return events, None, stirred


def buffer_filled(memory: EngineState, event: e.BufferFilled) -> None:
    _empty(memory, event.key)
    memory.resqu.buffers[event.key] = c.Buffer(event.number, event.token, event.text)
    memory.resqu.in_buffer[event.number] = event.key


def buffer_said(memory: EngineState, event: e.BufferSaid) -> None:
    before = memory.resqu.buffers[event.key]
    memory.resqu.buffers[event.key] = c.Buffer(before.number, before.token, before.text, event.said, event.by)


def put_on(memory: EngineState, command: c.PutOn, now: Now, random: Random) -> Decision[bytes | None]:
    buffer = memory.resqu.buffers.get(command.key)
    if buffer is None:
        return (), None, ()
    job = _taken(memory, command.key)
    at = later(memory, now)
    if job is None:
        events, stirred = _lost(memory, command.key, command.via, now, random)
    else:
        at = just_after(at)  # behind all that came at this reading of the clock
        events = [e.PutOnQueue(at, command.via, command.queue, [row(job)])]
        stirred = (command.queue,)
    return [*events, e.BufferEmptied(at, command.key)], buffer.text, stirred


def put_on_queue(memory: EngineState, event: e.PutOnQueue) -> None:
    queue = memory.queue(event.queue, event.at)
    for each in event.rows:
        job = memory.jobs[each.number]
        state = move(job.state, READY)
        placement.displace(memory, job)
        job.queue, job.state = queue.name, state
        job.place = (-job.priority, BAND_NORMAL, event.at, b"", job.number)
        placement.place(memory, job)


def empty(memory: EngineState, command: c.EmptyBuffer, now: Now, random: Random) -> Decision[bytes | None]:
    buffer = memory.resqu.buffers.get(command.key)
    if buffer is None:
        return (), None, ()
    events: list[AnyEvent] = []
    stirred: tuple[str, ...] = ()
    found, job = buffered(memory, buffer.number), _taken(memory, command.key)
    if job is not None:
        events.append(e.PutOnQueue(later(memory, now), command.via, job.queue, [row(job)]))
        stirred = (job.queue,)
    elif command.lost or buffer.said is e.Said.AGAIN:
        events, stirred = _lost(memory, command.key, command.via, now, random)
    elif found is not None and found[0] == command.key:
        events, stirred = _settled(memory, found[2], found[3], command, buffer, now, random)
    return [*events, e.BufferEmptied(later(memory, now), command.key)], buffer.text, stirred


def _settled(
    memory: EngineState, job: Job, lease: Lease, command: c.EmptyBuffer, buffer: c.Buffer, now: Now, random: Random
) -> tuple[list[AnyEvent], tuple[str, ...]]:
    if buffer.said is e.Said.OVER:
        told = FailureReport(command.via, lease.worker, "", "its worker said that it failed", counted=False)
        event = failure(memory, job, lease, now, told, random, final=True)
        return [event], stirred_by(event, job)
    done = Succeed(job.jid, Claim(command.via, lease.worker, buffer.held))
    return [success(job, lease, done, later(memory, now), now)], room(memory, job)


def buffer_emptied(memory: EngineState, event: e.BufferEmptied) -> None:
    _empty(memory, event.key)


def _empty(memory: EngineState, key: str) -> None:
    buffer = memory.resqu.buffers.pop(key, None)
    if buffer is not None and memory.resqu.in_buffer.get(buffer.number) == key:
        del memory.resqu.in_buffer[buffer.number]


def discard(memory: EngineState, command: c.DiscardBuffer, now: Now) -> Decision[bool]:
    buffer = memory.resqu.buffers.get(command.key)
    if buffer is None or buffer.text != command.text:
        return (), False, ()
    at, job = later(memory, now), _taken(memory, command.key)
    events: list[AnyEvent] = [e.BufferEmptied(at, command.key)]
    if job is not None:
        events.append(Removed(at, "discarded", command.via, last_rows([job], at)))
    return events, True, ()


def lose(memory: EngineState, command: c.LoseBuffer, now: Now, random: Random) -> Decision[None]:
    events, stirred = _lost(memory, command.key, command.via, now, random)
    return events, None, stirred


def _lost(memory: EngineState, key: str, via: str, now: Now, random: Random) -> tuple[list[AnyEvent], tuple[str, ...]]:
    """What the end of the buffer's owner means for a job that is leased to it."""
    buffer = memory.resqu.buffers.get(key)
    found = buffered(memory, buffer.number) if buffer is not None else None
    if found is None or found[0] != key:
        return [], ()
    event = lapse(memory, found[2], now, random, via)
    return [event], stirred_by(event, found[2])


def _taken(memory: EngineState, key: str) -> Job | None:
    """The job in an allocator's buffer, if it still waits there."""
    job = queries.in_hand(memory, key)
    return job if job is not None and job.lease is None else None
