"""Sums over rows of the lake in plain Python: statistics, and leases with their ends."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, Final

from crossdock.engine.records.stats import QueueDay, Stats
from crossdock.engine.state import EngineState
from crossdock.lake.event_rows.tables import Tables
from crossdock.model.clock import DAY
from crossdock.model.events import AnyEvent
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry

Row = dict[str, Any]


def rows_of(batches: Iterable[Iterable[AnyEvent]]) -> list[Row]:
    found: list[Row] = []
    tables = Tables(lambda _, table: found.extend(table.to_pylist()))
    for seq, events in enumerate(batches, 1):
        tables.add_entry(seq, JournalEntry(EVENT_VERSION, 0.0, 0.0, list(events)))
    tables.cut()
    return sorted(found, key=lambda row: int(row["seq"]))


def booked(rows: Iterable[Row]) -> dict[str, dict[int, QueueDay]]:
    """The statistics pages of the rows of the newest flush epoch."""
    pages: defaultdict[str, dict[int, QueueDay]] = defaultdict(dict)
    rows = list(rows)
    newest = max((row["flush_epoch"] + (row["event"] == "flushed") for row in rows), default=0)
    for row in rows:
        if row["flush_epoch"] != newest or row["booked_day"] is None:
            continue
        page = pages[row["booked_queue"]].setdefault(row["booked_day"] * DAY, QueueDay())
        if row["booked_wait"]:
            page.wait.add([row["wait_s"]])
        if row["booked_run"]:
            page.run.add([row["run_s"]])
        page.failures += row["booked_failures"] or 0
        page.failed += row["booked_failed"] or 0
        page.retries += row["booked_retries"] or 0
    return dict(pages)


#: Events that end a job, or may end it.
_ENDING: Final = frozenset({"succeeded", "failed", "buried", "removed", "rescheduled"})


def check_pushed_at(rows: Iterable[Row]) -> int:
    """`pushed_at` is set on every row that ends a lease or a job, and is the time of the row that began the job's life.
    Returns how many jobs began another life."""
    born: dict[int, float] = {}
    again = 0
    for row in rows:
        event, number, outcome = row["event"], row["number"], row["outcome"]
        if row["pushed_at"] is not None:
            assert row["pushed_at"] == born[number], row
        else:
            assert outcome is None and event not in _ENDING, row
        if event == "pushed":
            born[number] = row["at"]
        elif (event == "moved" and row["over"] and row["state"]) or (event, outcome) == ("rescheduled", "succeeded"):
            born[number] = row["at"]
            again += 1
    return again


class Endless(Stats):
    """Statistics without retention: all days are kept, whatever the settings say."""

    def __init__(self) -> None:
        super().__init__(stats_days=float("inf"), histogram_days=float("inf"))

    def keep(self, stats_days: float, histogram_days: float) -> None:
        pass


def without_end(state: EngineState) -> EngineState:
    """Replace the live statistics, which drop old days, by ones that keep all. A flush creates new ones."""
    if type(state.stats) is not Endless:
        state.stats = Endless()
    return state


def same_pages(stats: Stats, pages: dict[str, dict[int, QueueDay]]) -> bool:
    return {queue: days for queue, days in stats.days.items() if days} == pages


def open_leases(rows: Iterable[Row]) -> set[int]:
    """Tokens that were leased and have no outcome yet. Raises if a token has two outcomes, or an outcome and no
    lease."""
    open_: dict[int, Row] = {}
    ended: Counter[int] = Counter()
    for row in rows:
        if row["event"] == "flushed":
            open_.clear()
        if row["event"] == "leased":
            open_[row["token"]] = row
        if row["outcome"] is not None:
            lease = open_.pop(row["token"])
            ended[row["token"]] += 1
            assert (row["leased_at"], row["wait_s"], row["lease_via"]) == (lease["at"], lease["wait_s"], lease["via"])
            assert (row["number"], row["jid"], row["worker"]) == (lease["number"], lease["jid"], lease["worker"])
            assert row["attempt"] == lease["attempt"]
            assert row["run_s"] is not None and row["beats"] is not None
    assert not ended or max(ended.values()) == 1
    return set(open_)
