"""A restart keeps leases, pauses, job numbers, the monotonic clock and flushes. A second server is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.journal.data_dir import DataDir
from crossdock.journal.recovery import Recovered, recover
from crossdock.journal.sqlite.journal import SqliteJournal
from tests.support.faktory_client import Gone, Refused
from tests.support.server import Server

pytestmark = pytest.mark.fault


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as server:
        yield server


def on_disk(data: Path) -> Recovered:
    journal = SqliteJournal(DataDir(data))
    try:
        return recover(journal)
    finally:
        journal.close()


def test_a_worker_keeps_its_job_over_a_restart_and_settles_it(server: Server) -> None:
    with server.client(wid="worker-1") as client:
        client.push("job-to-ack")
        client.push("job-to-fail")
        assert [(client.fetch() or {})["jid"] for _ in range(2)] == ["job-to-ack", "job-to-fail"]
    server.restart()
    with server.client(wid="worker-1") as client:
        assert client.sizes()["working"] == 2
        client.ack("job-to-ack")
        client.fail("job-to-fail")
        with pytest.raises(Refused, match="Job not found"):
            client.fail("job-to-ack")
        assert client.sizes() == {"enqueued": 0, "working": 0, "retries": 1, "dead": 0, "scheduled": 0}


def test_another_worker_cannot_settle_a_lease_from_before_the_restart(server: Server) -> None:
    with server.client(wid="worker-1") as client:
        client.push("job-0001")
        client.fetch()
    server.restart()
    with server.client(wid="worker-2") as other:
        other.ack("job-0001")  # the reply is OK, as for an unknown job
        assert other.sizes()["working"] == 1


def test_a_lease_survives_a_restart_and_is_not_extended(server: Server) -> None:
    """Its end is on the monotonic clock, which continues across a restart: it is not later, and it has not passed."""
    with server.client() as client:
        client.push("job-0001", reserve_for=600)
        client.fetch()
    server.kill()
    before = on_disk(server.data)
    [(end, _)] = [lease for shelf in before.state.by_state.values() for lease in shelf]
    server.start()
    with server.client() as client:
        client.push("job-0002")
        assert client.sizes()["working"] == 1
    server.kill()
    after = on_disk(server.data)
    [(end_after, _)] = [lease for shelf in after.state.by_state.values() for lease in shelf]
    assert end_after == end
    assert before.steady < after.steady < before.steady + 60, "the clock must advance by the time on the wall clock"
    assert after.steady - before.steady == pytest.approx(after.wall - before.wall, abs=0.2)
    assert 500 < end - after.steady < 600


def test_paused_queues_stay_paused(server: Server) -> None:
    with server.client() as client:
        client.push("job-0001", "held")
        client.push("job-0002", "open")
        client.call("QUEUE PAUSE held")
    server.restart()
    with server.client() as client:
        assert (client.fetch("held", "open") or {})["jid"] == "job-0002"
        client.call("QUEUE RESUME held")
        assert (client.fetch("held") or {})["jid"] == "job-0001"


def test_a_flush_survives_a_restart_and_job_numbers_are_not_reused(server: Server) -> None:
    with server.client() as client:
        for n in range(5):
            client.push(f"job-{n:04d}")
        client.call("FLUSH")
    server.restart()
    with server.client() as client:
        assert client.info()["faktory"]["queues"] == {}
        assert client.sizes()["enqueued"] == 0
        client.push("job-0005")
    server.kill()
    found = on_disk(server.data)
    assert list(found.state.jobs) == [6]
    assert found.state.counters.epoch == 2


def test_order_priority_and_schedule_survive(server: Server) -> None:
    with server.client() as client:
        client.push("normal-1")
        client.push("normal-2")
        client.push("urgent-1", priority=9)
        client.push("lazy-0001", priority=1)
        client.push("tomorrow", at="2999-01-01T00:00:00Z")
    server.restart()
    with server.client() as client:
        assert client.sizes()["scheduled"] == 1
        found = [(client.fetch() or {})["jid"] for _ in range(4)]
    assert found == ["urgent-1", "normal-1", "normal-2", "lazy-0001"]


def test_a_restart_keeps_every_byte_of_a_job(server: Server) -> None:
    args = b'"args":[ 1.0, 12345678901234567890 ,"\\u00e9\xc3\xa9" ]'
    line = b'PUSH {"jid":"job-0001","jobtype":"t",%b,"custom":{"b": 1}}' % args
    with server.client() as client:
        client.send(line + b"\r\n")
        client.read()
    server.restart()
    with server.client() as client:
        client.ask("FETCH default")
        reply = client.read()
    assert args in reply
    assert b'"custom":{"b": 1}' in reply


def test_a_second_server_on_the_same_folder_is_refused(server: Server) -> None:
    with server.client() as client:
        client.push("job-0001")
        second = Server(server.data)
        try:
            second.spawn()
            assert second.wait() == 1
            assert f"is in use by process {server.process.pid}; stop it, or choose another" in second.log()
            assert "Traceback" not in second.log()
        finally:
            second.close()
        client.push("job-0002")
        assert client.sizes()["enqueued"] == 2


def test_a_change_that_fails_in_the_middle_stops_the_server_and_is_not_recovered(tmp_path: Path) -> None:
    with Server(tmp_path / "data", fault="partial-apply") as server:
        with server.client(wid="worker-1") as client:
            client.push("job-0001")
            client.fetch()
            with pytest.raises(Gone):
                client.ack("job-0001")
        assert server.wait() == 1
        assert "Succeed failed in the middle" in server.log()
    found = on_disk(tmp_path / "data").state
    assert [job.jid for job in found.jobs.values() if job.lease is not None] == ["job-0001"]
