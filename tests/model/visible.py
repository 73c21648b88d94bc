"""Everything that a client or an operator can see, in one form for the engine's state and for the reference."""

from collections import Counter
from typing import Any, Final

import pytest

from crossdock.engine.job_view import dependencies_of
from crossdock.engine.state import EngineState
from crossdock.model.clock import DAY
from crossdock.model.job import Callback, Job
from crossdock.model.records import Batch
from crossdock.model.states import State
from tests.model.reference.commands import Reference
from tests.model.reference.jobs import Job as ReferenceJob
from tests.model.reference.records import Group as ReferenceGroup

STATES: Final = (
    State.SCHEDULED,
    State.BLOCKED,
    State.RETRYING,
    State.LEASED,
    State.DEAD,
    State.COMPLETE,
    State.FAILED,
)
LEASE: Final = ("token", "via", "worker", "at", "began", "end", "wait_s", "bound")
ERROR: Final = ("group", "message", "backtrace", "first_at", "at", "next_at", "lost")
TRACK: Final = ("state", "updated", "percent", "text", "until")


def nearly(seconds: float | None) -> Any:
    """A wait with tolerance for rounding: wall times have a precision of a quarter of a microsecond."""
    return None if seconds is None else pytest.approx(seconds, abs=1e-5)


def of_engine(state: EngineState) -> dict[str, Any]:
    counters = state.counters
    return {
        "jobs": {job.number: _job(job) for job in state.jobs.values()},
        "jids": {jid: [job.number for job in state.named(jid)] for jid in state.jids},
        "queues": [(queue.name, queue.first_seen, queue.paused) for queue in state.queues.values()],
        "ready": {queue.name: [sort_key[4] for sort_key in queue.ready] for queue in state.queues.values()},
        "by state": {job_state: [number for _, number in state.by_state[job_state]] for job_state in STATES},
        "oldest": {queue.name: queue.oldest(state.jobs) for queue in state.queues.values()},
        "numbers": (counters.number, counters.token, counters.first_token, counters.epoch, counters.at),
        "counts": (counters.processed, counters.failures, counters.evicted),
        "by queue": _by_queue(state),
        "stats": {
            (queue, start // DAY): (page.wait.n, page.run.n, page.failures)
            for queue, days in state.stats.days.items()
            for start, page in days.items()
        },
        "locks": {name: (lock.holder, lock.end) for name, lock in state.locks.items()},
        "progress": {jid: tuple(getattr(track, name) for name in TRACK) for jid, track in state.progress.items()},
        "groups": {group.name: _group(group) for group in state.batches.values()},
        "throttles": [(each.queue, each.maximum, each.per, each.timeout_s) for each in state.throttles.values()],
        "schedules": state.schedules,
    }


def _by_queue(state: EngineState) -> dict[str, Any]:
    return {
        "leased": Counter(state.leased_in),  # a Counter treats missing as zero
        "retrying": Counter({name: len(order) for name, order in state.retrying_in.items()}),
        "scheduled": {name: [key[2] for key in order] for name, order in state.scheduled_in.items()},
    }


def _reference_by_queue(model: Reference) -> dict[str, Any]:
    jobs = model.jobs.values()
    scheduled = [job for job in jobs if job.state is State.SCHEDULED]
    scheduled.sort(key=lambda job: (-job.spec.priority, job.due, job.number))
    return {
        "leased": Counter(job.queue for job in jobs if job.state is State.LEASED),
        "retrying": Counter(job.queue for job in jobs if job.state is State.RETRYING),
        "scheduled": {
            name: [job.number for job in scheduled if job.queue == name] for name in {job.queue for job in scheduled}
        },
    }


def _group(group: Batch) -> dict[str, Any]:
    return {
        "opened": (group.name, group.via, group.parent, group.description, group.complete, group.success),
        "times": (group.created, group.end),
        "members": (group.total, group.pending, group.bad),
        "callbacks": (group.committed, group.called, group.answered, group.finished),
        "children": (group.open_complete, group.open_success),
    }


def _job(job: Job) -> dict[str, Any]:
    lease = job.lease
    error = job.extra.error if job.extra else None
    return {
        "pushed": (job.jid, job.queue, job.kind, job.payload, job.form, job.priority, job.policy, job.origin),
        "state": job.state,
        "times": (job.created, job.since, job.due),
        "tries": (job.attempts, job.failures),
        "depends on": list(dependencies_of(job)) if job.state is State.BLOCKED else [],
        "end": job.end,
        "result": job.extra.result if job.extra else None,
        "deadqueue": (job.extra.deadqueue, job.extra.spent) if job.extra else ("", False),
        "custom": job.extra.custom if job.extra else b"",
        "protocol data": job.extra.protocol_data if job.extra else None,
        "lease": lease and tuple(getattr(lease, name) for name in LEASE),
        "error": error and tuple(getattr(error, name) for name in ERROR),
    }


def of_reference(model: Reference) -> dict[str, Any]:
    jobs = model.jobs.values()
    jids: dict[str, list[int]] = {}
    for job in jobs:
        jids.setdefault(job.spec.jid, []).append(job.number)
    return {
        "jobs": {job.number: _reference_job(job) for job in jobs},
        "jids": jids,
        "queues": [(name, queue.first_seen, queue.paused) for name, queue in model.queues.items()],
        "ready": {name: [job.number for job in model.ready(name)] for name in model.queues},
        "by state": {state: [job.number for job in model.in_state(state)] for state in STATES},
        "oldest": {name: _oldest(model.ready(name)) for name in model.queues},
        "numbers": (model.number, model.token, model.first_token, model.epoch, model.at),
        "counts": (model.processed, model.failures, model.evicted),
        "by queue": _reference_by_queue(model),
        "stats": _days(model),
        "locks": {name: (lock.holder, lock.end) for name, lock in model.records.locks.items()},
        "progress": {jid: tuple(getattr(track, name) for name in TRACK) for jid, track in model.records.tracks.items()},
        "groups": {name: _reference_group(group) for name, group in model.records.groups.items()},
        "throttles": [(name, each.maximum, each.per, each.timeout_s) for name, each in model.throttles.items()],
        "schedules": model.schedules,
    }


def _oldest(ready: list[ReferenceJob]) -> float | None:
    """The earliest of the first jobs of each priority and band, which have waited longest there."""
    heads: dict[tuple[float, int], float] = {}
    for job in ready:
        heads.setdefault((job.spec.priority, job.band), job.since)
    return min(heads.values(), default=None)


def _reference_group(group: ReferenceGroup) -> dict[str, Any]:
    opened, members = group.opened, group.members
    return {
        "opened": (opened.name, opened.via, opened.parent, opened.description, opened.complete, opened.success),
        "times": (group.created, group.end),
        "members": (
            len(members),
            sum(how != "good" for how in members.values()),
            {number for number, how in members.items() if how == "bad"},
        ),
        "callbacks": (group.committed, sum(group.called), sum(group.answered), sum(group.finished)),
        "children": tuple(len(group.unfinished[call]) for call in (Callback.COMPLETE, Callback.SUCCESS)),
    }


def _reference_job(job: ReferenceJob) -> dict[str, Any]:
    spec, lease, error, extra = job.spec, job.lease, job.error, job.spec.extra
    return {
        "pushed": (spec.jid, spec.queue, spec.kind, spec.payload, spec.form, spec.priority, spec.policy, job.origin),
        "state": job.state,
        "times": (job.created, job.since, job.due),
        "tries": (job.attempts, job.failures),
        "depends on": job.depends_on if job.state is State.BLOCKED else [],
        "end": job.end,
        "result": job.result,
        "deadqueue": (job.deadqueue, job.spent),
        "custom": extra.custom if extra else b"",
        "protocol data": extra.protocol_data if extra else None,
        "lease": lease and tuple(getattr(lease, name) for name in LEASE),
        "error": error and tuple(getattr(error, name) for name in ERROR),
    }


def _days(model: Reference) -> dict[tuple[str, int], tuple[int, int, int]]:
    """Counts of each statistic on the retained days: the last 30 up to the newest day of each queue."""
    newest: dict[str, int] = {}
    pages: dict[tuple[str, int], list[str]] = {}
    for queue, day, what, _ in model.booked:
        newest[queue] = max(day, newest.get(queue, day))
        pages.setdefault((queue, day), []).append(what)
    return {
        (queue, day): (what.count("wait"), what.count("run"), what.count("failure"))
        for (queue, day), what in pages.items()
        if day > newest[queue] - 30
    }
