"""Decides and applies what happens to the buffer lists of Resqu's workers and allocators (model.md section 10).

A worker leases a job into its buffer and an allocator takes one without a lease. Emptying a worker's buffer settles its
job; putting an allocator's job on a queue makes it ready there.
"""

from random import Random

from crossdock.engine.decision import Decision, just_after, later
from crossdock.engine.index import placement
from crossdock.engine.job_view import row
from crossdock.engine.jobs.complete import room, success
from crossdock.engine.jobs.fail import expire_lease, queues_woken_by
from crossdock.engine.jobs.release import last_rows
from crossdock.engine.jobs.retry_policy import FailureReport, failure
from crossdock.engine.resqu import queries
from crossdock.engine.resqu.unique_ids import buffered
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands import resqu as c
from crossdock.model.commands.core import Claim, Succeed
from crossdock.model.events import AnyEvent, Buried, Removed
from crossdock.model.events import resqu as e
from crossdock.model.job import BAND_NORMAL, Job, Lease
from crossdock.model.states import BLOCKED, HELD, READY, move


def take_next(state: EngineState, command: c.TakeNext, now: Now) -> Decision[Job | None]:
    queue = state.queues.get(command.queue)
    if queue is None or queue.pause is not None or not queue.ready:
        return (), None, ()
    job = state.jobs[queue.ready.first()[4]]
    head = (later(state, now), job.number, job.jid, job.queue, job.kind, job.origin, command.via, "")
    return (e.Taken(*head, job.attempts, job.priority, len(job.payload)),), job, ()


def taken(state: EngineState, event: e.Taken) -> None:
    job = state.jobs[event.number]
    job_state = move(job.state, HELD)
    placement.remove(state, job)
    job.state = job_state
    placement.not_held_by_rate(job)
    placement.insert(state, job)


def fill(state: EngineState, command: c.FillBuffer, now: Now, random: Random) -> Decision[None]:
    """Puts a job into a buffer. A buffer holds one job, so the lease of a job that was left in it ends as lost."""
    events, woken = _lost(state, command.key, "", now, random)
    events.append(e.BufferFilled(later(state, now), command.key, command.number, command.token, command.text))
    return events, None, woken


def buffer_filled(state: EngineState, event: e.BufferFilled) -> None:
    _empty(state, event.key)
    state.resqu.buffers[event.key] = c.Buffer(event.number, event.token, event.text)
    state.resqu.in_buffer[event.number] = event.key


def buffer_said(state: EngineState, event: e.BufferSaid) -> None:
    before = state.resqu.buffers[event.key]
    state.resqu.buffers[event.key] = c.Buffer(before.number, before.token, before.text, event.said, event.by)


def put_on(state: EngineState, command: c.PutOn, now: Now, random: Random) -> Decision[bytes | None]:
    buffer = state.resqu.buffers.get(command.key)
    if buffer is None:
        return (), None, ()
    job = _job_without_lease(state, command.key)
    at = later(state, now)
    if job is None:
        events, woken = _lost(state, command.key, command.via, now, random)
    else:
        at = just_after(at)  # the job joins the tail, also behind jobs of the same clock reading
        events = [e.PutOnQueue(at, command.via, command.queue, [row(job)])]
        woken = (command.queue,)
    return [*events, e.BufferEmptied(at, command.key)], buffer.text, woken


def put_on_queue(state: EngineState, event: e.PutOnQueue) -> None:
    queue = state.queue(event.queue, event.at)
    for job_row in event.rows:
        job = state.jobs[job_row.number]
        job_state = move(job.state, READY)
        placement.remove(state, job)
        job.queue, job.state = queue.name, job_state
        job.sort_key = (-job.priority, BAND_NORMAL, event.at, b"", job.number)
        placement.insert(state, job)


def empty(state: EngineState, command: c.EmptyBuffer, now: Now, random: Random) -> Decision[bytes | None]:
    """Empties a buffer. A leased job is settled, or its lease is lost; an allocator's job returns to its queue."""
    buffer = state.resqu.buffers.get(command.key)
    if buffer is None:
        return (), None, ()
    events: list[AnyEvent] = []
    woken: tuple[str, ...] = ()
    found, job = buffered(state, buffer.number), _job_without_lease(state, command.key)
    if job is not None:
        events.append(e.PutOnQueue(later(state, now), command.via, job.queue, [row(job)]))
        woken = (job.queue,)
    elif command.lost or buffer.said is e.Said.AGAIN:
        events, woken = _lost(state, command.key, command.via, now, random)
    elif found is not None and found[0] == command.key:
        events, woken = _settled(state, found[2], found[3], command, buffer, now, random)
    return [*events, e.BufferEmptied(later(state, now), command.key)], buffer.text, woken


def _settled(
    state: EngineState, job: Job, lease: Lease, command: c.EmptyBuffer, buffer: c.Buffer, now: Now, random: Random
) -> tuple[list[AnyEvent], tuple[str, ...]]:
    """A final failure if the worker reported one, otherwise a success."""
    if buffer.said is e.Said.OVER:
        report = FailureReport(command.via, lease.worker, "", "the worker reported a failure", counted=False)
        event = failure(state, job, lease, now, report, random, final=True)
        return [event], queues_woken_by(event, job)
    settlement = Succeed(job.jid, Claim(command.via, lease.worker, buffer.held))
    return [success(job, lease, settlement, later(state, now), now)], room(state, job)


def buffer_emptied(state: EngineState, event: e.BufferEmptied) -> None:
    _empty(state, event.key)


def _empty(state: EngineState, key: str) -> None:
    buffer = state.resqu.buffers.pop(key, None)
    if buffer is not None and state.resqu.in_buffer.get(buffer.number) == key:
        del state.resqu.in_buffer[buffer.number]


def discard(state: EngineState, command: c.DiscardBuffer, now: Now) -> Decision[bool]:
    buffer = state.resqu.buffers.get(command.key)
    if buffer is None or buffer.text != command.text:
        return (), False, ()
    at, job = later(state, now), _job_without_lease(state, command.key)
    events: list[AnyEvent] = [e.BufferEmptied(at, command.key)]
    if job is not None:
        events.append(Removed(at, "discarded", command.via, last_rows([job], at)))
    return events, True, ()


def buried(state: EngineState, event: Buried) -> None:
    """Separates buried jobs from their buffers. An allocator that later puts such a job on a queue moves nothing."""
    for job_row in event.rows:
        if state.jobs[job_row.number].state in (BLOCKED, HELD):
            state.resqu.in_buffer.pop(job_row.number, None)


def lose(state: EngineState, command: c.LoseBuffer, now: Now, random: Random) -> Decision[None]:
    events, woken = _lost(state, command.key, command.via, now, random)
    return events, None, woken


def _lost(state: EngineState, key: str, via: str, now: Now, random: Random) -> tuple[list[AnyEvent], tuple[str, ...]]:
    """Ends the lease of the job in a buffer whose worker is gone, under the job's policy."""
    buffer = state.resqu.buffers.get(key)
    found = buffered(state, buffer.number) if buffer is not None else None
    if found is None or found[0] != key:
        return [], ()
    event = expire_lease(state, found[2], now, random, via)
    return [event], queues_woken_by(event, found[2])


def _job_without_lease(state: EngineState, key: str) -> Job | None:
    """The job in an allocator's buffer, if it is still held there."""
    job = queries.in_hand(state, key)
    return job if job is not None and job.lease is None else None
