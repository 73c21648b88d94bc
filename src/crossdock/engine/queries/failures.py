"""Reads of failed jobs, kept or dead, by the group of their last error."""

from collections.abc import Mapping

from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.state import EngineState
from crossdock.model.job import Job, Number


def failure_groups(state: EngineState) -> Mapping[str, SortedList[tuple[float, Number]]]:
    """By group: minus the time of the failure, and the job's number, the newest first."""
    return state.failures.groups


def failure_group(state: EngineState, name: str) -> SortedList[tuple[float, Number]] | None:
    return state.failures.groups.get(name)


def newest_failure(state: EngineState, group: SortedList[tuple[float, Number]]) -> Job:
    return state.jobs[group.first()[1]]
