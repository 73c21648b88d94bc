"""The one picture of a memory: everything it holds, in plain values that compare.

It looks at whatever attributes a memory has, so a record added to the engine is compared from its first day: live with
replayed, and either with what a snapshot brings back.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from crossdock.engine.index.job_table import JidIndex
from crossdock.engine.index.lazy_deadlines import IntervalTimes, LazyDeadlines, LazyQueue
from crossdock.engine.keyspace.tombstones import Tombstones
from crossdock.engine.records.stats import Stats
from crossdock.engine.state import EngineState

#: Not part of the state: which strings are shared objects, the notes of a command under way, what waits to be freed.
_NOT_STATE: Final = frozenset({"names", "follow_ups", "resolved_dependents", "discarded"})
_SCALARS: Final = (str, bytes, int, float, bool, type(None))
_OF_STATS: Final = ("days", "gone", "stats_days", "histogram_days")
_OF_LAZY_QUEUE: Final = ("due", "due_at", "late", "locks", "slots")


def picture(state: EngineState) -> dict[str, Any]:
    whole = {name: plain(value) for name, value in _attributes(state).items() if name not in _NOT_STATE}
    whole["order of queues"] = list(state.queues)  # `*` walks them in this order
    whole["turns"] = {name: list(queue.lanes) for name, queue in state.queues.items() if queue.lanes is not None}
    whole["order of plans"] = {source: list(ids) for source, ids in state.resqu.plans.items()}
    return whole


def plain(value: object) -> Any:
    way = _ways.get(type(value))
    if way is None:
        way = _ways[type(value)] = _way(value)
    return way(value)


#: How a value of each type becomes plain. Pictures are taken after every step of long walks.
_ways: Final[dict[type, Callable[[Any], Any]]] = {kind: lambda value: value for kind in _SCALARS}


def _way(value: object) -> Callable[[Any], Any]:
    if isinstance(value, msgspec.Struct):
        return _struct
    if isinstance(value, Stats):
        return lambda stats: {name: plain(getattr(stats, name)) for name in _OF_STATS}
    if isinstance(value, JidIndex):
        return lambda jids: {jid: jids.all(jid) for jid in jids}
    if isinstance(value, Tombstones):  # asked by connections, and they end with the server
        return lambda gone: None
    if isinstance(value, LazyDeadlines):  # when something is next due is a guess, from below
        return lambda lazy: {"queues": plain(lazy.queues)}
    if isinstance(value, IntervalTimes):
        return lambda slots: {name: plain(getattr(slots, name)) for name in IntervalTimes.__slots__}
    if isinstance(value, LazyQueue):
        return lambda queue: {name: plain(getattr(queue, name)) for name in _OF_LAZY_QUEUE}
    if isinstance(value, defaultdict):  # counts: none is as good as zero
        return lambda counts: {key: count for key, count in counts.items() if count}
    if isinstance(value, set):
        return lambda values: sorted(values, key=repr)
    if isinstance(value, Mapping):
        return lambda mapping: {key: plain(each) for key, each in mapping.items()}
    if isinstance(value, Iterable):
        return lambda some: msgspec.to_builtins(list(some), builtin_types=(bytes,), order="deterministic")
    return lambda it: {name: plain(each) for name, each in _attributes(it).items()}


def _struct(value: msgspec.Struct) -> Any:
    """Its fields by name; what is inside of them as the encoding would write it."""
    inside = msgspec.to_builtins(value, builtin_types=(bytes,), str_keys=True, order="deterministic")
    return dict(zip(value.__struct_fields__, inside, strict=True)) if isinstance(inside, list) else inside


def _attributes(value: object) -> dict[str, Any]:
    """But functions, such as one that remembers what it was asked."""
    kind: type = type(value)
    slots = {name: getattr(value, name) for name in _slots(kind) if hasattr(value, name)}
    return {name: each for name, each in (slots | getattr(value, "__dict__", {})).items() if not callable(each)}


@cache
def _slots(kind: type) -> tuple[str, ...]:
    return tuple(name for each in kind.__mro__ for name in getattr(each, "__slots__", ()))
