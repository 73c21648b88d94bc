"""A command of the table: its name, how many words it takes, what it does, and which of them are keys."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from crossdock.wire.redis.context import Context
from crossdock.wire.redis.errors import arity, unknown_subcommand
from crossdock.wire.redis.values import Result

Act = Callable[[Context, list[bytes]], Result]

WRITE: Final = 1
GROWS: Final = 2  #: takes room; refused when there is none
STRANGER: Final = 4  #: allowed before AUTH
AT_ONCE: Final = 8  #: carried out even between MULTI and EXEC
ALONE: Final = 16  #: not allowed between MULTI and EXEC
LISTENING: Final = 32  #: allowed to a RESP2 connection that is subscribed
BLOCKS: Final = 64


class Command(msgspec.Struct, frozen=True):
    name: bytes  #: lower case
    arity: int  #: words with the name; negative: at least so many
    act: Act  #: gets the words behind the name
    flags: int = 0
    first: int = 0  #: the first key, counted from the name; 0: it has none
    last: int = 0  #: the last one; negative: counted from the end
    step: int = 1

    def keys(self, args: list[bytes]) -> list[bytes]:
        if not self.first:
            return []
        last = self.last if self.last > 0 else len(args) + 1 + self.last
        return args[self.first - 1 : last : self.step]


def container(name: bytes, subcommands: Mapping[bytes, tuple[int, Act]]) -> Act:
    """`CLIENT ID` and its like: the second word chooses. Its arity counts both words."""

    def choose(context: Context, args: list[bytes]) -> Result:
        found = subcommands.get(args[0].upper())
        if found is None:
            raise unknown_subcommand(name, args[0])
        least, act = found
        words = len(args) + 1
        if words != least if least > 0 else words < -least:
            raise arity(b"%b|%b" % (name, args[0].lower()))
        return act(context, args[1:])

    return choose
