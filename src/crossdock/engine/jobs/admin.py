"""Changes of many jobs by operators and clients: requeue, remove, bury and move. The caller slices; each call is one
event.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from crossdock.engine import hooks
from crossdock.engine.decision import Decision, FollowUps, later
from crossdock.engine.index import placement
from crossdock.engine.index.job_table import BLOCK_BITS
from crossdock.engine.index.sort_keys import due_sort_key, stamped
from crossdock.engine.job_view import row, without_dependencies
from crossdock.engine.jobs import expire
from crossdock.engine.jobs.release import last_rows
from crossdock.engine.records import dependencies, job_history, links, outcomes, throttles
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.admin import Bury, Remove, Requeue, Reroute
from crossdock.model.events import Buried, Readied, Removed, Rerouted
from crossdock.model.job import BAND_NORMAL, Extra, Job, Number
from crossdock.model.policies import DEAD_FOR
from crossdock.model.protocol_data import HistoryKind
from crossdock.model.records import OF_QUEUE
from crossdock.model.states import (
    BLOCKED,
    COMPLETE,
    DEAD,
    FAILED,
    HELD,
    LEASED,
    OVER,
    READY,
    RETRYING,
    SCHEDULED,
    State,
    move,
)

_AT_REST = frozenset({State.SCHEDULED, State.RETRYING, State.DEAD})


def _in(state: EngineState, numbers: Iterable[Number], states: frozenset[State]) -> list[Job]:
    """Those of these jobs that are still in one of these states. The caller may have looked earlier."""
    return [
        job for number in dict.fromkeys(numbers) if (job := state.jobs.get(number)) is not None and job.state in states
    ]


def requeue(state: EngineState, command: Requeue, now: Now) -> Decision[int]:
    jobs = _in(state, command.numbers, _AT_REST)
    if not jobs:
        return (), 0, ()
    event = Readied(
        later(state, now), "requeued", command.via, [row(job) for job in jobs], expire.readied(jobs, now, now.steady)
    )
    return (event,), len(jobs), tuple({job.queue: None for job in jobs})


def readied(state: EngineState, event: Readied) -> None:
    """A hundred thousand jobs may become ready in one event, so what can be done once is done once."""
    blocks, at, due_now, by_hand = state.jobs.blocks, event.at, event.why == "due", event.why == "requeued"
    jobs = [blocks[each.number >> BLOCK_BITS][each.number] for each in event.rows]
    unblocked: list[Job] = []
    for job in jobs:
        extra = job.extra
        if job.state is BLOCKED and (extra is None or extra.links is None or not extra.links.depends_on):
            unblocked.append(job)
        else:
            placement.remove(state, job)
    placement.unblock(state, unblocked)
    known: str | None = None  # the name of a queue may be empty
    for job in jobs:
        # A due job became ready when it was due, even if the timer ran late. A requeued job becomes ready now.
        since = job.since = min(job.due, at) if due_now else at
        job.state = move(job.state, READY)
        data = job.extra.protocol_data if job.extra is not None else None
        if data is not None and (hook := hooks.READIED.get(type(data))) is not None:
            hook(state, job, data, event)
        else:
            if job.queue != known:
                known = state.queue(job.queue, at).name
            job.sort_key = due_sort_key(job.priority, job.policy, 0.0 if by_hand else job.due, since, job.number)
        job.due = 0.0
    placement.insert_ready(state, jobs)
    for job, end in zip(jobs, event.ends, strict=False):
        if end:
            state.end_at(job, end)


def remove(state: EngineState, command: Remove, now: Now) -> Decision[int]:
    jobs = _in(state, command.numbers, command.states)
    if not jobs:
        return (), 0, ()
    at = later(state, now)
    event = Removed(at, command.why, command.via, last_rows(jobs, at), reason=command.reason)
    room = {job.queue: None for job in jobs if job.lease is not None} if state.throttles or state.limits else {}
    return (event,), len(jobs), tuple(room)


def removed(state: EngineState, follow_ups: FollowUps, event: Removed) -> None:
    for each in event.rows:
        job = state.jobs[each.number]
        kept = job.state is State.COMPLETE  # then its records have been updated when it succeeded
        if event.why == "ttl" and job.state not in OVER and job.number not in state.foreground:
            state.counters.evicted += 1
        move(job.state, State.GONE)
        placement.remove(state, job)
        state.workers.remove_lease(job.lease.worker if job.lease is not None else each.worker, job.jid)
        state.remove_job(job, event)
        if state.throttles and event.why == "retired":
            throttles.wait_for_none(state, job)
        elif state.throttles:
            throttles.let_go(
                state, follow_ups, job, job.lease, keeps=job.lease is None and not throttles.named(job), gone=True
            )
        if not kept and job.extra is not None and job.extra.links is not None:
            links.ended(state, follow_ups, job, job.extra.links, event.at, success=False)
            if job.extra.links.keep_result_s:
                outcomes.removed(state, follow_ups, job, job.extra.links.keep_result_s, event)
        if state.dependents:
            dependencies.lost(state, follow_ups, each.number)


# Burying: a client or an operator moves waiting jobs to the dead jobs, also jobs that wait for other jobs, for a
# throttle or in a batch.
#
# A dead job waits for nothing. It leaves its batch, its throttles and its dependencies, so a retry makes it ready at
# once. Its dependents lose it, as after any other end.


#: States from which a job can be buried. Burying a dead job again extends the time it is kept.
BURIED_FROM = frozenset({READY, SCHEDULED, RETRYING, BLOCKED, HELD, DEAD})

_HINDRANCES = {
    COMPLETE: "and will not be worked on: delete takes it away",
    FAILED: "and will not be worked on: retry brings it back, delete takes it away",
    DEAD: "and was before: retry brings it back, delete takes it away",
}


def not_buriable(job: Job) -> str:
    """Why a job cannot be buried, as the words that follow its state, with what can be done. Empty: it can be."""
    return _HINDRANCES.get(job.state, "")


def bury(state: EngineState, command: Bury, now: Now) -> Decision[int]:
    found = (state.jobs.get(number) for number in dict.fromkeys(command.numbers))
    jobs = [job for job in found if job is not None and job.state in BURIED_FROM]
    if not jobs:
        return (), 0, ()
    pools = {batch.queue: None for job in jobs if (batch := placement.batch_of(state, job)) and batch.queue}
    at = later(state, now)
    event = Buried(at, command.via, now.wall + DEAD_FOR, last_rows(jobs, at), freed=True)
    event.due_steady = now.steady + DEAD_FOR
    return (event,), len(jobs), tuple(pools)  # the last job of a batch makes room for the next one


def buried(state: EngineState, follow_ups: FollowUps, event: Buried) -> None:
    for each in event.rows:
        job = state.jobs[each.number]
        before, job_state = job.state, move(job.state, DEAD)
        pool = _pool(state, job) if before is HELD else ""
        placement.remove(state, job)
        placement.not_held_by_rate(job)
        if before is BLOCKED or before is HELD:
            _wait_no_more(state, job, pool)
        job.state = job_state
        job.due, job.due_steady = event.due, event.due_steady
        if event.freed and state.throttles:
            throttles.leave(state, follow_ups, job)
        placement.insert(state, job)
        if job.extra is not None and job.extra.links is not None:
            links.failed(state, follow_ups, job, job.extra.links, event.at, "dead")
        if state.dependents:
            dependencies.lost(state, follow_ups, each.number)


def _pool(state: EngineState, job: Job) -> str:
    """The pool that its batch was assigned to, if any."""
    batch = placement.batch_of(state, job)
    return batch.queue if batch is not None else ""


def _wait_no_more(state: EngineState, job: Job, pool: str) -> None:
    job.queue = pool or job.queue
    job.sort_key = None
    placement.leave_batch(job)
    data = job.extra.protocol_data if job.extra is not None else None
    if data is not None and (hook := hooks.BURIED.get(type(data))) is not None:
        hook(state, job)
    if job.extra is not None:
        job.extra = without_dependencies(job.extra)


# Moving waiting jobs to another queue: their state, order, tries, dependencies and records stay.
#
# A lock keeps its name, because the client that pushed the job asked for no other such job while it lives. Ended jobs
# are moved by a retry (`qless.edit.revive`). Leased jobs belong to their holders.


#: States in which a job can be moved to another queue.
MOVABLE = frozenset({READY, SCHEDULED, RETRYING, BLOCKED, HELD})


def not_movable(state: EngineState, job: Job, queue: str) -> str:
    """Why a job cannot be moved to that queue, as the words that follow its state, with what can be done. Empty: it can
    be moved.
    """
    if job.state is LEASED:
        return "with its worker: move it when its lease is over, or delete it"
    if job.state not in MOVABLE:
        return "and will not be worked on" if job.state is State.COMPLETE else "not waiting: retry --to brings it there"
    if job.queue == queue:
        return "and in that queue already"
    if job.state is HELD:
        return next(filter(None, (hook(state, job) for hook in hooks.NOT_MOVABLE)), "")
    return ""


def reroute(state: EngineState, command: Reroute, now: Now) -> Decision[int]:
    found = (state.jobs.get(number) for number in dict.fromkeys(command.numbers))
    jobs = [job for job in found if job is not None and not not_movable(state, job, command.queue)]
    at, via, to = later(state, now), command.via, command.queue
    events = []
    for freed in (False, True):
        rows = [row(job) for job in jobs if (job.state is HELD) is freed]
        if rows:
            events.append(Rerouted(at, via, to, rows, freed))
    # Clients that wait on that queue are woken in any case: a moved job may be lazily due.
    return events, len(jobs), (to,) if jobs else ()


def rerouted(state: EngineState, follow_ups: FollowUps, event: Rerouted) -> None:
    queue = state.queue(event.queue, event.at)
    for each in event.rows:
        job = state.jobs[each.number]
        if event.freed:
            _free(state, follow_ups, job, event)
        else:
            placement.remove(state, job)
        placement.not_held_by_rate(job)
        own = OF_QUEUE + job.queue
        if state.throttles:
            throttles.free(state, follow_ups, own, job.jid)
        data = job.extra.protocol_data if job.extra is not None else None
        if data is not None and (hook := hooks.REROUTED.get(type(data))) is not None:
            hook(state, job, event)
        extra = job.extra or Extra()
        line = job_history.entry(HistoryKind.PUT, event.at, queue.name)
        named = tuple(OF_QUEUE + queue.name if name == own else name for name in extra.throttles)
        lines = job_history.add(state, extra.history, line, extra.protocol_data)
        job.extra = replace(extra, throttles=named, history=lines)
        job.queue = queue.name
        placement.insert(state, job)


def _free(state: EngineState, follow_ups: FollowUps, job: Job, event: Rerouted) -> None:
    """Make a held job ready. A throttle is checked again when the job is leased. A job in a batch leaves the batch."""
    job_state = move(job.state, READY)
    staged = job.extra is not None and bool(job.extra.resqu_batch)
    since = placement.ready_since(state, job) if staged else event.at
    placement.remove(state, job)
    if state.throttles:
        throttles.let_go(state, follow_ups, job, None)
    placement.leave_batch(job)
    job.state, job.since = job_state, since
    job.sort_key = (-job.priority, BAND_NORMAL, since, b"", job.number) if staged else stamped(job, since)
