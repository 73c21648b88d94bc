"""Which jobs wait for a job, and which of them still have to learn how it ended.

`EngineState.dependents` has the dependents of jobs that may still succeed. When a job ends that very many wait for,
they move to `EngineState.unresolved` as a whole, and `postponing` resolves them a slice at a time. Each of them names
the ended job among its needs until its own slice comes. If it has moved on by then, its entry is passed over.
"""

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from crossdock.engine.job_view import dependencies_of
from crossdock.model.job import Job, Number
from crossdock.model.policies import DependencyLoss, Ending

if TYPE_CHECKING:
    from crossdock.engine.state import EngineState

_FAILS_TOO = DependencyLoss.FAILS_TOO

#: Dependents that one command resolves by itself; beyond it they are postponed. Nothing in the fold depends on it.
AT_ONCE = 100


class PostponedDependents(msgspec.Struct, array_like=True):
    """Dependents of a job that ended; those in `waiting` do not know it yet."""

    waiting: dict[Number, None]
    t: float | None = None  #: its caller's time
    first: bool = False  #: those that become ready stand before their like


#: The number of the job that ended, which may be in use again, and how it ended.
Key: TypeAlias = tuple[Number, Ending]


def add(state: "EngineState", dependency: Number, job: Job) -> None:
    """The job waits for that one."""
    waiting = state.dependents.setdefault(dependency, {})
    if job.number not in waiting:
        waiting[job.number] = None
        if job.policy.lost is _FAILS_TOO:
            state.strict[dependency] = state.strict.get(dependency, 0) + 1


def take(state: "EngineState", dependency: Number, job: Job) -> None:
    """It does not wait for that one any more."""
    waiting = state.dependents[dependency]
    del waiting[job.number]
    if not waiting:
        del state.dependents[dependency]
    if job.policy.lost is _FAILS_TOO:
        state.strict[dependency] -= 1
        if not state.strict[dependency]:
            del state.strict[dependency]


def take_all(state: "EngineState", dependency: Number) -> dict[Number, None]:
    """All that waited for that one, in the order they came."""
    state.strict.pop(dependency, None)
    return state.dependents.pop(dependency, {})


def postponed(state: "EngineState", dependency: Number, number: Number) -> Ending | None:
    """How that need of that job ended, if it ended and the job does not know it yet."""
    for ending in Ending:
        found = state.unresolved.get((dependency, ending))
        if found is not None and number in found.waiting:
            return ending
    return None


def unmet(state: "EngineState", job: Job) -> tuple[Number, ...]:
    """What the job still needs; what succeeded without its knowledge is left out."""
    depends_on = dependencies_of(job)
    if not state.unresolved:
        return depends_on
    return tuple(
        dependency for dependency in depends_on if postponed(state, dependency, job.number) is not Ending.SUCCESS
    )


def leave(state: "EngineState", job: Job, depends_on: tuple[Number, ...]) -> None:
    """The job gets new needs. It does not wait for the others any more, nor for an earlier success of one of these."""
    for dependency in dependencies_of(job):
        for ending in Ending:
            found = state.unresolved.get((dependency, ending))
            if found is not None and (ending is Ending.SUCCESS or dependency not in depends_on):
                found.waiting.pop(job.number, None)
                if not found.waiting:
                    del state.unresolved[dependency, ending]
