"""Commands about the server: INFO, CONFIG, SLOWLOG, TIME and the flushes (qless.md section 12)."""

from typing import Final

from crossdock import __version__
from crossdock.engine.queries.keyspace import keyspace_size
from crossdock.model.commands.admin import Flush
from crossdock.protocols.redis.commands.command import WRITE, Command, Subcommands, TooManyArguments, container
from crossdock.protocols.redis.commands.connection import DATABASES, REDIS_VERSION
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.values import pattern
from crossdock.protocols.redis.resp.values import INT64, OK, SYNTAX, Error, Result, Verbatim, excerpt, parse_int

VIA: Final = "redis"

#: The minimum of each parameter that CONFIG SET accepts.
_LEAST: Final = {b"slowlog-log-slower-than": -1, b"slowlog-max-len": 0}

_BAD_COUNT: Final = Error("ERR count should be greater than or equal to -1")


def _sections(context: Context) -> dict[bytes, dict[str, object]]:
    protocol, dispatcher = context.protocol, context.dispatcher
    size = keyspace_size(dispatcher.state)
    return {
        b"server": {
            "redis_version": REDIS_VERSION.decode(),
            "redis_mode": "standalone",
            "crossdock_version": __version__,
            "uptime_in_seconds": int(dispatcher.now.steady - protocol.started),
        },
        b"clients": {"connected_clients": len(protocol.sessions)},
        b"memory": {"used_memory": size.bytes, "maxmemory": protocol.keys_bytes, "maxmemory_policy": "noeviction"},
        b"persistence": {"loading": 0, "aof_enabled": 1},
        b"stats": {
            "total_connections_received": protocol.connected,
            "total_commands_processed": protocol.commands,
            "pubsub_channels": len(dispatcher.channels.by_name),
            "pubsub_patterns": len(dispatcher.channels.by_pattern),
        },
        b"replication": {"role": "master", "connected_slaves": 0},
        b"keyspace": {"db0": f"keys={size.keys},expires={size.expiring},avg_ttl=0"} if size.keys else {},
    }


def info(context: Context, args: list[bytes]) -> Result:
    sections = _sections(context)
    wanted = {word.lower() for word in args}
    if wanted & {b"all", b"default", b"everything"} or not wanted:
        wanted = set(sections)
    parts = []
    for name, section in sections.items():
        if name in wanted:
            lines = "".join(f"{key}:{value}\r\n" for key, value in section.items())
            parts.append(f"# {name.decode().capitalize()}\r\n{lines}")
    return Verbatim("\r\n".join(parts).encode())


def config(context: Context) -> dict[bytes, bytes]:
    """The parameters that clients ask for. Only those of the slow log can be set, without effect."""
    return {
        b"appendonly": b"yes",
        b"databases": b"%d" % (DATABASES if context.protocol.shared_databases else 1),
        b"maxmemory": b"%d" % context.protocol.keys_bytes,
        b"maxmemory-policy": b"noeviction",
        b"notify-keyspace-events": b"",
        b"proto-max-bulk-len": b"%d" % context.protocol.request_bytes,
        b"save": b"",
        b"timeout": b"0",
        **context.protocol.slow_log,
    }


def _config_get(context: Context, args: list[bytes]) -> Result:
    globs = [pattern(text.lower()) for text in args]
    return {name: value for name, value in config(context).items() if any(glob.matches(name) for glob in globs)}


def _config_set(context: Context, args: list[bytes]) -> Result:
    if len(args) % 2:
        raise SYNTAX
    new: dict[bytes, bytes] = {}
    for name, value in zip(args[::2], args[1::2], strict=True):
        if name.lower() not in context.protocol.slow_log:
            raise Error(b"ERR Unknown option or number of arguments for CONFIG SET - '%b'" % excerpt(name))
        if name.lower() in new:
            raise _not_set(name, b"duplicate parameter")
        new[name.lower()] = value
    for name, value in new.items():
        least = _LEAST[name]
        if parse_int(value, _not_set(name, b"argument couldn't be parsed into an integer")) < least:
            raise _not_set(name, b"argument must be between %d and %d inclusive" % (least, INT64 - 1))
    context.protocol.slow_log.update(new)
    return OK


def _not_set(name: bytes, why: bytes) -> Error:
    return Error(b"ERR CONFIG SET failed (possibly related to argument '%b') - %b" % (excerpt(name), why))


def _ok(context: Context, args: list[bytes]) -> Result:
    return OK


def _slow_log(context: Context, args: list[bytes]) -> Result:
    if len(args) > 1:
        raise TooManyArguments
    if args and parse_int(args[0], _BAD_COUNT) < -1:
        raise _BAD_COUNT
    return []


def _slow_log_length(context: Context, args: list[bytes]) -> Result:
    return 0


def time(context: Context, args: list[bytes]) -> Result:
    seconds, rest = divmod(context.dispatcher.now.wall, 1)
    return [b"%d" % int(seconds), b"%d" % int(rest * 1e6)]


def flush(context: Context, args: list[bytes]) -> Result:
    """Delete everything: there is one store for all protocols (model.md section 11)."""
    if [arg.upper() for arg in args] not in ([], [b"ASYNC"], [b"SYNC"]):
        raise SYNTAX
    if not context.protocol.may_flush:
        raise Error("ERR FLUSH is disabled while a listener is reachable from other hosts; set server.flush = true")
    context.dispatcher.do(Flush(VIA))
    return OK


_CONFIG: Final[Subcommands] = {
    b"GET": (-3, _config_get),
    b"SET": (-4, _config_set),
    b"RESETSTAT": (2, _ok),
}
_SLOWLOG: Final[Subcommands] = {
    b"GET": (-2, _slow_log),
    b"LEN": (2, _slow_log_length),
    b"RESET": (2, _ok),
}

COMMANDS: Final = (
    Command(b"info", -1, info),
    container(b"config", _CONFIG),
    container(b"slowlog", _SLOWLOG),
    Command(b"time", 1, time),
    Command(b"flushdb", -1, flush, WRITE),
    Command(b"flushall", -1, flush, WRITE),
)
