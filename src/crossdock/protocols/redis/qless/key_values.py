"""The values of the keys that the qless view shows, built from the engine's state (qless.md section 2)."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from math import inf
from typing import Final

from crossdock.engine.job_view import dependencies_of, qless_data
from crossdock.engine.keyspace.store import Entry, Sorted
from crossdock.engine.qless import history as qless_history
from crossdock.engine.qless import queries
from crossdock.engine.queries.jobs import dependents_of, indexed_jobs, jobs_by_number, jobs_in_state, newest_job
from crossdock.engine.queries.queues import delayed_count, delayed_jobs, leased_count, queue_named, waiting_count
from crossdock.engine.queries.records import recurring_job
from crossdock.engine.records.stats import Moments, coarse
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.keyspace import Kind
from crossdock.model.protocol_data import HistoryKind
from crossdock.model.states import State
from crossdock.protocols.redis.qless import cjson, job
from crossdock.protocols.redis.qless.call import Dialect


def text(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def scores(pairs: Iterator[tuple[str, float]]) -> Entry:
    return Entry(Kind.SORTED, Sorted({text(member): float(score) for member, score in pairs}))


def number(value: float) -> bytes:
    """Integers without a point, other numbers with as few digits as are needed to read them back."""
    if abs(value) < 2**52 and value == int(value):
        return b"%d" % int(value)
    return repr(value).encode()


def fields(values: dict[str, str | int | float]) -> Entry:
    return Entry(
        Kind.HASH,
        {text(name): text(value) if isinstance(value, str) else number(float(value)) for name, value in values.items()},
    )


def elements(values: Iterator[str]) -> Entry:
    return Entry(Kind.LIST, deque(text(value) for value in values))


def members(values: Iterator[str]) -> Entry:
    return Entry(Kind.SET, {text(value): None for value in values})


def job_fields(state: EngineState, name: str, dialect: Dialect) -> Entry | None:
    found = newest_job(state, name)
    if found is None:
        return None
    protocol_data = qless_data(found)
    values: dict[str, str | int | float] = {
        "jid": found.jid,
        "klass": found.kind,
        "data": job.data(found),
        "priority": dialect.flipped(found.priority),
        "tags": cjson.write(list(found.extra.tags) if found.extra is not None else []),
        "state": job.state_name(found),
        "worker": job.worker(found),
        "expires": "" if found.state is State.FAILED and protocol_data is not None else job.expires(found),
        "queue": job.queue(found),
        "retries": job.retries(found),
        "remaining": job.remaining(found),
        "time": f"{found.since if protocol_data is None else protocol_data.time:.20f}",
    }
    failure, lines = job.failure(found), qless_history.lines(found)
    if failure or any(line.what is HistoryKind.DONE for line in lines):  # a completion stores an empty failure
        values["failure"] = cjson.write(failure)
    if protocol_data is not None and protocol_data.spawned_from:
        values["spawned_from_jid"] = protocol_data.spawned_from
    if protocol_data is not None and protocol_data.parked is not None:
        values["scheduled"] = protocol_data.parked[0]
    if found.extra is not None and found.extra.warned:
        values["grace"] = 1
    if found.extra is not None and found.extra.throttles:
        values["throttles"] = cjson.write(list(found.extra.throttles))
    return fields(values)


def history(state: EngineState, name: str) -> Entry | None:
    found = newest_job(state, name)
    if found is None:
        return None
    entries = map(job.entry, qless_history.lines(found))
    lines = ([one.pop("when"), one.pop("what"), *([one] if one else [])] for one in entries)
    return Entry(Kind.LIST, deque(text(cjson.write(line)) for line in lines))


def dependencies(state: EngineState, name: str) -> Entry | None:
    found = newest_job(state, name)
    depends_on = dependencies_of(found) if found is not None else ()
    jobs = jobs_by_number(state)
    return members(jobs[dependency].jid for dependency in depends_on if dependency in jobs) if depends_on else None


def dependents(state: EngineState, name: str) -> Entry | None:
    found = newest_job(state, name)
    waiting = dependents_of(state, found) if found is not None else None
    return members(job.jid for job in indexed_jobs(state, waiting)) if waiting else None


def recurring_fields(state: EngineState, name: str, dialect: Dialect) -> Entry | None:
    found = recurring_job(state, name)
    if found is None:
        return None
    return fields(
        {
            "jid": found.jid,
            "klass": found.kind,
            "data": found.payload.decode("utf-8", "surrogateescape"),
            "priority": dialect.flipped(found.priority),
            "tags": cjson.write(list(found.tags)),
            "state": "recur",
            "queue": found.queue,
            "type": "interval",
            "count": found.count,
            "interval": found.seconds,
            "retries": found.retries,
            "backlog": found.backlog,
        }
        | ({"throttles": cjson.write(list(found.throttles))} if found.throttles else {})
    )


def work(state: EngineState, queue: str) -> Iterator[tuple[str, float]]:
    known, jobs = queue_named(state, queue), jobs_by_number(state)
    for first, _, stamp, _, number_ in known.ready if known is not None else ():
        yield jobs[number_].jid, -first - stamp / 1e10


def locks(state: EngineState, queue: str) -> Iterator[tuple[str, float]]:
    """Jobs and the ends of their leases. In the grace period the end is later than the worker's."""
    yield from ((jid, until) for until, jid, _ in queries.locks_index(state, queue))
    if queries.unlisted_lease_count(state, queue) > 0:
        for one in jobs_in_state(state, State.LEASED):
            if one.queue == queue and one.lease is not None and one.lease.until is None:
                yield one.jid, job.expires(one)


def scheduled(state: EngineState, queue: str) -> Iterator[tuple[str, float]]:
    for one in delayed_jobs(state, queue):
        protocol_data = qless_data(one)
        yield one.jid, one.due if protocol_data is None or protocol_data.due is None else protocol_data.due


def depends(state: EngineState, queue: str) -> Iterator[tuple[str, float]]:
    return ((jid, t) for t, jid, _ in queries.blocked_index(state, queue))


def recur(state: EngineState, queue: str) -> Iterator[tuple[str, float]]:
    slots = queries.recurring_times(state, queue)
    return ((jid, slot) for slot, jid in chain(slots.callers, slots.own))


def throttled(state: EngineState, queue: str) -> Iterator[tuple[str, float]]:
    return ((jid, t) for t, jid, _ in queries.throttled_list(state, queue))


def throttle(state: EngineState, name: str, now: Now) -> Entry | None:
    """The fields that clients set, with the expiry of the throttle."""
    found = queries.throttle_named(state, name)
    if found is None or found.end is None or not found.is_set(now.steady):
        return None
    entry = fields({"id": name, "maximum": found.maximum})
    entry.end = 0.0 if found.end == inf else found.end
    return entry


def throttle_locks(state: EngineState, name: str) -> Entry | None:
    found = queries.throttle_named(state, name)
    held = [each for each in found.holders if isinstance(each, str)] if found is not None else []
    return scores((jid, 1.0) for jid in held) if held else None


def throttle_pending(state: EngineState, name: str) -> Entry | None:
    waiting = queries.pending_in(state, name)
    return scores((jid, t) for t, jid in waiting) if waiting else None


#: The sorted sets of a queue: their sizes, and their members with scores.
QUEUE_SETS: Final[
    dict[str, tuple[Callable[[EngineState, str], int], Callable[[EngineState, str], Iterator[tuple[str, float]]]]]
] = {
    "work": (waiting_count, work),
    "locks": (leased_count, locks),
    "scheduled": (delayed_count, scheduled),
    "depends": (lambda state, queue: len(queries.blocked_index(state, queue)), depends),
    "recur": (lambda state, queue: len(queries.recurring_times(state, queue)), recur),
    "throttled": (lambda state, queue: len(queries.throttled_list(state, queue)), throttled),
}


#: Buckets of seconds, minutes, hours and days: the letter, the offset of the bucket's number, and the end.
_UNITS: Final = (("s", 0, 60), ("m", 59, 119), ("h", 118, 142), ("d", 141, inf))


def _moments(of: Moments) -> dict[str, str | int | float]:
    found: dict[str, str | int | float] = {"total": of.n, "mean": of.mean, "vk": of.vk}
    for bucket, count in of.histogram.items():
        shown = coarse(bucket)
        unit, before = next((unit, before) for unit, before, end in _UNITS if shown < end)
        name = f"{unit}{shown - before}"
        found[name] = int(found.get(name, 0)) + count
    return found


def statistics(state: EngineState, kind: str, day: str, queue: str) -> Entry | None:
    page = queries.stats_of_day(state, queue, int(day)) if day.isdecimal() and len(day) < 16 else None
    if page is None:
        return None
    if kind == "stats":
        return fields({"failures": page.failures, "failed": page.failed, "retries": page.retries})
    of = page.wait if kind == "wait" else page.run
    return fields(_moments(of)) if of.n else None
