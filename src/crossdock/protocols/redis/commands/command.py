"""A command of the table: its name, how many words it takes, what it does, and which of them are keys."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.values import Result, arity, unknown_subcommand, wrong_words

Act = Callable[[Context, list[bytes]], Result]

WRITE: Final = 1
GROWS: Final = 2  #: takes room; refused when there is none
STRANGER: Final = 4  #: allowed before AUTH
AT_ONCE: Final = 8  #: carried out even between MULTI and EXEC
ALONE: Final = 16  #: not allowed between MULTI and EXEC
LISTENING: Final = 32  #: allowed to a RESP2 connection that is subscribed
BLOCKS: Final = 64


#: By the second word of a request, in upper case: how many words it takes with both names, and what it does.
Subcommands = Mapping[bytes, tuple[int, Act]]


class Command(msgspec.Struct, frozen=True):
    name: bytes  #: lower case
    arity: int  #: words with the name; negative: at least so many
    act: Act  #: gets the words behind the name
    flags: int = 0
    first: int = 0  #: the first key, counted from the name; 0: it has none
    last: int = 0  #: the last one; negative: counted from the end
    step: int = 1
    subcommands: Subcommands | None = None  #: of a container; `act` looks there

    def keys(self, args: list[bytes]) -> list[bytes]:
        if not self.first:
            return []
        last = self.last if self.last > 0 else len(args) + 1 + self.last
        return args[self.first - 1 : last : self.step]

    def full_name(self, args: list[bytes]) -> bytes:
        """With the subcommand's, where there is one; raises Error if it is wrong or has not the words it takes."""
        if self.subcommands is None or not args:
            return self.name
        return _chosen(self.name, self.subcommands, args)[0]


class TooManyWords(Exception):
    """Of a subcommand that takes any number, says Redis, and then does not."""


def container(name: bytes, subcommands: Subcommands, bare: Act | None = None) -> Command:
    """`CLIENT ID` and its like: the second word chooses. `bare` is what it does without one, if that is allowed."""

    def choose(context: Context, args: list[bytes]) -> Result:
        if not args and bare is not None:
            return bare(context, args)
        try:
            return _chosen(name, subcommands, args)[1](context, args[1:])
        except TooManyWords:
            raise wrong_words(name, args[0]) from None

    return Command(name, -2 if bare is None else -1, choose, subcommands=subcommands)


def _chosen(name: bytes, subcommands: Subcommands, args: list[bytes]) -> tuple[bytes, Act]:
    found = subcommands.get(args[0].upper())
    if found is None:
        raise unknown_subcommand(name, args[0])
    least, act = found
    full_name = b"%b|%b" % (name, args[0].lower())
    words = len(args) + 1
    if words != least if least > 0 else words < -least:
        raise arity(full_name)
    return full_name, act
