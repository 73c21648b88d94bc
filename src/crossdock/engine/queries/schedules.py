"""Reads of what creates jobs by time: cron entries, Resqu's plans and qless' recurring jobs."""

from collections.abc import Iterator, Mapping

from crossdock.engine.state import EngineState
from crossdock.model.records import Interval, Schedule


def schedules_by_name(state: EngineState) -> Mapping[str, Schedule]:
    """Cron entries and plans."""
    return state.schedules


def schedule_count(state: EngineState) -> int:
    return len(state.schedules)


def schedules_due(state: EngineState, start: float, stop: float) -> Iterator[Schedule]:
    """Schedules whose next run is at `start` or later and before `stop`, in order."""
    runs = state.next_runs
    due = runs.islice(runs.bisect_left((start, "")), runs.bisect_left((stop, "")))
    return (state.schedules[name] for _, name in due)


def recurring_job(state: EngineState, jid: str) -> Interval | None:
    return state.qless.intervals.get(jid)


def recurring_jobs(state: EngineState) -> Mapping[str, Interval]:
    """By jid."""
    return state.qless.intervals
