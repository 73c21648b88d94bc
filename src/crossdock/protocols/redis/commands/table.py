"""The command table, and the COMMAND command, which describes it."""

from typing import Final

from crossdock.protocols.redis import pubsub, scripts
from crossdock.protocols.redis.commands import connection, server, transaction
from crossdock.protocols.redis.commands.command import (
    BEFORE_AUTH,
    BLOCKS,
    DENY_OOM,
    WRITE,
    Command,
    Subcommands,
    container,
)
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys import generic, hashes, lists, sets, sorted_sets, strings
from crossdock.protocols.redis.resp.values import SYNTAX, Result, Simple, Value

_FLAGS: Final = ((DENY_OOM, b"denyoom"), (BLOCKS, b"blocking"), (BEFORE_AUTH, b"no_auth"))


def _command(context: Context, args: list[bytes]) -> Result:
    return [_shown(each) for each in _ALL]


def _count(context: Context, args: list[bytes]) -> Result:
    return len(_ALL)


def _info(context: Context, args: list[bytes]) -> Result:
    return [None if (found := COMMANDS.get(name.lower())) is None else _shown(found) for name in args or _NAMES]


def _list(context: Context, args: list[bytes]) -> Result:
    """Filters are not supported."""
    if args:
        raise SYNTAX
    return _NAMES


def _docs(context: Context, args: list[bytes]) -> Result:
    """Only group and arity. The commands are described in redis.md."""
    known = [COMMANDS[name.lower()] for name in args or _NAMES if name.lower() in COMMANDS]
    return {each.name: {b"group": b"generic", b"arity": each.arity} for each in known}


def _shown(command: Command) -> list[Value]:
    """Name, arity, flags, first key, last key, step; then ACL categories, tips, key specifications and subcommands,
    which are empty."""
    flags: list[Value] = [Simple(word) for flag, word in _FLAGS if command.flags & flag]
    flags.append(Simple(b"write" if command.flags & WRITE else b"readonly"))
    step = command.step if command.first else 0
    return [command.name, command.arity, flags, command.first, command.last, step, [], [], [], []]


_COMMAND: Final[Subcommands] = {
    b"COUNT": (2, _count),
    b"INFO": (-2, _info),
    b"LIST": (-2, _list),
    b"DOCS": (-2, _docs),
}

_ALL: Final = (
    *connection.COMMANDS,
    *connection.CLIENT_COMMANDS,
    *server.COMMANDS,
    *transaction.COMMANDS,
    *pubsub.COMMANDS,
    *scripts.COMMANDS,
    *generic.COMMANDS,
    *strings.COMMANDS,
    *lists.COMMANDS,
    *lists.BLOCKING_COMMANDS,
    *sets.COMMANDS,
    *hashes.COMMANDS,
    *sorted_sets.COMMANDS,
    container(b"command", _COMMAND, bare=_command),
)
_NAMES: Final = [each.name for each in _ALL]

#: By name, in lower and in upper case, because most clients send upper case.
COMMANDS: Final = {name: each for each in _ALL for name in (each.name, each.name.upper())}
