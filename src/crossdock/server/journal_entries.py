"""What becomes of a turn's changes: one row of the journal, or several where that would be too long for one.

SQLite takes no blob of a gigabyte, and whoever reads the journal has a row in memory as a whole. A command's events
stay together, since a restart may find the first of two rows alone.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Final, TypeAlias

from crossdock.model.clock import Now
from crossdock.model.events import AnyEvent
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, encode_entry

#: A row is not longer, unless one command makes it so.
ROW_BYTES: Final = 64 * 1024 * 1024

#: What is written, and how many events it holds.
Row: TypeAlias = tuple[bytes, int]


def rows(changes: Sequence[Sequence[AnyEvent]], now: Now) -> list[Row]:
    """Of the events of each command, in their order."""
    events = list(chain.from_iterable(changes))
    row = encode_entry(JournalEntry(EVENT_VERSION, now.wall, now.steady, events))
    if len(row) <= ROW_BYTES or len(changes) == 1:
        return [(row, len(events))]
    half = len(changes) // 2
    return rows(changes[:half], now) + rows(changes[half:], now)
