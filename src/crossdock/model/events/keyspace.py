"""Events of the Redis key space."""

import msgspec

from crossdock.model.commands.keyspace import Kind, Member
from crossdock.model.events.base import Event


class KeySet(Event, tag="key-set"):
    key: bytes
    value: bytes
    end: float


class KeysDropped(Event, tag="keys-dropped"):
    """The keys were deleted, or their time was over."""

    keys: list[bytes]


class KeyKept(Event, tag="key-kept"):
    key: bytes
    end: float


class ListChanged(Event, tag="list-changed"):
    key: bytes
    start: int
    cut: int
    put: list[bytes]
    drop: list[int] = msgspec.field(default_factory=list)


class MembersChanged(Event, tag="members-changed"):
    key: bytes
    kind: Kind
    put: list[Member]
    drop: list[bytes]


class ScriptKnown(Event, tag="script-known"):
    sha: str
    dialect: str


class ScriptsForgotten(Event, tag="scripts-forgotten"):
    pass


KeyEvent = KeySet | KeysDropped | KeyKept | ListChanged | MembersChanged | ScriptKnown | ScriptsForgotten
