"""Commands about the connection itself: who it is, which protocol it speaks, whether it is alive (qless page 1.4)."""

from typing import Final

from crossdock.protocols.redis.commands import transaction
from crossdock.protocols.redis.commands.command import AT_ONCE, LISTENING, STRANGER, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.pubsub import leave_all
from crossdock.protocols.redis.resp.numbers import whole
from crossdock.protocols.redis.resp.values import OK, SYNTAX, Error, Hang, Result, Simple, arity, shown

#: What clients may expect of a server. Some compare it with what they need.
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
    if len(args) == 1 and not context.door.has_password:
        raise _NO_PASSWORD
    _admit(context, args[0] if len(args) == 2 else b"default", args[-1])
    return OK


def _admit(context: Context, user: bytes, password: bytes) -> None:
    """There is one user. Without a password it is let in with any."""
    if user != b"default" or not context.door.admits(password):
        raise _WRONG_PASSWORD
    context.trust()


def hello(context: Context, args: list[bytes]) -> Result:
    resp3 = context.resp3
    if args:
        protocol = whole(args[0], Error("ERR Protocol version is not an integer or out of range"))
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
            raise Error(b"ERR Syntax error in HELLO option '%b'" % shown(args[at]))
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
        raise Error(f"ERR Client names may have {_NAME_BYTES} bytes")
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
    """There is one store. `redis.databases = shared` lets clients that insist on another number use it all the same."""
    database = whole(args[0])
    if not -(2**31) <= database < 2**31:
        raise Error("ERR value is out of range, value must between -2147483648 and 2147483647")
    if not 0 <= database < (DATABASES if context.door.shared_databases else 1):
        raise Error("ERR DB index is out of range")
    context.database = database
    return OK


def quit_(context: Context, args: list[bytes]) -> Result:
    return Hang(OK)


def reset(context: Context, args: list[bytes]) -> Result:
    """As if the connection were new."""
    transaction.end(context)
    leave_all(context)
    acts, context.on_close = context.on_close, []
    for act in acts:
        act()
    context.memo.clear()
    context.resp3, context.name, context.database = False, b"", 0
    context.distrust()
    return Simple(b"RESET")


COMMANDS: Final = (
    Command(b"auth", -2, auth, STRANGER),
    Command(b"hello", -1, hello, STRANGER),
    Command(b"ping", -1, ping, LISTENING),
    Command(b"echo", 2, echo),
    Command(b"select", 2, select),
    Command(b"quit", -1, quit_, STRANGER | AT_ONCE | LISTENING),
    Command(b"reset", 1, reset, STRANGER | AT_ONCE | LISTENING),
)
