"""The lake of a real server: rows of jobs that cross all protocols, and the operator's view of it."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.reader import SqliteReader
from tests.lake.ledger import booked, open_leases, same_pages
from tests.lake.source import Row, rows_in
from tests.support.command_line import Operator
from tests.support.object_store import BUCKET, object_store
from tests.support.patience import IDLE_PATIENCE_S, wait_until
from tests.support.peers import LISTENING, PEERS, reach
from tests.support.server import Server

#: The lake's process runs at the lowest priority.
pytestmark = pytest.mark.slow

#: One segment every fifth of a second.
LAKE: Final = {"lake.segment_s": 0.2, "lake.redact": "password"}
EACH: Final = 6


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", LAKE, protocols=LISTENING) as running:
        yield running


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path, server_data="data")


def caught_up(operator: Operator) -> Any:
    """The output of `status` once the whole journal is in the lake."""
    give_up = time.monotonic() + IDLE_PATIENCE_S
    while True:
        status = json.loads(operator.run("lake", "status", "--json").out)
        if status["last"] and not status["lag"]["entries"]:
            return status
        assert time.monotonic() < give_up, status
        time.sleep(0.5)


def stopped_and_caught_up(server: Server, operator: Operator) -> Any:
    """The output of `status` for a stopped server whose whole journal is in the lake.

    A timer may write an entry between the last check and the stop. It reaches the lake after the next start.
    """
    while True:
        caught_up(operator)
        assert server.stop() == 0
        status = json.loads(operator.run("lake", "status", "--json").out)
        if not status["lag"]["entries"]:
            return status
        server.start()


def work(server: Server) -> None:
    """Each protocol pushes jobs and the next one takes them. One job of each fails and one is never settled."""
    peers = [reach(server, protocol, f"{protocol}-worker") for protocol in PEERS]
    for turn, origin in enumerate(peers):
        worker = peers[(turn + 1) % len(peers)]
        queue = f"mail-{origin.protocol}"
        for n in range(EACH):
            origin.push(queue, {"password": "hunter2", "n": n})
        for n in range(EACH):
            got = worker.fetch(queue)
            assert got is not None
            if n == 0:
                assert worker.fail(got.ident, "hunter2 is wrong")
            elif n > 1:
                assert worker.succeed(got.ident)
    for peer in peers:
        peer.close()


def test_jobs_of_all_protocols_are_rows_that_add_up_to_the_live_statistics(
    server: Server, operator: Operator, tmp_path: Path
) -> None:
    work(server)
    status = stopped_and_caught_up(server, operator)
    assert (status["sound"], status["faults"], status["gaps"], status["on"]) == (True, [], [], True)
    rows = [row for _, row in sorted(rows_in(tmp_path / "data" / "lake").items())]
    protocols = set(PEERS)
    assert {row["origin"] for row in rows if row["event"] == "pushed"} == protocols
    pairs = {(row["origin"], row["lease_via"]) for row in rows if row["outcome"] == "succeeded"}
    assert {origin for origin, _ in pairs} == {via for _, via in pairs} == protocols
    assert all(origin != via for origin, via in pairs), "each job must be taken through another protocol"
    assert {row["outcome"] for row in rows} >= {None, "succeeded", "failed"}
    pushed = [row for row in rows if row["event"] == "pushed"]
    assert len(pushed) == EACH * len(protocols)
    assert all(b"hunter2" not in _payload(row) and b"[redacted]" in _payload(row) for row in pushed)
    said = {row["error_message"] for row in rows if row["event"] == "failed"}
    assert "[redacted] is wrong" in said and not any("hunter2" in text for text in said)
    state = recover(SqliteReader(tmp_path / "data")).state
    assert same_pages(state.stats, booked(rows))
    assert open_leases(rows) == {job.lease.token for job in state.jobs.values() if job.lease is not None}


def _payload(row: Row) -> bytes:
    payload: bytes = row["payload"]
    return payload


def test_lake_status_reports_damage(server: Server, operator: Operator, tmp_path: Path) -> None:
    work(server)
    status = stopped_and_caught_up(server, operator)
    text = operator.output("lake", "status")
    assert f"{status['rows']:,} rows" in text and "nothing: the lake has the whole journal" in text
    warnings = [line for line in operator.run("doctor").out.splitlines() if line.startswith("warning: ")]
    assert not any("lake" in warning for warning in warnings)
    assert "sound: " in operator.output("check")
    segment = min((tmp_path / "data" / "lake").glob("date=*/*.parquet"))
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-9])
    for verb in (("lake", "status"), ("doctor",), ("check",)):
        ended = operator.run(*verb)
        assert ended.code == 1
        assert segment.name in ended.out
        assert f"{len(whole) - 9:,} of {len(whole):,} bytes" in ended.out
    segment.write_bytes(whole)
    entry = max((tmp_path / "data" / "lake" / "_delta_log").glob("*.json"))
    entry.write_bytes(b"{")
    for verb in (("lake", "status"), ("doctor",), ("check",)):
        ended = operator.run(*verb)
        assert ended.code == 1 and f"{entry.name} is damaged: it is torn" in ended.out + ended.err


def test_a_flush_keeps_history_and_begins_a_new_flush_epoch(server: Server, operator: Operator, tmp_path: Path) -> None:
    work(server)
    with server.client() as client:
        client.call("FLUSH")
        client.push("job-after-flush")
    stopped_and_caught_up(server, operator)
    rows = [row for _, row in sorted(rows_in(tmp_path / "data" / "lake").items())]
    (flushed,) = [row for row in rows if row["event"] == "flushed"]
    assert {row["flush_epoch"] for row in rows if row["seq"] <= flushed["seq"]} == {0}
    after = [row for row in rows if row["seq"] > flushed["seq"]]
    assert [row["jid"] for row in after if row["event"] == "pushed"] == ["job-after-flush"]
    assert {row["flush_epoch"] for row in after} == {1}
    assert same_pages(recover(SqliteReader(tmp_path / "data")).state.stats, booked(rows))


def test_a_server_with_a_disabled_lake_has_none(tmp_path: Path) -> None:
    with Server(tmp_path / "data", {"lake.on": "false", "lake.segment_s": 0.05}) as server:
        with server.client() as client:
            client.push("some-job")
        server.restart()
        with server.client() as client:
            client.push("some-other-job")
        assert not (tmp_path / "data" / "lake").exists()
        status = Operator(tmp_path, server_data="data", lake_on="false").output("lake", "status")
        assert "lake.on is false" in status and "nothing yet" in status


def test_a_backup_omits_the_lake_and_the_restored_server_starts_a_new_one(
    server: Server, operator: Operator, tmp_path: Path
) -> None:
    work(server)
    before = caught_up(operator)
    with server.client() as client:
        client.push("job-not-in-the-lake")
        operator.output("backup", "copy")
        client.push("job-after-the-backup")
    caught_up(operator)
    assert server.stop() == 0
    operator.output("restore", "copy", "--data", "new")
    assert not (tmp_path / "new" / "lake").exists()
    with Server(tmp_path / "new", {"lake.segment_s": 0.2}) as restored:
        with restored.client() as client:
            client.push("job-of-the-new-server")
        new = Operator(tmp_path, server_data="new")
        assert caught_up(new)["sound"]
        jids = {row["jid"] for row in rows_in(tmp_path / "new" / "lake").values()}
        assert {"job-not-in-the-lake", "job-of-the-new-server"} <= jids and "job-after-the-backup" not in jids
        old = Operator(tmp_path, server_data="new", lake_dir=tmp_path / "data" / "lake")
        ended = old.run("lake", "status")
        assert ended.code == 1 and "another journal" in ended.out
    assert before["first"] == 1


def test_a_lake_in_an_object_store_grows_whichever_process_is_killed(tmp_path: Path) -> None:
    with object_store() as variables:
        location = f"s3://{BUCKET}/lake"
        settings = {"lake.dir": location, "lake.segment_s": 0.2}
        operator = Operator(tmp_path, server_data="data", lake_dir=location)
        operator.environment |= variables
        with Server(tmp_path / "data", settings) as server:
            for turn in range(4):
                with server.client() as client:
                    for n in range(20):
                        client.push(f"job-{turn}-{n:04d}")
                wait_until(lambda: exporters(server), "the exporter runs", IDLE_PATIENCE_S)
                if turn == 2:
                    server.restart()
                else:
                    for pid in exporters(server):
                        with suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
            status = caught_up(operator)
            assert (status["sound"], status["location"]) == (True, location)
            assert server.stop() == 0
        jids = [row["jid"] for row in rows_in(location).values() if row["event"] == "pushed"]
        assert sorted(jids) == [f"job-{turn}-{n:04d}" for turn in range(4) for n in range(20)]
        assert not (tmp_path / "data" / "lake").exists()
        assert "sound: " in operator.output("check")


def exporters(server: Server) -> list[int]:
    return [pid for pid, _ in server.children() if b"lake.exporter" in Path(f"/proc/{pid}/cmdline").read_bytes()]
