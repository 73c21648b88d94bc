"""The complete engine state as plain values that can be compared.

All attributes of the state are included, so a record added to the engine is covered without a change here: the live
state is compared with a replay, and both with a restored snapshot.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from crossdock.engine.index.job_table import JidIndex
from crossdock.engine.index.lazy_deadlines import IntervalTimes, LazyDeadlines, LazyQueue
from crossdock.engine.index.rates import RateIndex
from crossdock.engine.keyspace.tombstones import Tombstones
from crossdock.engine.records.stats import Stats
from crossdock.engine.state import EngineState

#: Not part of the state: shared strings, and objects that wait to be freed.
_NOT_STATE: Final = frozenset({"names", "discarded"})
_SCALARS: Final = (str, bytes, int, float, bool, type(None))
_OF_STATS: Final = ("days", "gone", "stats_days", "histogram_days")
_OF_LAZY_QUEUE: Final = ("due", "due_at", "late", "locks", "slots")


def picture(state: EngineState) -> dict[str, Any]:
    whole = {name: plain(value) for name, value in _attributes(state).items() if name not in _NOT_STATE}
    whole["order of queues"] = list(state.queues)  # `*` visits them in this order
    whole["turns"] = {name: list(queue.lanes) for name, queue in state.queues.items() if queue.lanes is not None}
    whole["order of plans"] = {source: list(ids) for source, ids in state.resqu.plans.items()}
    return whole


def plain(value: object) -> Any:
    way = _ways.get(type(value))
    if way is None:
        way = _ways[type(value)] = _way(value)
    return way(value)


#: The function that converts each type. It is cached because long walks take a picture after every step.
_ways: Final[dict[type, Callable[[Any], Any]]] = {kind: lambda value: value for kind in _SCALARS}


def _way(value: object) -> Callable[[Any], Any]:
    if isinstance(value, msgspec.Struct):
        return _struct
    if isinstance(value, Stats):
        return lambda stats: {name: plain(getattr(stats, name)) for name in _OF_STATS}
    if isinstance(value, JidIndex):
        return lambda jids: {jid: jids.all(jid) for jid in jids}
    if isinstance(value, Tombstones):  # only for connections, which end with the server
        return lambda gone: None
    if isinstance(value, LazyDeadlines):  # the next due time is a lower bound and may differ
        return lambda lazy: {"queues": plain(lazy.queues)}
    if isinstance(value, IntervalTimes):
        return lambda slots: {name: plain(getattr(slots, name)) for name in IntervalTimes.__slots__}
    if isinstance(value, LazyQueue):
        return lambda queue: {name: plain(getattr(queue, name)) for name in _OF_LAZY_QUEUE}
    if isinstance(value, RateIndex):  # a timer may be early, and a batch that waits asks again after a restart
        return _rates
    if isinstance(value, defaultdict):  # counts: a missing key equals zero
        return lambda counts: {key: count for key, count in counts.items() if count}
    if isinstance(value, set):
        return lambda values: sorted(values, key=repr)
    if isinstance(value, Mapping):
        return lambda mapping: {key: plain(each) for key, each in mapping.items()}
    if isinstance(value, Iterable):
        return lambda some: msgspec.to_builtins(list(some), builtin_types=(bytes,), order="deterministic")
    return lambda it: {name: plain(each) for name, each in _attributes(it).items()}


def _rates(index: RateIndex) -> Any:
    waits = {each: (list(wait.held), wait.freed) for each, wait in index.waits.items() if wait.held or wait.freed}
    limits = [
        {name: [rate.key for rate in found] for name, found in by.items()} for by in (index.by_queue, index.by_kind)
    ]
    return waits, limits, list(index.names)


def _struct(value: msgspec.Struct) -> Any:
    """Its fields by name, with nested values as the encoding writes them."""
    inside = msgspec.to_builtins(value, builtin_types=(bytes,), str_keys=True, order="deterministic")
    return dict(zip(value.__struct_fields__, inside, strict=True)) if isinstance(inside, list) else inside


def _attributes(value: object) -> dict[str, Any]:
    """All attributes except functions, such as cached ones."""
    kind: type = type(value)
    slots = {name: getattr(value, name) for name in _slots(kind) if hasattr(value, name)}
    return {name: each for name, each in (slots | getattr(value, "__dict__", {})).items() if not callable(each)}


@cache
def _slots(kind: type) -> tuple[str, ...]:
    return tuple(name for each in kind.__mro__ for name in getattr(each, "__slots__", ()))
