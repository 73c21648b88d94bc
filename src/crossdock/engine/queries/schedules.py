"""Reads of what creates jobs by time: cron entries, Resqu's plans and qless' recurring jobs."""

from collections.abc import Iterator, Mapping

from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.state import EngineState
from crossdock.model.records import Interval, Schedule


def schedules_by_name(state: EngineState) -> Mapping[str, Schedule]:
    """Cron entries and plans."""
    return state.schedules


def schedule_count(state: EngineState) -> int:
    return len(state.schedules)


def next_runs(state: EngineState) -> SortedList[tuple[float, str]]:
    """Time and name of every schedule's next run, in order."""
    return state.next_runs


def schedules_due(state: EngineState, start: int, stop: int) -> Iterator[Schedule]:
    """Schedules by the rank of their next run."""
    return (state.schedules[name] for _, name in state.next_runs.islice(start, stop))


def recurring_job(state: EngineState, jid: str) -> Interval | None:
    return state.intervals.get(jid)


def recurring_jobs(state: EngineState) -> Mapping[str, Interval]:
    """By jid."""
    return state.intervals
