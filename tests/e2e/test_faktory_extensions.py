"""The extensions of the Faktory protocol on sockets of a real server, over kills, restarts and compactions."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Operator
from tests.support.faktory_client import Client, job
from tests.support.patience import IDLE_PATIENCE_S, wait_until
from tests.support.server import Server
from tests.support.workq_peer import WorkqPeer

pytestmark = pytest.mark.clients

JID = "61a444a0-6128-41c0-8078-cc757d3bd2d8"
EVERY_HOUR = {"name": "hourly", "cron": "0 * * * *", "job": {"jobtype": "sweep", "args": []}}


def ask(client: Client, verb: str, body: object) -> Any:
    return json.loads(client.call(verb, body))


def fetch(client: Client, count: int = 1, wait_s: float = 0, **more: Any) -> list[str]:
    found = ask(client, "FETCHB", {"queues": ["default"], "count": count, "wait_s": wait_s} | more)
    return [each["jid"] for each in found]


def record_everything(client: Client) -> None:
    """One record of each kind."""
    client.push(JID, once=True, keep_result_s=3_600, tags=["red"])
    assert fetch(client) == [JID]
    assert ask(client, "ACKB", [{"jid": JID, "result": {"a": 1}}]) == {"refused": {}}
    client.push("cancelled", keep_result_s=3_600)
    ask(client, "CANCEL", {"jids": ["cancelled"], "reason": "not needed"})
    client.push("snoozed-0")
    client.push("blocked-0", depends_on=["snoozed-0"])
    assert fetch(client) == ["snoozed-0"]
    client.call("SNOOZE", {"jid": "snoozed-0", "delay_s": 3_600})
    client.call("SCHEDULE SYNC", {"app": "shop", "schedules": [EVERY_HOUR]})
    client.push("leased-00")
    assert fetch(client, lease_s=5) == ["leased-00"]
    assert ask(client, "EXTEND", {"jids": ["leased-00"], "lease_s": 3_600}) == {"lost": []}


def check_everything(client: Client) -> None:
    before = client.info()["faktory"]["total_enqueued"]
    client.push(JID, once=True)
    assert client.info()["faktory"]["total_enqueued"] == before
    result = ask(client, "RESULT", {"jid": JID})
    assert (result["state"], result["result"], result["attempts"]) == ("done", {"a": 1}, 1)
    assert ask(client, "RESULT", {"jid": "cancelled"})["error"]["message"] == "not needed"
    assert ask(client, "RESULT", {"jid": "snoozed-0"})["state"] == "waiting"
    assert ask(client, "RESULT", {"jid": "blocked-0"})["state"] == "waiting"
    assert [each["name"] for each in ask(client, "SCHEDULE LIST", {"app": "shop"})] == ["hourly"]
    assert ask(client, "EXTEND", {"jids": ["leased-00"], "lease_s": 3_600}) == {"lost": []}
    sizes = client.sizes()
    assert (sizes["scheduled"], sizes["working"], sizes["retries"]) == (1, 1, 0)


@pytest.mark.parametrize("fault", ["", "frequent-compaction"], ids=["journal", "snapshot"])
def test_records_survive_a_killed_server(tmp_path: Path, fault: str) -> None:
    data = tmp_path / "data"
    with Server(data, fault=fault) as server:
        with server.client(extensions=True, wid="w") as client:
            record_everything(client)
            check_everything(client)
            if fault:
                for number in range(1_100):  # the journal is compacted after a thousand events
                    client.ask("TRACK SET", {"jid": "tracked", "percent": number % 100})
                for _ in range(1_100):
                    client.read()
                wait_until(lambda: any(data.glob("snapshot-*[0-9]")), "a compaction", IDLE_PATIENCE_S)
        for _ in range(2):
            server.kill()
            server.start()
            with server.client(extensions=True, wid="w") as client:
                check_everything(client)


def test_requests_that_wait(tmp_path: Path) -> None:
    with (
        Server(tmp_path / "data") as server,
        server.client(extensions=True) as app,
        server.client(extensions=True) as follower,
        server.client(extensions=True, wid="w") as worker,
    ):
        worker.ask("FETCHB", {"queues": ["default"], "count": 10, "wait_s": 60})
        app.push(JID, keep_result_s=60, custom={"track": 1})
        assert [each["jid"] for each in json.loads(worker.read())] == [JID]
        app.ask("RESULT", {"jid": JID, "wait_s": 60})
        seen = ask(follower, "TRACK WAIT", {"jid": JID})
        assert seen["state"] == "working"
        follower.ask("TRACK WAIT", {"jid": JID, "after": seen["updated_at"], "wait_s": 60})
        worker.call("TRACK SET", {"jid": JID, "percent": 40, "desc": "half"})
        seen = json.loads(follower.read())
        assert (seen["percent"], seen["desc"]) == (40, "half")
        follower.ask("TRACK WAIT", {"jid": JID, "after": seen["updated_at"], "wait_s": 60})
        worker.call("ACK", {"jid": JID, "result": 42})
        assert json.loads(follower.read())["state"] == "success"
        assert json.loads(app.read()) == {"jid": JID, "state": "done", "result": 42, "attempts": 1}


def test_jobs_of_a_reply_that_nobody_reads_come_back(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server, server.client(extensions=True) as other:
        with server.client(extensions=True) as gone:
            gone.ask("FETCHB", {"queues": ["default"], "count": 10, "wait_s": 60})
        other.push_many([job("first-00"), job("second-0")])
        found: list[str] = []

        def all_came() -> bool:
            found.extend(fetch(other, 10, 1))
            return sorted(found) == ["first-00", "second-0"]

        wait_until(all_came, "the jobs are leased by the other connection")


def test_the_wait_of_a_stopping_server_ends(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server, server.client(extensions=True) as client:
        client.ask("FETCHB", {"queues": ["default"], "wait_s": 60})
        began = time.monotonic()
        assert server.stop() == 0
        assert client.read_end().startswith(b"$2\r\n[]\r\n")
        assert time.monotonic() - began < 60


def test_operators_and_workq_see_it(tmp_path: Path) -> None:
    with Server(tmp_path / "data", protocols=("faktory", "workq")) as server:
        operator = Operator.at(tmp_path, server.ports)
        with server.client(extensions=True, wid="w") as client, WorkqPeer(server.ports["workq"]) as workq:
            record_everything(client)
            workq.send(f"result {JID} 0")
            workq.expect("+OK 1", f"{JID} 1 7", '{"a":1}')
        [row] = operator.json("schedule", "list", "--source", "app")["schedules"]
        assert (row["name"], row["source"], row["schedule"]) == ("shop:hourly", "app", "0 * * * *")
        assert "shop:hourly" in operator.output("schedule", "list")
        operator.output("schedule", "remove", "shop:hourly")
        assert operator.json("schedule", "list")["schedules"] == []
        assert operator.json("job", "show", JID)["job"]["state"] == "complete"
