"""Very many dependents of one job: the journal entry that ends the job postpones them, and later entries resolve
them.

No other request is served during a command, so a command resolves at most `dependents.AT_ONCE` of them. The event
`DependentsPostponed` moves all others to `EngineState.unresolved` in one step. The server's timer then resolves
them in slices (`ResolveDependents`). Both events are in the journal, and `EngineState.unresolved` is in the
snapshot, so a server that is killed between two slices continues where it was.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from crossdock.engine.decision import Decision, later
from crossdock.engine.index import dependents
from crossdock.engine.index.dependents import Key, PostponedDependents
from crossdock.engine.job_view import edges_of
from crossdock.engine.records import dependencies
from crossdock.engine.records.dependencies import FailedDependents, release, without
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Command, ResolveDependents
from crossdock.model.events import (
    AnyEvent,
    Buried,
    DependentsPostponed,
    DependentsResolved,
    Failed,
    Removed,
    Succeeded,
)
from crossdock.model.job import Job, Number
from crossdock.model.policies import DependencyLoss, Ending
from crossdock.model.states import BLOCKED, GONE, State

_FINAL = frozenset({State.DEAD, State.FAILED})


def postpone(state: EngineState, command: Command[object], events: Sequence[AnyEvent]) -> Sequence[AnyEvent]:
    """The events, with events that postpone dependents before the first one that ends a job with too many."""
    left, first = dependents.AT_ONCE, -1
    found: list[Key] = []
    for at, event in enumerate(events):
        for number, ending in _endings(event):
            waiting = state.dependents.get(number)
            if waiting is None:
                continue
            count = state.strict.get(number, 0) if ending is Ending.KEPT else len(waiting)
            if count <= left:
                left -= count
                continue
            found.append((number, ending))
            first = at if first < 0 else first
    if not found:
        return events
    t, at_front = command.caller_time(), command.frees_first()
    # What was postponed last is resolved first.
    postponed = [DependentsPostponed(events[first].at, *each, t, at_front) for each in reversed(found)]
    return [*events[:first], *postponed, *events[first:]]


def _endings(event: AnyEvent) -> Iterator[Key]:
    """The jobs that end with this event."""
    if isinstance(event, Succeeded):
        yield event.number, Ending.SUCCESS
    elif isinstance(event, Failed):
        if event.then is GONE:
            yield event.number, Ending.GONE
        elif event.then in _FINAL or event.to_queue:
            yield event.number, Ending.KEPT
    elif isinstance(event, Removed):
        for row in event.rows:
            yield row.number, Ending.GONE
    elif isinstance(event, Buried):
        for row in event.rows:
            yield row.number, Ending.KEPT


def dependents_postponed(state: EngineState, event: DependentsPostponed) -> None:
    strict = state.strict.get(event.number, 0)
    waiting = dependents.take_all(state, event.number)
    if event.ending is Ending.KEPT and strict < len(waiting):
        waiting = _strict(state, event.number, waiting)
    if not waiting:
        return
    known = state.unresolved.get((event.number, event.ending))
    if known is None:
        state.unresolved[event.number, event.ending] = PostponedDependents(waiting, event.t, event.first)
    else:  # it was in use again, and ended again in the same way
        known.waiting.update(waiting)
        known.t, known.first = event.t, event.first


def _strict(state: EngineState, dependency: Number, waiting: dict[Number, None]) -> dict[Number, None]:
    """The dependents that fail with a kept job. The others keep waiting."""
    lost: dict[Number, None] = {}
    for number in waiting:
        job = state.jobs[number]
        if job.policy.lost is DependencyLoss.FAILS_TOO:
            lost[number] = None
        else:
            dependents.add(state, dependency, job)
    return lost


def resolve_dependents(state: EngineState, command: ResolveDependents, now: Now) -> Decision[int]:
    """Resolve dependents of the job that was postponed last, so a chain of failures is followed to its end first."""
    if not state.unresolved:
        return (), 0, ()
    key = next(reversed(state.unresolved))
    found = state.unresolved[key]
    return (_free if key[1] is Ending.SUCCESS else _lose)(state, key, found, command.limit, now)


def _free(state: EngineState, key: Key, found: PostponedDependents, limit: int, now: Now) -> Decision[int]:
    at, dependency = later(state, now), key[0]
    numbers = list(islice(found.waiting, limit))
    jobs = [job for number in numbers if (job := _waits(state, dependency, number)) is not None]
    freed = dependencies.freed([job for job in jobs if edges_of(job) == (dependency,)], now)
    more, woken = release(freed, at, now, found.t, first=found.first)
    return [DependentsResolved(at, *key, numbers), *more], len(numbers), tuple(woken)


def _lose(state: EngineState, key: Key, found: PostponedDependents, limit: int, now: Now) -> Decision[int]:
    at, dependency = later(state, now), key[0]
    losing = FailedDependents(state, at, now, limit)
    numbers: list[Number] = []
    for number in found.waiting:
        if not losing.left:
            break
        numbers.append(number)
        losing.left -= 1
        job = _waits(state, dependency, number)
        if job is not None and job.state is BLOCKED:
            losing.lose(job, dependency)
    events = [DependentsResolved(at, *key, numbers), *losing.events()]
    return events, limit - losing.left, tuple(losing.woken)


def _waits(state: EngineState, dependency: Number, number: Number) -> Job | None:
    """The dependent, unless it does not depend on that job any more."""
    job = state.jobs.get(number)
    return job if job is not None and dependency in edges_of(job) else None


def dependents_resolved(state: EngineState, event: DependentsResolved) -> None:
    dependency, key = event.number, (event.number, event.ending)
    found = state.unresolved[key]
    for number in event.dependents:
        del found.waiting[number]
        job = _waits(state, dependency, number)
        if job is not None and (event.ending is Ending.SUCCESS or job.state is not BLOCKED):
            without(job, dependency)
    if not found.waiting:
        del state.unresolved[key]
