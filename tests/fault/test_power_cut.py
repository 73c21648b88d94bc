"""Power cuts: the data is on an ext4 image; a cut is a copy of the image's file, taken right after SIGKILL.

Data that the server's file system had not written is missing in the copy, as after a real cut. SIGKILL comes first,
because a server that runs while the image is copied could still sync and hide a loss. SIGKILL alone cannot show a
missing sync. A journal after a power cut is never reported as damaged.
"""

import itertools
import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from crossdock.journal.data_dir import DataDir
from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.model.errors import Damaged
from tests.support import volumes
from tests.support.faktory_client import Gone
from tests.support.patience import PATIENCE_S
from tests.support.scale import tries
from tests.support.server import Server

MISSING = volumes.missing()
pytestmark = [
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.skipif(
        MISSING is not None, reason=f"NO POWER CUTS WERE TESTED: {MISSING}; only test_unsynced_vfs.py replaces them"
    ),
]

CUTS = tries(40, 200)
EVERYSEC_CUTS = tries(10, 200)
IMAGE_MIB = 96
PUSHERS = 4


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Path]:
    image = tmp_path / "disk.img"
    volumes.make_ext4(image, IMAGE_MIB)
    with volumes.mounted(image, tmp_path / "disk"):
        yield image


class Pushers:
    """Threads that push jobs and record which were acknowledged."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.acknowledged: list[str] = []
        self._enough = threading.Semaphore(0)
        self._threads = [threading.Thread(target=self._push, args=(n,), daemon=True) for n in range(PUSHERS)]
        for thread in self._threads:
            thread.start()

    def _push(self, pusher: int) -> None:
        with suppress(Gone), self._server.client() as client:
            for n in itertools.count():
                jid = f"pusher-{pusher}-{n}"
                client.push(jid, args=["x" * 200])
                self.acknowledged.append(jid)
                self._enough.release()

    def wait_for(self, pushes: int) -> None:
        for _ in range(pushes):
            assert self._enough.acquire(timeout=PATIENCE_S), "the server acknowledges no push"

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE_S)


def cut(image: Path, cuts: int, random: Random, fault: str, durability: str = "always") -> list[str]:
    """Push, kill, copy, recover. Returns the acknowledged pushes that are missing after the cut."""
    data = image.parent / "disk" / f"data-{cuts}"
    copy = image.parent / "copy.img"
    server = Server(data, {"journal.durability": durability}, fault=fault)
    try:
        server.start()
        pushers = Pushers(server)
        pushers.wait_for(random.randrange(1, 900))
        server.kill()
        volumes.cut(image, copy)
    finally:
        server.close()
    pushers.join()
    with volumes.mounted(copy, image.parent / "after") as after:
        there = _jobs(after / data.name)
    shutil.rmtree(data)
    return [jid for jid in pushers.acknowledged if jid not in there]


def _jobs(data: Path) -> set[str]:
    if not data.exists():
        return set()
    journal = SqliteJournal(DataDir(data))
    try:
        return set(recover(journal).state.jids)
    finally:
        journal.close()


def test_no_acknowledged_push_is_lost(image: Path) -> None:
    random = Random(23)
    for n in range(CUTS):
        assert cut(image, n, random, "") == [], f"lost in cut {n}"


def test_a_power_cut_under_everysec_is_not_reported_as_damage(image: Path) -> None:
    random = Random(24)
    for n in range(EVERYSEC_CUTS):
        cut(image, n, random, "", "everysec")


def test_a_journal_that_does_not_sync_loses_pushes_within_the_same_number_of_cuts(image: Path) -> None:
    """Shows that the tests above can detect a missing sync."""
    random = Random(23)

    def loses(n: int) -> bool:
        try:
            return bool(cut(image, n, random, "unsynced"))
        except Damaged:  # the mark reached the disk before the entry
            return True

    assert any(map(loses, range(CUTS))), (
        f"nothing was lost in {CUTS} cuts without syncs: the harness does not cut the power"
    )
