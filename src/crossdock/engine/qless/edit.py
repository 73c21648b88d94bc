"""Decides and applies edits of single jobs (priority, tags, dependencies, history notes), `cancel`, and `unfail`, which
makes failed jobs ready again (qless.md section 5)."""

from msgspec.structs import replace

from crossdock.engine import redaction
from crossdock.engine.decision import Decision, later
from crossdock.engine.index import dependents, placement
from crossdock.engine.index.sort_keys import stamped
from crossdock.engine.job_view import qless_data, without_dependencies
from crossdock.engine.jobs.complete import room
from crossdock.engine.jobs.release import last_rows
from crossdock.engine.qless import history
from crossdock.engine.qless.put import insert_into_queue
from crossdock.engine.records import job_history
from crossdock.engine.redaction import Redact
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands import qless as c
from crossdock.model.events import DependenciesEdited, Noted, Removed, Reprioritised, Revived, Tagged
from crossdock.model.job import Extra, Job, Links, Number
from crossdock.model.protocol_data import HistoryKind, QlessDialect, Tag
from crossdock.model.states import DEAD, FAILED, HELD, READY

#: Limit of one `unfail`. That many jobs take about 0.1 s, during which the server handles no other request.
UNFAILED_AT_MOST = 10_000

Head = tuple[float, Number, str, str, str, str, str, str, int, int | float, int]


def _head(state: EngineState, job: Job, via: str, now: Now) -> Head:
    """The fields that every job event begins with."""
    worker = job.lease.worker if job.lease is not None else ""
    head = (later(state, now), job.number, job.jid, job.queue, job.kind, job.origin, via, worker)
    return (*head, job.attempts, job.priority, len(job.payload))


def set_priority(state: EngineState, command: c.SetPriority, now: Now) -> Decision[None]:
    job = state.jobs[command.number]
    return (Reprioritised(*_head(state, job, command.via, now), command.t, command.priority),), None, ()


def reprioritised(state: EngineState, event: Reprioritised) -> None:
    job = state.jobs[event.number]
    placement.remove(state, job)
    job.priority = event.to
    if job.state is READY or (job.state is HELD and job.extra is not None and job.extra.held_by):
        job.sort_key = stamped(job, 0.0)
    placement.insert(state, job)


def edit_tags(state: EngineState, command: c.EditTags, now: Now) -> Decision[None]:
    job = state.jobs[command.number]
    tags: list[Tag] = list(job.extra.tags) if job.extra is not None else []
    known = list(tags)
    for tag in command.add:
        if tag not in (known if command.twice else tags):
            tags.append(tag)
    tags = [tag for tag in tags if tag not in command.drop]
    event = Tagged(*_head(state, job, command.via, now), command.t, tuple(tags), command.add, command.drop)
    return (event,), None, ()


def tagged(state: EngineState, event: Tagged) -> None:
    job = state.jobs[event.number]
    job.extra = replace(job.extra or Extra(), tags=event.tags)
    for tag in event.gained:
        state.tags.add(job.number, job.jid, tag, event.t)
    state.tags.drop(job.number, job.jid, event.lost, clean=bool(job.extra.throttles))


def edit_dependencies(state: EngineState, command: c.EditDependencies, now: Now) -> Decision[None]:
    job = state.jobs[command.number]
    event = DependenciesEdited(*_head(state, job, command.via, now), command.t, command.depends_on)
    return (event,), None, () if command.depends_on else (job.queue,)


def dependencies_edited(state: EngineState, event: DependenciesEdited) -> None:
    job = state.jobs[event.number]
    placement.remove(state, job)
    if state.unresolved:
        dependents.leave(state, job, event.depends_on)
    extra = job.extra or Extra()
    job.extra = replace(extra, links=replace(extra.links or Links(), depends_on=event.depends_on))
    if event.depends_on:
        placement.insert(state, job)
        return
    history.ready(state, job)
    job.due = 0.0
    insert_into_queue(state, job, job.queue, event.at, event.t, listed=False)


def note(state: EngineState, command: c.Note, now: Now, redact: Redact | None = None) -> Decision[None]:
    job = state.jobs[command.number]
    shown = None if redact is None else redaction.note(redact, job, command.entry.name)
    return (Noted(*_head(state, job, command.via, now), command.t, command.entry, shown),), None, ()


def noted(state: EngineState, event: Noted) -> None:
    job = state.jobs[event.number]
    extra = job.extra or Extra()
    job.extra = replace(extra, history=job_history.add(state, extra.history, event.entry, qless_data(job)))


def cancel(state: EngineState, command: c.Cancel, now: Now) -> Decision[None]:
    job, at = state.jobs[command.number], later(state, now)
    dialect = QlessDialect(uncounted=True) if command.uncounted else None
    event = Removed(at, "canceled", command.via, last_rows([job], at), command.t, dialect)
    return (event,), None, room(state, job) if job.lease is not None else ()


def unfail(state: EngineState, command: c.Unfail, now: Now) -> Decision[int]:
    """Revives the oldest jobs of the group. Stale listings count towards the limit, but they are only unlisted: their
    jobs are not failed any more."""
    count, group = min(command.count, UNFAILED_AT_MOST), state.qless.failed_in.get(command.group)
    oldest = list(group.front(count)) if group is not None else []
    stale = {(order, number) for name, order, number in state.qless.stale_listings.failed if name == command.group}
    if stale:
        oldest = sorted([*oldest, *stale])[: max(0, count)]
    unlisted = tuple((command.group, *listing) for listing in oldest if listing in stale)
    numbers = [number for order, number in oldest if (order, number) not in stale]
    return revive(state, c.Revive(command.via, command.t, command.queue, numbers), now, unlisted)


def revive(
    state: EngineState, command: c.Revive, now: Now, unlisted: tuple[tuple[str, int, Number], ...] = ()
) -> Decision[int]:
    jobs = [
        job
        for number in dict.fromkeys(command.numbers)
        if (job := state.jobs.get(number)) is not None and job.state in (FAILED, DEAD)
    ]
    if not jobs and not unlisted:
        return (), 0, ()
    at = later(state, now)
    event = Revived(at, command.via, command.t, command.queue, last_rows(jobs, at), command.listed, unlisted)
    return (event,), len(jobs), (command.queue,) if jobs else ()


def revived(state: EngineState, event: Revived) -> None:
    for entry in event.unlisted:
        state.qless.stale_listings.unlist(entry)
    for row in event.rows:
        job = state.jobs[row.number]
        placement.remove(state, job)
        extra = without_dependencies(job.extra or Extra())
        put_entry = job_history.entry(HistoryKind.PUT, event.t, event.queue)
        entries = job_history.add(state, extra.history, put_entry, qless_data(job))
        job.extra = replace(extra, history=entries, result=None)
        job.failures = 0
        job.due = 0.0
        insert_into_queue(state, job, event.queue, event.at, event.t, listed=event.listed, waits=False)
