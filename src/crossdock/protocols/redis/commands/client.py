"""CLIENT: what connections say about themselves when they begin, and what may be asked about them."""

from collections.abc import Iterable
from typing import Final

from crossdock.protocols.redis.commands.command import Subcommands, container
from crossdock.protocols.redis.commands.connection import set_name
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.numbers import whole
from crossdock.protocols.redis.resp.values import OK, SYNTAX, Error, Result, Verbatim, shown

_BAD_ID: Final = Error("ERR Invalid client ID")
_TYPES: Final = frozenset({b"normal", b"master", b"replica", b"slave", b"pubsub"})


def _id(context: Context, args: list[bytes]) -> Result:
    return context.number


def _get_name(context: Context, args: list[bytes]) -> Result:
    return context.name or None


def _set_info(context: Context, args: list[bytes]) -> Result:
    if args[0].upper() not in (b"LIB-NAME", b"LIB-VER"):
        raise Error(b"ERR Unrecognized option '%b'" % shown(args[0]))
    return OK


def _no_evict(context: Context, args: list[bytes]) -> Result:
    """Nobody is."""
    if args[0].upper() not in (b"ON", b"OFF"):
        raise SYNTAX
    return OK


def _accept(context: Context, args: list[bytes]) -> Result:
    """Asks for nothing that this server could do, or would need to."""
    return OK


def _reply(context: Context, args: list[bytes]) -> Result:
    if args[0].upper() != b"ON":
        raise SYNTAX
    return OK


def _line(context: Context) -> bytes:
    transaction = -1 if context.queued is None else len(context.queued)
    return b"id=%d name=%b db=%d sub=%d psub=%d multi=%d watch=%d resp=%d\n" % (
        context.number,
        context.name,
        context.database,
        len(context.channels),
        len(context.patterns),
        transaction,
        len(context.watched),
        3 if context.resp3 else 2,
    )


def _info(context: Context, args: list[bytes]) -> Result:
    return Verbatim(_line(context))


def _list(context: Context, args: list[bytes]) -> Result:
    sessions = context.door.sessions
    listed: Iterable[Context] = sessions.values()
    match [word.upper() for word in args[:1]]:
        case [b"TYPE"] if len(args) == 2:
            if args[1].lower() not in _TYPES:
                raise Error(b"ERR Unknown client type '%b'" % shown(args[1]))
            listed = [each for each in listed if _type(each) == args[1].lower()]
        case [b"ID"] if len(args) > 1:
            numbers = [whole(word, _BAD_ID) for word in args[1:]]
            listed = [sessions[number] for number in numbers if number in sessions]
        case [_]:
            raise SYNTAX
    return Verbatim(b"".join(map(_line, listed)))


def _type(context: Context) -> bytes:
    return b"pubsub" if context.subscriptions else b"normal"


_CLIENT: Final[Subcommands] = {
    b"ID": (2, _id),
    b"GETNAME": (2, _get_name),
    b"SETNAME": (3, set_name),
    b"SETINFO": (4, _set_info),
    b"INFO": (2, _info),
    b"LIST": (-2, _list),
    b"REPLY": (3, _reply),
    b"MAINT_NOTIFICATIONS": (-3, _accept),
    b"NO-EVICT": (3, _no_evict),
    b"NO-TOUCH": (3, _no_evict),
}

COMMANDS: Final = (container(b"client", _CLIENT),)
