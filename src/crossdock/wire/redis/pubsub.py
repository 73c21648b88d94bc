"""SUBSCRIBE and its like, PUBLISH, PUBSUB. A subscription ends with its connection."""

from typing import Final

from crossdock.wire.redis.bounds import TEXT_BYTES, pattern
from crossdock.wire.redis.command import ALONE, LISTENING, Act, Command, container
from crossdock.wire.redis.context import Context
from crossdock.wire.redis.values import Error, Many, Push, Result

#: Each published text is matched with every pattern.
PATTERNS_AT_MOST: Final = 1_000
CHANNELS_AT_MOST: Final = 100_000


def subscribe(context: Context, args: list[bytes]) -> Result:
    if len(context.channels) + len(args) > CHANNELS_AT_MOST:
        raise Error(f"ERR a connection may subscribe to {CHANNELS_AT_MOST} channels")
    said = []
    for channel in args:
        context.channels[channel] = None
        context.desk.channels.subscribe(channel, context)
        said.append(Push((b"subscribe", channel, context.subscriptions)))
    return Many(said)


def unsubscribe(context: Context, args: list[bytes]) -> Result:
    said = []
    for channel in args or list(context.channels):
        context.channels.pop(channel, None)
        context.desk.channels.unsubscribe(channel, context)
        said.append(Push((b"unsubscribe", channel, context.subscriptions)))
    return Many(said or [Push((b"unsubscribe", None, context.subscriptions))])


def psubscribe(context: Context, args: list[bytes]) -> Result:
    if len(context.patterns) + len(args) > PATTERNS_AT_MOST:
        raise Error(f"ERR a connection may subscribe to {PATTERNS_AT_MOST} patterns")
    said = []
    globs = {text: pattern(text) for text in args}
    for text, glob in globs.items():
        context.patterns[text] = None
        context.desk.channels.subscribe_pattern(text, glob, context)
        said.append(Push((b"psubscribe", text, context.subscriptions)))
    return Many(said)


def punsubscribe(context: Context, args: list[bytes]) -> Result:
    said = []
    for text in args or list(context.patterns):
        context.patterns.pop(text, None)
        context.desk.channels.unsubscribe_pattern(text, context)
        said.append(Push((b"punsubscribe", text, context.subscriptions)))
    return Many(said or [Push((b"punsubscribe", None, context.subscriptions))])


def leave_all(context: Context) -> None:
    """Without a word: the connection is gone, or RESET."""
    channels = context.desk.channels
    for channel in context.channels:
        channels.unsubscribe(channel, context)
    for text in context.patterns:
        channels.unsubscribe_pattern(text, context)
    context.channels, context.patterns = {}, {}


def publish(context: Context, args: list[bytes]) -> Result:
    if len(args[0]) + len(args[1]) > TEXT_BYTES:
        raise Error(f"ERR a published text may have {TEXT_BYTES >> 20} MiB with its channel")
    return context.desk.publish(args[0], args[1])


def _channels(context: Context, args: list[bytes]) -> Result:
    glob = pattern(args[0] if args else b"*")
    return [channel for channel in context.desk.channels.by_name if glob.matches(channel)]


def _numsub(context: Context, args: list[bytes]) -> Result:
    by_name = context.desk.channels.by_name
    return [each for channel in args for each in (channel, len(by_name.get(channel, ())))]


def _numpat(context: Context, args: list[bytes]) -> Result:
    return len(context.desk.channels.by_pattern)


_PUBSUB: Final[dict[bytes, tuple[int, Act]]] = {
    b"CHANNELS": (-2, _channels),
    b"NUMSUB": (-2, _numsub),
    b"NUMPAT": (2, _numpat),
}

COMMANDS: Final = (
    Command(b"subscribe", -2, subscribe, LISTENING | ALONE),
    Command(b"unsubscribe", -1, unsubscribe, LISTENING | ALONE),
    Command(b"psubscribe", -2, psubscribe, LISTENING | ALONE),
    Command(b"punsubscribe", -1, punsubscribe, LISTENING | ALONE),
    Command(b"publish", 3, publish),
    Command(b"pubsub", -2, container(b"pubsub", _PUBSUB)),
)
