"""Dependencies between jobs. `EngineState.dependents` has the dependents of each job, and a blocked job its
dependencies.

A dependency is met by success, and lost when that job can never succeed. `resolve` decides which events follow, in
the same change. If very many jobs wait for one job, `postponed` has moved them out of `dependents` before.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import length_hint
from typing import Final, TypeAlias

from msgspec.structs import replace

from crossdock.engine import hooks
from crossdock.engine.decision import Decision, FollowUps, just_after, later
from crossdock.engine.index import dependents, placement
from crossdock.engine.index.job_table import BLOCK_BITS
from crossdock.engine.job_view import dependencies_of, row
from crossdock.engine.jobs.expire import begun
from crossdock.engine.jobs.retry_policy import FailureReport, exhausted
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import FollowUp, Resolve
from crossdock.model.errors import Damaged
from crossdock.model.events import AnyEvent, DependentsPostponed, Failed, JobRow, Readied, Scheduled
from crossdock.model.job import Job, Number
from crossdock.model.policies import DependencyLoss, Ending
from crossdock.model.states import BLOCKED, GONE, State, move


def met(state: EngineState, follow_ups: FollowUps, number: Number) -> None:
    """That job succeeded. All jobs in `dependents` are resolved in this change."""
    blocks, alone = state.jobs.blocks, (number,)
    freed: list[tuple[Number, bool]] = []
    for waiting in dependents.take_all(state, number):
        job = blocks[waiting >> BLOCK_BITS][waiting]
        extra = job.extra
        if extra is None or extra.links is None:
            raise Damaged(f"job {waiting} is a dependent of job {number}, but has no dependencies")
        links = extra.links
        depends_on = links.depends_on
        if depends_on == alone:
            depends_on = ()
            freed.append((waiting, True))
        else:
            at = depends_on.index(number)
            depends_on = depends_on[:at] + depends_on[at + 1 :]
        job.extra = replace(extra, links=replace(links, depends_on=depends_on))
    if freed:
        follow_ups.append(FollowUp(dependents=freed))


def lost(state: EngineState, follow_ups: FollowUps, number: Number) -> None:
    """That job will never succeed."""
    if number in state.dependents:
        if number not in state.jobs:
            _forget(state, number)
        elif number not in state.strict:
            return  # it is kept, and all of them keep waiting
        follow_ups.append(FollowUp(dependents=((number, False),)))


def _forget(state: EngineState, number: Number) -> None:
    """That job was removed. Dependents that do not wait for it are done."""
    for job in [state.jobs[each] for each in state.dependents[number]]:
        if job.state is not BLOCKED:
            without(job, number)
            dependents.take(state, number, job)


def without(job: Job, dependency: Number) -> None:
    """Remove a dependency of the job."""
    if job.extra is not None and job.extra.links is not None:
        links = job.extra.links
        at = links.depends_on.index(dependency)  # each is there once (`enqueue.resolved`)
        job.extra = replace(
            job.extra, links=replace(links, depends_on=links.depends_on[:at] + links.depends_on[at + 1 :])
        )


# What follows when a dependency was met or lost: the last step of the same change, for a limited number of jobs.
#
# A job whose last dependency was met becomes ready or scheduled. A job that lost a dependency fails without another
# try, and so do its dependents (`FailedDependents`). If there are very many, the rest is postponed.


_NOBODY: Final[dict[Number, Job]] = {}

#: States of a job whose old script recorded dependencies without waiting for them: it becomes ready.
_ELSEWHERE = frozenset({State.READY, State.SCHEDULED, State.RETRYING})


#: A job without dependencies: when it is due, its row, its steady end (0: none, or already set), and whether it waits
#: lazily for its due time. A plain tuple, because there may be very many.
Freed: TypeAlias = tuple[float, JobRow, float, bool]


def resolve(state: EngineState, command: Resolve, now: Now) -> Decision[None]:
    at = later(state, now)
    losing = FailedDependents(state, at, now, dependents.AT_ONCE, command.spared)
    loose: list[Job] = []
    get = state.jobs.blocks.get
    for number, free in command.dependents:
        job = get(number >> BLOCK_BITS, _NOBODY).get(number)
        if not free:
            losing.follow(number, Ending.GONE if job is None else Ending.KEPT)
        elif job is not None and not dependencies_of(job):
            loose.append(job)
    more, queues = release(freed(loose, now), losing.at, now, command.t, first=command.first)
    return [*losing.events(), *more], None, tuple(losing.woken | queues)


def freed(jobs: Iterable[Job], now: Now) -> list[Freed]:
    """Jobs whose dependencies are met. Blocked jobs come first, then those that an old script makes ready anyway."""
    waited: list[Freed] = []
    elsewhere: list[Freed] = []
    for job in jobs:
        extra = job.extra
        links = extra.links if extra is not None else None
        if job.state is BLOCKED:
            end = begun(job, now) if links is not None and links.ttl_s else 0.0
            waited.append((job.due, row(job), end, waits_lazily(job)))
        elif _waits_elsewhere(job):
            elsewhere.append((0.0, row(job), 0.0, False))
    return waited + elsewhere


def _waits_elsewhere(job: Job) -> bool:
    """Whether it did not wait for its dependencies: an old script makes it ready anyway."""
    data = job.extra.protocol_data if job.extra is not None else None
    return data is not None and data.keeps_dependencies() and job.state in _ELSEWHERE


def waits_lazily(job: Job) -> bool:
    data = job.extra.protocol_data if job.extra is not None else None
    return data is not None and data.waits_lazily()


def release(
    freed: Sequence[Freed], at: float, now: Now, t: float | None = None, *, first: bool = False
) -> tuple[list[AnyEvent], dict[str, None]]:
    """The events that free these jobs, and the queues in which one becomes ready."""
    ready: list[JobRow] = []
    later_on: list[JobRow] = []
    ends: list[float] = []
    wall = now.wall
    for due, its_row, end, lazy in freed:
        if lazy or due > wall:
            later_on.append(its_row)
        else:
            ready.append(its_row)
            ends.append(end)
    events: list[AnyEvent] = []
    if ready:
        at = just_after(at)
        events.append(Readied(at, "met", "", ready, tuple(ends) if any(ends) else (), t, first))
    if later_on:
        events.append(Scheduled(at, later_on))
    return events, {each.queue: None for each in ready}


def scheduled(state: EngineState, event: Scheduled) -> None:
    for each in event.rows:
        job = state.jobs[each.number]
        job_state = move(job.state, State.SCHEDULED)
        placement.remove(state, job)
        job.state = job_state
        data = job.extra.protocol_data if job.extra is not None else None
        if data is not None and (hook := hooks.SCHEDULED.get(type(data))) is not None:
            hook(state, job)
        placement.insert(state, job)


# Jobs that lost a dependency, and their dependents in turn: depth first, in the order they came, in slices.


_WAITS_ON = DependencyLoss.WAITS_ON


class FailedDependents:
    """The failures decided so far. Nothing is applied meanwhile, so a job may be found twice and fails once."""

    def __init__(self, state: EngineState, at: float, now: Now, limit: int, spared: Collection[Number] = ()) -> None:
        self._state = state
        self._began = self.at = at
        self._now = now
        self.left = limit  #: how many more dependents may be looked at
        self.woken: dict[str, None] = {}
        self._seen: set[Number] = set(spared)
        self._failed: list[Failed] = []
        self._postponed: list[tuple[Number, Ending]] = []

    def events(self) -> list[AnyEvent]:
        """Postponed dependents come before failures, because the end of a job must not find its dependents any more."""
        put_off = [DependentsPostponed(self._began, *each) for each in self._postponed]
        return [*put_off, *self._failed]

    def lose(self, job: Job, dependency: Number) -> None:
        """The job lost that dependency. Its dependents follow, or are postponed if the limit is reached."""
        ending = self._fail(job, dependency)
        if ending is not None:
            self.follow(job.number, ending)

    def follow(self, number: Number, ending: Ending) -> None:
        """Fail the dependents of a job that ended without success. Without recursion: a chain may be as long as
        there are jobs.
        """
        jobs, dependents = self._state.jobs, self._state.dependents
        path: list[tuple[Number, Ending, Iterator[Number]]] = []
        self._enter(path, number, ending)
        while path and self.left:
            dependency, how, rest = path[-1]
            each = next(rest, None)
            if each is None:
                path.pop()
                continue
            self.left -= 1
            job = jobs[each]
            if job.state is not BLOCKED or each in self._seen or (how is Ending.KEPT and job.policy.lost is _WAITS_ON):
                continue
            its_end = self._fail(job, dependency)
            if its_end is not None and each in dependents:
                self._enter(path, each, its_end)
        # What was postponed last is resolved first: the deepest dependents of this job, and this job before the next
        # ones.
        self._postponed[:0] = [(dependency, how) for dependency, how, rest in path if length_hint(rest)]

    def _enter(self, path: list[tuple[Number, Ending, Iterator[Number]]], number: Number, ending: Ending) -> None:
        waiting = self._state.dependents.get(number)
        if waiting is not None and (ending is Ending.GONE or number in self._state.strict):
            path.append((number, ending, iter(waiting)))

    def _fail(self, job: Job, dependency: Number) -> Ending | None:
        """Returns None if the job has already failed in this change."""
        if job.number in self._seen:
            return None
        self._seen.add(job.number)
        event = exhausted(job, None, self.at, self._now, _report(dependency, job.policy.lost))
        self.at = event.at
        self._failed.append(event)
        if event.to_queue:
            self.woken[event.to_queue] = None
        return Ending.GONE if event.then is GONE else Ending.KEPT


@lru_cache(maxsize=16)
def _report(dependency: Number, lost: DependencyLoss) -> FailureReport:
    """The same report for all dependents of that job."""
    group = "dependency-lost" if lost is DependencyLoss.WAITS_ON else "need-lost"
    return FailureReport("", "", group, f"job {dependency}, which it needed, cannot succeed", counted=False)
