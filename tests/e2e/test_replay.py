"""`crossdock job replay`: a real server, its lake, and the real command line."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from crossdock.cli.commands.replay import _row
from crossdock.client.base import connect
from crossdock.client.bulk import CALL_BYTES, Loader, Where, calls
from crossdock.lake.query import Filter, choose, jobs
from tests.support.command_line import Operator
from tests.support.faktory_client import Client
from tests.support.lake_load import row_count
from tests.support.patience import IDLE_PATIENCE_S, PATIENCE_S, wait_until
from tests.support.peer import Got
from tests.support.qless_peer import ViaQless
from tests.support.server import Server

pytestmark = pytest.mark.slow  # starts the lake's process and a command line that loads Arrow

SETTINGS = {"lake.segment_s": 0.2}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", SETTINGS, protocols=("faktory", "redis")) as running:
        yield running


@pytest.fixture
def operator(server: Server, tmp_path: Path) -> Operator:
    return Operator(tmp_path, server_data="data", listen_redis="127.0.0.1:0")


def push_dead_jobs(server: Server, count: int) -> None:
    """Create dead jobs and wait until they are in the history."""
    with server.client(wid="w") as client:
        for n in range(count):
            client.push(f"first-{n:03d}", "mail", [n], retry=-1)
            assert client.fetch("mail") is not None
            client.fail(f"first-{n:03d}", "no")
    wait_for_rows(server, 3 * count)


def wait_for_rows(server: Server, rows: int) -> None:
    lake = server.data / "lake"
    wait_until(lambda: row_count(lake) >= rows, "the lake", IDLE_PATIENCE_S)


def ready(operator: Operator) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = operator.json("job", "list", "--state", "ready", "--limit", "200")["jobs"]
    return rows


def test_dead_jobs_are_replayed_once_only(server: Server, operator: Operator) -> None:
    push_dead_jobs(server, 12)
    asked = operator.run("job", "replay", "--queue", "mail", "--outcome", "dead", stdin="n\n")
    assert asked.code == 1
    assert "12 jobs to replay, history up to" in asked.err
    assert "first-000  mail  " in asked.err
    assert "nothing was changed" in asked.err
    done = operator.json("job", "replay", "--queue", "mail", "--outcome", "dead", "--id", "again", "--yes")
    assert done == told(12, run="again", new=12)
    jobs = ready(operator)
    assert len({job["jid"] for job in jobs}) == 12
    shown = operator.json("job", "show", str(jobs[0]["number"]))["job"]
    assert (shown["replayed_from"], shown["payload"], shown["policy"]["max_failures"]) == ("first-000", [0], -1)
    assert "replay of  first-000" in operator.output("job", "show", str(jobs[0]["number"]))
    again = operator.run("job", "replay", "--queue", "mail", "--outcome", "dead", "--id", "again", "--yes")
    assert (again.code, "replay again is complete: it pushed 12 jobs before" in again.err) == (1, True)
    assert len(ready(operator)) == 12


def test_replay_to_another_queue_and_dry_run(server: Server, operator: Operator) -> None:
    push_dead_jobs(server, 3)
    assert operator.json("job", "replay", "--since", "1h", "--dry")["matched"] == 3
    assert ready(operator) == []
    arguments = ("job", "replay", "--jid", "first-001", "--to", "elsewhere", "--yes")
    assert operator.output(*arguments).startswith("replayed 1 job as replay-")
    assert [(job["queue"], job["payload"]) for job in ready(operator)] == [("elsewhere", "[1]")]
    assert operator.json("job", "replay", "--jid", "missing")["matched"] == 0


def test_large_jobs_are_replayed(server: Server, operator: Operator) -> None:
    rows = [(f"large-{n}", "mail", "k", f'["{"x" * 40_000}"]') for n in range(500)]
    rows.append(("larger than a call", "mail", "k", f'["{"y" * CALL_BYTES}"]'))
    with Loader(Where("127.0.0.1", server.ports["redis"]), "first") as loader:
        for _, call in calls(rows, 500):
            loader.put(call)
        loader.finish()
    wait_for_rows(server, len(rows))
    words = ("job", "replay", "--queue", "mail", "--id", "again", "--yes", "--to", "elsewhere")
    assert operator.json(*words) == told(0, alive=501)
    assert operator.json(*words, "--include", "alive") == told(501, run="again", new=501)
    waiting = {queue["queue"]: queue["ready"] for queue in operator.json("queue", "list")["queues"]}
    assert waiting == {"mail": 501, "elsewhere": 501}


def test_jobs_that_succeeded_since_or_are_alive_are_left_out(server: Server, operator: Operator) -> None:
    """Jobs of Faktory and qless: some fail and then succeed, some are retrying, some die, one of them is retried."""
    qless = ViaQless(connect("Redis", "127.0.0.1", server.ports["redis"], "", PATIENCE_S), "q")
    with closing(qless), server.client(wid="w") as client:
        for n in range(20):
            client.push(f"faktory-{n:03d}", "mail", [n], retry=3 if n < 15 else -1)
        for _ in range(20):
            client.fail(fetch(client), "no")
        for n in range(10):
            qless.push("mail", {"n": n}, ident=f"qless-{n:03d}", retry=1)
        for n, jid in enumerate([fetch(qless) for _ in range(10)]):
            if n < 7:
                assert qless.fail(jid)
            else:
                qless.call("fail", jid, qless.name, "group", "no")
        retried = operator.json("job", "retry", "faktory-000", "faktory-001", "faktory-002", "faktory-019")
        assert retried["done"] == 4
        # 11 jobs are ready. Workers of both protocols take some, of either protocol.
        for _ in range(4):
            client.ack(fetch(client))
            assert qless.succeed(fetch(qless))
    wait_until_current(operator)
    words = ("job", "replay", "--outcome", "failed", "--queue", "mail")
    asked = operator.run(*words, "--dry")
    assert "7 jobs to replay" in asked.err
    assert "23 left out: 8 have succeeded since, 15 are still alive (see --include)" in asked.err
    assert operator.json(*words, "--id", "one", "--yes", "--to", "again") == told(7, 8, 15, run="one", new=7)
    wait_until_current(operator)
    assert operator.json(*words, "--id", "two", "--yes") == told(0, 8, 15, replayed=7)
    assert operator.json(*words, "--include", "succeeded", "--include", "alive", "--id", "x", "--dry") == told(
        23, replayed=7, run="x"
    )
    dead = operator.json("job", "replay", "--outcome", "dead", "--queue", "mail", "--dry")["left_out"]
    assert (dead["replayed"], dead["alive"] + dead["succeeded"]) == (7, 1)
    assert len([job for job in ready(operator) if job["queue"] == "again"]) == 7


def test_the_server_is_asked_which_jobs_are_alive(server: Server, operator: Operator) -> None:
    """The lake does not have the newest events: its process is stopped."""
    push_dead_jobs(server, 4)
    with stopped(server), server.client(wid="w") as client:
        assert operator.json("job", "retry", "first-000", "first-001")["done"] == 2
        client.ack(fetch(client))
        words = ("job", "replay", "--outcome", "dead", "--queue", "mail", "--id", "x", "--dry")
        assert operator.json(*words) == told(2, alive=1, unclear=1, run="x")


def test_an_interrupted_replay_does_not_take_its_own_jobs_for_old_ones(server: Server, operator: Operator) -> None:
    push_dead_jobs(server, 6)
    chosen = choose(server.data / "lake", Filter(queue="mail"))
    with Loader(Where("127.0.0.1", server.ports["redis"]), "halves") as loader:
        for _, call in calls([_row(past, "halves", chosen.lake, "") for past in jobs(chosen, 1)], 1):
            loader.put(call)
        loader.drain()
    with server.client(wid="w") as client:
        client.ack(fetch(client))
    wait_until_current(operator)
    words = ("job", "replay", "--queue", "mail", "--yes")
    assert operator.json(*words, "--id", "other", "--dry")["matched"] == 7
    assert operator.json(*words, "--id", "halves") == told(6, run="halves", new=6, known=1)


def told(
    matched: int,
    succeeded: int = 0,
    alive: int = 0,
    replayed: int = 0,
    unclear: int = 0,
    run: str | None = None,
    new: int = 0,
    known: int = 0,
) -> dict[str, object]:
    """The output of a replay."""
    left_out = {"succeeded": succeeded, "alive": alive, "replayed": replayed, "unclear": unclear}
    skipped = {"unknown": 0, "no_payload": 0}
    return {"matched": matched, "left_out": left_out, "skipped": skipped, "id": run, "new": new, "known": known}


def fetch(worker: Client | ViaQless) -> str:
    """The jid of the next job."""
    got = worker.fetch("mail")
    assert got is not None
    return got.ident if isinstance(got, Got) else str(got["jid"])


def wait_until_current(operator: Operator) -> None:
    """Wait until all events are in the lake."""
    wait_until(lambda: operator.json("lake", "status")["lag"]["entries"] == 0, "the lake", IDLE_PATIENCE_S)


@contextmanager
def stopped(server: Server) -> Iterator[None]:
    """The lake's process does not run meanwhile."""
    pids = [pid for pid, _ in server.children()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "choose jobs: "),
        (("--since", "soon"), "'soon' is not a time"),
        (("--outcome", "lucky"), "'lucky' is not one of"),
        (("--where", "1=1"), "No such option"),
        (("--queue", "", "--outcome", "dead"), "'--queue': it is empty"),
    ],
)
def test_invalid_arguments_are_refused(tmp_path: Path, arguments: tuple[str, ...], why: str) -> None:
    ended = Operator(tmp_path, server_data="data").run("job", "replay", *arguments)
    assert (ended.code, why in ended.err) == (2, True), ended
