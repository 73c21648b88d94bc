"""Reads of jobs: by number, by jid, by state, by failure group, and the dependents of a job."""

from collections.abc import Iterable, Iterator, Mapping

from crossdock.engine.index.dependents import unmet
from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.state import EngineState
from crossdock.model.job import Job, Number
from crossdock.model.states import SCHEDULED, State

_NO_DEPENDENTS: dict[Number, None] = {}


def job_by_number(state: EngineState, number: Number) -> Job | None:
    return state.jobs.get(number)


def jobs_by_number(state: EngineState) -> Mapping[Number, Job]:
    """All jobs. A number that an index lists is always in it."""
    return state.jobs


def indexed_jobs(state: EngineState, numbers: Iterable[Number]) -> Iterator[Job]:
    """The jobs of numbers that an index lists, in the same order."""
    return map(state.jobs.__getitem__, numbers)


def job_count(state: EngineState) -> int:
    return len(state.jobs)


def last_job_number(state: EngineState) -> Number:
    """The number of the newest job. The next job gets the number after it."""
    return state.counters.number


def newest_job(state: EngineState, jid: str) -> Job | None:
    """The newest live or kept job of that jid."""
    number = state.jids.newest(jid)
    return None if number is None else state.jobs[number]


def jobs_of_jid(state: EngineState, jid: str) -> Iterator[Job]:
    """All live or kept jobs of that jid, oldest first."""
    return state.named(jid)


def has_jid(state: EngineState, jid: str) -> bool:
    return jid in state.jids


def jids(state: EngineState) -> Iterator[str]:
    return iter(state.jids)


def state_index(state: EngineState, job_state: State) -> SortedList[tuple[float, Number]]:
    """Due time and number of the jobs in that state, in order. Ready jobs are in the indexes of their queues."""
    return state.by_state[job_state]


def indexed_states(state: EngineState) -> Mapping[State, SortedList[tuple[float, Number]]]:
    """`state_index` of every state that has one."""
    return state.by_state


def jobs_in_state(state: EngineState, job_state: State) -> Iterator[Job]:
    """The jobs of `state_index`, in order."""
    jobs = state.jobs
    return (jobs[number] for _, number in state.by_state[job_state])


def scheduled_jobs(state: EngineState, start: float, stop: float) -> Iterator[Job]:
    """Scheduled jobs whose time is `start` or later and before `stop`, in order. Times by a caller's clock do not
    count."""
    jobs = state.jobs
    return (jobs[number] for _, number in state.by_state[SCHEDULED].irange((start, 0), (stop, 0)))


def dependents_of(state: EngineState, job: Job) -> Mapping[Number, None]:
    """The numbers of the jobs that wait for this one, in the order they came."""
    return state.dependents.get(job.number, _NO_DEPENDENTS)


def unmet_dependencies(state: EngineState, job: Job) -> tuple[Number, ...]:
    """The dependencies of a blocked job, without those that succeeded and are not resolved yet."""
    return unmet(state, job)


# Failed jobs, kept or dead, by the group of their last error.


def failure_groups(state: EngineState) -> Mapping[str, SortedList[tuple[float, Number]]]:
    """By group: the negative time of the failure and the number of the job, the newest first."""
    return state.failures.groups


def failure_group(state: EngineState, name: str) -> SortedList[tuple[float, Number]] | None:
    return state.failures.groups.get(name)


def newest_failure(state: EngineState, group: SortedList[tuple[float, Number]]) -> Job:
    return state.jobs[group.first()[1]]
