"""Pub/sub: the subscribers of each channel. Not journaled: a subscription ends with its connection.

Subscribers receive a message in the order in which they subscribed. It is sent with the replies of the pass, so no
subscriber learns of a change before it is durable.
"""

from typing import NamedTuple, Protocol

from crossdock.protocols.glob import Glob


class ChannelSubscriber(Protocol):
    def deliver(self, pattern: bytes | None, channel: bytes, text: bytes) -> None:
        """`pattern` is the one that matched, None for a subscription to the channel's name."""


class _Pattern(NamedTuple):
    glob: Glob
    subscribers: dict[ChannelSubscriber, None]


class Channels:
    def __init__(self) -> None:
        self.by_name: dict[bytes, dict[ChannelSubscriber, None]] = {}
        self.by_pattern: dict[bytes, _Pattern] = {}

    def subscribe(self, channel: bytes, subscriber: ChannelSubscriber) -> None:
        self.by_name.setdefault(channel, {})[subscriber] = None

    def unsubscribe(self, channel: bytes, subscriber: ChannelSubscriber) -> None:
        subscribers = self.by_name.get(channel)
        if subscribers is not None and subscriber in subscribers:
            del subscribers[subscriber]
            if not subscribers:
                del self.by_name[channel]

    def subscribe_pattern(self, pattern: bytes, glob: Glob, subscriber: ChannelSubscriber) -> None:
        known = self.by_pattern.get(pattern)
        if known is None:
            known = self.by_pattern[pattern] = _Pattern(glob, {})
        known.subscribers[subscriber] = None

    def unsubscribe_pattern(self, pattern: bytes, subscriber: ChannelSubscriber) -> None:
        known = self.by_pattern.get(pattern)
        if known is not None and subscriber in known.subscribers:
            del known.subscribers[subscriber]
            if not known.subscribers:
                del self.by_pattern[pattern]

    def publish(self, channel: bytes, text: bytes, *, to_patterns: bool = True) -> int:
        """Returns the number of deliveries. A message that is published under a second name goes only to subscribers
        of that exact name, not to patterns (qless.md section 7)."""
        deliveries = 0
        for subscriber in tuple(self.by_name.get(channel, ())):
            subscriber.deliver(None, channel, text)
            deliveries += 1
        if to_patterns and self.by_pattern:
            for pattern, (glob, subscribers) in tuple(self.by_pattern.items()):
                if glob.matches(channel):
                    for subscriber in tuple(subscribers):
                        subscriber.deliver(pattern, channel, text)
                        deliveries += 1
        return deliveries
