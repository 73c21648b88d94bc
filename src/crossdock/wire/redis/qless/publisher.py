"""Tells subscribers of every change, whichever door made it (protocol page, qless 7).

Each notice goes out as the calling dialect spells it, other doors' as the unified one does. Under the other dialect's
name it reaches those who asked for that very name, and no patterns: suites compare all that a pattern brings.
"""

from collections.abc import Sequence
from typing import Any

from crossdock.model.events import AnyEvent
from crossdock.wire.desk import Desk
from crossdock.wire.redis.qless.call import Answer, Reply
from crossdock.wire.redis.qless.notices import in_scripts, notices


class Publisher:
    def __init__(self) -> None:
        self.in_scripts = False  #: while a call of the per-script form is carried out

    def in_scripts_by(self, answer: Answer) -> Answer:
        """A call of the per-script form."""

        def answered(*args: Any) -> Reply:
            self.in_scripts = True
            try:
                return answer(*args)
            finally:
                self.in_scripts = False

        return answered

    def tell(self, desk: Desk, events: Sequence[AnyEvent]) -> None:
        """Of one command's events. To be called only while somebody listens."""
        for channel, text in notices(events, desk.memory.watched):
            self.say(desk, channel, text)

    def say(self, desk: Desk, channel: str, text: str) -> None:
        other = in_scripts((channel, text))
        data = text.encode("utf-8", "surrogateescape")
        desk.publish(channel.encode("utf-8", "surrogateescape"), data, to_patterns=not self.in_scripts)
        if other is not None:
            desk.publish(other[0].encode("utf-8", "surrogateescape"), data, to_patterns=self.in_scripts)
