"""Reads of records beside the jobs: batches, progress, locks, bulk loads, scripts, totals, schedules, workers and the
audit trail."""

from collections.abc import Iterator, Mapping, Sequence

from crossdock.engine.records.app_schedules import record_name as app_schedule_name
from crossdock.engine.state import Counters, EngineState, Lock
from crossdock.model.commands.bulk import BulkLoad
from crossdock.model.events import Audited
from crossdock.model.records import Batch, Interval, Outcome, Progress, Schedule

_NOTHING: dict[str, float] = {}


def batch_named(state: EngineState, name: str) -> Batch | None:
    return state.batches.get(name)


def batches_by_name(state: EngineState) -> Mapping[str, Batch]:
    return state.batches


def progress_of(state: EngineState, jid: str) -> Progress | None:
    """The progress that was reported for that jid. It outlives the job for a while."""
    return state.progress.get(jid)


def outcome_of(state: EngineState, jid: str) -> Outcome | None:
    """How a job of that jid ended that was removed."""
    return state.outcomes.get(jid)


def pushed_once(state: EngineState, jid: str, steady: float) -> bool:
    """Whether a push of that jid with `once` is remembered."""
    return state.once.has(jid, steady)


def lock_named(state: EngineState, name: str) -> Lock | None:
    return state.locks.get(name)


def locks_by_name(state: EngineState) -> Mapping[str, Lock]:
    """Unique locks that jobs hold."""
    return state.locks


def load_of_run(state: EngineState, run: str) -> BulkLoad | None:
    return state.loads.by_run.get(run)


def oldest_open_load(state: EngineState) -> BulkLoad:
    """At least one bulk load must be open."""
    return next(load for load in state.loads.by_run.values() if load.closed is None)


def loaded_scripts(state: EngineState) -> Mapping[str, str]:
    """By SHA-1 of a script's text: the dialect it stands for."""
    return state.scripts


def audit_trail(state: EngineState) -> Sequence[Audited]:
    """The last actions of operators, oldest first."""
    return state.audit


def totals(state: EngineState) -> Counters:
    """Jobs processed, failed and evicted, and the time of the last event."""
    return state.counters


# Schedules: cron entries, Resqu plans and qless recurring jobs.


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


def app_schedules(state: EngineState, app: str) -> list[tuple[str, Schedule]]:
    """The schedules that this app has set, by the names that it gave them."""
    prefix = app_schedule_name(app, "")
    return [(name.removeprefix(prefix), each) for name, each in state.schedules.items() if each.app == app]


def app_schedule_count(state: EngineState) -> int:
    return sum(1 for each in state.schedules.values() if each.app)


def recurring_job(state: EngineState, jid: str) -> Interval | None:
    return state.qless.intervals.get(jid)


def recurring_jobs(state: EngineState) -> Mapping[str, Interval]:
    """By jid."""
    return state.qless.intervals


# Workers that give their name when they lease.


def workers_seen(state: EngineState) -> Mapping[str, float]:
    """By worker: when it was last seen, by callers' clocks."""
    return state.workers.seen


def workers_by_age(state: EngineState) -> list[tuple[float, str]]:
    """When each worker was last seen, the most recent last."""
    return state.workers.recent


def leases_by_worker(state: EngineState) -> Mapping[str, dict[str, float]]:
    """By worker and jid: the end of the lease. An entry may outlive its lease."""
    return state.workers.leases


def leases_of_worker(state: EngineState, worker: str) -> Mapping[str, float]:
    """By jid: the end of the lease."""
    return state.workers.leases.get(worker, _NOTHING)
