"""A server with a deliberate fault, or with changed limits, to show that a test would detect the fault.

python faulty_server.py FAULT up --data DIR …

unsynced              commits are not synced: SQLite uses synchronous=NORMAL although the server requests FULL
early-reply           a journal entry is reported as durable before it is written; the last EARLY entries are unwritten
lost-lease            leases are forgotten at a restart: their jobs are delivered again
kept-lease            a lease bound to a connection outlives it and the restart: its job is never delivered again
partial-apply         applying a success fails in the middle of the change
no-dependencies       jobs do not wait for their dependencies
duplicate-slots       each slot of an interval creates its job twice
frequent-compaction   no fault: the journal is compacted after a thousand events
moved-clock           no fault: wall clock and boot id are read from the file `clock` beside the data folder
small-slices          no fault: very few dependents are resolved at a time
"""

import runpy
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

from crossdock.engine import timers
from crossdock.engine.decision import FollowUps
from crossdock.engine.engine import _APPLY
from crossdock.engine.index import dependents, placement
from crossdock.engine.qless import intervals, put
from crossdock.engine.state import EngineState
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.model.events import Recurred, Succeeded
from crossdock.model.job import LeaseBinding
from crossdock.server import clock, compactor, timer
from crossdock.server.journal_writer import JournalWriter

#: Entries that are lost with an early-reply server: enough to include every kind of event at any speed.
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

    def patched(self: JournalWriter, entry: bytes, durable: Callable[[], None]) -> None:
        self._loop.call_soon(durable)
        unwritten.append(entry)
        if len(unwritten) > EARLY:
            append(self, unwritten.popleft(), lambda: None)

    JournalWriter.append = cast("Any", patched)  # type: ignore[method-assign]


def lost_lease() -> None:
    vars(timers)["LeaseBinding"] = SimpleNamespace(CONNECTION=LeaseBinding.UNBOUND)


def kept_lease() -> None:
    timers._falls_back = lambda job: False


def partial_apply() -> None:
    def patched(state: EngineState, follow_ups: FollowUps, event: Succeeded) -> None:
        placement.remove(state, state.jobs[event.number])
        raise RuntimeError("on purpose")

    _APPLY[Succeeded] = patched


def no_dependencies() -> None:
    put.open_needs = lambda state, jids, itself="", number=0: ()


def duplicate_slots() -> None:
    slots = intervals._slots

    def patched(*args: Any, **named: Any) -> Recurred:
        event = slots(*args, **named)
        event.next -= 0.05 if event.specs else 0.0
        event.count -= 1 if event.specs else 0
        return event

    intervals._slots = patched


def frequent_compaction() -> None:
    compactor.TAIL_EVENTS = 1_000  # type: ignore[misc]


def moved_clock() -> None:
    """The file holds the seconds by which the wall clock is ahead, and a boot id. It may change at any time."""
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
    "partial-apply": partial_apply,
    "no-dependencies": no_dependencies,
    "duplicate-slots": duplicate_slots,
    "frequent-compaction": frequent_compaction,
    "moved-clock": moved_clock,
    "small-slices": small_slices,
}

if __name__ == "__main__":
    fault = sys.argv.pop(1)
    FAULTS[fault]()
    runpy.run_module("crossdock", run_name="__main__", alter_sys=True)
