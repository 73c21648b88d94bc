"""Decide and apply changes of the key space (model.md section 7)."""

from collections import deque
from typing import Any

from crossdock.engine.decision import Decision, later
from crossdock.engine.keyspace.store import ELEMENT_BYTES, Entry, part, size_of
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands import keyspace as k
from crossdock.model.errors import UsageError
from crossdock.model.events import AnyEvent
from crossdock.model.events.keyspace import (
    KeyKept,
    KeysDropped,
    KeySet,
    ListChanged,
    MembersChanged,
    ScriptKnown,
    ScriptsForgotten,
)


def _cleared(state: EngineState, key: bytes, now: Now) -> list[AnyEvent]:
    """Events that remove the key if its time is over and the timer has not removed it yet."""
    entry = state.keys.entries.get(key)
    if entry is None or not 0.0 < entry.end <= now.steady:
        return []
    return [KeysDropped(later(state, now), [key])]


def _live(state: EngineState, key: bytes, kind: k.Kind, now: Now) -> Entry | None:
    entry = state.keys.live(key, now)
    if entry is not None and entry.kind is not kind:
        raise UsageError(f"{key!r} is a {entry.kind.name}, not a {kind.name}")
    return entry


def set_key(state: EngineState, command: k.SetKey, now: Now) -> Decision[None]:
    entry = state.keys.live(command.key, now)
    end = command.end
    if end is None:
        end = 0.0 if entry is None else entry.end
    event = KeySet(later(state, now), command.key, command.value, end)
    return (*_cleared(state, command.key, now), event), None, (command.key,)


def drop_keys(state: EngineState, command: k.DropKeys, now: Now) -> Decision[int]:
    there = [key for key in dict.fromkeys(command.keys) if key in state.keys.entries]
    if not there:
        return (), 0, ()
    live = sum(state.keys.live(key, now) is not None for key in there)
    return (KeysDropped(later(state, now), there),), live, ()


def keep_key(state: EngineState, command: k.KeepKey, now: Now) -> Decision[bool]:
    entry = state.keys.live(command.key, now)
    if entry is None:
        return (), False, ()
    at = later(state, now)
    if 0.0 < command.end <= now.steady:
        return (KeysDropped(at, [command.key]),), True, ()
    return (KeyKept(at, command.key, command.end),), True, ()


def change_list(state: EngineState, command: k.ChangeList, now: Now) -> Decision[int]:
    entry = _live(state, command.key, k.Kind.LIST, now)
    length = 0 if entry is None else len(entry.data)
    start, cut, put, drop = command.start, command.cut, list(command.put), list(command.drop)
    if not 0 <= start <= length or not 0 <= cut <= length - start or (drop and (cut or put)):
        raise UsageError(f"a list of {length} elements cannot be changed by {command}")
    if not (cut or put or drop):
        return (), length, ()
    event = ListChanged(later(state, now), command.key, start, cut, put, drop)
    woken = (command.key,) if put else ()
    return (*_cleared(state, command.key, now), event), length - cut + len(put) - len(drop), woken


def change_members(state: EngineState, command: k.ChangeMembers, now: Now) -> Decision[None]:
    entry = _live(state, command.key, command.kind, now)
    there: dict[bytes, Any] = {} if entry is None else _members(entry)
    missing = object()
    kept = dict(command.put)  # of a member that is put twice, the last counts
    put = [each for each in kept.items() if there.get(each[0], missing) != each[1]]
    drop = [each for each in dict.fromkeys(command.drop) if each in there and each not in kept]
    if not (put or drop):
        return (), None, ()
    event = MembersChanged(later(state, now), command.key, command.kind, put, drop)
    return (*_cleared(state, command.key, now), event), None, (command.key,) if put else ()


def _members(entry: Entry) -> dict[bytes, Any]:
    found: dict[bytes, Any] = entry.data.scores if entry.kind is k.Kind.SORTED else entry.data
    return found


def know_script(state: EngineState, command: k.KnowScript, now: Now) -> Decision[None]:
    if state.scripts.get(command.sha) == command.dialect:
        return (), None, ()
    return (ScriptKnown(later(state, now), command.sha, command.dialect),), None, ()


def forget_scripts(state: EngineState, command: k.ForgetScripts, now: Now) -> Decision[None]:
    return ((ScriptsForgotten(later(state, now)),) if state.scripts else ()), None, ()


def _touch(state: EngineState, entry: Entry, grown: int) -> None:
    keys = state.keys
    keys.changes += 1
    entry.version = keys.changes
    entry.size += grown
    keys.size += grown


def key_set(state: EngineState, event: KeySet) -> None:
    keys = state.keys
    entry = keys.entries.get(event.key)
    if entry is not None and entry.kind is k.Kind.STRING and entry.end == event.end:
        _touch(state, entry, len(event.value) - len(entry.data))
        entry.data = event.value
        return
    if entry is not None:
        keys.remove(event.key)
    entry = Entry(k.Kind.STRING, event.value, event.end)
    keys.add(event.key, entry)
    _touch(state, entry, len(event.value))


def keys_dropped(state: EngineState, event: KeysDropped) -> None:
    for key in event.keys:
        state.keys.remove(key)


def key_kept(state: EngineState, event: KeyKept) -> None:
    keys = state.keys
    entry = keys.entries[event.key]
    if entry.end:
        keys.ends.take((entry.end, event.key))
    entry.end = event.end
    if entry.end:
        keys.ends.add((entry.end, event.key))
    _touch(state, entry, 0)


def list_changed(state: EngineState, event: ListChanged) -> None:
    keys = state.keys
    entry = keys.entries.get(event.key)
    if entry is None:
        entry = Entry(k.Kind.LIST)
        keys.add(event.key, entry)
    data: deque[bytes] = entry.data
    each = ELEMENT_BYTES[k.Kind.LIST]
    if event.drop:
        gone = set(event.drop)
        left = len(gone) * each + sum(len(value) for i, value in enumerate(data) if i in gone)
        entry.data = data = deque(value for i, value in enumerate(data) if i not in gone)
    else:
        cut = part(data, event.start, event.start + event.cut)
        left = len(cut) * each + sum(map(len, cut))
        _splice(data, event.start, event.cut, event.put)
    _touch(state, entry, len(event.put) * each + sum(map(len, event.put)) - left)
    if not data:
        keys.remove(event.key)


def _splice(data: deque[bytes], start: int, cut: int, put: list[bytes]) -> None:
    """Replace elements. At either end it costs only what changes."""
    if start + cut == len(data):
        for _ in range(cut):
            data.pop()
        data.extend(put)
        return
    data.rotate(-start)
    for _ in range(cut):
        data.popleft()
    data.extendleft(reversed(put))
    data.rotate(start)


def members_changed(state: EngineState, event: MembersChanged) -> None:
    keys = state.keys
    entry = keys.entries.get(event.key)
    if entry is None:
        entry = Entry(event.kind)
        keys.add(event.key, entry)
    there = _members(entry)
    gone = [(each, there[each]) for each in event.drop]
    gone += [(member, there[member]) for member in dict(event.put) if member in there]
    if event.kind is k.Kind.SORTED:
        entry.data.drop_all(event.drop)
    else:
        for member in event.drop:
            del there[member]
    for member, value in event.put:
        if event.kind is k.Kind.SORTED:
            entry.data.put(member, value)
        else:
            there[member] = value
    _touch(state, entry, size_of(event.kind, dict(event.put).items()) - size_of(event.kind, gone))
    if not there:
        keys.remove(event.key)


def script_known(state: EngineState, event: ScriptKnown) -> None:
    state.scripts[event.sha] = event.dialect


def scripts_forgotten(state: EngineState, event: ScriptsForgotten) -> None:
    state.scripts = {}
