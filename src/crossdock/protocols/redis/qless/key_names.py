"""The names of the keys that the qless view shows: all for KEYS, pages for SCAN."""

from collections.abc import Callable, Generator, Iterator
from typing import Final

from crossdock.engine.qless import queries
from crossdock.engine.queries.jobs import jids, job_by_number, jobs_by_number, last_job_number
from crossdock.engine.queries.queues import listed_queues, paused_queues
from crossdock.engine.queries.records import leases_by_worker, recurring_jobs, workers_seen
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.keyspace import Kind
from crossdock.model.job import Number
from crossdock.protocols.redis.qless import key_values
from crossdock.protocols.redis.views import SLICE, Page, page_by_hash

#: Keys with fixed names: their types, and whether they exist.
FIXED: Final[dict[bytes, tuple[Kind, Callable[[EngineState], bool]]]] = {
    b"ql:queues": (Kind.SORTED, lambda state: any(True for _ in listed_queues(state))),
    b"ql:paused_queues": (Kind.SET, lambda state: any(True for _ in paused_queues(state))),
    b"ql:workers": (Kind.SORTED, lambda state: bool(workers_seen(state))),
    b"ql:tracked": (Kind.SORTED, lambda state: bool(queries.tracked_jids(state))),
    b"ql:completed": (Kind.SORTED, lambda state: bool(queries.completed_index(state))),
    b"ql:failures": (Kind.SET, lambda state: bool(queries.failed_groups(state))),
    b"ql:tags": (Kind.SORTED, lambda state: bool(queries.tag_uses(state))),
    b"ql:config": (Kind.HASH, lambda state: bool(queries.settings(state))),
}

#: Types by the character after the prefix.
_KINDS: Final = {b"j": Kind.HASH, b"r": Kind.HASH, b"s": Kind.HASH, b"f": Kind.LIST}

#: Cursors below this are numbers of jobs, which come first. Above it are the hashes of all other keys.
_OTHERS: Final = 1 << 55


def all_keys(state: EngineState, now: Now) -> Iterator[bytes]:
    """All keys. A job has one key, without its history and dependencies, because client suites count them."""
    for jid in list(jids(state)):
        yield b"ql:j:" + key_values.text(jid)
    yield from _others(state, now)


def _others(state: EngineState, now: Now) -> Iterator[bytes]:
    for jid in list(recurring_jobs(state)):
        yield b"ql:r:" + key_values.text(jid)
    for queue in queries.queue_names(state):
        for kind, (count, _) in key_values.QUEUE_SETS.items():
            if count(state, queue):
                yield b"ql:q:%b-%b" % (key_values.text(queue), kind.encode())
    for key, (_, exists) in FIXED.items():
        if exists(state):
            yield key
    for prefix, names in (("f:", queries.failed_groups(state)), ("t:", queries.jobs_by_tag(state))):
        for name in list(names):
            yield key_values.text(f"ql:{prefix}{name}")
    for name, throttle in list(queries.throttles_by_name(state).items()):
        if throttle.is_set(now.steady):
            yield key_values.text(f"ql:th:{name}")
    for worker in list(leases_by_worker(state)):
        yield key_values.text(f"ql:w:{worker}:jobs")
    for queue, days in list(queries.stats_by_queue(state).items()):
        for day, page in list(days.items()):
            for kind, some in (("wait", page.wait.n), ("run", page.run.n), ("stats", page.failures)):
                if some:
                    yield key_values.text(f"ql:s:{kind}:{day}:{queue}")


def page(state: EngineState, now: Now, cursor: int, count: int) -> Page:
    keys: list[bytes] = []
    if cursor < _OTHERS:
        after, keys = yield from _jobs(state, max(1, cursor), count)
        if after:
            return after, keys
        cursor = _OTHERS
        if len(keys) >= count:
            return cursor, keys
    after, more = yield from page_by_hash(_others(state, now), cursor - _OTHERS, count - len(keys))
    return after + _OTHERS if after else 0, keys + more


def _jobs(state: EngineState, number: Number, count: int) -> Page:
    """Keys of jobs by number, which never changes. After a long gap of unused numbers, the next number is searched
    among all jobs."""
    keys: list[bytes] = []
    while number <= last_job_number(state):
        before = len(keys)
        for each in range(number, number + SLICE):
            job = job_by_number(state, each)
            if job is not None:
                if len(keys) >= count:
                    return each, keys
                keys.append(b"ql:j:" + key_values.text(job.jid))
        number += SLICE
        yield
        if len(keys) == before:
            found = yield from _next(state, number)
            if found is None:
                break
            number = found
    return 0, keys


def _next(state: EngineState, number: Number) -> Generator[None, None, Number | None]:
    found: Number | None = None
    numbers = list(jobs_by_number(state))
    for first in range(0, len(numbers), SLICE):
        behind = [each for each in numbers[first : first + SLICE] if each >= number]
        found = min([found, *behind] if found is not None else behind, default=found)
        yield
    return found


def kind(key: bytes) -> Kind:
    if key in FIXED:
        return FIXED[key][0]
    if key.startswith(b"ql:th:"):
        return Kind.HASH
    return _KINDS.get(key[3:4], Kind.SORTED)
