"""Updates a job's qless history and display fields when events are applied (qless.md section 4).

An event of another protocol has no caller's clock and is recorded with the server's wall time. The setting
`max-job-history` limits the history: the first entry and the last ones are kept.
"""

from math import floor
from typing import Any

from msgspec.structs import replace

from crossdock.engine.job_view import failed_at, qless_data
from crossdock.engine.records import job_history
from crossdock.engine.records.stats import CURRENTLY_FAILED
from crossdock.engine.state import EngineState
from crossdock.model import stats_retention
from crossdock.model.events import Failed, Leased
from crossdock.model.job import Extra, Job, Lease, Result
from crossdock.model.protocol_data import HistoryEntry, HistoryKind, QlessData
from crossdock.model.states import State

# Module constants, because looking up an enum member costs as much as a call.
_POPPED = HistoryKind.POPPED
_DONE = HistoryKind.DONE


def number(state: EngineState, option: str, default: float) -> float:
    """A numeric setting, parsed as the scripts do. A value that is not a number counts as the default."""
    return stats_retention.number(state.qless.config.get(option), default)


def lines(job: Job) -> tuple[HistoryEntry, ...]:
    """A job's history. For a job of another protocol, put and popped entries are derived from its fields and its notes
    stand between them."""
    recorded = job.extra.history if job.extra is not None else ()
    if qless_data(job) is not None:
        return recorded
    put = HistoryEntry(float(floor(job.created)), HistoryKind.PUT, job.queue)
    if job.lease is None:
        return (put, *recorded)
    popped_at = job.lease.at if job.lease.t is None else job.lease.t
    return (put, *recorded, HistoryEntry(float(floor(popped_at)), HistoryKind.POPPED, job.lease.worker))


def write(
    state: EngineState, job: Job, protocol_data: QlessData, line: HistoryEntry | None = None, **changes: Any
) -> None:
    """Replaces the job's qless data and appends a history entry, if one is given."""
    extra = job.extra or Extra()
    lines = extra.history if line is None else job_history.add(state, extra.history, line, protocol_data)
    job.extra = replace(extra, protocol_data=protocol_data, history=lines, **changes)


def leased(state: EngineState, job: Job, event: Leased) -> None:
    extra = job.extra
    protocol_data = extra.protocol_data if extra is not None else None
    if extra is not None and type(protocol_data) is QlessData:
        t = event.at if event.t is None else event.t
        if state.qless.stray_entries.jobs:
            state.qless.stray_entries.popped(job.number, job.queue)
        shown = replace(protocol_data, time=t, due=None, state="", worker="", expires=event.until or 0.0)
        lines = job_history.add(state, extra.history, HistoryEntry(t // 1, _POPPED, event.worker), protocol_data)
        job.extra = replace(extra, protocol_data=shown, history=lines)


def returned(state: EngineState, job: Job, lease: Lease) -> None:
    """Undoes `leased` for a lease that was given back unused: its popped entry goes, and the job's time is reset."""
    protocol_data = qless_data(job)
    if protocol_data is not None and job.extra is not None:
        lines = job.extra.history
        if lines and lines[-1].what is HistoryKind.POPPED:
            lines = lines[:-1]
        job.extra = replace(
            job.extra, protocol_data=replace(protocol_data, time=protocol_data.time - lease.wait_s), history=lines
        )


def succeeded(state: EngineState, job: Job, t: float, result: Result) -> None:
    """Records a success. The job stays listed as complete, with its result."""
    extra, protocol_data = job.extra, qless_data(job)
    if extra is None or protocol_data is None:
        return
    shown = replace(protocol_data, time=t, due=None, state="", worker="", expires=0.0, queue="")
    job.failures = 0
    lines = job_history.add(state, extra.history, HistoryEntry(t // 1, _DONE), protocol_data)
    job.extra = replace(extra, protocol_data=shown, history=lines, error=None, result=result)


def failed(state: EngineState, job: Job, event: Failed, lease: Lease | None) -> None:
    """Records a failure. The job is in its new state already, and the failure itself is stored by the caller."""
    protocol_data = qless_data(job)
    if protocol_data is None:
        return
    t = event.at if event.t is None else event.t
    if job.state is State.FAILED:
        state.counters.failed += 1
        shown = replace(protocol_data, due=None, state="", worker="", expires=0.0, order=state.counters.failed)
        worker = "" if event.counted or not event.token else event.failure.worker or event.worker
        # The per-script dialect shows the time of exhausted retries with its fraction (qless.md section 6).
        what = HistoryKind.EXHAUSTED if event.counted and event.token and not event.lost else HistoryKind.FAILED
        line = HistoryEntry(float(floor(t)) if worker else t, what, worker, event.failure.group)
        warned = job.extra is not None and job.extra.warned and not event.counted
        write(state, job, shown, line, warned=warned)
    elif lease is not None:
        due = event.due_t if event.due_t is not None or job.state is not State.RETRYING else event.due
        write(state, job, replace(protocol_data, due=due, worker=lease.worker), warned=False)


def leave_lock(state: EngineState, job: Job, lease: Lease | None, under: str) -> None:
    """Leaves a stray lock in the job's queue: the script named another queue and removed the job only from that one."""
    if lease is not None and lease.until is not None and qless_data(job) is not None:
        state.qless.stray_entries.out_of(job.number, under)
        state.qless.stray_entries.add(locks=[(job.queue, (lease.until, job.jid, job.number))])


def move_keeping_shown_queue(job: Job, queue: str) -> None:
    """Moves a job to another queue while it still shows its own, as a retry that names another queue does
    (qless.md section 5)."""
    protocol_data = qless_data(job)
    if protocol_data is not None and job.extra is not None:
        job.extra = replace(job.extra, protocol_data=replace(protocol_data, queue=protocol_data.queue or job.queue))
        job.queue = queue


def renewed(state: EngineState, job: Job, until: float) -> None:
    protocol_data = qless_data(job)
    if protocol_data is not None:
        write(state, job, replace(protocol_data, expires=until))


def ready(state: EngineState, job: Job) -> None:
    """Clears the due time and the displayed state of a job that becomes ready."""
    protocol_data = qless_data(job)
    if protocol_data is not None:
        write(state, job, replace(protocol_data, due=None, state=""))


def unfailed(state: EngineState, job: Job, queue: str) -> None:
    """Subtracts a job that stops being failed from the `failed` count of the day it failed on."""
    at = failed_at(job)
    if at is not None:
        state.stats.book(queue, at, CURRENTLY_FAILED, -1.0)
