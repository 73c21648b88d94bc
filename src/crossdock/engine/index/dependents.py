"""Dependents: which jobs wait for a job, and which of them were postponed.

`EngineState.dependents` has the dependents of jobs that may still succeed. When a job with very many dependents
ends, all of them move to `EngineState.unresolved`, and `records.postponed` resolves them in slices. Each of them
names the ended job among its dependencies until its slice comes. If it has changed by then, its entry is ignored.
"""

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from crossdock.engine.job_view import dependencies_of
from crossdock.model.job import Job, Number
from crossdock.model.policies import DependencyLoss, Ending

if TYPE_CHECKING:
    from crossdock.engine.state import EngineState

_FAILS_TOO = DependencyLoss.FAILS_TOO

#: Dependents that one command resolves. More are postponed. No apply function depends on it.
AT_ONCE = 100


class PostponedDependents(msgspec.Struct, array_like=True):
    """Dependents of an ended job. Those in `waiting` are not resolved yet."""

    waiting: dict[Number, None]
    t: float | None = None  #: the caller's time
    first: bool = False  #: dependents that become ready stand before others of their priority


#: The number of the ended job, which may be in use again, and how it ended.
Key: TypeAlias = tuple[Number, Ending]


def add(state: "EngineState", dependency: Number, job: Job) -> None:
    """Enter the job as a dependent."""
    waiting = state.dependents.setdefault(dependency, {})
    if job.number not in waiting:
        waiting[job.number] = None
        if job.policy.lost is _FAILS_TOO:
            state.strict[dependency] = state.strict.get(dependency, 0) + 1


def take(state: "EngineState", dependency: Number, job: Job) -> None:
    """Remove the job as a dependent."""
    waiting = state.dependents[dependency]
    del waiting[job.number]
    if not waiting:
        del state.dependents[dependency]
    if job.policy.lost is _FAILS_TOO:
        state.strict[dependency] -= 1
        if not state.strict[dependency]:
            del state.strict[dependency]


def take_all(state: "EngineState", dependency: Number) -> dict[Number, None]:
    """Remove all dependents of that job, and return them in the order they came."""
    state.strict.pop(dependency, None)
    return state.dependents.pop(dependency, {})


def postponed(state: "EngineState", dependency: Number, number: Number) -> Ending | None:
    """How this dependency of the job ended, if it ended and the job is not resolved yet."""
    for ending in Ending:
        found = state.unresolved.get((dependency, ending))
        if found is not None and number in found.waiting:
            return ending
    return None


def unmet(state: "EngineState", job: Job) -> tuple[Number, ...]:
    """The dependencies of the job, without those that succeeded and are not resolved yet."""
    depends_on = dependencies_of(job)
    if not state.unresolved:
        return depends_on
    return tuple(
        dependency for dependency in depends_on if postponed(state, dependency, job.number) is not Ending.SUCCESS
    )


def leave(state: "EngineState", job: Job, depends_on: tuple[Number, ...]) -> None:
    """The job gets new dependencies: it does not wait for the others any more, nor for an earlier success of one of
    these.
    """
    for dependency in dependencies_of(job):
        for ending in Ending:
            found = state.unresolved.get((dependency, ending))
            if found is not None and (ending is Ending.SUCCESS or dependency not in depends_on):
                found.waiting.pop(job.number, None)
                if not found.waiting:
                    del state.unresolved[dependency, ending]
