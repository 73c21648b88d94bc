"""A compactor killed at any moment changes nothing. The next one succeeds and the server installs its snapshot."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest

from crossdock.journal.compaction import WrittenSnapshot
from crossdock.journal.data_dir import DataDir
from crossdock.journal.port import Snapshot
from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.model.commands.core import Claim, Succeed
from tests.support.faktory_client import job
from tests.support.patience import IDLE_PATIENCE_S, PATIENCE_S
from tests.support.server import Server
from tests.support.states import Story, picture

pytestmark = [pytest.mark.fault, pytest.mark.slow]

KILLS = 8


def child(folder: Path, until: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "crossdock.journal.compaction", str(folder), str(until)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def end(process: "subprocess.Popen[bytes]") -> tuple[bytes, int]:
    said, _ = process.communicate(timeout=PATIENCE_S)
    return said, process.returncode


@pytest.fixture
def story() -> Story:
    story = Story()
    for first in range(0, 15_000, 500):
        story.push(*(f"job-{n:06d}" for n in range(first, first + 500)))
        story.lease()
    return story


@pytest.fixture
def journal(tmp_path: Path, story: Story) -> Iterator[SqliteJournal]:
    journal = SqliteJournal(DataDir(tmp_path))
    for entry in story.batches:
        journal.append(entry)
    yield journal
    journal.close()


def whole(folder: Path, until: int) -> WrittenSnapshot:
    process = child(folder, until)
    try:
        code = process.wait(PATIENCE_S)  # with its stdin open, as the server keeps it
    finally:
        said, _ = end(process)
    assert code == 0
    return msgspec.json.decode(said, type=WrittenSnapshot)


def test_a_compactor_killed_at_random_moments_changes_nothing(
    tmp_path: Path, story: Story, journal: SqliteJournal
) -> None:
    random = Random(5)
    began = time.monotonic()
    made = whole(tmp_path, journal.last)
    takes = time.monotonic() - began
    (tmp_path / made.file).unlink()
    rows = list(journal.read(0))
    unfinished = 0
    for _ in range(KILLS):
        process = child(tmp_path, journal.last)
        killer = threading.Timer(random.uniform(0.1, 1.0) * takes, process.kill)
        killer.start()
        began = time.monotonic()
        finished = process.wait(PATIENCE_S) == 0
        if finished:  # the machine was busier during the measurement
            takes = min(takes, time.monotonic() - began)
        unfinished += not finished
        killer.cancel()
        end(process)
        assert journal.snapshot() is None
        assert list(journal.read(0)) == rows
    assert unfinished, "some were killed before they finished"
    made = whole(tmp_path, journal.last)
    journal.install(Snapshot(made.seq, tmp_path / made.file))
    assert [path.name for path in tmp_path.glob("snapshot-*")] == [made.file], (
        "the files of the killed compactors are removed"
    )
    found = recover(journal)
    assert found.events == 0
    assert picture(found.state) == picture(story.state)


def test_the_compactor_ends_with_the_server(tmp_path: Path, journal: SqliteJournal) -> None:
    """The server holds the compactor's stdin; the compactor exits when it is closed."""
    process = child(tmp_path, journal.last)
    if process.stdin is None:
        raise AssertionError("the compactor has no stdin")
    process.stdin.close()
    process.stdin = None
    assert end(process)[1] == 1
    assert journal.snapshot() is None


def test_a_running_server_installs_a_snapshot_trims_the_journal_and_recovers(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Server(data, {"lake.on": "false"}, fault="frequent-compaction") as server, server.client() as client:
        generations: set[str] = set()
        give_up = time.monotonic() + IDLE_PATIENCE_S
        n = 0
        while len(generations) < 3:
            assert time.monotonic() < give_up, f"only {generations}\n{server.log()}"
            client.push_many([job(f"job-{n:06d}-{i}") for i in range(10)])
            for _ in range(20):
                client.fetch()
                n += 1
                client.push(f"job-{n:06d}")
            generations |= {path.name for path in data.glob("snapshot-*") if path.suffix != ".tmp"}
        sizes = client.sizes()
        server.restart()
        with server.client() as again:
            assert again.sizes() == sizes
        assert len([path for path in data.glob("snapshot-*") if path.suffix != ".tmp"]) <= 3
        server.kill()
        journal = SqliteJournal(DataDir(data))
        base = journal.snapshot()
        assert base is not None
        with pytest.raises(Exception, match="are missing"):
            list(journal.read(0))  # the oldest entries were trimmed
        journal.close()


def test_a_start_with_a_long_tail_writes_a_snapshot_before_it_listens(tmp_path: Path) -> None:
    """A server that is killed before each compaction ends must not start more slowly every time."""
    story = Story()
    for n in range(1_100):
        story.push(f"job-{n:06d}")
        if n % 100:
            story.lease()
            story.do(Succeed(f"job-{n:06d}", Claim("faktory", "w")))
    journal = SqliteJournal(DataDir(tmp_path))
    for entry in story.batches:
        journal.append(entry)
    last = journal.last
    journal.close()
    with Server(tmp_path, {"lake.on": "false"}, fault="frequent-compaction") as server:
        assert "writing a snapshot before listening" in server.log()
        server.kill()
        journal = SqliteJournal(DataDir(tmp_path))
        base = journal.snapshot()
        assert base is not None
        assert base.seq == last
        assert [job.jid for job in recover(journal).state.jobs.values()] == [
            job.jid for job in story.state.jobs.values()
        ]
        journal.close()
