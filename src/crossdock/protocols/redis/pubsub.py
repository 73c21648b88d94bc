"""SUBSCRIBE, PSUBSCRIBE, PUBLISH and PUBSUB. A subscription ends with its connection."""

from collections.abc import Callable, Iterable
from typing import Final

from crossdock.protocols.redis.commands.command import (
    OUTSIDE_MULTI,
    WHILE_SUBSCRIBED,
    Command,
    Subcommands,
    TooManyArguments,
    container,
)
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.values import TEXT_BYTES, pattern, refuse_long
from crossdock.protocols.redis.resp.values import Error, Push, Replies, Result

#: Per connection. Each published message is matched against every pattern.
PATTERNS_AT_MOST: Final = 1_000
CHANNELS_AT_MOST: Final = 10_000


def subscribe(context: Context, args: list[bytes]) -> Result:
    if len(context.channels) + len(args) > CHANNELS_AT_MOST:
        raise Error(f"ERR a connection may subscribe to at most {CHANNELS_AT_MOST} channels")
    refuse_long(args, "the name of a channel")
    channels = context.dispatcher.channels
    return _join(context, b"subscribe", context.channels, args, lambda name: channels.subscribe(name, context))


def unsubscribe(context: Context, args: list[bytes]) -> Result:
    channels = context.dispatcher.channels
    return _leave(context, b"unsubscribe", context.channels, args, lambda name: channels.unsubscribe(name, context))


def psubscribe(context: Context, args: list[bytes]) -> Result:
    if len(context.patterns) + len(args) > PATTERNS_AT_MOST:
        raise Error(f"ERR a connection may subscribe to at most {PATTERNS_AT_MOST} patterns")
    globs = {text: pattern(text) for text in args}
    join = context.dispatcher.channels.subscribe_pattern
    return _join(context, b"psubscribe", context.patterns, args, lambda text: join(text, globs[text], context))


def punsubscribe(context: Context, args: list[bytes]) -> Result:
    leave = context.dispatcher.channels.unsubscribe_pattern
    return _leave(context, b"punsubscribe", context.patterns, args, lambda text: leave(text, context))


def _join(
    context: Context, word: bytes, known: dict[bytes, None], names: Iterable[bytes], join: Callable[[bytes], None]
) -> Replies:
    replies = []
    for name in names:
        known[name] = None
        join(name)
        replies.append(Push((word, name, context.subscriptions)))
    return Replies(replies)


def _leave(
    context: Context, word: bytes, known: dict[bytes, None], names: list[bytes], leave: Callable[[bytes], None]
) -> Replies:
    """Unsubscribe from these names, or from all if there are none. There is always at least one reply."""
    replies = []
    for name in names or list(known):
        known.pop(name, None)
        leave(name)
        replies.append(Push((word, name, context.subscriptions)))
    return Replies(replies or [Push((word, None, context.subscriptions))])


def leave_all(context: Context) -> None:
    """Unsubscribe from everything without a reply: the connection closed or was RESET."""
    channels = context.dispatcher.channels
    for channel in context.channels:
        channels.unsubscribe(channel, context)
    for text in context.patterns:
        channels.unsubscribe_pattern(text, context)
    context.channels, context.patterns = {}, {}


def publish(context: Context, args: list[bytes]) -> Result:
    refuse_long(args[:1], "the name of a channel")
    if len(args[0]) + len(args[1]) > TEXT_BYTES:
        raise Error(f"ERR a published message may have at most {TEXT_BYTES >> 20} MiB, its channel included")
    return context.dispatcher.publish(args[0], args[1])


def _channels(context: Context, args: list[bytes]) -> Result:
    if len(args) > 1:
        raise TooManyArguments
    glob = pattern(args[0] if args else b"*")
    return [channel for channel in context.dispatcher.channels.by_name if glob.matches(channel)]


def _numsub(context: Context, args: list[bytes]) -> Result:
    by_name = context.dispatcher.channels.by_name
    return [each for channel in args for each in (channel, len(by_name.get(channel, ())))]


def _numpat(context: Context, args: list[bytes]) -> Result:
    return len(context.dispatcher.channels.by_pattern)


_PUBSUB: Final[Subcommands] = {
    b"CHANNELS": (-2, _channels),
    b"NUMSUB": (-2, _numsub),
    b"NUMPAT": (2, _numpat),
}

COMMANDS: Final = (
    Command(b"subscribe", -2, subscribe, WHILE_SUBSCRIBED | OUTSIDE_MULTI),
    Command(b"unsubscribe", -1, unsubscribe, WHILE_SUBSCRIBED),
    Command(b"psubscribe", -2, psubscribe, WHILE_SUBSCRIBED | OUTSIDE_MULTI),
    Command(b"punsubscribe", -1, punsubscribe, WHILE_SUBSCRIBED),
    Command(b"publish", 3, publish),
    container(b"pubsub", _PUBSUB),
)
