"""Server metrics: sync times of the last seconds, rates, the history of a queue, figures for Prometheus."""

import time
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from crossdock.engine.engine import Engine
from crossdock.engine.state import EngineState
from crossdock.model.commands.admin import Bury, Flush
from crossdock.model.commands.core import Enqueue
from crossdock.model.job import Number
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
    monkeypatch.setattr(metrics, "time", SimpleNamespace(monotonic=lambda: now, time=lambda: now))
    loop = HandLoop()
    journal_writer = JournalWriter(Journal(), tmp_path / "ballast", loop.as_loop(), lambda error: None)  # type: ignore[arg-type]
    commit = GroupCommit(
        Engine(state := EngineState(), Random(1)), journal_writer, Clock(), loop.as_loop(), Admission(state, 100)
    )
    shown = Metrics(
        tmp_path, "always", commit=commit, journal_writer=journal_writer, connections=[], loop=loop.as_loop()
    )
    assert shown.rates() == Rates()
    commit.do(Enqueue("faktory", [spec(f"job-{n}") for n in range(30)]))
    for _ in range(2):
        now += 1
        shown.sample()
    assert shown.rates().pushed == 15.0
    server_status = shown.server_status()
    assert (server_status.uptime_s, server_status.connections, server_status.durability, server_status.data) == (
        2.0,
        0,
        "always",
        str(tmp_path),
    )
    assert server_status.memory_mib > 0
    for _ in range(20):  # what is older than ten seconds no longer counts
        now += 1
        shown.sample()
    assert shown.rates() == Rates()


class Observed:
    """Metrics of an engine whose clock the test moves."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(
            metrics, "time", SimpleNamespace(monotonic=lambda: self.now, time=lambda: self.now + 1_000_000)
        )
        self.loop = HandLoop()
        loop = self.loop.as_loop()
        journal_writer = JournalWriter(Journal(), folder / "ballast", loop, lambda error: None)  # type: ignore[arg-type]
        state = EngineState()
        self.commit = GroupCommit(Engine(state, Random(1)), journal_writer, Clock(), loop, Admission(state, 10_000))
        self.metrics = Metrics(
            folder, "always", commit=self.commit, journal_writer=journal_writer, connections=[], loop=loop
        )

    def push(self, queue: str, jobs: int) -> None:
        self.commit.do(Enqueue("faktory", [spec(f"{queue}-{n}", queue=queue) for n in range(jobs)]))
        self.loop.run()

    def step(self, seconds: float = 10.0) -> None:
        self.now += seconds
        self.metrics.sample()
        self.loop.run()


def test_the_history_of_a_queue_has_a_point_per_ten_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Observed(tmp_path, monkeypatch)
    server.push("mail", 3)
    assert server.metrics.queue_rates("mail") is None  # no step has ended
    server.step()
    server.push("mail", 2)
    server.step()
    history = server.metrics.history("mail")
    assert history is not None
    assert (history.pushed, history.ready, history.step_s) == ([3, 2], [3, 5], 10.0)
    assert server.metrics.queue_rates("mail") == Rates(pushed=0.25)
    total = server.metrics.history(None)
    assert total is not None
    assert total.pushed == [3, 2]
    assert server.metrics.history("video") is None


def test_a_suspended_machine_leaves_empty_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Observed(tmp_path, monkeypatch)
    server.push("mail", 3)
    server.step(35.0)
    history = server.metrics.history("mail")
    assert history is not None
    assert history.pushed == [3, 0, 0]


def test_queues_with_jobs_from_before_the_start_are_tracked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Observed(tmp_path, monkeypatch)
    server.commit.observers.clear()
    server.push("mail", 3)
    assert list(server.metrics.busiest()) == []
    server.step()
    (mail,) = server.metrics.queue_figures(server.metrics.busiest())
    assert (mail.queue, mail.pushed, mail.states["ready"]) == ("mail", 0, 3)


def test_dead_jobs_are_counted_by_queue_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Observed(tmp_path, monkeypatch)
    server.push("mail", 3)
    server.commit.do(Bury("admin", [Number(1), Number(2)]))
    server.loop.run()
    server.step()
    (mail,) = server.metrics.queue_figures(["mail"])
    assert (mail.states["ready"], mail.states["dead"], mail.dead) == (1, 2, 2)


def test_figures_count_entries_and_their_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Observed(tmp_path, monkeypatch)
    server.push("mail", 3)
    server.push("mail", 1)
    journal = server.metrics.figures().journal
    assert (journal.sync.counts[-1], journal.entry_bytes.counts[-1], journal.entry_events.counts[-1]) == (2, 2, 2)
    assert journal.entry_bytes.sum == journal.written_bytes > 0


def test_a_flush_makes_no_negative_rates(tmp_path: Path) -> None:
    loop = HandLoop()
    journal_writer = JournalWriter(Journal(), tmp_path / "ballast", loop.as_loop(), lambda error: None)  # type: ignore[arg-type]
    commit = GroupCommit(
        Engine(state := EngineState(), Random(1)), journal_writer, Clock(), loop.as_loop(), Admission(state, 100)
    )
    commit.state.counters.processed = 50
    shown = Metrics(
        tmp_path, "always", commit=commit, journal_writer=journal_writer, connections=[], loop=loop.as_loop()
    )
    commit.do(Flush("faktory"))
    shown.sample()
    assert shown.rates().processed == 0.0
