"""A server that was changed on purpose, most often for the worse: to show that a test would notice.

python faulty_server.py FAULT up --data DIR …

unsynced      commits are not synced: SQLite's synchronous=NORMAL where the server believes in FULL
early-reply   a batch counts as durable before it is written, and is not until so many more have come
lost-lease    a lease is forgotten at a restart: its job is handed out again
kept-lease    a lease of a connection outlives it and the restart: its job is never handed out again
half-done     a success fails in the middle of its change
no-needs      what a job needs is not waited for
twice-made    each slot of an interval makes its job once more
short-tail    no fault: the journal is compacted after some thousand events
moved-clock   no fault: wall clock and boot id are those that the file `clock` beside the data folder says
small-slices  no fault: very few dependents are resolved at a time
"""

import runpy
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from crossdock.engine import timers
from crossdock.engine.engine import _APPLY
from crossdock.engine.index import dependents, placement
from crossdock.engine.qless import intervals, put
from crossdock.engine.state import EngineState
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.model.events import Recurred, Succeeded
from crossdock.model.job import LeaseBinding
from crossdock.server import clock, compactor, timer
from crossdock.server.journal_writer import JournalWriter

#: Batches that are lost with an early-reply server: at any speed there is some of everything in them.
EARLY: Final = 100


def unsynced() -> None:
    prepare = SqliteJournal._prepare

    def patched(self: SqliteJournal, synchronous: str) -> None:
        prepare(self, synchronous)
        self._db.execute("pragma synchronous=normal").fetchall()

    SqliteJournal._prepare = patched  # type: ignore[method-assign]


def early_reply() -> None:
    append = JournalWriter.append
    unwritten: deque[bytes] = deque()

    def patched(self: JournalWriter, batch: bytes, durable: Callable[[], None]) -> None:
        self._loop.call_soon(durable)
        unwritten.append(batch)
        if len(unwritten) > EARLY:
            append(self, unwritten.popleft(), lambda: None)

    JournalWriter.append = patched  # type: ignore[method-assign]


def lost_lease() -> None:
    vars(timers)["LeaseBinding"] = SimpleNamespace(CONNECTION=LeaseBinding.NOBODY)


def kept_lease() -> None:
    timers._falls_back = lambda job: False


def half_done() -> None:
    def patched(state: EngineState, event: Succeeded) -> None:
        placement.remove(state, state.jobs[event.number])
        raise RuntimeError("on purpose")

    _APPLY[Succeeded] = patched


def no_needs() -> None:
    put.open_needs = lambda state, jids, itself="", number=0: ()


def twice_made() -> None:
    slots = intervals._slots

    def patched(*args: Any, **named: Any) -> Recurred:
        event = slots(*args, **named)
        event.next -= 0.05 if event.specs else 0.0
        event.count -= 1 if event.specs else 0
        return event

    intervals._slots = patched


def short_tail() -> None:
    compactor.TAIL_EVENTS = 1_000  # type: ignore[misc]


def moved_clock() -> None:
    """The file holds the seconds by which the wall clock is ahead, and a boot id; it may change at any time."""
    file = Path(sys.argv[sys.argv.index("--data") + 1]).with_name("clock")
    system = time.time
    time.time = lambda: system() + float(file.read_text().split()[0])
    clock.boot_id = lambda: file.read_text().split()[1]


def small_slices() -> None:
    dependents.AT_ONCE = 3
    timer.TICK_DEPENDENTS = 1  # type: ignore[misc]


FAULTS = {
    "unsynced": unsynced,
    "early-reply": early_reply,
    "lost-lease": lost_lease,
    "kept-lease": kept_lease,
    "half-done": half_done,
    "no-needs": no_needs,
    "twice-made": twice_made,
    "short-tail": short_tail,
    "moved-clock": moved_clock,
    "small-slices": small_slices,
}

if __name__ == "__main__":
    fault = sys.argv.pop(1)
    FAULTS[fault]()
    runpy.run_module("crossdock", run_name="__main__", alter_sys=True)
