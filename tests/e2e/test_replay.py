"""`crossdock job replay`: a real server, its lake, and the real command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.client.bulk import CALL_BYTES, Loader, Where, calls
from crossdock.lake.segments import look
from tests.support.command_line import Operator
from tests.support.patience import IDLE_PATIENCE_S, wait_until
from tests.support.server import Server

pytestmark = pytest.mark.slow  # the lake's process, and a command line that loads Arrow

SETTINGS = {"lake.segment_s": 0.2}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", SETTINGS, protocols=("faktory", "redis")) as running:
        yield running


@pytest.fixture
def operator(server: Server, tmp_path: Path) -> Operator:
    return Operator(tmp_path, server_data="data", listen_redis="127.0.0.1:0")


def worked(server: Server, count: int) -> None:
    """Jobs that are dead, and history that knows it."""
    with server.client(wid="w") as client:
        for n in range(count):
            client.push(f"first-{n:03d}", "mail", [n], retry=-1)
            assert client.fetch("mail") is not None
            client.fail(f"first-{n:03d}", "no")
    known(server, 3 * count)


def known(server: Server, rows: int) -> None:
    lake = server.data / "lake"
    wait_until(lambda: sum(each.rows for each in look(lake).segments) >= rows, "the lake", IDLE_PATIENCE_S)


def ready(operator: Operator) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = operator.json("job", "list", "--state", "ready", "--limit", "200")["jobs"]
    return rows


def test_dead_jobs_once_more_and_once_only(server: Server, operator: Operator) -> None:
    worked(server, 12)
    asked = operator.run("job", "replay", "--queue", "mail", "--outcome", "dead", says="n\n")
    assert asked.code == 1
    assert "12 jobs to replay, by history up to" in asked.err
    assert "first-000  mail  " in asked.err
    assert "nothing was changed" in asked.err
    done = operator.json("job", "replay", "--queue", "mail", "--outcome", "dead", "--id", "again", "--yes")
    assert done == {"matched": 12, "id": "again", "new": 12, "known": 0}
    jobs = ready(operator)
    assert len({job["jid"] for job in jobs}) == 12
    shown = operator.json("job", "show", str(jobs[0]["number"]))["job"]
    assert (shown["replayed_from"], shown["payload"], shown["policy"]["max_failures"]) == ("first-000", [0], -1)
    assert "replay of  first-000" in operator.tell("job", "show", str(jobs[0]["number"]))
    again = operator.run("job", "replay", "--queue", "mail", "--outcome", "dead", "--id", "again", "--yes")
    assert (again.code, "replay again is complete: it pushed 12 jobs before" in again.err) == (1, True)
    assert len(ready(operator)) == 12


def test_another_queue_and_only_a_look(server: Server, operator: Operator) -> None:
    worked(server, 3)
    assert operator.json("job", "replay", "--since", "1h", "--dry")["matched"] == 3
    assert ready(operator) == []
    words = ("job", "replay", "--jid", "first-001", "--to", "elsewhere", "--yes")
    assert operator.tell(*words).startswith("replayed 1 job as replay-")
    assert [(job["queue"], job["payload"]) for job in ready(operator)] == [("elsewhere", "[1]")]
    assert operator.json("job", "replay", "--jid", "nobody")["matched"] == 0


def test_five_hundred_jobs_of_forty_kilobytes(server: Server, operator: Operator) -> None:
    rows = [(f"large-{n}", "mail", "k", f'["{"x" * 40_000}"]') for n in range(500)]
    rows.append(("larger than a call", "mail", "k", f'["{"y" * CALL_BYTES}"]'))
    with Loader(Where("127.0.0.1", server.ports["redis"]), "first") as loader:
        for _, call in calls(rows, 500):
            loader.put(call)
        loader.finish()
    known(server, len(rows))
    done = operator.json("job", "replay", "--queue", "mail", "--id", "again", "--yes", "--to", "elsewhere")
    assert done == {"matched": 501, "id": "again", "new": 501, "known": 0}
    waiting = {queue["queue"]: queue["ready"] for queue in operator.json("queue", "list")["queues"]}
    assert waiting == {"mail": 501, "elsewhere": 501}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "choose jobs: "),
        (("--since", "soon"), "'soon' is no time"),
        (("--outcome", "lucky"), "'lucky' is not one of"),
        (("--where", "1=1"), "No such option"),
        (("--queue", "", "--outcome", "dead"), "'--queue': it is empty"),
    ],
)
def test_wrong_words(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    ended = Operator(tmp_path, server_data="data").run("job", "replay", *words)
    assert (ended.code, why in ended.err) == (2, True), ended
