"""A full disk: pushes are refused in time, settling continues, and pushes work again when there is space.

See testing.md section 5.
"""

import errno
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from crossdock.journal.data_dir import DataDir
from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.journal import SqliteJournal
from tests.support import volumes
from tests.support.faktory_client import Client, Refused, job
from tests.support.patience import PATIENCE_S
from tests.support.server import Server
from tests.support.stalls import Stalls

MISSING = volumes.missing()
pytestmark = [
    pytest.mark.alone,
    pytest.mark.fault,
    pytest.mark.skipif(MISSING is not None, reason=f"NO FULL DISK WAS TESTED: {MISSING}"),
]

VOLUME_MIB = 64


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    with volumes.tmpfs(tmp_path / "volume", VOLUME_MIB) as volume:
        yield volume


def fill(volume: Path, leave_mib: float) -> Path:
    """Fill the volume with another file, except for `leave_mib`. The server may use some of it meanwhile."""
    path = volume / "other-file"
    with path.open("wb") as file:
        while True:
            stat = os.statvfs(volume)
            try:
                room = int(stat.f_bavail * stat.f_frsize - leave_mib * 1024 * 1024)
                os.posix_fallocate(file.fileno(), 0, max(1, room))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
            else:
                return path


def wait_until(done: threading.Event, what: str, seconds: float = PATIENCE_S) -> None:
    assert done.wait(seconds), what


class Pusher(threading.Thread):
    """Pushes large jobs; records which were acknowledged and whether it is refused at the moment."""

    def __init__(self, server: Server, name: str, size: int) -> None:
        super().__init__(daemon=True)
        self._client = server.client()
        self._prefix = name
        self._payload = "x" * size
        self._ending = threading.Event()
        self.acknowledged: list[str] = []
        self.refused = threading.Event()
        self.accepted = threading.Event()
        self.reasons: set[str] = set()

    def run(self) -> None:
        with self._client as client:
            n = 0
            while not self._ending.is_set():
                n += 1
                jid = f"{self._prefix}-{n:07d}"
                try:
                    client.push(jid, "big", [self._payload])
                except Refused as refused:
                    self.reasons.add(str(refused))
                    self.accepted.clear()
                    self.refused.set()
                    self._ending.wait(0.005)
                else:
                    self.acknowledged.append(jid)
                    self.refused.clear()
                    self.accepted.set()

    def finish(self) -> None:
        self._ending.set()
        self.join(PATIENCE_S)
        assert not self.is_alive()


def complete_jobs(client: Client, jobs: int) -> list[str]:
    done = []
    for _ in range(jobs):
        found = client.fetch("small")
        assert found is not None, "a full disk must not prevent the completion of jobs"
        client.ack(found["jid"])
        done.append(found["jid"])
    return done


def push_until_refused(client: Client) -> None:
    for n in range(10_000):
        try:
            client.push(f"never-{n:05d}", args=["x" * 1_000])
        except Refused as refused:
            assert "free some space and push again" in str(refused)  # noqa: PT017, not the first push is refused
            return
    raise AssertionError("ten thousand pushes used the reserve")


@pytest.mark.parametrize("size", [2_000, 400_000], ids=["many small jobs", "few big jobs"])
def test_pushes_on_a_full_disk_are_refused_until_space_is_freed(volume: Path, size: int) -> None:
    with Server(volume / "data") as server, server.client(wid="worker-1") as client:
        for first in range(0, 2_000, 500):
            client.push_many([job(f"small-{n:05d}", "small") for n in range(first, first + 500)])
        pushers = [Pusher(server, f"pusher-{n}", size) for n in range(2)]
        for pusher in pushers:
            pusher.start()
        done = complete_jobs(client, 20)
        for pusher in pushers:
            wait_until(pusher.refused, "pushes are refused on a full volume")
        assert server.running
        room = fill(volume, 5.0)  # little is left besides the reserve
        done += complete_jobs(client, 500)
        # Space that a compaction frees meanwhile may admit some pushes; they use it up again.
        for pusher in pushers:
            wait_until(pusher.refused, "pushes are refused without space")
        for pusher in pushers:
            assert all("free some space and push again" in reason for reason in pusher.reasons)
        # Jobs that are pushed after the removal has freed space are not counted.
        acknowledged = {jid for pusher in pushers for jid in pusher.acknowledged}
        client.call("QUEUE REMOVE big")
        room.unlink()
        for pusher in pushers:
            pusher.finish()
        done += complete_jobs(client, 100)
        assert server.stop() == 0
        journal = SqliteJournal(DataDir(server.data))
        there = set(recover(journal).state.jids)
        journal.close()
    assert {f"small-{n:05d}" for n in range(2_000)} - there == set(done)
    assert not there & acknowledged, "removed jobs must not return"


def test_pushes_are_accepted_again_when_there_is_space(volume: Path) -> None:
    with Server(volume / "data") as server, server.client() as client:
        client.push("job-0001", "small")
        room = fill(volume, 1.0)
        pusher = Pusher(server, "pusher", 2_000)
        pusher.start()
        wait_until(pusher.refused, "pushes are refused")
        assert complete_jobs(client, 1) == ["job-0001"]
        room.unlink()
        with Stalls() as stalls:
            wait_until(pusher.accepted, "pushes are accepted again")
        assert stalls.elapsed < 7.0
        pusher.finish()
        assert server.running
        assert server.stop() == 0
        journal = SqliteJournal(DataDir(server.data))
        assert set(pusher.acknowledged) <= set(recover(journal).state.jids)
        journal.close()


def test_settling_continues_from_the_reserve(volume: Path) -> None:
    """No byte is free except the reserve."""
    with Server(volume / "data") as server, server.client() as client:
        client.push_many([job(f"small-{n:05d}", "small") for n in range(1_000)])
        give_up = time.monotonic() + PATIENCE_S
        while not (volume / "data" / "ballast").exists():
            assert time.monotonic() < give_up
            client.info()
        room = fill(volume, 0)
        done = complete_jobs(client, 1_000)
        assert len(done) == 1_000
        assert not (volume / "data" / "ballast").exists(), "the disk was full, so the reserve must be in use"
        with suppress(Refused):
            client.push("job-0001")
        push_until_refused(client)
        room.unlink()
        give_up = time.monotonic() + PATIENCE_S
        while not (volume / "data" / "ballast").exists():
            assert time.monotonic() < give_up, "the reserve must be created again"
            client.info()
        assert server.stop() == 0
