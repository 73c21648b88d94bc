"""A restored backup of a busy server has all changes acknowledged before the backup (testing.md section 22)."""

import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.journal.data_dir import DataDir
from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.journal import SqliteJournal
from tests.support import volumes
from tests.support.accounting import Kind, Op, Outcome
from tests.support.command_line import Operator
from tests.support.faktory_client import job
from tests.support.load import Load
from tests.support.patience import IDLE_PATIENCE_S, wait_until
from tests.support.server import Server

MISSING = volumes.missing()


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path)


def ok(ops: list[Op], kind: Kind) -> Iterator[Op]:
    return (op for op in ops if op.kind is kind and op.outcome is Outcome.OK)


def jobs_in(data: Path) -> set[str]:
    journal = SqliteJournal(DataDir(data))
    try:
        return set(recover(journal).state.jids)
    finally:
        journal.close()


def delivered(data: Path) -> dict[str, int]:
    """Checksums of the payloads that a server on this folder delivers, by job id."""
    found: dict[str, int] = {}
    with Server(data) as server, server.client(wid="drain") as client:
        client.mutate("requeue", "retries")
        waiting = client.sizes()["enqueued"]
        while len(found) < waiting:
            fetched = client.fetch()
            assert fetched is not None
            found[fetched["jid"]] = zlib.crc32(fetched["args"][0].encode())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["", "frequent-compaction"], ids=["plain", "while-compacting"])
def test_a_backup_under_load_is_complete_when_restored(tmp_path: Path, operator: Operator, fault: str) -> None:
    data = tmp_path / "data"
    with Server(data, fault=fault) as server:
        load = Load(server)
        load.start()
        backups = []
        for n in range(4):
            wait_for_operations(load, 1_500)
            if fault and n == 2:
                wait_until(lambda: any(data.glob("snapshot-*[0-9]")), "a compaction during the load", IDLE_PATIENCE_S)
            so_far = list(load.ops)
            operator.output("backup", f"copy-{n}", "--data", "data")
            backups.append((n, so_far, time.monotonic()))
        load.finish()
        assert server.stop() == 0
    crcs = {op.jid: op.crc for op in load.ops if op.kind is Kind.PUSH}
    for n, so_far, ended in backups:
        operator.output("restore", f"copy-{n}", "--data", f"new-{n}")
        there = jobs_in(tmp_path / f"new-{n}")
        pushed = {op.jid for op in ok(so_far, Kind.PUSH)}
        settled = {op.jid for op in ok(so_far, Kind.ACK)}
        perhaps_settled = {op.jid for op in load.ops if op.kind is Kind.ACK and op.began < ended}
        assert len(pushed) > 500
        assert pushed - perhaps_settled <= there, "a push acknowledged before the backup is missing"
        assert not settled & there, "a job settled before the backup is back"
        assert there <= crcs.keys(), "a job was never pushed"
        assert delivered(tmp_path / f"new-{n}").items() <= crcs.items(), "a payload was changed"


def wait_for_operations(load: Load, more: int) -> None:
    """Wait until this number of further operations was recorded."""
    goal = len(load.ops) + more
    wait_until(lambda: len(load.ops) >= goal, "progress of the load")


def test_a_restored_server_continues_from_the_backup(tmp_path: Path, operator: Operator) -> None:
    """The backup is a complete data folder with every kind of record: sets, pauses, leases, batches, locks."""
    with Server(tmp_path / "data") as server, server.client(wid="w1") as client:
        bid = client.call("BATCH NEW", {"success": {"jobtype": "done", "args": [], "queue": "c"}}).decode()
        client.push("member-1", custom={"bid": bid})
        client.push("unique-1", "q", custom={"unique_for": 3_600})
        client.push("later-01", at="2099-01-01T00:00:00Z")
        client.call("QUEUE PAUSE q")
        client.call(f"BATCH COMMIT {bid}")
        assert (client.fetch() or {})["jid"] == "member-1"
        output = operator.output("backup", "copy", "--data", "data")
        assert "backed up 3 jobs" in output
        before = client.call(f"BATCH STATUS {bid}")
    operator.output("restore", "copy", "--data", "new")
    with Server(tmp_path / "new") as server, server.client(wid="w1") as client:
        assert client.call(f"BATCH STATUS {bid}") == before
        assert client.push_many([job("unique-2", "q", custom={"unique_for": 3_600})]) == {
            "unique-2": "NOTUNIQUE Job not unique"
        }
        assert client.sizes() == {"enqueued": 1, "dead": 0, "retries": 0, "scheduled": 1, "working": 1}
        client.ack("member-1")
        assert (client.fetch("c") or {})["custom"]["_bid"] == bid
        assert operator.json("check", "--data", "new")["sound"]


def test_restore_does_not_overwrite_a_folder_with_data(tmp_path: Path, operator: Operator) -> None:
    with Server(tmp_path / "data") as server, server.client() as client:
        client.push("job-00001")
        operator.output("backup", "copy", "--data", "data")
        ended = operator.run("restore", "copy", "--data", "data")
        assert ended.code == 1
        assert f"data is in use by process {server.process.pid}; stop that server" in ended.err
        client.push("job-00002")
        assert client.sizes()["enqueued"] == 2
    ended = operator.run("restore", "copy", "--data", "data")
    assert ended.code == 1
    assert "data is not empty (" in ended.err
    assert "move it away, or restore to another folder with --data" in ended.err


@pytest.mark.fault
@pytest.mark.skipif(MISSING is not None, reason=f"NO FULL BACKUP DISK WAS TESTED: {MISSING}")
def test_a_backup_on_a_full_disk_fails_with_a_reason(tmp_path: Path, operator: Operator) -> None:
    with (
        volumes.tmpfs(tmp_path / "small", 2) as small,
        Server(tmp_path / "data") as server,
        server.client() as client,
    ):
        for n in range(20):
            client.push_many([job(f"job-{n}-{k:06d}", args=["x" * 1_000]) for k in range(200)])
        ended = operator.run("backup", "small/copy", "--data", "data")
        assert ended.code == 1
        assert "no space for the backup in" in ended.err
        assert "The partial copy was removed, the server's data is unchanged" in ended.err
        assert list(small.iterdir()) == []
        client.push("after-it-1")
        assert operator.json("check", "--data", "data")["sound"]
        assert "verified" in operator.output("backup", "elsewhere", "--data", "data")
