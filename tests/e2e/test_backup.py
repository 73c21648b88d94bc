"""Backups of a working server, restored elsewhere (RELIABILITY T22): nothing that was answered before is missing."""

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


def handed_out(data: Path) -> dict[str, int]:
    """The jobs that a server on this folder hands out, by what is in them."""
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
@pytest.mark.parametrize("fault", ["", "short-tail"], ids=["plain", "while-compacting"])
def test_under_load_restored_elsewhere(tmp_path: Path, operator: Operator, fault: str) -> None:
    data = tmp_path / "data"
    with Server(data, fault=fault) as server:
        load = Load(server)
        load.start()
        backups = []
        for n in range(4):
            pause(load, 1_500)
            if fault and n == 2:
                wait_until(lambda: any(data.glob("snapshot-*[0-9]")), "compaction goes on meanwhile", IDLE_PATIENCE_S)
            so_far = list(load.ops)
            operator.tell("backup", f"copy-{n}", "--data", "data")
            backups.append((n, so_far, time.monotonic()))
        load.finish()
        assert server.stop() == 0
    crcs = {op.jid: op.crc for op in load.ops if op.kind is Kind.PUSH}
    for n, so_far, ended in backups:
        operator.tell("restore", f"copy-{n}", "--data", f"new-{n}")
        there = jobs_in(tmp_path / f"new-{n}")
        pushed = {op.jid for op in ok(so_far, Kind.PUSH)}
        settled = {op.jid for op in ok(so_far, Kind.ACK)}
        perhaps_settled = {op.jid for op in load.ops if op.kind is Kind.ACK and op.began < ended}
        assert len(pushed) > 500
        assert pushed - perhaps_settled <= there, "what was answered before it began is missing"
        assert not settled & there, "what was acknowledged before it began comes again"
        assert there <= crcs.keys(), "nobody pushed this"
        assert handed_out(tmp_path / f"new-{n}").items() <= crcs.items(), "payloads are as they were pushed"


def pause(load: Load, more: int) -> None:
    """Until that many more operations were recorded."""
    goal = len(load.ops) + more
    wait_until(lambda: len(load.ops) >= goal, "the load goes on")


def test_a_server_goes_on_where_the_backup_was_made(tmp_path: Path, operator: Operator) -> None:
    """Every kind of record is in it: sets, pauses, leases, batches, locks; and it is a whole data folder."""
    with Server(tmp_path / "data") as server, server.client(wid="w1") as client:
        bid = client.call("BATCH NEW", {"success": {"jobtype": "done", "args": [], "queue": "c"}}).decode()
        client.push("member-1", custom={"bid": bid})
        client.push("unique-1", "q", custom={"unique_for": 3_600})
        client.push("later-01", at="2099-01-01T00:00:00Z")
        client.call("QUEUE PAUSE q")
        client.call(f"BATCH COMMIT {bid}")
        assert (client.fetch() or {})["jid"] == "member-1"
        told = operator.tell("backup", "copy", "--data", "data")
        assert "backed up 3 jobs" in told
        before = client.call(f"BATCH STATUS {bid}")
    operator.tell("restore", "copy", "--data", "new")
    with Server(tmp_path / "new") as server, server.client(wid="w1") as client:
        assert client.call(f"BATCH STATUS {bid}") == before
        assert client.push_many([job("unique-2", "q", custom={"unique_for": 3_600})]) == {
            "unique-2": "NOTUNIQUE Job not unique"
        }
        assert client.sizes() == {"enqueued": 1, "dead": 0, "retries": 0, "scheduled": 1, "working": 1}
        client.ack("member-1")
        assert (client.fetch("c") or {})["custom"]["_bid"] == bid
        assert operator.json("check", "--data", "new")["sound"]


def test_a_live_folder_is_not_restored_over(tmp_path: Path, operator: Operator) -> None:
    with Server(tmp_path / "data") as server, server.client() as client:
        client.push("job-00001")
        operator.tell("backup", "copy", "--data", "data")
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
def test_a_backup_disk_that_fills(tmp_path: Path, operator: Operator) -> None:
    with (
        volumes.tmpfs(tmp_path / "small", 2) as small,
        Server(tmp_path / "data") as server,
        server.client() as client,
    ):
        for n in range(20):
            client.push_many([job(f"job-{n}-{k:06d}", args=["x" * 1_000]) for k in range(200)])
        ended = operator.run("backup", "small/copy", "--data", "data")
        assert ended.code == 1
        assert "no room for the backup in" in ended.err
        assert "The partial copy was removed, the server's data is untouched" in ended.err
        assert list(small.iterdir()) == []
        client.push("after-it-1")
        assert operator.json("check", "--data", "data")["sound"]
        assert "verified" in operator.tell("backup", "elsewhere", "--data", "data")
