"""Which jobs ended by these events, and how: for those who wait for them (MODEL section 8)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from crossdock.model.events import AnyEvent, Failed, Flushed, Removed, Succeeded
from crossdock.model.job import Number
from crossdock.model.states import State
from crossdock.wire.answer import Ended

_FINAL: Final = frozenset({State.FAILED, State.DEAD, State.GONE})
_GONE: Final = Ended(False, False, b"")
_LAPSED: Final = Ended(False, False, b"", lapsed=True)


def endings(events: Sequence[AnyEvent], waited_for: Iterable[Number]) -> Iterator[tuple[Number, Ended]]:
    """`waited_for` are all jobs that somebody waits for: a flush ends every one of them."""
    for event in events:
        if isinstance(event, Succeeded):
            yield event.number, Ended(True, True, event.result)
        elif isinstance(event, Failed):
            if event.then in _FINAL or event.to_queue:
                yield event.number, Ended(True, False, event.body)
        elif isinstance(event, Removed):
            for each in event.rows:
                yield each.number, _LAPSED if event.why == "lapsed" else _GONE
        elif isinstance(event, Flushed):
            yield from [(number, _GONE) for number in waited_for]
