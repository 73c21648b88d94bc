"""The history of a job: adding entries, and how many are kept."""

from math import floor
from typing import TYPE_CHECKING, Final

from crossdock.model.protocol_data import HistoryEntry, HistoryKind, ProtocolData

if TYPE_CHECKING:
    from crossdock.engine.state import EngineState

#: Entries per job: the default, and the maximum. Every reply contains all of them.
DEFAULT: Final = 100
AT_MOST: Final = 1_000


def limit(configured: float) -> float:
    """The number of entries to keep for this setting."""
    return min(configured, AT_MOST) if configured > 0 else AT_MOST


def entry(what: HistoryKind, t: float, name: str = "", group: str = "", data: bytes = b"") -> HistoryEntry:
    return HistoryEntry(float(floor(t)), what, name, group, data)


def add(
    state: "EngineState", entries: tuple[HistoryEntry, ...], entry: HistoryEntry, data: ProtocolData | None = None
) -> tuple[HistoryEntry, ...]:
    """The entries and one more, cut to `max-job-history`: the first entry and the last ones are kept."""
    keep = state.history_limit
    if len(entries) < keep - 1:
        return (*entries, entry)
    if data is not None and data.keeps_history():
        keep = AT_MOST
    if keep <= len(entries) + 1:
        entries = entries[:1] + entries[1:][2 - int(keep) :]
    if len(entries) >= AT_MOST:  # the script treats 2 as no limit
        entries = entries[:1] + entries[2 - AT_MOST :]
    return (*entries, entry)
