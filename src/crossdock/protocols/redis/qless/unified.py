"""The unified script and its descendants. A call has a command, the client's time, arguments (qless.md section 5)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from crossdock.protocols.base import Dispatcher
from crossdock.protocols.redis.qless import (
    cjson_reader,
    edit,
    job_lists,
    php,
    pop,
    put,
    queues,
    recurring,
    reqless,
    settings,
    settle,
    throttles,
)
from crossdock.protocols.redis.qless.arguments import QlessError
from crossdock.protocols.redis.qless.call import (
    PHP,
    REQLESS,
    REQLESS_013,
    THROTTLES,
    UNIFIED,
    UNIFIED_2013,
    Call,
    CallHandler,
    Dialect,
    Grant,
    Publish,
    Reply,
    decode,
    no_grant,
)

COMMANDS: Final[dict[str, Callable[[Call], Reply]]] = {
    "put": put.put,
    "requeue": put.requeue,
    "get": job_lists.get,
    "multiget": job_lists.multiget,
    "cancel": edit.cancel,
    "priority": edit.priority,
    "depends": edit.depends,
    "tag": edit.tag,
    "track": edit.track,
    "log": edit.log,
    "pop": pop.pop,
    "peek": pop.peek,
    "jobs": job_lists.jobs,
    "queues": queues.queues,
    "length": queues.length,
    "stats": queues.stats,
    "failed": job_lists.failed,
    "unfail": job_lists.unfail,
    "pause": queues.pause,
    "unpause": queues.unpause,
    "queue.forget": queues.forget,
    "complete": settle.complete,
    "fail": settle.fail,
    "retry": settle.retry,
    "heartbeat": settle.heartbeat,
    "timeout": settle.timeout,
    "workers": queues.workers,
    "worker.deregister": queues.deregister,
    "config.get": settings.get,
    "config.set": settings.put,
    "config.unset": settings.unset,
    "recur": recurring.recur,
    "unrecur": recurring.unrecur,
    "recur.get": recurring.get,
    "recur.update": recurring.update,
    "recur.tag": recurring.tag,
    "recur.untag": recurring.untag,
}

#: The index of the data argument, counted from the command.
_DATA: Final = {"put": 6, "requeue": 6, "complete": 5, "fail": 6, "heartbeat": 4, "recur": 5, "log": 4}

#: Commands of the other dialects.
_OF_2013: Final = {name: act for name, act in COMMANDS.items() if name != "requeue"}
_WITH_THROTTLES: Final = {
    **COMMANDS,
    "throttle.set": throttles.set_one,
    "throttle.get": throttles.get,
    "throttle.delete": throttles.delete,
    "throttle.ttl": throttles.ttl,
    "throttle.locks": throttles.locks,
    "throttle.pending": throttles.pending,
    "throttle.release": throttles.release,
    "queue.throttle.set": throttles.set_queue,
    "queue.throttle.get": throttles.get_queue,
}
_OF_PHP: Final = {**COMMANDS, **php.COMMANDS}


def commands(dialect: Dialect) -> Mapping[str, Callable[[Call], Reply]]:
    if dialect.is_reqless:
        return reqless.COMMANDS
    if dialect.php:
        return _OF_PHP
    return _OF_2013 if dialect.old else _WITH_THROTTLES if dialect.throttled else COMMANDS


#: Handlers by the name of the dialect and the command.
_ACTS: Final = {
    dialect.name: {name.encode(): act for name, act in commands(dialect).items()}
    for dialect in (UNIFIED, UNIFIED_2013, THROTTLES, REQLESS_013, PHP, REQLESS)
}


def call_handler(dialect: Dialect) -> CallHandler:
    """The function that executes calls of this dialect."""
    acts = _ACTS[dialect.name]
    data = reqless.DATA if dialect.is_reqless else _DATA
    read = dialect.clock.read

    def answer(
        dispatcher: Dispatcher, keys: Sequence[bytes], args: Sequence[bytes], publish: Publish, grant: Grant = no_grant
    ) -> Reply:
        act = acts.get(args[0]) if len(args) > 1 and not keys else None
        if act is None:
            raise QlessError(_refusal(keys, args, dialect))
        try:
            words = list(map(bytes.decode, args))
        except UnicodeDecodeError:
            command = args[0].decode()
            words = decode(args, data.get(command, 0) - (dialect.old and command == "put"))
        t = cjson_reader.number(words[1])
        if t is None:
            raise QlessError('Arg "now" missing or not a number: nil')
        return act(Call(dispatcher, dispatcher.state, read(t, dispatcher.now.wall), words[2:], publish, dialect, grant))

    return answer


def _refusal(keys: Sequence[bytes], args: Sequence[bytes], dialect: Dialect) -> str:
    """The error of the script for a call without a known command, or with keys."""
    if keys:
        return "No Keys should be provided"
    if not args:
        return "Must provide a command"
    if args[0] not in _ACTS[dialect.name]:
        return f"Unknown command {args[0].decode('utf-8', 'replace')}"
    return "bad argument #1 to 'tonumber' (value expected)"
