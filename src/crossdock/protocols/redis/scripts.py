"""Recognises scripts by their text and implements them natively without Lua (qless.md section 1.1, resqu.md section 4).

A library knows the scripts of one family of clients and handles their dialects. A loaded script is journalled as hash
and dialect, so EVALSHA still works after a restart. The text is not stored.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple, TypeAlias

import msgspec

from crossdock.engine.queries.records import loaded_scripts
from crossdock.model.commands.keyspace import ForgetScripts, KnowScript
from crossdock.protocols.redis.commands.command import Command, Subcommands, container
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.values import NO_SCRIPT, OK, Error, Result, Value, parse_int

#: Longest text that may be a known script. The largest published one has a tenth of that.
TEXT_BYTES: Final = 1024 * 1024

#: Loaded scripts that are remembered. Every build of a client's script has its own hash.
LOADED_AT_MOST: Final = 10_000


_BAD_COUNT: Final = Error("ERR Bad number of keys provided")


#: The keys and the arguments of a call.
KeysAndArgs: TypeAlias = tuple[list[bytes], list[bytes]]


class ScriptCall(msgspec.Struct, frozen=True):
    """One call of a script, as the handler of its library receives it."""

    context: Context
    dialect: str
    keys: list[bytes]
    args: list[bytes]
    script: str  #: SHA-1 of the text, or the name of the function


class ScriptError(Exception):
    """An error that the script itself raises. The reply has the form of Redis 7 (qless.md section 1.3)."""


Handler: TypeAlias = Callable[[ScriptCall], Value]


class Library(NamedTuple):
    dialects: Collection[str]  #: dialects it handles; no two libraries share one
    hashes: Mapping[str, str]  #: SHA-1 of each known text, with CRLF replaced by LF, and its dialect
    handle: Handler
    recognise: Callable[[bytes], str | None] = lambda text: None  #: the dialect of a text with an unknown hash
    functions: Mapping[str, str] = {}  #: function names for FCALL, and their dialects
    preloaded: bool = False  #: EVALSHA works without SCRIPT LOAD


class Scripts:
    """All libraries of the protocol."""

    def __init__(self, libraries: tuple[Library, ...] = ()) -> None:
        self._libraries = libraries
        #: By dialect. The journal may name a dialect of a library that is no longer enabled.
        self.handlers: dict[str | None, Handler] = {
            dialect: library.handle for library in libraries for dialect in library.dialects
        }
        #: Hashes that need no SCRIPT LOAD, and their dialects.
        self.preloaded = {
            sha: dialect for library in libraries if library.preloaded for sha, dialect in library.hashes.items()
        }
        #: Function names and their dialects. The first library wins.
        self.functions = {
            name.encode(): dialect for library in reversed(libraries) for name, dialect in library.functions.items()
        }

    def dialect(self, text: bytes) -> str | None:
        """The dialect of a script text; None if no library knows it."""
        if len(text) > TEXT_BYTES:
            return None
        text = text.replace(b"\r\n", b"\n")
        sha = sha1(text)
        for library in self._libraries:
            found = library.hashes.get(sha) or library.recognise(text)
            if found is not None:
                return found
        return None


def sha1(text: bytes) -> str:
    return hashlib.sha1(text, usedforsecurity=False).hexdigest()


def _load(context: Context, text: bytes) -> tuple[str, str]:
    """Remember a script, and return its hash and dialect."""
    sha = sha1(text)
    known = loaded_scripts(context.dispatcher.state).get(sha)
    if known is not None and known in context.protocol.scripts.handlers:
        return sha, known
    dialect = context.protocol.scripts.dialect(text)
    if dialect is None:
        raise Error(
            f"ERR unknown script {sha}: this server does not run Lua, it only knows the scripts of qless and Resqu V4"
        )
    if len(loaded_scripts(context.dispatcher.state)) >= LOADED_AT_MOST:
        raise Error(f"ERR {LOADED_AT_MOST} scripts are loaded, which is the limit; remove them with SCRIPT FLUSH")
    context.dispatcher.do(KnowScript(sha, dialect))
    return sha, dialect


def eval_(context: Context, args: list[bytes]) -> Result:
    _keys(args)  # errors in the keys come before errors in the text
    sha, dialect = _load(context, args[0])
    return _call(context, dialect, args, sha)


def evalsha(context: Context, args: list[bytes]) -> Result:
    sha = args[0].decode("latin-1").lower()
    loaded, preloaded = loaded_scripts(context.dispatcher.state), context.protocol.scripts.preloaded
    known = loaded.get(sha) or preloaded.get(sha) or _unknown(sha, args)
    return _call(context, known, args, sha)


def _unknown(sha: str, args: list[bytes]) -> str:
    """Raise NOSCRIPT. If the hash has the right length, errors in the keys come first."""
    if len(sha) == 40:
        _keys(args)
    raise NO_SCRIPT


def fcall(context: Context, args: list[bytes]) -> Result:
    functions, name = context.protocol.scripts.functions, args[0]
    if name not in functions:  # function names are case-insensitive
        name = name.lower()
    dialect = functions.get(name) or _no_function()
    return _call(context, dialect, args, name.decode(), _keys_of_function, "user_function")


def _no_function() -> str:
    raise Error("ERR Function not found")


def _keys_of_function(args: list[bytes]) -> KeysAndArgs:
    parse_int(args[1], _BAD_COUNT)
    return _keys(args)


def _keys(args: list[bytes]) -> KeysAndArgs:
    count = parse_int(args[1])
    if count > len(args) - 2:
        raise Error("ERR Number of keys can't be greater than number of args")
    if count < 0:
        raise Error("ERR Number of keys can't be negative")
    return args[2 : 2 + count], args[2 + count :]


def _call(
    context: Context,
    dialect: str,
    args: list[bytes],
    script: str,
    divide: Callable[[list[bytes]], KeysAndArgs] = _keys,
    place: str = "user_script",  #: the source name in error texts
) -> Value:
    keys, rest = ([], args[2:]) if args[1] == b"0" else divide(args)
    handler = context.protocol.scripts.handlers.get(dialect)
    if handler is None:
        raise NO_SCRIPT
    try:
        if not context.dispatcher.waiting:  # without waiting clients no transaction is needed
            return handler(ScriptCall(context, dialect, keys, rest, script))
        with context.dispatcher.together():
            return handler(ScriptCall(context, dialect, keys, rest, script))
    except ScriptError as error:
        raise Error(f"ERR {place}:1: {error} script: {script}, on @{place}:1.") from error


def _script_load(context: Context, args: list[bytes]) -> Result:
    return _load(context, args[0])[0].encode()


def _script_exists(context: Context, args: list[bytes]) -> Result:
    loaded, preloaded = loaded_scripts(context.dispatcher.state), context.protocol.scripts.preloaded
    return [int(sha in loaded or sha in preloaded) for sha in (arg.decode("latin-1").lower() for arg in args)]


def _script_flush(context: Context, args: list[bytes]) -> Result:
    if [arg.upper() for arg in args] not in ([], [b"ASYNC"], [b"SYNC"]):
        raise Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
    context.dispatcher.do(ForgetScripts())
    return OK


def _script_kill(context: Context, args: list[bytes]) -> Result:
    raise Error("NOTBUSY No scripts in execution right now.")


_SCRIPT: Final[Subcommands] = {
    b"LOAD": (3, _script_load),
    b"EXISTS": (-3, _script_exists),
    b"FLUSH": (-2, _script_flush),
    b"KILL": (2, _script_kill),
}

COMMANDS: Final = (
    Command(b"eval", -3, eval_),
    Command(b"eval_ro", -3, eval_),
    Command(b"evalsha", -3, evalsha),
    Command(b"evalsha_ro", -3, evalsha),
    Command(b"fcall", -3, fcall),
    Command(b"fcall_ro", -3, fcall),
    container(b"script", _SCRIPT),
)
