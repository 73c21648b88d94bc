"""The exporter, one step at a time, on a journal that a server has open; and the server's lake keeper."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crossdock.lake.exporter import Exporter
from crossdock.lake.location import FORMAT, Reported, write_position
from crossdock.lake.maintenance import Maintenance
from crossdock.lake.messages import BEHIND_BYTES, Chores, Options, Position
from crossdock.lake.status import status
from crossdock.lake.table import Lake
from crossdock.model.clock import Now
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, encode_entry
from crossdock.server.lake_keeper import HOLD, OVERDUE_S, LakeKeeper, location_of, options_of
from crossdock.settings.schema import LakeSettings, ServerSettings, Settings
from tests.lake.source import rows_in
from tests.support.journals import Writer
from tests.support.patience import IDLE_PATIENCE_S
from tests.support.states import eventful


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(tmp_path / "data")
    writer.tell(eventful())
    yield writer
    writer.close()


def options(server: Writer, **more: Any) -> Options:
    return Options(data=server.path, location=str(server.path / "lake"), **{"segment_s": 0.001, **more})


def test_a_step_reads_all_entries_and_publishes_those_that_are_old_enough(server: Writer) -> None:
    told: list[Position] = []
    exporter = Exporter(options(server), told.append)
    assert exporter.step()
    time.sleep(0.002)
    exporter.step()
    assert told[-1] == Position(server.journal.last, 0)
    server.push("one-more-job")
    assert exporter.step()
    time.sleep(0.002)
    exporter.step()
    assert told[-1].last == server.journal.last
    exporter.close()
    assert {row["jid"] for row in rows_in(server.path / "lake").values()} >= {"one-more-job"}
    lake = server.path / "lake"
    assert len(Lake.open(lake).files()) == 2
    now = status(lake, server.path, on=True)
    assert now.lag is not None and (now.lag.entries, now.lag.bytes, now.faults) == (0, 0, [])
    server.push("and-another")
    now = status(lake, server.path, on=True)
    assert now.lag is not None and now.lag.entries == 1 and now.lag.bytes > 0


def test_a_segment_is_published_when_it_is_large_enough(server: Writer) -> None:
    exporter = Exporter(options(server, segment_s=3_600.0, segment_bytes=1), lambda position: None)
    while exporter.step():
        pass
    exporter.close()
    assert len({file.first for file in Lake.open(server.path / "lake").files()}) > 5


def test_the_oldest_part_of_a_long_tail_is_published_first(server: Writer) -> None:
    """So a process makes progress even if it is killed before it has read the whole tail."""
    for n in range(20):
        server.story.now = Now(server.story.now.wall + 60.0, server.story.now.steady + 60.0)
        server.push(f"minute-{n:02d}")
    told: list[Position] = []
    exporter = Exporter(options(server, segment_s=300.0, segment_bytes=64), told.append)
    exporter.step()
    exporter.close()
    assert 0 < told[-1].last < server.journal.last
    exporter = Exporter(options(server, segment_s=300.0), told.append)
    exporter.step()
    exporter.close()
    assert told[-1].last == server.journal.last, "a small part does not become a segment by itself"


def test_nothing_is_written_if_free_space_is_below_the_reserve(server: Writer) -> None:
    told: list[Position] = []
    exporter = Exporter(options(server, keep_free=1 << 60), told.append)
    assert not exporter.step()
    exporter.close()
    assert "MiB free" in told[-1].trouble and told[-1].behind > 0
    assert Lake.open(server.path / "lake").last == 0


@pytest.mark.parametrize("hold_s", [0.0, 3_600.0])
def test_old_dates_are_deleted_unless_the_clock_is_in_doubt(
    server: Writer, hold_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crossdock.lake.exporter._MAINTAIN_S", 0.0)
    monkeypatch.setattr("crossdock.lake.exporter.start_maintenance", in_this_process)
    exporter = Exporter(options(server, keep_days=1, hold_s=hold_s), lambda position: None)
    exporter.step()
    time.sleep(0.002)
    exporter.step()
    later = time.clock_gettime(time.CLOCK_BOOTTIME) + 2 * 86_400.0
    monkeypatch.setattr("crossdock.lake.exporter._boottime", lambda: later)
    exporter.step()
    exporter.close()
    lake = Lake.open(server.path / "lake")
    assert bool(lake.files()) == bool(hold_s) and bool(lake.expired) != bool(hold_s)


def in_this_process(chores: Chores) -> Any:
    Maintenance(chores).run()
    return SimpleNamespace(poll=lambda: 0, kill=lambda: None, communicate=lambda: None)


def test_the_maintenance_process_ends_with_the_exporter(server: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crossdock.lake.exporter._MAINTAIN_S", 0.0)
    monkeypatch.setattr("crossdock.lake.maintenance.CHECKPOINT_EVERY", 1)
    exporter = Exporter(options(server), lambda position: None)
    exporter.step()
    time.sleep(0.002)
    exporter.step()
    exporter.step()
    process = exporter._maintenance
    assert process is not None and process.wait(IDLE_PATIENCE_S) == 0
    exporter.step()
    running = exporter._maintenance
    assert running is not None and running is not process
    exporter.close()
    assert running.poll() is not None


def test_the_exporter_continues_after_a_compaction(server: Writer) -> None:
    """The journal is trimmed up to the entry before the newest in the lake, and no further."""
    exporter = Exporter(options(server), lambda position: None)
    exporter.step()
    time.sleep(0.002)
    exporter.step()
    last = Lake.open(server.path / "lake").last
    server.journal.hold(HOLD, last - 1)
    server.push("a-job-after-it")
    server.compact()
    server.compact()
    assert server.journal.first == last
    exporter.close()
    exporter = Exporter(options(server), lambda position: None)
    exporter.step()
    time.sleep(0.002)
    exporter.step()
    exporter.close()
    assert len(rows_in(server.path / "lake")) > 0
    assert Lake.open(server.path / "lake").gaps == 0


def test_a_restored_journal_is_a_fault(server: Writer, tmp_path: Path) -> None:
    exporter = Exporter(options(server), lambda position: None)
    exporter.step()
    time.sleep(0.002)
    exporter.step()
    exporter.close()
    other = Writer(tmp_path / "other")
    other.push("something-else")
    told = status(server.path / "lake", other.path, on=True)
    other.close()
    assert "another journal" in told.faults[0]


class RecordedHolds:
    def __init__(self) -> None:
        self.holds: list[tuple[str, int]] = []

    def hold(self, name: str, seq: int) -> None:
        self.holds.append((name, seq))


def keeper(settings: Settings, last: int = 0) -> tuple[LakeKeeper, Any, RecordedHolds]:
    turn, journal_writer = SimpleNamespace(written_bytes=0), RecordedHolds()
    return LakeKeeper(settings, turn, journal_writer, lambda: last), turn, journal_writer  # type: ignore[arg-type]


def test_the_settings_become_options(tmp_path: Path) -> None:
    lake = LakeSettings(dir="history", payloads="hash", redact=" a, b,,", errors="group", segment_mib=2, keep_days=9)
    settings = Settings(server=ServerSettings(data=tmp_path), lake=lake)
    made = options_of(settings)
    assert location_of(settings) == tmp_path / "history"
    assert made.location == str(tmp_path / "history")
    assert made.errors == "group"
    assert (made.payloads, made.redact, made.segment_bytes, made.keep_days) == ("hash", ("a", "b"), 2 * 1024**2, 9)
    elsewhere = Settings(server=ServerSettings(data=tmp_path), lake=LakeSettings(dir="/mnt/lake"))
    assert location_of(elsewhere) == Path("/mnt/lake")
    remote = Settings(server=ServerSettings(data=tmp_path), lake=LakeSettings(dir="s3://bucket/lake/"))
    assert options_of(remote).location == "s3://bucket/lake"


def journal(first: int, last: int, wall: float = 0.0) -> Any:
    """One entry per second, up to `wall`."""

    def read(after: int) -> Iterator[tuple[int, bytes]]:
        for seq in range(max(first, after + 1), last + 1):
            yield seq, encode_entry(JournalEntry(EVENT_VERSION, wall - (last - seq), 0.0, []))

    return SimpleNamespace(first=first, last=last, read=read, size_behind=lambda seq: 10 * (last - seq))


def test_the_journal_is_held_at_the_lakes_position_once_that_is_confirmed(server: Writer) -> None:
    """Until then nothing is trimmed, because the lake may belong to another journal."""
    settings = Settings(server=ServerSettings(data=server.path))
    write_position(server.path, Reported(FORMAT, "x", "lake", 7, 50))
    keeps, _, journal_writer = keeper(settings)
    keeps.start(journal(41, 60), 0.0)
    assert (keeps.last, journal_writer.holds) == (50, [(HOLD, 40)])
    keeps._on_position(Position(50, 0))
    keeps._on_position(Position(50, 10))
    keeps._on_position(Position(-1, 0, "it broke"))
    assert journal_writer.holds == [(HOLD, 40), (HOLD, 49)]


@pytest.mark.parametrize("location", ["lake", "other"])
def test_without_a_position_of_this_lake_nothing_is_trimmed(server: Writer, location: str) -> None:
    """The file is missing, of another lake, or ahead of a journal that was restored."""
    write_position(server.path, Reported(FORMAT, "x", location, 7, 50))
    keeps, _, journal_writer = keeper(Settings(server=ServerSettings(data=server.path)))
    keeps.start(journal(1, 49), 0.0)
    assert (keeps.last, journal_writer.holds) == (0, [(HOLD, 0)])


@pytest.mark.parametrize(("seconds", "starts", "hurries"), [(30, False, False), (90, True, False), (500, True, True)])
def test_entries_of_earlier_server_runs_count_towards_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int, starts: bool, hurries: bool
) -> None:
    """Otherwise a server that is killed every minute never starts the exporter. Downtime does not count."""
    begun: list[Any] = []
    monkeypatch.setattr("asyncio.create_task", begun.append)
    keeps, _, _ = keeper(Settings(server=ServerSettings(data=tmp_path)), last=seconds)
    keeps.start(journal(1, seconds, wall=1e9), 1e9)
    keeps.check()
    assert (len(begun), keeps._child.hurried, keeps.behind) == (starts, hurries, 10 * seconds)
    for run in begun:
        run.close()


def test_entries_that_are_old_when_the_process_starts_are_published_at_once(
    server: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server starts the process when its first entry is that old."""
    wall = server.story.now.wall
    for seconds, published in ((30.0, 0), (60.0, server.journal.last)):
        monkeypatch.setattr(time, "time", lambda age=seconds: wall + age)
        exporter = Exporter(options(server, segment_s=60.0), lambda position: None)
        exporter.step()
        exporter.close()
        assert Lake.open(server.path / "lake").last == published


def test_entries_that_earlier_processes_did_not_finish_are_published_at_once(
    server: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = server.story.now.wall
    monkeypatch.setattr(time, "time", lambda: wall)
    exporter = Exporter(options(server, segment_s=3_600.0), lambda position: None)
    exporter.step()
    exporter.close()
    assert Lake.open(server.path / "lake").last == 0
    server.story.now = Now(wall + 3_600.0, server.story.now.steady + 3_600.0)
    server.push("an-hour-later")
    exporter = Exporter(options(server, segment_s=3_600.0), lambda position: None)
    exporter.step()
    exporter.close()
    assert Lake.open(server.path / "lake").last == server.journal.last


@pytest.fixture
def idler() -> Iterator[int]:
    """A process with idle priority, like the exporter."""
    be_idle = "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))"
    idle = f"import os, sys; {be_idle}; print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", idle], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"1\n"
        yield child.pid
        assert child.stdin is not None
        child.stdin.close()


def test_an_exporter_far_behind_runs_at_the_servers_priority_until_it_has_caught_up(tmp_path: Path, idler: int) -> None:
    keeps, turn, _ = keeper(Settings(server=ServerSettings(data=tmp_path)))
    keeps._child._process = SimpleNamespace(pid=idler, returncode=None)  # type: ignore[assignment]
    now = time.monotonic()
    keeps._on_position(Position(1, BEHIND_BYTES // 2))
    keeps._set_priority(now)
    assert os.sched_getscheduler(idler) == os.SCHED_IDLE
    turn.written_bytes = BEHIND_BYTES // 2 + 1
    keeps._set_priority(now)
    assert os.sched_getscheduler(idler) == os.SCHED_OTHER
    keeps._on_position(Position(2, BEHIND_BYTES // 2))
    keeps._set_priority(now)
    assert os.sched_getscheduler(idler) == os.SCHED_OTHER, "the priority does not alternate"
    keeps._on_position(Position(3, 1_000))
    keeps._set_priority(now)
    assert os.sched_getscheduler(idler) == os.SCHED_IDLE


def test_an_exporter_without_progress_gets_the_servers_priority(
    tmp_path: Path, idler: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If other processes use all processors for hours, no segment would be written until 256 MiB are waiting."""
    clock = SimpleNamespace(now=1_000.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("crossdock.server.lake_keeper.time", clock)
    keeps, _, _ = keeper(Settings(server=ServerSettings(data=tmp_path)))
    newest = SimpleNamespace(seq=0)
    keeps._last_seq = lambda: newest.seq
    keeps._child._process = SimpleNamespace(pid=idler, returncode=None)  # type: ignore[assignment]
    keeps._task = SimpleNamespace()  # type: ignore[assignment]

    def raised_after(seconds: float) -> bool:
        clock.now += seconds
        keeps.check()
        return os.sched_getscheduler(idler) == os.SCHED_OTHER

    enough = OVERDUE_S + LakeSettings().segment_s
    assert not raised_after(10 * enough), "there is nothing to write"
    newest.seq = 1
    assert not raised_after(enough - 1)
    assert raised_after(2)
    assert raised_after(10 * enough)
    keeps._on_position(Position(0, 0))
    assert raised_after(1), "a report without a new segment is no progress"
    newest.seq = 2
    keeps._on_position(Position(1, 0))
    assert not raised_after(1)
    assert not raised_after(enough - 2), "the exporter has published a segment"
