"""The unified script and those that came of it: a command, the caller's time, arguments (protocol page, qless 5)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from crossdock.wire.desk import Desk
from crossdock.wire.redis.qless import (
    config,
    job_lists,
    lua,
    php,
    popping,
    putting,
    queues,
    recur,
    reqless,
    settling,
    throttling,
    workers,
)
from crossdock.wire.redis.qless.call import Answer, Call, Grant, Publish, Reply, decode, unheard
from crossdock.wire.redis.qless.dialect import PHP, REQLESS, REQLESS_013, THROTTLES, UNIFIED, UNIFIED_2013, Dialect
from crossdock.wire.redis.qless.given import Raised

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
    "pop": popping.pop,
    "peek": popping.peek,
    "jobs": job_lists.jobs,
    "queues": queues.queues,
    "length": queues.length,
    "stats": queues.stats,
    "failed": job_lists.failed,
    "unfail": job_lists.unfail,
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
_DATA: Final = {"put": 6, "requeue": 6, "complete": 5, "fail": 6, "heartbeat": 4, "recur": 5, "log": 4}

#: What each generation answers.
_OF_2013: Final = {name: act for name, act in COMMANDS.items() if name != "requeue"}
_WITH_THROTTLES: Final = {
    **COMMANDS,
    "throttle.set": throttling.set_one,
    "throttle.get": throttling.get,
    "throttle.delete": throttling.delete,
    "throttle.ttl": throttling.ttl,
    "throttle.locks": throttling.locks,
    "throttle.pending": throttling.pending,
    "throttle.release": throttling.release,
    "queue.throttle.set": throttling.set_queue,
    "queue.throttle.get": throttling.get_queue,
}
_OF_PHP: Final = {**COMMANDS, **php.COMMANDS}


def commands(dialect: Dialect) -> Mapping[str, Callable[[Call], Reply]]:
    if dialect.renamed:
        return reqless.COMMANDS
    if dialect.php:
        return _OF_PHP
    return _OF_2013 if dialect.old else _WITH_THROTTLES if dialect.throttled else COMMANDS


#: By a dialect's name, and by the command as it comes.
_ACTS: Final = {
    dialect.name: {name.encode(): act for name, act in commands(dialect).items()}
    for dialect in (UNIFIED, UNIFIED_2013, THROTTLES, REQLESS_013, PHP, REQLESS)
}


def answering(dialect: Dialect) -> Answer:
    """Who carries out the calls of that dialect."""
    acts = _ACTS[dialect.name]
    data = reqless.DATA if dialect.renamed else _DATA
    read = dialect.clock.read

    def answer(
        desk: Desk, keys: Sequence[bytes], args: Sequence[bytes], publish: Publish, grant: Grant = unheard
    ) -> Reply:
        act = acts.get(args[0]) if len(args) > 1 and not keys else None
        if act is None:
            raise Raised(_refusal(keys, args, dialect))
        try:
            words = list(map(bytes.decode, args))
        except UnicodeDecodeError:
            command = args[0].decode()
            words = decode(args, data.get(command, 0) - (dialect.old and command == "put"))
        t = lua.number(words[1])
        if t is None:
            raise Raised('Arg "now" missing or not a number: nil')
        return act(Call(desk, desk.memory, read(t, desk.now.wall), words[2:], publish, dialect, grant))

    return answer


def _refusal(keys: Sequence[bytes], args: Sequence[bytes], dialect: Dialect) -> str:
    """What the script says to such a call, which is none."""
    if keys:
        return "No Keys should be provided"
    if not args:
        return "Must provide a command"
    if args[0] not in _ACTS[dialect.name]:
        return f"Unknown command {args[0].decode('utf-8', 'replace')}"
    return "bad argument #1 to 'tonumber' (value expected)"
