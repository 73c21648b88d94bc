"""The unified script: a command, the caller's time, arguments (protocol page, qless 5)."""

from collections.abc import Callable, Sequence
from typing import Final

from crossdock.wire.desk import Desk
from crossdock.wire.redis.qless import config, lua, putting, queues, recur, settling, workers
from crossdock.wire.redis.qless.call import Call, Grant, Raised, Reply, decode
from crossdock.wire.redis.qless.dialect import UNIFIED, Dialect

COMMANDS: Final[dict[str, Callable[[Call], Reply]]] = {
    "put": putting.put,
    "requeue": putting.requeue,
    "get": putting.get,
    "multiget": putting.multiget,
    "cancel": putting.cancel,
    "priority": putting.priority,
    "depends": putting.depends,
    "tag": putting.tag,
    "track": putting.track,
    "log": putting.log,
    "pop": queues.pop,
    "peek": queues.peek,
    "jobs": queues.jobs,
    "queues": queues.queues,
    "length": queues.length,
    "stats": queues.stats,
    "failed": queues.failed,
    "unfail": queues.unfail,
    "pause": queues.pause,
    "unpause": queues.unpause,
    "queue.forget": queues.forget,
    "complete": settling.complete,
    "fail": settling.fail,
    "retry": settling.retry,
    "heartbeat": settling.heartbeat,
    "timeout": settling.timeout,
    "workers": workers.workers,
    "worker.deregister": workers.deregister,
    "config.get": config.get,
    "config.set": config.put,
    "config.unset": config.unset,
    "recur": recur.recur,
    "unrecur": recur.unrecur,
    "recur.get": recur.get,
    "recur.update": recur.update,
    "recur.tag": recur.tag,
    "recur.untag": recur.untag,
}

#: Which argument is a job's data.
_DATA: Final = {b"put": 6, b"requeue": 6, b"complete": 5, b"fail": 6, b"heartbeat": 4, b"recur": 5, b"log": 4}

#: Commands that the script of 2013 does not have.
_LATER: Final = frozenset({"requeue"})

_NEW: Final = {name.encode(): act for name, act in COMMANDS.items()}
_OLD: Final = {name.encode(): act for name, act in COMMANDS.items() if name not in _LATER}


def call(
    desk: Desk,
    keys: Sequence[bytes],
    args: Sequence[bytes],
    publish: Callable[[str, str], None],
    dialect: Dialect = UNIFIED,
    grant: Grant = lambda jobs: None,
) -> Reply:
    """Carry out one call. Raises Raised with the script's own text."""
    if keys:
        raise Raised("No Keys should be provided")
    if not args:
        raise Raised("Must provide a command")
    command = args[0]
    act = (_OLD if dialect.old else _NEW).get(command)
    if act is None:
        raise Raised(f"Unknown command {command.decode('utf-8', 'replace')}")
    try:
        words = list(map(bytes.decode, args))
    except UnicodeDecodeError:
        words = decode(args, _DATA.get(command, 0) - (dialect.old and command == b"put"))
    if len(words) < 2:
        raise Raised("bad argument #1 to 'tonumber' (value expected)")
    t = lua.number(words[1])
    if t is None:
        raise Raised('Arg "now" missing or not a number: nil')
    return act(Call(desk, t, words[2:], publish, dialect, grant))
