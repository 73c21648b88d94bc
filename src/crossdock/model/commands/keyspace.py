"""The key space of the Redis door (MODEL section 7): its kinds of value, the commands that change it, and their events.

Few verbs serve many Redis commands: the door looks at what is there, says what is to change, and the change is decided
and applied before anybody else is heard. An event holds the change and not the value: a push onto a list of a million
elements is as small as the first one.
"""

from collections.abc import Sequence
from enum import IntEnum

from crossdock.model.commands.core import Command


class Kind(IntEnum):
    STRING = 0
    LIST = 1
    SET = 2
    HASH = 3
    SORTED = 4


#: A member of a set (None), a field of a hash and its value (bytes), a member of a sorted set and its score (float).
Member = tuple[bytes, bytes | float | None]


class SetKey(Command[None], frozen=True, gc=False):
    """Make it a string, whatever it was."""

    key: bytes
    value: bytes
    end: float | None = 0.0  #: steady; 0: never; None: as it was


class DropKeys(Command[int], frozen=True, gc=False):
    """Outcome: how many of them were there."""

    keys: Sequence[bytes]


class KeepKey(Command[bool], frozen=True, gc=False):
    """Give it another end. Outcome: False when there is no such key."""

    key: bytes
    end: float  #: steady; 0: never. One that is over drops it


class ChangeList(Command[int], frozen=True, gc=False):
    """Put elements in the place of `cut` others. Outcome: how long the list is then; one of no elements is gone."""

    key: bytes
    start: int
    cut: int = 0
    put: Sequence[bytes] = ()
    drop: Sequence[int] = ()  #: also take out the elements that had these indexes before; ascending


class ChangeMembers(Command[None], frozen=True, gc=False):
    """Add members to a set, hash or sorted set, or give them another value, and drop some. What is so already, and
    what is not there to be dropped, is passed over."""

    key: bytes
    kind: Kind
    put: Sequence[Member] = ()
    drop: Sequence[bytes] = ()


class KnowScript(Command[None], frozen=True, gc=False):
    """A script was loaded: what its hash stands for. The text itself is never kept, and never run."""

    sha: str
    dialect: str


class ForgetScripts(Command[None], frozen=True, gc=False):
    pass
