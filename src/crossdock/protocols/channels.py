"""Who listens to which channel. Not journalled: a subscription ends with its connection.

A published text is handed to its hearers in the order they came; it leaves with the replies of the turn, so nobody
hears of a change before it is durable.
"""

from typing import NamedTuple, Protocol

from crossdock.protocols.glob import Glob


class Hearer(Protocol):
    def hear(self, pattern: bytes | None, channel: bytes, text: bytes) -> None:
        """`pattern` is the one it listens by, None for the channel's own name."""


class _Pattern(NamedTuple):
    glob: Glob
    hearers: dict[Hearer, None]


class Channels:
    def __init__(self) -> None:
        self.by_name: dict[bytes, dict[Hearer, None]] = {}
        self.by_pattern: dict[bytes, _Pattern] = {}

    def subscribe(self, channel: bytes, hearer: Hearer) -> None:
        self.by_name.setdefault(channel, {})[hearer] = None

    def unsubscribe(self, channel: bytes, hearer: Hearer) -> None:
        hearers = self.by_name.get(channel)
        if hearers is not None and hearer in hearers:
            del hearers[hearer]
            if not hearers:
                del self.by_name[channel]

    def subscribe_pattern(self, pattern: bytes, glob: Glob, hearer: Hearer) -> None:
        known = self.by_pattern.get(pattern)
        if known is None:
            known = self.by_pattern[pattern] = _Pattern(glob, {})
        known.hearers[hearer] = None

    def unsubscribe_pattern(self, pattern: bytes, hearer: Hearer) -> None:
        known = self.by_pattern.get(pattern)
        if known is not None and hearer in known.hearers:
            del known.hearers[hearer]
            if not known.hearers:
                del self.by_pattern[pattern]

    def publish(self, channel: bytes, text: bytes, *, to_patterns: bool = True) -> int:
        """How many were told. A second name of one notice goes to those who asked for that very name, not to patterns
        (qless page 7)."""
        told = 0
        for hearer in tuple(self.by_name.get(channel, ())):
            hearer.hear(None, channel, text)
            told += 1
        if to_patterns and self.by_pattern:
            for pattern, (glob, hearers) in tuple(self.by_pattern.items()):
                if glob.matches(channel):
                    for hearer in tuple(hearers):
                        hearer.hear(pattern, channel, text)
                        told += 1
        return told
