"""An entry of the command table: name, number of arguments, handler, flags and key positions."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.values import Result, arity, unknown_subcommand, wrong_arguments

Act = Callable[[Context, list[bytes]], Result]

WRITE: Final = 1
DENY_OOM: Final = 2  #: takes space; refused when the server is full
BEFORE_AUTH: Final = 4  #: allowed before AUTH
NOT_QUEUED: Final = 8  #: executed at once even between MULTI and EXEC
OUTSIDE_MULTI: Final = 16  #: not allowed between MULTI and EXEC
WHILE_SUBSCRIBED: Final = 32  #: allowed on a RESP2 connection with subscriptions
BLOCKS: Final = 64


#: By the name of the subcommand in upper case: its arity, which counts both names, and its handler.
Subcommands = Mapping[bytes, tuple[int, Act]]


class Command(msgspec.Struct, frozen=True):
    name: bytes  #: lower case
    arity: int  #: number of words, the name included; negative: the minimum
    act: Act  #: receives the words after the name
    flags: int = 0
    first: int = 0  #: position of the first key; 0: no keys
    last: int = 0  #: position of the last key; negative: counted from the end
    step: int = 1
    subcommands: Subcommands | None = None  #: of a container command

    def keys(self, args: list[bytes]) -> list[bytes]:
        if not self.first:
            return []
        last = self.last if self.last > 0 else len(args) + 1 + self.last
        return args[self.first - 1 : last : self.step]

    def full_name(self, args: list[bytes]) -> bytes:
        """The name with that of the subcommand. Raises Error for an unknown subcommand or a wrong number of words."""
        if self.subcommands is None or not args:
            return self.name
        return _chosen(self.name, self.subcommands, args)[0]


class TooManyArguments(Exception):
    """Raised by a subcommand with a variable number of arguments. Redis has another error text for it."""


def container(name: bytes, subcommands: Subcommands, bare: Act | None = None) -> Command:
    """A command with subcommands, such as CLIENT. `bare` handles it without a subcommand, if that is allowed."""

    def choose(context: Context, args: list[bytes]) -> Result:
        if not args and bare is not None:
            return bare(context, args)
        try:
            return _chosen(name, subcommands, args)[1](context, args[1:])
        except TooManyArguments:
            raise wrong_arguments(name, args[0]) from None

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
