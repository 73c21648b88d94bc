"""What qless' scripts would have stored under a key, made of the engine's state (protocol page, qless 2)."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from math import inf
from typing import Any, Final

from crossdock.engine.job_view import dependencies_of, qless_data
from crossdock.engine.keyspace.store import Entry, Sorted
from crossdock.engine.qless import history as qless_history
from crossdock.engine.qless.put import newest
from crossdock.engine.records.stats import Moments, coarse
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.keyspace import Kind
from crossdock.model.job import Job
from crossdock.model.protocol_data import HistoryKind
from crossdock.model.states import State
from crossdock.protocols.redis.qless import cjson, job
from crossdock.protocols.redis.qless.call import Dialect


def text(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def scores(pairs: Iterator[tuple[str, float]]) -> Entry:
    return Entry(Kind.SORTED, Sorted({text(member): float(score) for member, score in pairs}))


def number(value: float) -> bytes:
    """Whole ones without a point, the others as short as they read back."""
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
    found = newest(state, name)
    if found is None:
        return None
    protocol_data = qless_data(found)
    values: dict[str, str | int | float] = {
        "jid": found.jid,
        "klass": found.kind,
        "data": job.data(found),
        "priority": dialect.turned(found.priority),
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
    if failure or any(line.what is HistoryKind.DONE for line in lines):  # a completion writes an empty one
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
    found = newest(state, name)
    if found is None:
        return None
    entries = map(job.entry, qless_history.lines(found))
    lines = ([one.pop("when"), one.pop("what"), *([one] if one else [])] for one in entries)
    return Entry(Kind.LIST, deque(text(cjson.write(line)) for line in lines))


def dependencies(state: EngineState, name: str) -> Entry | None:
    found = newest(state, name)
    depends_on = dependencies_of(found) if found is not None else ()
    return (
        members(state.jobs[dependency].jid for dependency in depends_on if dependency in state.jobs)
        if depends_on
        else None
    )


def dependents(state: EngineState, name: str) -> Entry | None:
    found = newest(state, name)
    waiting = state.dependents.get(found.number) if found is not None else None
    return members(state.jobs[each].jid for each in waiting) if waiting else None


def recurring_fields(state: EngineState, name: str, dialect: Dialect) -> Entry | None:
    found = state.qless.intervals.get(name)
    if found is None:
        return None
    return fields(
        {
            "jid": found.jid,
            "klass": found.kind,
            "data": found.payload.decode("utf-8", "surrogateescape"),
            "priority": dialect.turned(found.priority),
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


def _on_shelf(state: EngineState, job_state: State, queue: str) -> Iterator[Job]:
    return (one for _, number_ in state.by_state[job_state] if (one := state.jobs[number_]).queue == queue)


def work(state: EngineState, queue: str) -> Iterator[tuple[str, float]]:
    known = state.queues.get(queue)
    for first, _, stamp, _, number_ in known.ready if known is not None else ():
        yield state.jobs[number_].jid, -first - stamp / 1e10


def locks(state: EngineState, queue: str) -> Iterator[tuple[str, float]]:
    """By their ends: that of a job which was warned of is later than what its worker was told."""
    here = state.lazy.of(queue).locks
    yield from ((jid, until) for until, jid, _ in here)
    if state.leased_in.get(queue, 0) > len(here):  # leases of other doors, which have no end by a caller's clock
        leased = _on_shelf(state, State.LEASED, queue)
        yield from ((one.jid, job.expires(one)) for one in leased if one.lease is not None and one.lease.until is None)


def scheduled(state: EngineState, queue: str) -> Iterator[tuple[str, float]]:
    waiting = (state.jobs[number_] for _, _, number_ in state.scheduled_in.get(queue, ()))
    retrying = (state.jobs[number_] for _, number_ in state.retrying_in.get(queue, ()))
    for one in chain(waiting, retrying):
        protocol_data = qless_data(one)
        yield one.jid, one.due if protocol_data is None or protocol_data.due is None else protocol_data.due


def depends(state: EngineState, queue: str) -> Iterator[tuple[str, float]]:
    return ((jid, t) for t, jid, _ in state.blocked_in.get(queue, ()))


def recur(state: EngineState, queue: str) -> Iterator[tuple[str, float]]:
    slots = state.lazy.of(queue).slots
    return ((jid, slot) for slot, jid in chain(slots.callers, slots.own))


def throttled(state: EngineState, queue: str) -> Iterator[tuple[str, float]]:
    return ((jid, t) for t, jid, _ in state.held_in.get(queue, ()))


def throttle(state: EngineState, name: str, now: Now) -> Entry | None:
    """What callers set of it, with its own end."""
    found = state.throttles.get(name)
    if found is None or found.end is None or not found.is_set(now.steady):
        return None
    entry = fields({"id": name, "maximum": found.maximum})
    entry.end = 0.0 if found.end == inf else found.end
    return entry


def throttle_locks(state: EngineState, name: str) -> Entry | None:
    found = state.throttles.get(name)
    held = [each for each in found.holders if isinstance(each, str)] if found is not None else []
    return scores((jid, 1.0) for jid in held) if held else None


def throttle_pending(state: EngineState, name: str) -> Entry | None:
    waiting = state.pending.get(name)
    return scores((jid, t) for t, jid in waiting) if waiting else None


def _ready(state: EngineState, queue: str) -> int:
    known = state.queues.get(queue)
    return known.waiting if known is not None else 0


#: The sorted sets of a queue: how many are in it, and who.
OF_QUEUE: Final[
    dict[str, tuple[Callable[[EngineState, str], int], Callable[[EngineState, str], Iterator[tuple[str, float]]]]]
] = {
    "work": (_ready, work),
    "locks": (lambda state, queue: state.leased_in.get(queue, 0), locks),
    "scheduled": (
        lambda state, queue: len(state.scheduled_in.get(queue, ())) + len(state.retrying_in.get(queue, ())),
        scheduled,
    ),
    "depends": (lambda state, queue: len(state.blocked_in.get(queue, ())), depends),
    "recur": (lambda state, queue: len(state.lazy.of(queue).slots), recur),
    "throttled": (lambda state, queue: len(state.held_in.get(queue, ())), throttled),
}


#: Seconds, minutes, hours and days: the letter, what to take off a bucket's number, and where the next begin.
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
    page: Any = state.stats.days.get(queue, {}).get(int(day)) if day.isdecimal() and len(day) < 16 else None
    if page is None:
        return None
    if kind == "stats":
        return fields({"failures": page.failures, "failed": page.failed, "retries": page.retries})
    of = page.wait if kind == "wait" else page.run
    return fields(_moments(of)) if of.n else None
