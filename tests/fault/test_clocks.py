"""A wall clock that is set while running or between starts: no lease ends early, and a wrong time deletes nothing."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
import redis

from tests.support.patience import PATIENCE_S, wait_until
from tests.support.server import Server
from tests.support.workq_peer import WorkqPeer

pytestmark = pytest.mark.fault

HOUR: Final = 3_600.0
DAY: Final = 86_400.0
BOOT: Final = "0d7c6c43-0000-4000-8000-000000000001"
NEXT_BOOT: Final = "0d7c6c43-0000-4000-8000-000000000002"
LIVES_A_DAY: Final = "61a444a0-6128-41c0-8078-cc757d3bd2d8"
SCHEDULED: Final = "6ba7b810-9dad-41d1-80b4-00c04fd430c6"
LEASED: Final = "6ba7b810-9dad-41d1-80b4-00c04fd430c7"


class MovedServer(Server):
    """A server whose wall clock and boot id are set by the test."""

    def __init__(self, folder: Path, ahead: float = 0.0) -> None:
        super().__init__(folder / "data", fault="moved-clock", protocols=("faktory", "workq", "redis"))
        self._clock = folder / "clock"
        self.set_clock(ahead)

    def set_clock(self, ahead: float, boot: str = BOOT) -> None:
        """Replace the file by a rename, so that the server never reads half of it."""
        fresh = self._clock.with_suffix(".new")
        fresh.write_text(f"{ahead} {boot}\n")
        os.rename(fresh, self._clock)

    def workq(self) -> WorkqPeer:
        return WorkqPeer(self.ports["workq"])

    def redis(self) -> redis.Redis:
        return redis.Redis(port=self.ports["redis"], socket_timeout=PATIENCE_S)


def fill(server: MovedServer) -> None:
    """One of each object that time can end, and a job that is due when the clock is 100 days ahead."""
    later = (datetime.now(UTC) + timedelta(days=100)).strftime("%Y-%m-%dT%H:%M:%SZ")
    with server.client(wid="worker-1") as client:
        client.push("job-dead", retry=-1)
        client.fetch()
        client.fail("job-dead")
        client.push("job-retried", retry=25)
        client.fetch()
        client.fail("job-retried")
        client.push("job-leased", reserve_for=1_800)
        client.fetch()
        client.push("job-expiring", "expiring", custom={"expires_in": 1_800})
        client.push("job-of-a-date", "expiring", custom={"expires_at": later})
        client.push("job-tracked", "tracked", custom={"track": 1})
        client.push("job-scheduled", "later", at=later)
    with server.workq() as peer:
        peer.send(f"add {LIVES_A_DAY} mail 60000 86400000 0", "")
        peer.send(f"schedule {SCHEDULED} news 60000 60000 {later} 0", "")
        peer.send(f"add {LEASED} leased 1800000 86400000 0", "", "lease leased 0")
        peer.expect("+OK", "+OK", "+OK", "+OK 1", f"{LEASED} leased 0", "")
    with server.redis() as client_of_keys:
        client_of_keys.set("key", "value", ex=86_400)


def wait_for_tick(server: MovedServer) -> None:
    """Wait until the timer has seen the new time: the job due in 100 days is ready. A push wakes the timer."""
    with server.client(wid="worker-2") as client:
        client.push("job-beside", "beside")
        wait_until(lambda: client.info()["faktory"]["queues"].get("later"), "the job that is due by then")


def assert_all_present(server: MovedServer) -> None:
    with server.client(wid="worker-1") as client:
        sizes = client.sizes()
        assert (sizes["dead"], sizes["working"]) == (1, 2), sizes
        assert [(client.fetch("expiring") or {}).get("jid") for _ in range(2)] == ["job-expiring", "job-of-a-date"]
        assert b'"state":"enqueued"' in client.call("TRACK GET job-tracked")
        client.ack("job-leased")
    with server.workq() as peer:
        peer.send("lease mail 0", f"complete {LEASED} 0", "")
        peer.expect("+OK 1", f"{LIVES_A_DAY} mail 0", "", "+OK")
    with server.redis() as client_of_keys:
        assert client_of_keys.get("key") == b"value"


def test_a_running_server_whose_clock_is_200_days_ahead_deletes_nothing(tmp_path: Path) -> None:
    with MovedServer(tmp_path) as server:
        fill(server)
        server.set_clock(200 * DAY)
        wait_for_tick(server)
        assert_all_present(server)
        with server.workq() as peer:
            peer.send("lease news 0")
            peer.expect("+OK 1", f"{SCHEDULED} news 0", "")


@pytest.mark.parametrize("boot", [BOOT, NEXT_BOOT], ids=["same boot", "next boot"])
def test_a_server_that_starts_with_its_clock_200_days_ahead_deletes_nothing(tmp_path: Path, boot: str) -> None:
    with MovedServer(tmp_path) as server:
        fill(server)
        server.kill()
        server.set_clock(200 * DAY, boot)
        server.start()
        wait_for_tick(server)
        assert "nothing is purged for an hour" in server.log()
        if boot == BOOT:
            assert "leases and retries" not in server.log()
            assert_all_present(server)
        else:
            assert "200 days past the newest entry of the journal; leases and retries count 7 days" in server.log()
            with server.client(wid="worker-1") as client:
                assert client.sizes()["dead"] == 1
                assert b'"state":"enqueued"' in client.call("TRACK GET job-tracked")
            with server.workq() as peer:
                peer.send(f"delete {LIVES_A_DAY}")
                peer.expect("+OK")
        server.restart()
        with server.client(wid="worker-1") as client:
            assert client.sizes()["dead"] == 1


@pytest.mark.parametrize("clean", [True, False], ids=["SIGTERM", "SIGKILL"])
def test_no_lease_expires_at_a_restart_after_the_clock_was_corrected(tmp_path: Path, clean: bool) -> None:
    with MovedServer(tmp_path, -2 * HOUR) as server:
        fill(server)
        if clean:
            assert server.stop() == 0
        else:
            server.kill()
        server.set_clock(0.0)
        server.start()
        with server.client() as client:
            assert client.sizes()["working"] == 2
        assert_all_present(server)
        assert "purged" not in server.log()
        assert "leases and retries" not in server.log()


def test_no_lease_expires_after_a_reboot_that_set_the_clock_back(tmp_path: Path) -> None:
    """With a new boot id only the wall clock is available; times before the newest one seen are ignored."""
    with MovedServer(tmp_path) as server:
        fill(server)
        server.kill()
        server.set_clock(-2 * HOUR, NEXT_BOOT)
        server.start()
        assert_all_present(server)
        assert "purged" not in server.log()
