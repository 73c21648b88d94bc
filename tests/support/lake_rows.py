"""The lake's rows for a list of events."""

from collections.abc import Sequence

from crossdock.lake.event_rows.tables import Tables
from crossdock.lake.redaction import Payloads
from crossdock.model.events import AnyEvent
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry
from tests.lake.ledger import Row


def rows_of(events: Sequence[AnyEvent], payloads: Payloads) -> list[Row]:
    found: list[Row] = []
    tables = Tables(lambda _, table: found.extend(table.to_pylist()), payloads=payloads)
    tables.add_entry(1, JournalEntry(EVENT_VERSION, 0.0, 0.0, list(events)))
    tables.cut()
    return sorted(found, key=lambda row: int(row["seq"]))
