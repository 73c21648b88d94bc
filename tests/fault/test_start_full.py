"""A start on a full disk: it works with the space that is left, or fails with instructions (testing.md section 5)."""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from crossdock.journal.data_dir import BALLAST, DataDir
from crossdock.journal.port import DiskFull
from crossdock.journal.sqlite.journal import SqliteJournal
from tests.support import volumes
from tests.support.faktory_client import Client, Gone, Refused, job
from tests.support.patience import IDLE_PATIENCE_S
from tests.support.server import Server

MISSING = volumes.missing()
pytestmark = [
    pytest.mark.alone,
    pytest.mark.fault,
    pytest.mark.skipif(MISSING is not None, reason=f"NO FULL DISK WAS TESTED: {MISSING}"),
]

VOLUME_MIB: Final = 64
JOBS: Final = [f"small-{n:05d}" for n in range(1_000)]
ADVICE: Final = "free some space"


@pytest.fixture(params=["tmpfs", "ext4"])
def volume(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    if request.param == "tmpfs":
        with volumes.tmpfs(tmp_path / "volume", VOLUME_MIB) as volume:
            yield volume
    else:
        volumes.make_ext4(tmp_path / "image", VOLUME_MIB)
        with volumes.mounted(tmp_path / "image", tmp_path / "volume") as volume:
            yield volume


def fill_up(volume: Path, leave: int = 0) -> Path:
    """Fill the volume with another file, including the blocks reserved for root, except for `leave` bytes."""
    path = volume / "other-file"
    kept = volume / "kept"
    with path.open("wb") as file, kept.open("wb") as other:
        if leave:
            os.posix_fallocate(other.fileno(), 0, leave)
        size, step = 0, 8 * 1024 * 1024
        while step >= 4_096:
            try:
                os.posix_fallocate(file.fileno(), size, step)
                size += step
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                step //= 2
    os.sync()
    kept.unlink()
    return path


@pytest.fixture
def server(volume: Path) -> Iterator[Server]:
    with closing(Server(volume / "data")) as server:
        yield server


def run_and_end(server: Server, *, killed: bool, reserve: bool) -> None:
    """Run the server, push jobs and end it."""
    with server.start().client() as client:
        client.push_many([job(jid, "small") for jid in JOBS])
    if killed:
        server.kill()
    else:
        assert server.stop() == 0
    ballast = server.data / BALLAST
    assert ballast.exists(), "the reserve is created at the start"
    if not reserve:
        ballast.unlink()


def settle(client: Client, jobs: int) -> list[str]:
    done = []
    for _ in range(jobs):
        found = client.fetch("small")
        assert found is not None
        client.ack(found["jid"])
        done.append(found["jid"])
    return done


def assert_does_not_start(server: Server) -> str:
    with pytest.raises(AssertionError, match=r"ended with code 1 before it was ready: b''"):
        server.start()
    return server.log().splitlines()[-1]


def assert_all_jobs_present(server: Server) -> None:
    with server.start().client() as client:
        assert settle(client, len(JOBS)) == JOBS
        client.push("job-0001")
    assert server.stop() == 0


def test_a_start_without_free_space_gives_instructions_and_changes_nothing(volume: Path, server: Server) -> None:
    run_and_end(server, killed=False, reserve=False)
    room = fill_up(volume)
    for _ in range(2):
        message = assert_does_not_start(server)
        assert message.startswith(f"crossdock: no space is left on the disk of {server.data}") and ADVICE in message
        assert "backup" not in message
    room.unlink()
    assert_all_jobs_present(server)


def test_the_space_of_a_killed_server_is_enough_to_continue(volume: Path, server: Server) -> None:
    run_and_end(server, killed=True, reserve=False)
    room = fill_up(volume)
    with server.start().client() as client:
        with pytest.raises(Refused, match=ADVICE):
            client.push("job-0001")
        assert settle(client, 300) == JOBS[:300]
        client.call("QUEUE REMOVE small")
        room.unlink()
        assert server.stop() == 0
    with server.start().client() as client:
        assert client.fetch("small") is None
        client.push("job-0001")


def test_a_start_can_use_the_reserve(volume: Path, server: Server) -> None:
    run_and_end(server, killed=False, reserve=True)
    room = fill_up(volume)
    with server.start().client() as client:
        assert not (server.data / BALLAST).exists()
        assert "using the reserve" in server.log()
        with pytest.raises(Refused, match=ADVICE):
            client.push("job-0001")
        assert settle(client, len(JOBS)) == JOBS
        assert server.stop() == 0
    room.unlink()
    with server.start().client() as client:
        client.push("job-0001")
        assert (server.data / BALLAST).exists(), "the reserve must be created again"


def test_a_server_with_little_space_uses_it_up_and_loses_nothing(volume: Path, server: Server) -> None:
    """With 256 KiB some jobs are settled, then the server ends. It reports the reason at each start."""
    run_and_end(server, killed=False, reserve=False)
    room = fill_up(volume, leave=256 * 1024)
    done: list[str] = []
    with server.start().client() as client:
        with pytest.raises(Refused, match=ADVICE):
            client.push("job-0001")
        with pytest.raises(Gone):  # noqa: PT012
            for _ in JOBS:
                done += settle(client, 1)
    assert server.wait() == 1
    assert len(done) >= 50
    assert "the reserve is used up" in server.log() and ADVICE in server.log()
    for _ in range(2):
        message = assert_does_not_start(server)
        assert message.startswith("crossdock: the disk is full and the reserve is used up") and ADVICE in message
    room.unlink()
    with server.start().client() as client:
        left = settle(client, len(JOBS) - len(done) - 1)
        last = client.fetch("small")
        seen = [*done, *left, *([last["jid"]] if last is not None else [])]
        assert len(seen) == len(set(seen)), "acknowledged jobs must not be delivered again"
        assert set(JOBS) - set(seen) <= {JOBS[len(done)]}, "only the job of the last ACK may still be leased"
        client.push("job-0001")


def test_a_compaction_leaves_the_last_disk_space_to_settlements(volume: Path) -> None:
    with (
        Server(volume / "data", {"lake.on": "false"}, fault="frequent-compaction") as server,
        server.client() as client,
    ):
        for first in range(0, 300, 50):
            client.push_many([job(f"large-{n:05d}", "large", ["x" * 40_000]) for n in range(first, first + 50)])
        client.push_many([job(jid, "small") for jid in JOBS])
        (server.data / BALLAST).unlink(missing_ok=True)
        room = fill_up(volume, leave=6 * 1024 * 1024)
        assert settle(client, len(JOBS)) == JOBS
        give_up = time.monotonic() + IDLE_PATIENCE_S
        while "compaction failed" not in server.log():
            assert time.monotonic() < give_up, server.log()
            client.info()
        assert "would be left on the disk" in server.log()
        room.unlink()
        assert server.stop() == 0


def appended(journal: SqliteJournal, at_most: int) -> int:
    for done in range(at_most):
        try:
            journal.append(b"x" * 100)
        except DiskFull:
            return done
    return at_most


def test_a_short_log_makes_the_space_last_longer(volume: Path) -> None:
    """More than twice as many entries fit in the same last MiB."""
    counts = []
    for short in (False, True):
        journal = SqliteJournal(DataDir(volume / f"short-{short}"), "everysec")
        journal.append(b"first")
        room = fill_up(volume, leave=1024 * 1024)
        journal.keep_short(short)
        counts.append(appended(journal, 30_000))
        assert len(list(journal.read(0))) == counts[-1] + 1
        journal.close()
        room.unlink()
    assert counts[1] > 2 * counts[0], counts
