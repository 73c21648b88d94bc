"""Moves of many jobs at once, by hand: make ready, remove. The caller slices; each call is one event."""

from collections.abc import Iterable

from msgspec.structs import replace

from crossdock.engine.decision import Decision, later
from crossdock.engine.index import placement
from crossdock.engine.index.job_table import BLOCK_BITS
from crossdock.engine.index.sort_keys import due_sort_key, stamped
from crossdock.engine.job_view import qless_data, row, without_dependencies
from crossdock.engine.jobs import expire
from crossdock.engine.jobs.release import last_rows
from crossdock.engine.qless import history
from crossdock.engine.qless.history import unfailed
from crossdock.engine.records import dependencies, links, throttles
from crossdock.engine.resqu import batch_queues, queries
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.admin import Bury, Remove, Requeue, Reroute
from crossdock.model.events import Buried, Readied, Removed, Rerouted
from crossdock.model.job import BAND_NORMAL, Extra, Job, Number
from crossdock.model.policies import DEAD_FOR
from crossdock.model.protocol_data import HistoryKind, QlessData
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
    """Those of these jobs that still are in one of these states: the caller looked a slice ago."""
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
    """A hundred thousand may have waited for the same job, so what can be done once is done once."""
    blocks, at, due_now, by_hand = state.jobs.blocks, event.at, event.why == "due", event.why == "requeued"
    stamp = 0.0 if event.first else at if event.t is None else event.t
    jobs = [blocks[each.number >> BLOCK_BITS][each.number] for each in event.rows]
    unblocked: list[Job] = []
    for job in jobs:
        extra = job.extra
        if job.state is BLOCKED and (extra is None or extra.links is None or not extra.links.depends_on):
            unblocked.append(job)
        else:
            placement.remove(state, job)
    placement.unblock(state, unblocked)
    known: str | None = None  # a queue may have no letter in its name
    standing: str | None = None
    for job in jobs:
        # By the clock it became ready when it was due, even if the timer ran late; by hand, now.
        since = job.since = min(job.due, at) if due_now else at
        job.state = move(job.state, READY)
        extra, name = job.extra, job.queue
        protocol_data = extra.protocol_data if extra is not None else None
        if extra is None or type(protocol_data) is not QlessData:
            if name != known:
                known = state.queue(name, at).name
            job.sort_key = due_sort_key(job.priority, job.policy, 0.0 if by_hand else job.due, since, job.number)
        else:
            if name != standing:
                standing = state.standing(name, at).name
            shown = (protocol_data.state or "scheduled") if event.unsaid else ""
            if protocol_data.due is not None or protocol_data.state != shown:
                job.extra = replace(extra, protocol_data=replace(protocol_data, due=None, state=shown))
            job.sort_key = stamped(job, stamp)
        job.due = 0.0
    placement.ready(state, jobs)
    for job, end in zip(jobs, event.ends, strict=False):
        if end:
            state.end_at(job, end)


def remove(state: EngineState, command: Remove, now: Now) -> Decision[int]:
    jobs = _in(state, command.numbers, command.states)
    if not jobs:
        return (), 0, ()
    at = later(state, now)
    event = Removed(at, command.why, command.via, last_rows(jobs, at))
    room = {job.queue: None for job in jobs if job.lease is not None} if state.throttles or state.limits else {}
    return (event,), len(jobs), tuple(room)


def removed(state: EngineState, event: Removed) -> None:
    for each in event.rows:
        job = state.jobs[each.number]
        kept = job.state is State.COMPLETE  # then its records were told of its end
        if event.why == "ttl" and job.state not in OVER and job.number not in state.foreground:
            state.counters.evicted += 1
        move(job.state, State.GONE)
        placement.remove(state, job)
        if not event.unbooked:
            unfailed(state, job, job.queue)
        state.workers.let_go(job.lease.worker if job.lease is not None else each.worker, job.jid)
        state.drop(job)
        if state.throttles and event.why == "retired":
            throttles.wait_for_none(state, job)
        elif state.throttles:
            throttles.let_go(state, job, job.lease, keeps=job.lease is None and not throttles.named(job), gone=True)
        if not kept and job.extra is not None and job.extra.links is not None:
            links.gone(state, job, job.extra.links, event.at, success=False)
        if state.dependents:
            dependencies.lost(state, each.number)


# Moving jobs to the dead by hand: whatever waits, also for other jobs, for a throttle or in a batch.
#
# A dead job waits for nothing: it has left its batch, its throttle's list and the jobs it needed, so that what brings
# it back makes it ready at once. Those that need it have lost it, as they do by any other end (`depends_on`).


#: In which a job can be buried; to bury a dead one anew keeps it for longer.
BURIED_FROM = frozenset({READY, SCHEDULED, RETRYING, BLOCKED, HELD, DEAD})

_HINDRANCES = {
    COMPLETE: "and will not be worked on: delete takes it away",
    FAILED: "and will not be worked on: retry brings it back, delete takes it away",
    DEAD: "and was before: retry brings it back, delete takes it away",
}


def not_buriable(job: Job) -> str:
    """Why there is nothing to kill, as what follows its state, with what could be done; empty: there is."""
    return _HINDRANCES.get(job.state, "")


def bury(state: EngineState, command: Bury, now: Now) -> Decision[int]:
    found = (state.jobs.get(number) for number in dict.fromkeys(command.numbers))
    jobs = [job for job in found if job is not None and job.state in BURIED_FROM]
    if not jobs:
        return (), 0, ()
    pools = {
        stage.queue: None for job in jobs if (stage := batch_queues.stage_of(state, job)) is not None and stage.queue
    }
    event = Buried(later(state, now), command.via, now.wall + DEAD_FOR, [row(job) for job in jobs], freed=True)
    event.due_steady = now.steady + DEAD_FOR
    return (event,), len(jobs), tuple(pools)  # the last job of a batch makes room for the next one


def buried(state: EngineState, event: Buried) -> None:
    for each in event.rows:
        job = state.jobs[each.number]
        before, job_state = job.state, move(job.state, DEAD)
        pool = _pool(state, job) if before is HELD else ""
        placement.remove(state, job)
        if before is BLOCKED or before is HELD:
            _wait_no_more(state, job, pool)
        job.state = job_state
        job.due, job.due_steady = event.due, event.due_steady
        if event.freed and state.throttles:
            throttles.leave(state, job)
        placement.insert(state, job)
        if job.extra is not None and job.extra.links is not None:
            links.failed(state, job, job.extra.links, event.at, "dead")
        if state.dependents:
            dependencies.lost(state, each.number)


def _pool(state: EngineState, job: Job) -> str:
    """Where its batch was given to, if it was."""
    stage = batch_queues.stage_of(state, job)
    return stage.queue if stage is not None else ""


def _wait_no_more(state: EngineState, job: Job, pool: str) -> None:
    job.queue = pool or job.queue
    job.sort_key = None
    batch_queues.forget_batch(job)
    state.resqu.in_buffer.pop(job.number, None)  # an allocator that puts its text on later puts on nothing
    protocol_data = qless_data(job)
    if protocol_data is not None:
        history.write(state, job, replace(protocol_data, state="", due=None, parked=None))
    if job.extra is not None:
        job.extra = without_dependencies(job.extra)


# Taking waiting jobs to another queue as they are, by hand: their state, place, tries, needs and records go along.
#
# A lock keeps the name under which it was taken: whoever pushed the job asked for no other like it while it lives. What
# has ended is brought back by `editing.revive`, to any queue; what is leased is its holder's.


#: In which a job can be taken to another queue.
MOVABLE = frozenset({READY, SCHEDULED, RETRYING, BLOCKED, HELD})


def not_movable(state: EngineState, job: Job, queue: str) -> str:
    """Why it cannot be taken to that queue, as what follows its state, with what could be done; empty: it can."""
    if job.state is LEASED:
        return "with its worker: move it when its lease is over, or delete it"
    if job.state not in MOVABLE:
        return "and will not be worked on" if job.state is State.COMPLETE else "not waiting: retry --to brings it there"
    if job.queue == queue:
        return "and in that queue already"
    if job.state is HELD:
        stage = job.extra.stage if job.extra is not None else ""
        if stage:
            if queries.committed(state, stage) is None:
                return "in a batch that is not committed: move it when it is"
        elif job.number in state.resqu.in_buffer:  # of a staged one: a worker that lost its lease has it there
            return "by an allocator: move it when it is in a queue again"
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
    # Whoever waits there is asked whatever they are: one may be lazily due.
    return events, len(jobs), (to,) if jobs else ()


def rerouted(state: EngineState, event: Rerouted) -> None:
    queue = state.queue(event.queue, event.at)
    for each in event.rows:
        job = state.jobs[each.number]
        if event.freed:
            _free(state, job, event)
        else:
            placement.remove(state, job)
        own = OF_QUEUE + job.queue
        if state.throttles:
            throttles.free(state, own, job.jid)
        extra, protocol_data = job.extra or Extra(), qless_data(job)
        if protocol_data is not None:
            state.stray_entries.out_of(job.number, protocol_data.queue or job.queue)
            extra = replace(extra, protocol_data=replace(protocol_data, queue=""))
        line = history.entry(HistoryKind.PUT, event.at, queue.name)
        named = tuple(OF_QUEUE + queue.name if name == own else name for name in extra.throttles)
        job.extra = replace(extra, throttles=named, history=history.history(state, extra.history, line, protocol_data))
        job.queue = queue.name
        placement.insert(state, job)


def _free(state: EngineState, job: Job, event: Rerouted) -> None:
    """It was held by a throttle, which is asked again when it is about to be leased, or in a batch, which it leaves."""
    job_state = move(job.state, READY)
    staged = job.extra is not None and bool(job.extra.stage)
    since = batch_queues.since(state, job) if staged else event.at
    placement.remove(state, job)
    if state.throttles:
        throttles.let_go(state, job, None)
    batch_queues.forget_batch(job)
    history.ready(state, job)
    job.state, job.since = job_state, since
    job.sort_key = (-job.priority, BAND_NORMAL, since, b"", job.number) if staged else stamped(job, since)
