"""The engine's live keys in the form of the key space's reference."""

from typing import Any

from crossdock.engine.keyspace.store import elements
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands import keyspace as k
from tests.model.key_reference import Value


def visible(state: EngineState, now: Now) -> dict[bytes, Value]:
    shown: dict[bytes, Value] = {}
    for key in state.keys.entries:
        entry = state.keys.live(key, now)
        if entry is not None:
            members = list(elements(entry))
            value: Any = dict(members)
            if entry.kind is k.Kind.STRING:
                value = members[0][0]
            elif entry.kind is k.Kind.LIST:
                value = [member for member, _ in members]
            shown[key] = (entry.kind, value, entry.end)
    return shown
