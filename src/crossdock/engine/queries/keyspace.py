"""Reads of the plain keys of the Redis protocol."""

from typing import NamedTuple

from crossdock.engine.keyspace.store import Entry
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now


def live_entry(state: EngineState, key: bytes, now: Now) -> Entry | None:
    """The value under that key. A value whose time is over is not there, even before the timer has removed it."""
    return state.keys.live(key, now)


def all_keys(state: EngineState) -> list[bytes]:
    """A copy of the current keys, with those whose time is over."""
    return list(state.keys.entries)


def page_of_entries(state: EngineState, cursor: int, count: int, now: Now) -> tuple[int, list[tuple[bytes, Entry]]]:
    """The next cursor (0: none), and the live entries of at least `count` keys."""
    store = state.keys
    then, keys = store.page(cursor, count)
    found = ((key, store.live(key, now)) for key in keys)
    return then, [(key, entry) for key, entry in found if entry is not None]


def keyspace_bytes(state: EngineState) -> int:
    """The approximate memory that plain keys take."""
    return state.keys.size


class KeyspaceSize(NamedTuple):
    keys: int
    expiring: int  #: keys with an end
    bytes: int


def keyspace_size(state: EngineState) -> KeyspaceSize:
    store = state.keys
    return KeyspaceSize(len(store.entries), len(store.ends), store.size)


def keyspace_changes(state: EngineState) -> int:
    """How many changes there were so far."""
    return state.keys.changes


def last_change_of_removed(state: EngineState, key: bytes) -> int:
    """The last change of a removed key, or a later one."""
    return state.keys.tombstones.last_change(key)
