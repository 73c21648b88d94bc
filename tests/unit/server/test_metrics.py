"""Server metrics: sync times of the last seconds, and rates."""

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
from crossdock.server.metrics import WINDOW_S, Metrics, sync_times
from tests.support.hand_loop import HandLoop
from tests.support.states import spec


class Journal:
    """A journal that accepts everything."""

    def append(self, entry: bytes) -> int:
        return 1

    def trim(self, rows: int) -> int:
        return 0


def test_sync_times_cover_the_last_seconds() -> None:
    now = time.monotonic()
    took = [(now - WINDOW_S - 1, 9.0), *((now, n / 1_000) for n in range(1, 101))]
    assert sync_times(took) == Sync(100, 50.0, 99.0, 100.0)
    assert sync_times([]) == Sync()


def test_the_journal_writer_measures_each_entry(tmp_path: Path) -> None:
    loop = HandLoop()
    journal_writer = JournalWriter(Journal(), tmp_path / "ballast", loop.as_loop(), lambda error: None)  # type: ignore[arg-type]
    for _ in range(3):
        journal_writer.append(b"x", lambda: None)
    assert len(journal_writer.took) == 3
    assert sync_times(journal_writer.took).entries == 3


def test_rates_and_server_status_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(metrics, "time", SimpleNamespace(monotonic=lambda: now))
    loop = HandLoop()
    journal_writer = JournalWriter(Journal(), tmp_path / "ballast", loop.as_loop(), lambda error: None)  # type: ignore[arg-type]
    commit = GroupCommit(
        Engine(state := EngineState(), Random(1)), journal_writer, Clock(), loop.as_loop(), Admission(state, 100)
    )
    shown = Metrics(tmp_path, "always", commit=commit, journal_writer=journal_writer, connections=peers, loop=loop.as_loop())
    assert shown.rates() == Rates()
    commit.do(Enqueue("faktory", [spec(f"job-{n}") for n in range(30)]))
    for _ in range(2):
        now += 1
        shown.sample()
    assert shown.rates().pushed == 15.0
    server_status = shown.server_status()
    assert (server_status.uptime_s, server_status.connections, server_status.durability, server_status.data) == (
        2.0,
        2,
        "always",
        str(tmp_path),
    )
    assert server_status.memory_mib > 0
    for _ in range(20):  # what is older than ten seconds no longer counts
        now += 1
        shown.sample()
    assert shown.rates() == Rates()


def test_a_flush_makes_no_negative_rates(tmp_path: Path) -> None:
    loop = HandLoop()
    journal_writer = JournalWriter(Journal(), tmp_path / "ballast", loop.as_loop(), lambda error: None)  # type: ignore[arg-type]
    commit = GroupCommit(
        Engine(state := EngineState(), Random(1)), journal_writer, Clock(), loop.as_loop(), Admission(state, 100)
    )
    commit.state.counters.processed = 50
    shown = Metrics(tmp_path, "always", commit=commit, journal_writer=journal_writer, connections=[], loop=loop.as_loop())
    commit.do(Flush("faktory"))
    shown.sample()
    assert shown.rates().processed == 0.0
