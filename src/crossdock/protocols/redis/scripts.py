"""Scripts: recognised by their text, answered natively, never run (qless page 1.1, Resqu page 4).

A library knows the texts of one family of clients and has a handler for each of their dialects. What a client has
loaded is journalled as hash and dialect, so EVALSHA goes on over a restart; the text itself is not kept.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple, TypeAlias

import msgspec

from crossdock.engine.queries.records import loaded_scripts
from crossdock.model.commands.keyspace import ForgetScripts, KnowScript
from crossdock.protocols.redis.commands.command import Command, Subcommands, container
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.values import NO_SCRIPT, OK, Error, Result, Value, whole

#: Of a text that may be somebody's script; the largest that is known has a tenth of that.
TEXT_BYTES: Final = 1024 * 1024

#: Distinct hashes kept: every build of a client's script has its own, and somebody may make them up.
LOADED_AT_MOST: Final = 10_000


_BAD_COUNT: Final = Error("ERR Bad number of keys provided")


#: The keys of a call, and its arguments.
Divided: TypeAlias = tuple[list[bytes], list[bytes]]


class ScriptCall(msgspec.Struct, frozen=True):
    """One call of a script: `handle` of its library gets it."""

    context: Context
    dialect: str
    keys: list[bytes]
    args: list[bytes]
    script: str  #: the SHA-1 of its text, or the name of the function


class ScriptError(Exception):
    """A script's own error: the client finds its text where Redis 7 puts it (qless page 1.3)."""


Handler: TypeAlias = Callable[[ScriptCall], Value]


class Library(NamedTuple):
    dialects: Collection[str]  #: all it answers; no two libraries have the same
    hashes: Mapping[str, str]  #: SHA-1 of a text, CRLF made LF, and its dialect
    handle: Handler
    recognise: Callable[[bytes], str | None] = lambda text: None  #: by content, where the hash is not known
    functions: Mapping[str, str] = {}  #: FCALL's names and their dialects
    at_once: bool = False  #: EVALSHA of a known hash needs no load before


class Scripts:
    """All libraries of a door."""

    def __init__(self, libraries: tuple[Library, ...] = ()) -> None:
        self._libraries = libraries
        #: By dialect. One that this server was not given may have been loaded when it was
        self.handlers: dict[str | None, Handler] = {
            dialect: library.handle for library in libraries for dialect in library.dialects
        }
        #: Hashes that are answered though nobody has loaded their texts, and their dialects
        self.at_once = {
            sha: dialect for library in libraries if library.at_once for sha, dialect in library.hashes.items()
        }
        #: FCALL's names and their dialects; of two libraries with the same the first counts
        self.functions = {
            name.encode(): dialect for library in reversed(libraries) for name, dialect in library.functions.items()
        }

    def dialect(self, text: bytes) -> str | None:
        """Which script this is; None if nobody knows it."""
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
    """The hash of a text and its dialect, remembered from now on."""
    sha = sha1(text)
    known = loaded_scripts(context.dispatcher.state).get(sha)
    if known is not None and known in context.protocol.scripts.handlers:
        return sha, known
    dialect = context.protocol.scripts.dialect(text)
    if dialect is None:
        raise Error(f"ERR unknown script {sha}: this server runs no Lua, it knows the scripts of qless and Resqu V4")
    if len(loaded_scripts(context.dispatcher.state)) >= LOADED_AT_MOST:
        raise Error(f"ERR {LOADED_AT_MOST} scripts are loaded, the limit; SCRIPT FLUSH forgets them")
    context.dispatcher.do(KnowScript(sha, dialect))
    return sha, dialect


def eval_(context: Context, args: list[bytes]) -> Result:
    _keys(args)  # what is wrong with them is told before what is wrong with the text
    sha, dialect = _load(context, args[0])
    return _call(context, dialect, args, sha)


def evalsha(context: Context, args: list[bytes]) -> Result:
    sha = args[0].decode("latin-1").lower()
    loaded, at_once = loaded_scripts(context.dispatcher.state), context.protocol.scripts.at_once
    known = loaded.get(sha) or at_once.get(sha) or _unknown(sha, args)
    return _call(context, known, args, sha)


def _unknown(sha: str, args: list[bytes]) -> str:
    """Of what could be a hash, what is wrong with its keys is told first."""
    if len(sha) == 40:
        _keys(args)
    raise NO_SCRIPT


def fcall(context: Context, args: list[bytes]) -> Result:
    functions, name = context.protocol.scripts.functions, args[0]
    if name not in functions:  # Redis finds it in any case
        name = name.lower()
    dialect = functions.get(name) or _no_function()
    return _call(context, dialect, args, name.decode(), _keys_of_function, "user_function")


def _no_function() -> str:
    raise Error("ERR Function not found")


def _keys_of_function(args: list[bytes]) -> Divided:
    whole(args[1], _BAD_COUNT)
    return _keys(args)


def _keys(args: list[bytes]) -> Divided:
    count = whole(args[1])
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
    divide: Callable[[list[bytes]], Divided] = _keys,
    place: str = "user_script",  #: what an error gives as its place
) -> Value:
    keys, rest = ([], args[2:]) if args[1] == b"0" else divide(args)
    handler = context.protocol.scripts.handlers.get(dialect)
    if handler is None:
        raise NO_SCRIPT
    try:
        if not context.dispatcher.waiting:  # so nobody could be served in between
            return handler(ScriptCall(context, dialect, keys, rest, script))
        with context.dispatcher.together():
            return handler(ScriptCall(context, dialect, keys, rest, script))
    except ScriptError as error:
        raise Error(f"ERR {place}:1: {error} script: {script}, on @{place}:1.") from error


def _script_load(context: Context, args: list[bytes]) -> Result:
    return _load(context, args[0])[0].encode()


def _script_exists(context: Context, args: list[bytes]) -> Result:
    loaded, at_once = loaded_scripts(context.dispatcher.state), context.protocol.scripts.at_once
    return [int(sha in loaded or sha in at_once) for sha in (arg.decode("latin-1").lower() for arg in args)]


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
