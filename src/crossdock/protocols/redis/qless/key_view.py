"""The keys that qless' scripts would keep, shown (protocol page, qless 2 and 12). Writing there is the scripts' affair.

Clients read a few of them raw: the lengths of a queue's sets, the next run of a recurring job, who is complete.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from crossdock.engine.keyspace.store import Entry
from crossdock.engine.state import EngineState
from crossdock.model.commands.keyspace import Kind
from crossdock.protocols.redis.commands.command import Act
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.qless import key_names, key_values
from crossdock.protocols.redis.qless.call import UNIFIED, Dialect
from crossdock.protocols.redis.resp.values import Error, Result
from crossdock.protocols.redis.views import Page, Pass

#: Made up for one command; more would hold up all doors. Scripts page through what is longer.
MEMBERS_AT_MOST: Final = 100_000

_OF_JOB: Final[dict[str, Callable[[EngineState, str], Entry | None]]] = {
    "-history": key_values.history,
    "-dependencies": key_values.dependencies,
    "-dependents": key_values.dependents,
}

_WHOLE: Final[dict[bytes, Callable[[EngineState], Entry]]] = {
    b"ql:queues": lambda state: key_values.scores((q.name, q.first_t) for q in state.queues.values() if q.listed),
    b"ql:paused_queues": lambda state: key_values.members(q.name for q in state.queues.values() if q.paused),
    b"ql:workers": lambda state: key_values.scores(iter(state.workers.seen.items())),
    b"ql:tracked": lambda state: key_values.scores(iter(state.qless.watched.items())),
    b"ql:completed": lambda state: key_values.scores((jid, t) for t, jid, _ in state.qless.completed),
    b"ql:failures": lambda state: key_values.members(iter(state.qless.failed_in)),
    b"ql:tags": lambda state: key_values.scores(iter(state.tags.uses.items())),
    b"ql:config": lambda state: key_values.fields(dict(state.qless.config)),
}

_QUEUE: Final = re.compile(r"q:(.*)-(work|locks|scheduled|depends|recur|throttled)", re.DOTALL)
_WORKER: Final = re.compile(r"w:(.*):jobs", re.DOTALL)
_STATS: Final = re.compile(r"s:(wait|run|stats):(-?\d+):(.*)", re.DOTALL)
_THROTTLE: Final = re.compile(r"th:.*", re.DOTALL)
_NAMED: Final = re.compile(r"[jrft]:.*", re.DOTALL)
_KINDS: Final = (_QUEUE, _WORKER, _STATS, _THROTTLE, _NAMED)


class QlessView:
    prefix = b"ql:"

    def __init__(self, dialect: Dialect = UNIFIED) -> None:
        """Of the dialect, what the server is set to: priorities are shown as callers gave them."""
        self._dialect = dialect

    def owns(self, key: bytes) -> bool:
        name = _name(key)
        return key in _WHOLE or (name is not None and any(kind.fullmatch(name) for kind in _KINDS))

    def act(self, name: bytes, key: bytes) -> Act:
        return partial(self._call, name)

    def _call(self, name: bytes, context: Context, args: list[bytes]) -> Result:
        """What clients ask for all the time costs no walk; the rest is read."""
        state = context.dispatcher.state
        if name == b"zcard" and args[0] == b"ql:completed":
            return len(state.qless.completed)
        found = _QUEUE.fullmatch(_name(args[0]) or "")
        if found is not None:
            queue, kind = found.groups()
            if name == b"zcard":
                return key_values.OF_QUEUE[kind][0](state, queue)
            if name == b"zscore" and kind == "recur":
                interval = state.qless.intervals.get(args[1].decode("utf-8", "surrogateescape"))
                return interval.next if interval is not None and interval.queue == queue else None
        raise Pass

    def read(self, context: Context, key: bytes) -> Entry | None:
        state = context.dispatcher.state
        whole = _WHOLE.get(key)
        if whole is not None:
            _refuse_if_long(key, max(len(state.queues), len(state.qless.completed), len(state.tags.uses)))
            entry = whole(state)
            return entry if len(entry.data) else None
        name = _name(key)
        if name is not None and name.startswith("th:"):
            return _throttle(context, key, name[3:])
        return None if name is None else _read(state, key, name, self._dialect)

    def keys(self, context: Context) -> Iterator[bytes]:
        return key_names.all_keys(context.dispatcher.state, context.dispatcher.now)

    def page(self, context: Context, place: int, count: int) -> Page:
        return key_names.page(context.dispatcher.state, context.dispatcher.now, place, count)

    def kind(self, key: bytes) -> Kind:
        return key_names.kind(key)


def _throttle(context: Context, key: bytes, name: str) -> Entry | None:
    state = context.dispatcher.state
    for ending, of in (("-locks", key_values.throttle_locks), ("-pending", key_values.throttle_pending)):
        known = state.throttles.get(name.removesuffix(ending)) if name.endswith(ending) else None
        if known is not None and name not in state.throttles:
            _refuse_if_long(key, len(known.holders) + len(known.pending))
            return of(state, known.name)
    return key_values.throttle(state, name, context.dispatcher.now)


def _name(key: bytes) -> str | None:
    """What follows the prefix; names that are not UTF-8 are nobody's (MODEL section 11)."""
    try:
        return key[3:].decode()
    except UnicodeDecodeError:
        return None


def _refuse_if_long(key: bytes, count: int) -> None:
    if count > MEMBERS_AT_MOST:
        text = b"ERR '%b' is made of %d records, more than are shown at once; ask the scripts for a page of it"
        raise Error(text % (key[:128], count))


def _read(state: EngineState, key: bytes, name: str, dialect: Dialect) -> Entry | None:
    found = _QUEUE.fullmatch(name)
    if found is not None:
        queue, kind = found.groups()
        count, pairs = key_values.OF_QUEUE[kind]
        there = count(state, queue)
        _refuse_if_long(key, there)
        return key_values.scores(pairs(state, queue)) if there else None
    found = _WORKER.fullmatch(name)
    if found is not None:
        given = state.workers.given.get(found.group(1))
        return key_values.scores(iter(given.items())) if given else None
    found = _STATS.fullmatch(name)
    if found is not None:
        return key_values.statistics(state, *found.groups())
    return _named(state, key, name[:1], name[2:], dialect)


def _named(state: EngineState, key: bytes, kind: str, name: str, dialect: Dialect) -> Entry | None:
    if kind == "j":
        if name not in state.jids:
            for ending, of in _OF_JOB.items():
                if name.endswith(ending):
                    return of(state, name.removesuffix(ending))
        return key_values.job_fields(state, name, dialect)
    if kind == "r":
        return key_values.recurring_fields(state, name, dialect)
    if kind == "f":
        group = state.qless.failed_in.get(name, ())
        _refuse_if_long(key, len(group))
        return key_values.elements(state.jobs[number].jid for _, number in reversed(group)) if group else None
    tagged = state.tags.jobs.get(name, ())
    _refuse_if_long(key, len(tagged))
    return key_values.scores((jid, t) for t, jid, _ in tagged) if tagged else None
