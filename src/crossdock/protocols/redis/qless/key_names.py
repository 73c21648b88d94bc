"""The names of the keys that qless' scripts would keep: all of them for KEYS, page by page for SCAN."""

from collections.abc import Callable, Generator, Iterator
from typing import Final

from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.keyspace import Kind
from crossdock.model.job import Number
from crossdock.protocols.redis.qless import key_values
from crossdock.protocols.redis.views import SLICE, Page, hashed

#: Those there is one of: what it is, and whether there is something in it.
WHOLE: Final[dict[bytes, tuple[Kind, Callable[[EngineState], bool]]]] = {
    b"ql:queues": (Kind.SORTED, lambda state: any(queue.listed for queue in state.queues.values())),
    b"ql:paused_queues": (Kind.SET, lambda state: any(queue.paused for queue in state.queues.values())),
    b"ql:workers": (Kind.SORTED, lambda state: bool(state.workers.seen)),
    b"ql:tracked": (Kind.SORTED, lambda state: bool(state.qless.watched)),
    b"ql:completed": (Kind.SORTED, lambda state: bool(state.qless.completed)),
    b"ql:failures": (Kind.SET, lambda state: bool(state.qless.failed_in)),
    b"ql:tags": (Kind.SORTED, lambda state: bool(state.tags.uses)),
    b"ql:config": (Kind.HASH, lambda state: bool(state.qless.config)),
}

#: By what follows the prefix.
_KINDS: Final = {b"j": Kind.HASH, b"r": Kind.HASH, b"s": Kind.HASH, b"f": Kind.LIST}

#: In the order of a walk jobs come first, by number; then all others, by hash.
_OTHERS: Final = 1 << 55


def all_keys(state: EngineState, now: Now) -> Iterator[bytes]:
    """One a job, without what belongs to it: suites count them."""
    for jid in list(state.jids):
        yield b"ql:j:" + key_values.text(jid)
    yield from _others(state, now)


def _others(state: EngineState, now: Now) -> Iterator[bytes]:
    for jid in list(state.qless.intervals):
        yield b"ql:r:" + key_values.text(jid)
    queues = {**state.queues, **state.leased_in, **state.lazy.queues, **state.blocked_in, **state.held_in}
    for queue in dict.fromkeys((*queues, *state.scheduled_in, *state.retrying_in)):
        for kind, (count, _) in key_values.OF_QUEUE.items():
            if count(state, queue):
                yield b"ql:q:%b-%b" % (key_values.text(queue), kind.encode())
    for key, (_, there) in WHOLE.items():
        if there(state):
            yield key
    for prefix, names in (("f:", state.qless.failed_in), ("t:", state.tags.jobs)):
        for name in list(names):
            yield key_values.text(f"ql:{prefix}{name}")
    for name, throttle in list(state.throttles.items()):
        if throttle.is_set(now.steady):
            yield key_values.text(f"ql:th:{name}")
    for worker in list(state.workers.given):
        yield key_values.text(f"ql:w:{worker}:jobs")
    for queue, days in list(state.stats.days.items()):
        for day, page in list(days.items()):
            for kind, some in (("wait", page.wait.n), ("run", page.run.n), ("stats", page.failures)):
                if some:
                    yield key_values.text(f"ql:s:{kind}:{day}:{queue}")


def page(state: EngineState, now: Now, place: int, count: int) -> Page:
    keys: list[bytes] = []
    if place < _OTHERS:
        then, keys = yield from _jobs(state, max(1, place), count)
        if then:
            return then, keys
        place = _OTHERS
        if len(keys) >= count:
            return place, keys
    then, more = yield from hashed(_others(state, now), place - _OTHERS, count - len(keys))
    return then + _OTHERS if then else 0, keys + more


def _jobs(state: EngineState, number: Number, count: int) -> Page:
    """A job keeps its number, whatever becomes of it. Where many numbers in a row are nobody's, the next is looked for
    among all that are somebody's."""
    keys: list[bytes] = []
    while number <= state.counters.number:
        before = len(keys)
        for each in range(number, number + SLICE):
            job = state.jobs.get(each)
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
    numbers = list(state.jobs)
    for first in range(0, len(numbers), SLICE):
        behind = [each for each in numbers[first : first + SLICE] if each >= number]
        found = min([found, *behind] if found is not None else behind, default=found)
        yield
    return found


def kind(key: bytes) -> Kind:
    if key in WHOLE:
        return WHOLE[key][0]
    if key.startswith(b"ql:th:"):
        return Kind.HASH
    return _KINDS.get(key[3:4], Kind.SORTED)
