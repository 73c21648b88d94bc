"""The lake of a real server: jobs of all doors, worked through each other, are rows; and what the operator sees."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.reader import SqliteReader
from tests.lake.ledger import booked, open_leases, same_pages
from tests.lake.source import Row, rows_in
from tests.support.command_line import Operator
from tests.support.patience import IDLE_PATIENCE_S
from tests.support.peers import LISTENING, PEERS, reach
from tests.support.server import Server

#: The lake's process takes what time others leave.
pytestmark = pytest.mark.slow

#: A segment a fifth of a second.
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
    """What `status` tells once all of the journal is in the lake."""
    give_up = time.monotonic() + IDLE_PATIENCE_S
    while True:
        told = json.loads(operator.run("lake", "status", "--json").out)
        if told["last"] and not told["lag"]["batches"]:
            return told
        assert time.monotonic() < give_up, told
        time.sleep(0.5)


def at_rest(server: Server, operator: Operator) -> Any:
    """What `status` tells of a stopped server whose whole journal is in the lake. A timer may have written a batch
    between the last look and the end, which the lake has only after the next start."""
    while True:
        caught_up(operator)
        assert server.stop() == 0
        told = json.loads(operator.run("lake", "status", "--json").out)
        if not told["lag"]["batches"]:
            return told
        server.start()


def work(server: Server) -> None:
    """Each door pushes, and the next one works it; of what each pushed one fails and one is never settled."""
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
    told = at_rest(server, operator)
    assert (told["sound"], told["faults"], told["gaps"], told["on"]) == (True, [], [], True)
    rows = [row for _, row in sorted(rows_in(tmp_path / "data" / "lake").items())]
    protocols = set(PEERS)
    assert {row["origin"] for row in rows if row["event"] == "pushed"} == protocols
    pairs = {(row["origin"], row["lease_via"]) for row in rows if row["outcome"] == "succeeded"}
    assert {origin for origin, _ in pairs} == {via for _, via in pairs} == protocols
    assert all(origin != via for origin, via in pairs), "each was worked through another door"
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


def test_lake_status_reports_what_is_wrong(server: Server, operator: Operator, tmp_path: Path) -> None:
    work(server)
    told = at_rest(server, operator)
    text = operator.tell("lake", "status")
    assert f"{told['rows']:,} rows" in text and "nothing: all of the journal is in it" in text
    warnings = [line for line in operator.run("doctor").out.splitlines() if line.startswith("warning: ")]
    assert not any("lake" in warning for warning in warnings)
    assert "sound: " in operator.tell("check")
    segment = min((tmp_path / "data" / "lake").glob("events/*/*.parquet"))
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-9])
    for verb in (("lake", "status"), ("doctor",), ("check",)):
        ended = operator.run(*verb)
        assert ended.code == 1
        assert f"{segment.name} is set aside: it is torn" in ended.out
    segment.write_bytes(whole)
    stray = segment.with_name("copy.parquet")
    stray.write_bytes(whole)
    assert "foreign" in operator.run("lake", "status").out
    stray.unlink()
    (tmp_path / "data" / "lake" / "_done.json").write_bytes(b"{")
    for verb in (("lake", "status"), ("doctor",), ("check",)):
        ended = operator.run(*verb)
        assert ended.code == 1 and "_done.json cannot be read" in ended.out + ended.err


def test_a_flush_keeps_the_past_and_begins_a_new_flush_epoch(
    server: Server, operator: Operator, tmp_path: Path
) -> None:
    work(server)
    with server.client() as client:
        client.call("FLUSH")
        client.push("job-after-flush")
    at_rest(server, operator)
    rows = [row for _, row in sorted(rows_in(tmp_path / "data" / "lake").items())]
    (flushed,) = [row for row in rows if row["event"] == "flushed"]
    assert {row["flush_epoch"] for row in rows if row["seq"] <= flushed["seq"]} == {0}
    after = [row for row in rows if row["seq"] > flushed["seq"]]
    assert [row["jid"] for row in after if row["event"] == "pushed"] == ["job-after-flush"]
    assert {row["flush_epoch"] for row in after} == {1}
    assert same_pages(recover(SqliteReader(tmp_path / "data")).state.stats, booked(rows))


def test_a_server_with_the_lake_off_has_none(tmp_path: Path) -> None:
    with Server(tmp_path / "data", {"lake.on": "false", "lake.segment_s": 0.05}) as server:
        with server.client() as client:
            client.push("some-job")
        server.restart()
        with server.client() as client:
            client.push("some-other-job")
        assert not (tmp_path / "data" / "lake").exists()
        told = Operator(tmp_path, server_data="data", lake_on="false").tell("lake", "status")
        assert "lake.on is false" in told and "nothing yet" in told


def test_a_backup_goes_without_it_and_the_restored_server_begins_its_own(
    server: Server, operator: Operator, tmp_path: Path
) -> None:
    work(server)
    before = caught_up(operator)
    with server.client() as client:
        client.push("job-not-in-the-lake")
        operator.tell("backup", "copy")
        client.push("job-after-the-backup")
    caught_up(operator)
    assert server.stop() == 0
    operator.tell("restore", "copy", "--data", "new")
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
