"""The table of commands, and COMMAND, which shows it."""

from typing import Final

from crossdock.protocols.redis import pubsub, scripts
from crossdock.protocols.redis.commands import connection, server, transaction
from crossdock.protocols.redis.commands.command import BLOCKS, GROWS, STRANGER, WRITE, Command, Subcommands, container
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys import generic, hashes, lists, sets, sorted_sets, strings
from crossdock.protocols.redis.resp.values import SYNTAX, Result, Simple, Value

_FLAGS: Final = ((GROWS, b"denyoom"), (BLOCKS, b"blocking"), (STRANGER, b"no_auth"))


def _command(context: Context, args: list[bytes]) -> Result:
    return [_shown(each) for each in _ALL]


def _count(context: Context, args: list[bytes]) -> Result:
    return len(_ALL)


def _info(context: Context, args: list[bytes]) -> Result:
    return [None if (found := COMMANDS.get(name.lower())) is None else _shown(found) for name in args or _NAMES]


def _list(context: Context, args: list[bytes]) -> Result:
    """There is no filter."""
    if args:
        raise SYNTAX
    return _NAMES


def _docs(context: Context, args: list[bytes]) -> Result:
    """Which there are, and no more: docs/reference/redis.md says it in words."""
    known = [COMMANDS[name.lower()] for name in args or _NAMES if name.lower() in COMMANDS]
    return {each.name: {b"group": b"generic", b"arity": each.arity} for each in known}


def _shown(command: Command) -> list[Value]:
    """Name, arity, flags, first key, last key, step; then what this server knows nothing of."""
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

#: By their names in lower case; in upper case too, as most clients send them.
COMMANDS: Final = {name: each for each in _ALL for name in (each.name, each.name.upper())}
