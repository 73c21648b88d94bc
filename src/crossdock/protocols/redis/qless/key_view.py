"""The view of qless: the keys that the real scripts store (qless.md sections 2 and 12). Only the scripts write them.

Clients read a few of these keys directly: the sizes of a queue's sets, the next run of a recurring job, completed jobs.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from crossdock.engine.keyspace.store import Entry
from crossdock.engine.qless import queries
from crossdock.engine.queries.jobs import has_jid, jobs_by_number
from crossdock.engine.queries.queues import listed_queues, paused_queues, queue_count
from crossdock.engine.queries.records import leases_of_worker, recurring_job, workers_seen
from crossdock.engine.state import EngineState
from crossdock.model.commands.keyspace import Kind
from crossdock.protocols.redis.commands.command import Act
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.qless import key_names, key_values
from crossdock.protocols.redis.qless.call import UNIFIED, Dialect
from crossdock.protocols.redis.resp.values import Error, Result
from crossdock.protocols.redis.views import NotHandled, Page

#: Members of a value that is built for one command. Building more would delay all clients; the scripts have pages.
MEMBERS_AT_MOST: Final = 100_000

_OF_JOB: Final[dict[str, Callable[[EngineState, str], Entry | None]]] = {
    "-history": key_values.history,
    "-dependencies": key_values.dependencies,
    "-dependents": key_values.dependents,
}

_FIXED: Final[dict[bytes, Callable[[EngineState], Entry]]] = {
    b"ql:queues": lambda state: key_values.scores((q.name, q.first_t) for q in listed_queues(state)),
    b"ql:paused_queues": lambda state: key_values.members(q.name for q in paused_queues(state)),
    b"ql:workers": lambda state: key_values.scores(iter(workers_seen(state).items())),
    b"ql:tracked": lambda state: key_values.scores(iter(queries.tracked_jids(state).items())),
    b"ql:completed": lambda state: key_values.scores((jid, t) for t, jid, _ in queries.completed_index(state)),
    b"ql:failures": lambda state: key_values.members(iter(queries.failed_groups(state))),
    b"ql:tags": lambda state: key_values.scores(iter(queries.tag_uses(state).items())),
    b"ql:config": lambda state: key_values.fields(dict(queries.settings(state))),
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
        """Priorities are shown in the order that the dialect's settings define."""
        self._dialect = dialect

    def owns(self, key: bytes) -> bool:
        name = _name(key)
        return key in _FIXED or (name is not None and any(kind.fullmatch(name) for kind in _KINDS))

    def act(self, name: bytes, key: bytes) -> Act:
        return partial(self._call, name)

    def _call(self, name: bytes, context: Context, args: list[bytes]) -> Result:
        """Answer the frequent requests without building the value of the key."""
        state = context.dispatcher.state
        if name == b"zcard" and args[0] == b"ql:completed":
            return len(queries.completed_index(state))
        found = _QUEUE.fullmatch(_name(args[0]) or "")
        if found is not None:
            queue, kind = found.groups()
            if name == b"zcard":
                return key_values.QUEUE_SETS[kind][0](state, queue)
            if name == b"zscore" and kind == "recur":
                interval = recurring_job(state, args[1].decode("utf-8", "surrogateescape"))
                return interval.next if interval is not None and interval.queue == queue else None
        raise NotHandled

    def read(self, context: Context, key: bytes) -> Entry | None:
        state = context.dispatcher.state
        fixed = _FIXED.get(key)
        if fixed is not None:
            counts = (queue_count(state), len(queries.completed_index(state)), len(queries.tag_uses(state)))
            _refuse_if_long(key, max(counts))
            entry = fixed(state)
            return entry if len(entry.data) else None
        name = _name(key)
        if name is not None and name.startswith("th:"):
            return _throttle(context, key, name[3:])
        return None if name is None else _read(state, key, name, self._dialect)

    def keys(self, context: Context) -> Iterator[bytes]:
        return key_names.all_keys(context.dispatcher.state, context.dispatcher.now)

    def page(self, context: Context, cursor: int, count: int) -> Page:
        return key_names.page(context.dispatcher.state, context.dispatcher.now, cursor, count)

    def kind(self, key: bytes) -> Kind:
        return key_names.kind(key)


def _throttle(context: Context, key: bytes, name: str) -> Entry | None:
    state = context.dispatcher.state
    for ending, of in (("-locks", key_values.throttle_locks), ("-pending", key_values.throttle_pending)):
        known = queries.throttle_named(state, name.removesuffix(ending)) if name.endswith(ending) else None
        if known is not None and queries.throttle_named(state, name) is None:
            _refuse_if_long(key, len(known.holders) + len(known.pending))
            return of(state, known.name)
    return key_values.throttle(state, name, context.dispatcher.now)


def _name(key: bytes) -> str | None:
    """The part after the prefix; None if it is not UTF-8, which names are (model.md section 11)."""
    try:
        return key[3:].decode()
    except UnicodeDecodeError:
        return None


def _refuse_if_long(key: bytes, count: int) -> None:
    if count > MEMBERS_AT_MOST:
        text = b"ERR '%b' has %d records, too many to show at once; use the scripts, which return pages"
        raise Error(text % (key[:128], count))


def _read(state: EngineState, key: bytes, name: str, dialect: Dialect) -> Entry | None:
    found = _QUEUE.fullmatch(name)
    if found is not None:
        queue, kind = found.groups()
        count, pairs = key_values.QUEUE_SETS[kind]
        there = count(state, queue)
        _refuse_if_long(key, there)
        return key_values.scores(pairs(state, queue)) if there else None
    found = _WORKER.fullmatch(name)
    if found is not None:
        leases = leases_of_worker(state, found.group(1))
        return key_values.scores(iter(leases.items())) if leases else None
    found = _STATS.fullmatch(name)
    if found is not None:
        return key_values.statistics(state, *found.groups())
    return _named(state, key, name[:1], name[2:], dialect)


def _named(state: EngineState, key: bytes, kind: str, name: str, dialect: Dialect) -> Entry | None:
    if kind == "j":
        if not has_jid(state, name):
            for ending, of in _OF_JOB.items():
                if name.endswith(ending):
                    return of(state, name.removesuffix(ending))
        return key_values.job_fields(state, name, dialect)
    if kind == "r":
        return key_values.recurring_fields(state, name, dialect)
    if kind == "f":
        group = queries.failed_groups(state).get(name, ())
        _refuse_if_long(key, len(group))
        jobs = jobs_by_number(state)
        return key_values.elements(jobs[number].jid for _, number in reversed(group)) if group else None
    tagged = queries.tagged(state, name)
    _refuse_if_long(key, len(tagged))
    return key_values.scores((jid, t) for t, jid, _ in tagged) if tagged else None
