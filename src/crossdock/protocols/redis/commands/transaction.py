"""MULTI, EXEC and WATCH.

EXEC runs its commands in order within one journal entry. No other client is served in between. An error is one element
of the reply. If a command was refused when it was queued, EXEC refuses the transaction.
"""

from collections.abc import Generator, Iterator
from typing import Final

from crossdock.engine.queries.keyspace import keyspace_changes, last_change_of_removed, live_entry
from crossdock.protocols.redis.commands.command import NOT_QUEUED, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.values import REPLY_BYTES, TOO_LARGE, refuse_long
from crossdock.protocols.redis.resp.encode import encode
from crossdock.protocols.redis.resp.values import (
    EXEC_ABORT,
    NULL_ARRAY,
    OK,
    Block,
    Encoded,
    Error,
    LastReply,
    Result,
    Value,
)
from crossdock.protocols.redis.views import run
from crossdock.protocols.rejection_delay import LARGE, delayed

#: Commands of one transaction: about 0.1 s, during which no other client is served.
QUEUE_AT_MOST: Final = 16_384
WORD_BYTES: Final = 16  #: overhead of each argument, added to its length
WATCHED_AT_MOST: Final = 10_000

#: Slices of long commands such as KEYS in one transaction: 25,000 keys, about 50 ms.
SLICES_AT_MOST: Final = 25

_TOO_LONG: Final = Error("ERR the transaction takes too long; use KEYS outside the transaction, or SCAN")


def multi(context: Context, args: list[bytes]) -> Result:
    if context.queued is not None:
        return Error("ERR MULTI calls can not be nested")
    context.queued, context.queued_bytes, context.queue_failed = [], 0, False
    return OK


def discard(context: Context, args: list[bytes]) -> Result:
    if context.queued is None:
        return Error("ERR DISCARD without MULTI")
    end(context)
    return OK


def execute(context: Context, args: list[bytes]) -> Result:
    queued, queue_failed = context.queued, context.queue_failed
    if queued is None:
        return Error("ERR EXEC without MULTI")
    watched_changed = any(_has_changed(context, key, version) for key, version in context.watched.items())
    end(context)
    if queue_failed:
        return EXEC_ABORT
    if watched_changed:
        return NULL_ARRAY
    replies: list[Value] = []
    left = REPLY_BYTES
    slices = iter(range(SLICES_AT_MOST))
    dispatcher, wasted, measured = context.dispatcher, 0.0, context.queued_bytes > LARGE
    with dispatcher.together():
        for command, words in queued:
            began = dispatcher.held_up() if measured and sum(map(len, words)) > LARGE else None
            reply = encode(finish(run(context, command, words), slices) if left > 0 else TOO_LARGE, context.resp3)
            left -= len(reply)
            replies.append(Encoded(reply))
            if began is not None and reply.startswith(b"-"):
                wasted += dispatcher.held_up() - began
    # A reply that grants leases is not delayed.
    return delayed(replies, wasted) if wasted and context.granted is None else replies


def finish(result: Result, slices: Iterator[int]) -> Value:
    """The value of a result inside a transaction. A blocking command does not wait. Long work runs to its end while
    slices are left."""
    if isinstance(result, Block):
        return result.in_multi
    if isinstance(result, LastReply):
        return result.value
    if isinstance(result, Generator):
        while True:
            try:
                next(result)
                if next(slices, None) is None:
                    return _TOO_LONG
            except StopIteration as ended:
                value: Value = ended.value
                return value
            except Error as error:
                return error.reply()
    return result


def end(context: Context) -> None:
    """End the transaction and unwatch all keys."""
    context.queued, context.queue_failed = None, False
    context.watched = {}


def _version(context: Context, key: bytes) -> int:
    """The number of the change that last wrote the key. For a missing key, the negated number of changes so far."""
    state = context.dispatcher.state
    entry = live_entry(state, key, context.dispatcher.now)
    return -keyspace_changes(state) if entry is None else entry.version


def _has_changed(context: Context, key: bytes, before: int) -> bool:
    now = _version(context, key)
    if before > 0 or now > 0:
        return now != before
    return last_change_of_removed(context.dispatcher.state, key) > -before  # it existed in between


def watch(context: Context, args: list[bytes]) -> Result:
    if context.queued is not None:
        return Error("ERR WATCH inside MULTI is not allowed")
    for key in args:
        if context.protocol.views.of(key) is not None:
            return Error(b"ERR WATCH is not supported on '%b', which shows the state of jobs" % key[:128])
    if len(context.watched) + len(args) > WATCHED_AT_MOST:
        return Error(f"ERR a connection may watch at most {WATCHED_AT_MOST} keys")
    refuse_long(args, "a watched key")
    for key in args:
        context.watched.setdefault(key, _version(context, key))
    return OK


def unwatch(context: Context, args: list[bytes]) -> Result:
    context.watched = {}
    return OK


COMMANDS: Final = (
    Command(b"multi", 1, multi, NOT_QUEUED),
    Command(b"exec", 1, execute, NOT_QUEUED),
    Command(b"discard", 1, discard, NOT_QUEUED),
    Command(b"watch", -2, watch, NOT_QUEUED),
    Command(b"unwatch", 1, unwatch),
)
