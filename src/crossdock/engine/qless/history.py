"""What every event writes into a job with qless' face: its history, and what is shown of it (doors, question 10).

Events of other doors count with the server's time. History keeps the first entry and the last ones, as configured.
"""

from math import floor
from typing import Any

from msgspec.structs import replace

from crossdock.engine.job_view import failed_at, qless_data
from crossdock.engine.records.stats import CURRENTLY_FAILED
from crossdock.engine.state import EngineState
from crossdock.model import stats_retention
from crossdock.model.events import Failed, Leased
from crossdock.model.job import Extra, Job, Lease, Result
from crossdock.model.protocol_data import HistoryEntry, HistoryKind, QlessData
from crossdock.model.states import (
    State,
)

_HISTORY_DEFAULT = 100
_HISTORY_AT_MOST = 1_000  #: whatever is configured, and of a script that knows no limit: all of it is in every reply

# Looked up once: a member of an enumeration costs as much as a call.
_POPPED = HistoryKind.POPPED
_DONE = HistoryKind.DONE


def history(
    state: EngineState, entries: tuple[HistoryEntry, ...], entry: HistoryEntry, protocol_data: QlessData | None = None
) -> tuple[HistoryEntry, ...]:
    """With one more, cut to `max-job-history` (protocol page, qless 4, P1)."""
    if not state.config and len(entries) < _HISTORY_DEFAULT - 1:  # as most are: within any limit
        return (*entries, entry)
    keep: float = _HISTORY_DEFAULT
    if protocol_data is not None and protocol_data.old:
        keep = _HISTORY_AT_MOST
    elif state.config:
        keep = number(state, "max-job-history", _HISTORY_DEFAULT)
        keep = min(keep, _HISTORY_AT_MOST) if keep > 0 else _HISTORY_AT_MOST
    if keep <= len(entries) + 1:
        entries = entries[:1] + entries[1:][2 - int(keep) :]
    if len(entries) >= _HISTORY_AT_MOST:  # to the script 2 is no limit
        entries = entries[:1] + entries[2 - _HISTORY_AT_MOST :]
    return (*entries, entry)


def number(state: EngineState, option: str, default: float) -> float:
    """A setting that is a number, as the scripts read them; what is none counts as the default."""
    return stats_retention.number(state.config.get(option), default)


def lines(job: Job) -> tuple[HistoryEntry, ...]:
    """A job's history: of another door's what its fields tell, and what was written into it by hand."""
    written = job.extra.history if job.extra is not None else ()
    if qless_data(job) is not None:
        return written
    told = HistoryEntry(float(floor(job.created)), HistoryKind.PUT, job.queue)
    if job.lease is None:
        return (told, *written)
    begun = job.lease.at if job.lease.t is None else job.lease.t
    return (told, *written, HistoryEntry(float(floor(begun)), HistoryKind.POPPED, job.lease.worker))


def entry(what: HistoryKind, t: float, name: str = "", group: str = "", data: bytes = b"") -> HistoryEntry:
    return HistoryEntry(float(floor(t)), what, name, group, data)


def write(
    state: EngineState, job: Job, protocol_data: QlessData, line: HistoryEntry | None = None, **changes: Any
) -> None:
    """A new face, and a line of history with it."""
    extra = job.extra or Extra()
    lines = extra.history if line is None else history(state, extra.history, line, protocol_data)
    job.extra = replace(extra, protocol_data=protocol_data, history=lines, **changes)


def leased(state: EngineState, job: Job, extra: Extra, event: Leased) -> None:
    protocol_data = extra.protocol_data
    if type(protocol_data) is QlessData:
        t = event.at if event.t is None else event.t
        if state.stray_entries.jobs:
            state.stray_entries.popped(job.number, job.queue)
        shown = replace(protocol_data, time=t, due=None, state="", worker="", expires=event.until or 0.0)
        lines = history(state, extra.history, HistoryEntry(t // 1, _POPPED, event.worker), protocol_data)
        job.extra = replace(extra, protocol_data=shown, history=lines)


def returned(state: EngineState, job: Job, lease: Lease) -> None:
    """A lease that nobody saw leaves no trace."""
    protocol_data = qless_data(job)
    if protocol_data is not None and job.extra is not None:
        lines = job.extra.history
        if lines and lines[-1].what is HistoryKind.POPPED:
            lines = lines[:-1]
        job.extra = replace(
            job.extra, protocol_data=replace(protocol_data, time=protocol_data.time - lease.wait_s), history=lines
        )


def succeeded(state: EngineState, job: Job, extra: Extra, protocol_data: QlessData, t: float, result: Result) -> None:
    """It is kept, and what it left behind with it."""
    shown = replace(protocol_data, time=t, due=None, state="", worker="", expires=0.0, queue="")
    job.failures = 0
    lines = history(state, extra.history, HistoryEntry(t // 1, _DONE), protocol_data)
    job.extra = replace(extra, protocol_data=shown, history=lines, error=None, result=result)


def failed(state: EngineState, job: Job, event: Failed, lease: Lease | None) -> None:
    """Its state is what it is now; the failure was noted before, if it was to be."""
    protocol_data = qless_data(job)
    if protocol_data is None:
        return
    t = event.at if event.t is None else event.t
    if job.state is State.FAILED:
        state.counters.failed += 1
        shown = replace(protocol_data, due=None, state="", worker="", expires=0.0, order=state.counters.failed)
        who = "" if event.counted or not event.token else event.failure.worker or event.worker
        # When tries were over the oldest dialect tells to the fraction of a second.
        what = HistoryKind.EXHAUSTED if event.counted and event.token and not event.lost else HistoryKind.FAILED
        line = HistoryEntry(float(floor(t)) if who else t, what, who, event.failure.group)
        warned = job.extra is not None and job.extra.warned and not event.counted
        write(state, job, shown, line, warned=warned)
    elif lease is not None:
        due = event.due_t if event.due_t is not None or job.state is not State.RETRYING else event.due
        write(state, job, replace(protocol_data, due=due, worker=lease.worker), warned=False)


def elsewhere(job: Job, queue: str) -> None:
    """It stands in another queue now, and does not say so (protocol page, qless 5, retry)."""
    protocol_data = qless_data(job)
    if protocol_data is not None and job.extra is not None:
        job.extra = replace(job.extra, protocol_data=replace(protocol_data, queue=protocol_data.queue or job.queue))
        job.queue = queue


def renewed(state: EngineState, job: Job, until: float) -> None:
    protocol_data = qless_data(job)
    if protocol_data is not None:
        write(state, job, replace(protocol_data, expires=until))


def ready(state: EngineState, job: Job) -> None:
    """It need not wait any more."""
    protocol_data = qless_data(job)
    if protocol_data is not None:
        write(state, job, replace(protocol_data, due=None, state=""))


def unfailed(state: EngineState, job: Job, queue: str) -> None:
    """A kept failure is one no longer: it is taken off the count of the day it happened on."""
    at = failed_at(job)
    if at is not None:
        state.stats.book(queue, at, CURRENTLY_FAILED, -1.0)
