"""The one picture of a memory: everything it holds, in plain values that compare.

It looks at whatever attributes a memory has, so a record added to the engine is compared from its first day: live with
replayed, and either with what a snapshot brings back.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from crossdock.engine.jids import Jids
from crossdock.engine.lazy import Lazy, LazyQueue
from crossdock.engine.memory import Memory
from crossdock.engine.stats import Stats

#: Not part of the state: which strings are shared objects, the notes of a command under way, what waits to be freed.
_NOT_STATE: Final = frozenset({"names", "touched", "loose", "discarded"})
_SCALARS: Final = frozenset({str, bytes, int, float, bool, type(None)})


def picture(memory: Memory) -> dict[str, Any]:
    whole = {name: plain(value) for name, value in _attributes(memory).items() if name not in _NOT_STATE}
    whole["order of queues"] = list(memory.queues)  # `*` walks them in this order
    whole["turns"] = {name: list(queue.lanes) for name, queue in memory.queues.items() if queue.lanes is not None}
    whole["order of plans"] = {source: list(ids) for source, ids in memory.resqu.plans.items()}
    return whole


def plain(value: object) -> Any:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, msgspec.Struct):
        return _struct(value)
    if isinstance(value, Stats):
        return plain(value.days)
    if isinstance(value, Jids):
        return {jid: value.all(jid) for jid in value}
    if isinstance(value, Lazy):  # when something is next due is a guess, from below
        return {"queues": plain(value.queues), "wall": plain(value.wall)}
    if isinstance(value, LazyQueue):
        return {name: plain(getattr(value, name)) for name in ("due", "due_at", "late", "locks", "slots", "slots_at")}
    if isinstance(value, defaultdict):  # counts: none is as good as zero
        return {key: count for key, count in value.items() if count}
    if isinstance(value, set):
        return sorted(value)
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, Iterable):
        return msgspec.to_builtins(list(value), builtin_types=(bytes,), order="deterministic")
    return {name: plain(each) for name, each in _attributes(value).items()}


def _struct(value: msgspec.Struct) -> Any:
    """Its fields by name; what is inside of them as the encoding would write it."""
    inside = msgspec.to_builtins(value, builtin_types=(bytes,), str_keys=True, order="deterministic")
    return dict(zip(value.__struct_fields__, inside, strict=True)) if isinstance(inside, list) else inside


def _attributes(value: object) -> dict[str, Any]:
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return {name: getattr(value, name) for name in slots if hasattr(value, name)} | getattr(value, "__dict__", {})
