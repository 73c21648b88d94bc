"""The lake's process, a step at a time, on a journal that a server has open; and its keeper's part."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crossdock.lake import manifest
from crossdock.lake.exporter import Exporter
from crossdock.lake.messages import Options, Position
from crossdock.lake.segments import look
from crossdock.lake.status import status
from crossdock.model.clock import Now
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, encode_entry
from crossdock.server.lake_keeper import BEHIND_BYTES, HOLD, OVERDUE_S, LakeKeeper, folder_of, options_of
from crossdock.settings.schema import LakeSettings, ServerSettings, Settings
from tests.lake.source import rows_in
from tests.support.journals import Writer
from tests.support.states import eventful


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(tmp_path / "data")
    writer.tell(eventful())
    yield writer
    writer.close()


def options(server: Writer, **more: Any) -> Options:
    return Options(data=server.path, folder=server.path / "lake", **{"segment_s": 0.001, **more})


def test_a_step_takes_all_and_publishes_what_is_old_enough(server: Writer) -> None:
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
    seen = look(server.path / "lake")
    assert len(seen.segments) == 2
    now = status(seen, server.path, on=True)
    assert now.lag is not None and (now.lag.batches, now.lag.bytes, now.faults) == (0, 0, [])
    server.push("and-another")
    now = status(seen, server.path, on=True)
    assert now.lag is not None and now.lag.batches == 1 and now.lag.bytes > 0


def test_a_segment_is_finished_when_it_is_large_enough(server: Writer) -> None:
    exporter = Exporter(options(server, segment_s=3_600.0, segment_bytes=1), lambda position: None)
    while exporter.step():
        pass
    exporter.close()
    assert len({segment.first for segment in look(server.path / "lake").segments}) > 5


def test_of_a_long_tail_the_oldest_part_is_finished_first(server: Writer) -> None:
    """A process that is killed before it has read all of it gets on nevertheless."""
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
    assert told[-1].last == server.journal.last, "a part that is too small is no segment of its own"


def test_it_leaves_the_disks_last_room_to_the_journal(server: Writer) -> None:
    told: list[Position] = []
    exporter = Exporter(options(server, keep_free=1 << 60), told.append)
    assert not exporter.step()
    exporter.close()
    assert "MiB are free" in told[-1].trouble and told[-1].behind > 0
    assert manifest.read_done(server.path / "lake") is None


@pytest.mark.parametrize("hold_s", [0.0, 3_600.0])
def test_old_dates_go_unless_the_clock_is_in_doubt(
    server: Writer, hold_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crossdock.lake.exporter._EXPIRE_S", 0.0)
    exporter = Exporter(options(server, keep_days=1, hold_s=hold_s), lambda position: None)
    exporter.step()
    time.sleep(0.002)
    exporter.step()
    later = time.clock_gettime(time.CLOCK_BOOTTIME) + 2 * 86_400.0
    monkeypatch.setattr("crossdock.lake.exporter._boottime", lambda: later)
    exporter.step()
    exporter.close()
    done = manifest.read_done(server.path / "lake")
    assert done is not None and bool(done.dates) == bool(hold_s)


def test_it_goes_on_behind_a_compaction(server: Writer) -> None:
    """The journal is trimmed up to the hold, the batch before the lake's newest, and no further."""
    exporter = Exporter(options(server), lambda position: None)
    exporter.step()
    time.sleep(0.002)
    exporter.step()
    done = manifest.read_done(server.path / "lake")
    assert done is not None
    server.journal.hold(HOLD, done.last - 1)
    server.push("a-job-after-it")
    server.compact()
    server.compact()
    assert server.journal.first == done.last
    exporter.close()
    exporter = Exporter(options(server), lambda position: None)
    exporter.step()
    time.sleep(0.002)
    exporter.step()
    exporter.close()
    assert len(rows_in(server.path / "lake")) > 0
    assert look(server.path / "lake").done.gaps == []  # type: ignore[union-attr]


def test_a_restored_journal_is_a_fault(server: Writer, tmp_path: Path) -> None:
    exporter = Exporter(options(server), lambda position: None)
    exporter.step()
    time.sleep(0.002)
    exporter.step()
    exporter.close()
    other = Writer(tmp_path / "other")
    other.push("something-else")
    told = status(look(server.path / "lake"), other.path, on=True)
    other.close()
    assert "another journal" in told.faults[0]


class Scribe:
    def __init__(self) -> None:
        self.holds: list[tuple[str, int]] = []

    def hold(self, name: str, seq: int) -> None:
        self.holds.append((name, seq))


def keeper(settings: Settings, last: int = 0) -> tuple[LakeKeeper, Any, Scribe]:
    turn, journal_writer = SimpleNamespace(written_bytes=0), Scribe()
    return LakeKeeper(settings, turn, journal_writer, lambda: last), turn, journal_writer  # type: ignore[arg-type]


def test_the_settings_become_options(tmp_path: Path) -> None:
    lake = LakeSettings(
        dir=Path("history"), payloads="hash", redact=" a, b,,", errors="group", segment_mib=2, keep_days=9
    )
    settings = Settings(server=ServerSettings(data=tmp_path), lake=lake)
    made = options_of(settings)
    assert folder_of(settings) == tmp_path / "history"
    assert made.errors == "group"
    assert (made.payloads, made.redact, made.segment_bytes, made.keep_days) == ("hash", ("a", "b"), 2 * 1024**2, 9)
    elsewhere = Settings(server=ServerSettings(data=tmp_path), lake=LakeSettings(dir=Path("/mnt/lake")))
    assert folder_of(elsewhere) == Path("/mnt/lake")


def journal(first: int, last: int, wall: float = 0.0) -> Any:
    """Of a batch a second, up to `wall`."""

    def read(after: int) -> Iterator[tuple[int, bytes]]:
        for seq in range(max(first, after + 1), last + 1):
            yield seq, encode_entry(JournalEntry(EVENT_VERSION, wall - (last - seq), 0.0, []))

    return SimpleNamespace(first=first, last=last, read=read, size_behind=lambda seq: 10 * (last - seq))


def test_the_journal_is_held_at_the_lakes_position_once_that_is_confirmed(server: Writer) -> None:
    """Until then the lake may turn out to be another journal's, and nothing is trimmed."""
    settings = Settings(server=ServerSettings(data=server.path))
    (server.path / "lake").mkdir()
    manifest.write(server.path / "lake", manifest.Done(manifest.FORMAT, "x", 1, 50, 0))
    keeps, _, journal_writer = keeper(settings)
    keeps.begin(journal(41, 60), 0.0)
    assert (keeps.last, journal_writer.holds) == (50, [(HOLD, 40)])
    keeps._heard(Position(50, 0))
    keeps._heard(Position(50, 10))
    keeps._heard(Position(-1, 0, "it broke"))
    assert journal_writer.holds == [(HOLD, 40), (HOLD, 49)]


def test_a_lake_that_has_more_than_the_journal_is_not_written_to(
    server: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    (server.path / "lake").mkdir()
    manifest.write(server.path / "lake", manifest.Done(manifest.FORMAT, "x", 1, 50, 0))
    keeps, _, journal_writer = keeper(Settings(server=ServerSettings(data=server.path)))
    keeps.begin(journal(1, 49), 0.0)
    assert (keeps.last, journal_writer.holds) == (None, [(HOLD, 0)])
    assert "another journal" in caplog.text


@pytest.mark.parametrize(("seconds", "starts", "hurries"), [(30, False, False), (90, True, False), (500, True, True)])
def test_what_waited_under_the_servers_before_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int, starts: bool, hurries: bool
) -> None:
    """Else a server that is killed every minute never starts the process. The time it was down does not count."""
    begun: list[Any] = []
    monkeypatch.setattr("asyncio.create_task", begun.append)
    keeps, _, _ = keeper(Settings(server=ServerSettings(data=tmp_path)), last=seconds)
    keeps.begin(journal(1, seconds, wall=1e9), 1e9)
    keeps.look()
    assert (len(begun), keeps._child.hurried, keeps.behind) == (starts, hurries, 10 * seconds)
    for run in begun:
        run.close()


def test_batches_that_processes_before_could_not_finish_are_published_at_once(server: Writer) -> None:
    wall = server.story.now.wall
    exporter = Exporter(options(server, segment_s=3_600.0), lambda position: None)
    exporter.step()
    exporter.close()
    assert manifest.read_done(server.path / "lake") is None
    server.story.now = Now(wall + 3_600.0, server.story.now.steady + 3_600.0)
    server.push("an-hour-later")
    exporter = Exporter(options(server, segment_s=3_600.0), lambda position: None)
    exporter.step()
    exporter.close()
    done = manifest.read_done(server.path / "lake")
    assert done is not None and done.last == server.journal.last


@pytest.fixture
def idler() -> Iterator[int]:
    """A process that takes what nobody else wants of the processors, as the lake's does."""
    be_idle = "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))"
    idle = f"import os, sys; {be_idle}; print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", idle], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"1\n"
        yield child.pid
        assert child.stdin is not None
        child.stdin.close()


def test_far_behind_it_runs_at_the_servers_priority_until_it_has_caught_up(tmp_path: Path, idler: int) -> None:
    keeps, turn, _ = keeper(Settings(server=ServerSettings(data=tmp_path)))
    keeps._child._process = SimpleNamespace(pid=idler, returncode=None)  # type: ignore[assignment]
    now = time.monotonic()
    keeps._heard(Position(1, BEHIND_BYTES // 2))
    keeps._set_priority(now)
    assert os.sched_getscheduler(idler) == os.SCHED_IDLE
    turn.written_bytes = BEHIND_BYTES // 2 + 1
    keeps._set_priority(now)
    assert os.sched_getscheduler(idler) == os.SCHED_OTHER
    keeps._heard(Position(2, BEHIND_BYTES // 2))
    keeps._set_priority(now)
    assert os.sched_getscheduler(idler) == os.SCHED_OTHER, "not to and fro"
    keeps._heard(Position(3, 1_000))
    keeps._set_priority(now)
    assert os.sched_getscheduler(idler) == os.SCHED_IDLE


def test_one_that_gets_nothing_of_the_processors_runs_at_the_servers_priority_before_long(
    tmp_path: Path, idler: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others take them all for hours, there would be no segment until 256 MiB are waiting."""
    clock = SimpleNamespace(now=1_000.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("crossdock.server.lake_keeper.time", clock)
    keeps, turn, _ = keeper(Settings(server=ServerSettings(data=tmp_path)))
    keeps._child._process = SimpleNamespace(pid=idler, returncode=None)  # type: ignore[assignment]
    keeps._task = SimpleNamespace()  # type: ignore[assignment]

    def raised_after(seconds: float) -> bool:
        clock.now += seconds
        keeps.look()
        return os.sched_getscheduler(idler) == os.SCHED_OTHER

    enough = OVERDUE_S + LakeSettings().segment_s
    assert not raised_after(10 * enough), "there was nothing to write"
    turn.written_bytes = 1
    assert not raised_after(enough - 1)
    assert raised_after(2)
    assert raised_after(10 * enough)
    keeps._heard(Position(1, 0))
    assert not raised_after(1)
    turn.written_bytes = 2
    assert not raised_after(enough - 2), "it was heard of"
