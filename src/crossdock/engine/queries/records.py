"""Reads of records beside the jobs: batches of Faktory, progress, unique locks, bulk loads, scripts, totals."""

from collections.abc import Mapping

from crossdock.engine.state import Counters, EngineState, Lock
from crossdock.model.commands.bulk import BulkLoad
from crossdock.model.records import Batch, Progress


def batch_named(state: EngineState, name: str) -> Batch | None:
    return state.batches.get(name)


def batches_by_name(state: EngineState) -> Mapping[str, Batch]:
    return state.batches


def progress_of(state: EngineState, jid: str) -> Progress | None:
    """The progress that was reported for that jid. It outlives the job for a while."""
    return state.progress.get(jid)


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


def totals(state: EngineState) -> Counters:
    """Jobs processed, failed and evicted, and the time of the last event."""
    return state.counters
