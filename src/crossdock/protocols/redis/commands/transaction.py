"""MULTI, EXEC and WATCH (doors.md, question 12).

EXEC carries out its commands in turn within one batch; nobody is served in between, and an error is one element of the
reply. A command that was refused when it was queued refuses the whole.
"""

from collections.abc import Generator, Iterator
from typing import Final

from crossdock.engine.queries.keyspace import keyspace_changes, last_change_of_removed, live_entry
from crossdock.protocols.redis.commands.command import AT_ONCE, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.values import REPLY_BYTES, TOO_LARGE, refuse_long
from crossdock.protocols.redis.resp.encode import encode
from crossdock.protocols.redis.resp.values import EXEC_ABORT, NULL_ARRAY, OK, Block, Encoded, Error, Hang, Result, Value
from crossdock.protocols.redis.views import run
from crossdock.protocols.rejection_delay import LARGE, late

#: Commands of one transaction: about a tenth of a second in which nobody else is served.
QUEUE_AT_MOST: Final = 16_384
WORD_BYTES: Final = 16  #: counted for each word of a command beside its length; an empty one is kept, too
WATCHED_AT_MOST: Final = 10_000

#: Passes of commands that otherwise let others have their turn in between, as KEYS does: 25,000 keys, about 50 ms.
PASSES_AT_MOST: Final = 25

_TOO_LONG: Final = Error("ERR the transaction takes too long; ask for keys outside of it, or by SCAN")


def multi(context: Context, args: list[bytes]) -> Result:
    if context.queued is not None:
        return Error("ERR MULTI calls can not be nested")
    context.queued, context.queued_bytes, context.spoilt = [], 0, False
    return OK


def discard(context: Context, args: list[bytes]) -> Result:
    if context.queued is None:
        return Error("ERR DISCARD without MULTI")
    end(context)
    return OK


def execute(context: Context, args: list[bytes]) -> Result:
    queued, spoilt = context.queued, context.spoilt
    if queued is None:
        return Error("ERR EXEC without MULTI")
    stale_listings = any(_has_changed(context, key, was) for key, was in context.watched.items())
    end(context)
    if spoilt:
        return EXEC_ABORT
    if stale_listings:
        return NULL_ARRAY
    replies: list[Value] = []
    left = REPLY_BYTES
    passes = iter(range(PASSES_AT_MOST))
    dispatcher, in_vain, watchful = context.dispatcher, 0.0, context.queued_bytes > LARGE
    with dispatcher.together():
        for command, words in queued:
            began = dispatcher.held_up() if watchful and sum(map(len, words)) > LARGE else None
            reply = encode(at_once(run(context, command, words), passes) if left > 0 else TOO_LARGE, context.resp3)
            left -= len(reply)
            replies.append(Encoded(reply))
            if began is not None and reply.startswith(b"-"):
                in_vain += dispatcher.held_up() - began
    # Leases that only this answer tells of must not wait for it.
    return late(replies, in_vain) if in_vain and context.granted is None else replies


def at_once(result: Result, passes: Iterator[int]) -> Value:
    """The value of what may not wait: a blocking command finds what is there, and long work is done to its end while
    there are passes left."""
    if isinstance(result, Block):
        return result.here
    if isinstance(result, Hang):
        return result.value
    if isinstance(result, Generator):
        while True:
            try:
                next(result)
                if next(passes, None) is None:
                    return _TOO_LONG
            except StopIteration as ended:
                value: Value = ended.value
                return value
            except Error as error:
                return error.reply()
    return result


def end(context: Context) -> None:
    """No transaction any more, and nothing watched."""
    context.queued, context.spoilt = None, False
    context.watched = {}


def _state(context: Context, key: bytes) -> int:
    """The change that made it what it is; of a key that is not there less than 1: how many there were so far."""
    state = context.dispatcher.state
    entry = live_entry(state, key, context.dispatcher.now)
    return -keyspace_changes(state) if entry is None else entry.version


def _has_changed(context: Context, key: bytes, was: int) -> bool:
    now = _state(context, key)
    if was > 0 or now > 0:
        return now != was
    return last_change_of_removed(context.dispatcher.state, key) > -was  # it was there meanwhile


def watch(context: Context, args: list[bytes]) -> Result:
    if context.queued is not None:
        return Error("ERR WATCH inside MULTI is not allowed")
    for key in args:
        if context.protocol.views.of(key) is not None:
            return Error(b"ERR WATCH is not supported on '%b', which shows the state of jobs" % key[:128])
    if len(context.watched) + len(args) > WATCHED_AT_MOST:
        return Error(f"ERR a connection may watch {WATCHED_AT_MOST} keys")
    refuse_long(args, "a watched key")
    for key in args:
        context.watched.setdefault(key, _state(context, key))
    return OK


def unwatch(context: Context, args: list[bytes]) -> Result:
    context.watched = {}
    return OK


COMMANDS: Final = (
    Command(b"multi", 1, multi, AT_ONCE),
    Command(b"exec", 1, execute, AT_ONCE),
    Command(b"discard", 1, discard, AT_ONCE),
    Command(b"watch", -2, watch, AT_ONCE),
    Command(b"unwatch", 1, unwatch),
)
