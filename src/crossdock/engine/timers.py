"""Time: what falls due by itself, and the start after a recovery.

Shelves are sorted by when their jobs are next due, so looking costs nothing however many wait. What is due is carried
out in slices of `limit` jobs: a flood of due jobs never keeps the doors waiting.
"""

from random import Random

from crossdock.engine.decision import Decision, later
from crossdock.engine.lease import to_old_place
from crossdock.engine.memory import Memory, row
from crossdock.engine.settle import lapse
from crossdock.model.clock import Now
from crossdock.model.commands import Start, Tick, Ticked
from crossdock.model.events import AnyEvent, Readied, Removed, Started
from crossdock.model.job import Bound, Job
from crossdock.model.states import State

_WALL = (State.SCHEDULED, State.RETRYING, State.DEAD)


def due_in(memory: Memory, now: Now) -> float | None:
    """Seconds until something is due (0: it is already), None while nothing waits for time."""
    waits = [shelf.first()[0] - now.wall for state in _WALL if (shelf := memory.shelves[state])]
    leased = memory.shelves[State.LEASED]
    if leased:
        waits.append(leased.first()[0] - now.steady)
    return max(0.0, min(waits)) if waits else None


def _due(memory: Memory, state: State, until: float, limit: int) -> list[Job]:
    shelf = memory.shelves[state]
    jobs: list[Job] = []
    for due, number in shelf.islice(0, limit):
        if due > until:
            break
        jobs.append(memory.jobs[number])
    return jobs


def tick(memory: Memory, command: Tick, now: Now, random: Random) -> Decision[Ticked]:
    at = later(memory, now)
    left = command.limit
    events: list[AnyEvent] = []
    stirred: dict[str, None] = {}
    readied: list[int] = []
    for state in (State.SCHEDULED, State.RETRYING):
        jobs = _due(memory, state, now.wall, left)
        if jobs:
            events.append(Readied(at, "due", "", [row(job) for job in jobs]))
            stirred.update((job.queue, None) for job in jobs)
        readied.append(len(jobs))
        left -= len(jobs)
    over = _due(memory, State.LEASED, now.steady, left)
    for job in over:
        events.append(lapse(memory, job, now, random))
        stirred[job.queue] = None
    left -= len(over)
    purged = _due(memory, State.DEAD, now.wall, left)
    if purged:
        events.append(Removed(at, "purged", "", [row(job) for job in purged]))
    left -= len(purged)
    return events, Ticked(*readied, len(over), len(purged), left <= 0), tuple(stirred)


def start(memory: Memory, command: Start, now: Now) -> Decision[None]:
    return (Started(later(memory, now), memory.counters.epoch + 1, now.steady),), None, ()


def started(memory: Memory, event: Started) -> None:
    memory.counters.epoch = event.epoch
    memory.counters.first_token = memory.counters.token + 1
    bound = [
        job
        for _, number in memory.shelves[State.LEASED]
        if (job := memory.jobs[number]).lease is not None and job.lease.bound is Bound.CONNECTION
    ]
    for job in bound:
        job.attempts -= 1
        to_old_place(memory, job)
