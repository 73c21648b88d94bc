"""The key space of the Redis protocol (model.md section 7): kinds of values, and the commands that change them.

A few commands serve many Redis commands. The protocol reads the value and states the change, which is decided and
applied before the next request. Events hold the change and not the value, so a push onto a list of a million elements
is as small as the first one.
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
    """Make the key a string, whatever it was."""

    key: bytes
    value: bytes
    end: float | None = 0.0  #: steady; 0: never; None: unchanged


class DropKeys(Command[int], frozen=True, gc=False):
    """Outcome: how many of the keys existed."""

    keys: Sequence[bytes]


class KeepKey(Command[bool], frozen=True, gc=False):
    """Set the end of a key. Outcome: False if the key does not exist."""

    key: bytes
    end: float  #: steady; 0: never. A past end removes the key


class ChangeList(Command[int], frozen=True, gc=False):
    """Replace `cut` elements by others. Outcome: the length of the list. An empty list is removed."""

    key: bytes
    start: int
    cut: int = 0
    put: Sequence[bytes] = ()
    drop: Sequence[int] = ()  #: also remove the elements that had these indexes before, in ascending order


class ChangeMembers(Command[None], frozen=True, gc=False):
    """Add members to a set, hash or sorted set, change their values, and remove members. Members that are unchanged or
    not there are left out of the event.
    """

    key: bytes
    kind: Kind
    put: Sequence[Member] = ()
    drop: Sequence[bytes] = ()


class KnowScript(Command[None], frozen=True, gc=False):
    """A script was loaded. The dialect that its hash stands for is stored. The text is neither stored nor run."""

    sha: str
    dialect: str


class ForgetScripts(Command[None], frozen=True, gc=False):
    pass
