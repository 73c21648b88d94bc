"""Commands about the connection: authentication, protocol version, PING, CLIENT (qless.md section 1.4)."""

from collections.abc import Iterable
from typing import Final

from crossdock.protocols.redis.commands import transaction
from crossdock.protocols.redis.commands.command import (
    BEFORE_AUTH,
    NOT_QUEUED,
    WHILE_SUBSCRIBED,
    Command,
    Subcommands,
    container,
)
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.pubsub import leave_all
from crossdock.protocols.redis.resp.values import (
    OK,
    SYNTAX,
    Error,
    LastReply,
    Result,
    Simple,
    Verbatim,
    arity,
    excerpt,
    parse_int,
)

#: Reported by INFO and HELLO. Some clients require a minimum version.
REDIS_VERSION: Final = b"7.0.15"
DATABASES: Final = 16
_NAME_BYTES: Final = 255

_WRONG_PASSWORD: Final = Error("WRONGPASS invalid username-password pair or user is disabled.")
_NO_PASSWORD: Final = Error(
    "ERR AUTH <password> called without any password configured for the default user. "
    "Are you sure your configuration is correct?"
)
_HELLO_FIRST: Final = Error(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> "
    "option can be used to authenticate the client and select the RESP protocol version at the same time"
)
_BAD_NAME: Final = Error("ERR Client names cannot contain spaces, newlines or special characters.")


def auth(context: Context, args: list[bytes]) -> Result:
    if len(args) > 2:
        raise SYNTAX
    if len(args) == 1 and not context.protocol.has_password:
        raise _NO_PASSWORD
    _admit(context, args[0] if len(args) == 2 else b"default", args[-1])
    return OK


def _admit(context: Context, user: bytes, password: bytes) -> None:
    """Authenticate. There is one user; if no password is configured, any password is accepted."""
    if user != b"default" or not context.protocol.admits(password):
        context.report("wrong-password", "wrong password")
        raise _WRONG_PASSWORD
    context.set_authenticated()


def hello(context: Context, args: list[bytes]) -> Result:
    resp3 = context.resp3
    if args:
        protocol = parse_int(args[0], Error("ERR Protocol version is not an integer or out of range"))
        if protocol not in (2, 3):
            raise Error("NOPROTO unsupported protocol version")
        resp3 = protocol == 3
    at = 1
    while at < len(args):
        option, left = args[at].upper(), len(args) - at - 1
        if option == b"AUTH" and left >= 2:
            _admit(context, args[at + 1], args[at + 2])
            at += 3
        elif option == b"SETNAME" and left >= 1:
            context.name = _client_name(args[at + 1])
            at += 2
        else:
            raise Error(b"ERR Syntax error in HELLO option '%b'" % excerpt(args[at]))
    if not context.identified:
        raise _HELLO_FIRST
    context.resp3 = resp3
    return {
        b"server": b"redis",
        b"version": REDIS_VERSION,
        b"proto": 3 if resp3 else 2,
        b"id": context.number,
        b"mode": b"standalone",
        b"role": b"master",
        b"modules": [],
    }


def _client_name(name: bytes) -> bytes:
    if len(name) > _NAME_BYTES:
        raise Error(f"ERR Client names may have at most {_NAME_BYTES} bytes")
    if any(not 33 <= byte <= 126 for byte in name):
        raise _BAD_NAME
    return name


def set_name(context: Context, args: list[bytes]) -> Result:
    context.name = _client_name(args[0])
    return OK


def ping(context: Context, args: list[bytes]) -> Result:
    if len(args) > 1:
        raise arity(b"ping")
    if context.subscriptions and not context.resp3:
        return [b"pong", args[0] if args else b""]
    return args[0] if args else Simple(b"PONG")


def echo(context: Context, args: list[bytes]) -> Result:
    return args[0]


def select(context: Context, args: list[bytes]) -> Result:
    """There is one store. With `redis.databases = shared` all 16 numbers select it."""
    database = parse_int(args[0])
    if not -(2**31) <= database < 2**31:
        raise Error("ERR value is out of range, value must between -2147483648 and 2147483647")
    if not 0 <= database < (DATABASES if context.protocol.shared_databases else 1):
        raise Error("ERR DB index is out of range")
    context.database = database
    return OK


def quit_(context: Context, args: list[bytes]) -> Result:
    return LastReply(OK)


def reset(context: Context, args: list[bytes]) -> Result:
    """Return the connection to its initial state."""
    transaction.end(context)
    leave_all(context)
    acts, context.on_close = context.on_close, []
    for act in acts:
        act()
    context.memo.clear()
    context.resp3, context.name, context.database = False, b"", 0
    context.reset_authentication()
    return Simple(b"RESET")


COMMANDS: Final = (
    Command(b"auth", -2, auth, BEFORE_AUTH),
    Command(b"hello", -1, hello, BEFORE_AUTH),
    Command(b"ping", -1, ping, WHILE_SUBSCRIBED),
    Command(b"echo", 2, echo),
    Command(b"select", 2, select),
    Command(b"quit", -1, quit_, BEFORE_AUTH | NOT_QUEUED | WHILE_SUBSCRIBED),
    Command(b"reset", 1, reset, BEFORE_AUTH | NOT_QUEUED | WHILE_SUBSCRIBED),
)


# CLIENT: clients set their name and library, and list connections.


_BAD_ID: Final = Error("ERR Invalid client ID")
_TYPES: Final = frozenset({b"normal", b"master", b"replica", b"slave", b"pubsub"})


def _id(context: Context, args: list[bytes]) -> Result:
    return context.number


def _get_name(context: Context, args: list[bytes]) -> Result:
    return context.name or None


def _set_info(context: Context, args: list[bytes]) -> Result:
    if args[0].upper() not in (b"LIB-NAME", b"LIB-VER"):
        raise Error(b"ERR Unrecognized option '%b'" % excerpt(args[0]))
    return OK


def _no_evict(context: Context, args: list[bytes]) -> Result:
    """Accepted without effect: no client is evicted."""
    if args[0].upper() not in (b"ON", b"OFF"):
        raise SYNTAX
    return OK


def _accept(context: Context, args: list[bytes]) -> Result:
    """Accepted without effect."""
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
    sessions = context.protocol.sessions
    listed: Iterable[Context] = sessions.values()
    match [word.upper() for word in args[:1]]:
        case [b"TYPE"] if len(args) == 2:
            if args[1].lower() not in _TYPES:
                raise Error(b"ERR Unknown client type '%b'" % excerpt(args[1]))
            listed = [each for each in listed if _type(each) == args[1].lower()]
        case [b"ID"] if len(args) > 1:
            numbers = [parse_int(word, _BAD_ID) for word in args[1:]]
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

CLIENT_COMMANDS: Final = (container(b"client", _CLIENT),)
