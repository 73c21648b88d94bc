"""What the server tells of itself: sync times of the last seconds, and rates."""

import time
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from crossdock.engine.engine import Engine
from crossdock.engine.state import EngineState
from crossdock.model.commands.admin import Flush
from crossdock.model.commands.core import Enqueue
from crossdock.protocols.admin.server_status import Rates, Sync
from crossdock.server import metrics
from crossdock.server.admission import Admission
from crossdock.server.clock import Clock
from crossdock.server.group_commit import GroupCommit
from crossdock.server.journal_writer import JournalWriter
from crossdock.server.metrics import LATELY_S, Metrics, sync_times
from tests.support.hand_loop import HandLoop
from tests.support.states import spec


class Journal:
    """One that takes everything."""

    def append(self, batch: bytes) -> int:
        return 1

    def trim(self, rows: int) -> int:
        return 0


def test_sync_times_are_of_the_last_seconds() -> None:
    now = time.monotonic()
    took = [(now - LATELY_S - 1, 9.0), *((now, n / 1_000) for n in range(1, 101))]
    assert sync_times(took) == Sync(100, 50.0, 99.0, 100.0)
    assert sync_times([]) == Sync()


def test_the_journal_writer_measures_each_entry(tmp_path: Path) -> None:
    loop = HandLoop()
    journal_writer = JournalWriter(Journal(), tmp_path / "ballast", loop.as_loop(), lambda error: None)  # type: ignore[arg-type]
    for _ in range(3):
        journal_writer.append(b"x", lambda: None)
    assert len(journal_writer.took) == 3
    assert sync_times(journal_writer.took).batches == 3


def test_rates_and_server_status_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(metrics, "time", SimpleNamespace(monotonic=lambda: now))
    loop = HandLoop()
    journal_writer = JournalWriter(Journal(), tmp_path / "ballast", loop.as_loop(), lambda error: None)  # type: ignore[arg-type]
    turn = GroupCommit(
        Engine(state := EngineState(), Random(1)), journal_writer, Clock(), loop.as_loop(), Admission(state, 100)
    )
    beats = Metrics(tmp_path, "always", turn=turn, journal_writer=journal_writer, connections=[1, 2])
    assert beats.rates() == Rates()
    turn.do(Enqueue("faktory", [spec(f"job-{n}") for n in range(30)]))
    for _ in range(2):
        now += 1
        beats.beat()
    assert beats.rates().pushed == 15.0
    server_status = beats.server_status()
    assert (server_status.uptime_s, server_status.connections, server_status.durability, server_status.data) == (
        2.0,
        2,
        "always",
        str(tmp_path),
    )
    assert server_status.memory_mib > 0
    for _ in range(20):  # what is older than ten seconds no longer counts
        now += 1
        beats.beat()
    assert beats.rates() == Rates()


def test_a_flush_makes_no_negative_rates(tmp_path: Path) -> None:
    loop = HandLoop()
    journal_writer = JournalWriter(Journal(), tmp_path / "ballast", loop.as_loop(), lambda error: None)  # type: ignore[arg-type]
    turn = GroupCommit(
        Engine(state := EngineState(), Random(1)), journal_writer, Clock(), loop.as_loop(), Admission(state, 100)
    )
    turn.state.counters.processed = 50
    beats = Metrics(tmp_path, "always", turn=turn, journal_writer=journal_writer, connections=[])
    turn.do(Flush("faktory"))
    beats.beat()
    assert beats.rates().processed == 0.0
