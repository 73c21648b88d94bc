"""The Masenko door of a real server: over a socket, by raw bytes, by our client, and beside Faktory."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.client.errors import Refused
from crossdock.client.masenko import MasenkoClient
from tests.support.masenko_raw import Raw, told
from tests.support.server import Server

DOORS = ("faktory", "masenko")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", {"masenko.heartbeat": 1.5}, doors=DOORS) as server:
        yield server


@pytest.fixture
def raw(server: Server) -> Iterator[Raw]:
    peer = Raw(server)
    yield peer
    peer.close()


def test_a_conversation(server: Server, raw: Raw) -> None:
    assert raw.ask('PUSH {"name": "first", "queue": "q", "payload": {"a": [1, 2]}}') == 'OK {"id":1}\n'
    assert raw.ask('FETCH {"queues":["q"]}') == 'OK {"id":1,"queue":"q","name":"first","payload":{"a":[1,2]}}\n'
    assert raw.ask("ATOMIC", 'ACK {"id":1}', 'PUSH {"name":"a"}', 'PUSH {"name":"b","blocked_by":[-1]}', "DONE") == (
        'OK {"ids":[2,3]}\n'
    )
    assert raw.ask("INFO") == (
        'OK {"queues":[{"name":"q","ready":0,"delayed":0,"to_ack":0},'
        '{"name":"default","ready":1,"delayed":0,"to_ack":0}]}\n'
    )
    assert raw.ask("QUIT") == "OK {}\n"
    assert raw.line() == ""


def test_silence_ends_it_and_its_task_fails(server: Server, raw: Raw) -> None:
    raw.ask('PUSH {"name":"a"}')
    raw.ask("FETCH")
    began = time.monotonic()
    assert raw.line() == 'ERR {"msg":"no heartbeat"}\n'
    assert raw.line() == ""
    assert 1.4 < time.monotonic() - began < 3.0
    other = Raw(server)
    assert told(other.ask('FETCH {"timeout":"1.5s"}'))["failures"] == 1
    other.close()


def test_pings_keep_it(raw: Raw) -> None:
    for _ in range(5):
        time.sleep(0.5)
        assert raw.ask("PING") == "PONG {}\n"


def test_one_that_vanishes_while_it_waits(server: Server, raw: Raw) -> None:
    gone = Raw(server)
    gone.send('FETCH {"timeout":"1.5s"}')
    time.sleep(0.1)
    gone.close()
    time.sleep(0.1)
    raw.ask('PUSH {"name":"a"}')
    assert told(raw.ask("FETCH")) == {"id": 1, "queue": "default", "name": "a"}


def test_a_disconnect_fails_what_it_held(server: Server, raw: Raw) -> None:
    other = Raw(server)
    raw.ask('PUSH {"name":"a","retry":0,"deadqueue":"dead"}')
    other.ask("FETCH")
    other.close()
    assert told(raw.ask('FETCH {"queues":["dead"],"timeout":"1s"}'))["name"] == "a"


def test_20_000_pushes_in_one_transaction(raw: Raw) -> None:
    raw.send("ATOMIC", *['PUSH {"name":"a"}'] * 20_000, "DONE")
    assert told(raw.line())["ids"] == list(range(1, 20_001))


def test_crossing_over(server: Server, raw: Raw) -> None:
    with server.client() as faktory:
        faktory.push("job-000001", queue="q", args=[1, "<b>"])
        assert told(raw.ask('FETCH {"queues":["q"]}')) == {
            "id": 1, "queue": "q", "name": "test", "payload": [1, "<b>"],
        }  # fmt: skip
        assert raw.ask('ACK {"id":1}') == "OK {}\n"
        raw.ask('PUSH {"name":"m","queue":"q","payload":{"a":1}}')
        job = faktory.fetch("q")
        assert job is not None
        assert (job["jobtype"], job["args"]) == ("m", [{"a": 1}])
        faktory.ack(job["jid"])
    assert '"to_ack":0' in raw.ask("INFO")


def test_a_restart_keeps_all_but_the_leases(server: Server, raw: Raw) -> None:
    raw.ask('PUSH {"name":"a"}')
    raw.ask('PUSH {"name":"b","blocked_by":[1]}')
    raw.ask("FETCH")
    server.restart()
    again = Raw(server)
    assert told(again.ask("FETCH")) == {"id": 1, "queue": "default", "name": "a"}
    assert again.ask('ACK {"id":1}') == "OK {}\n"
    assert told(again.ask("FETCH"))["name"] == "b"
    # SIGTERM: told, and nothing counted.
    again.send('FETCH {"timeout":"1.5s"}')
    assert server.stop() == 0
    assert [again.line(), again.line()] == ["EMPTY {}\n", 'ERR {"msg":"shutdown in progress"}\n']
    again.close()
    server.start()
    last = Raw(server)
    assert told(last.ask("FETCH")) == {"id": 2, "queue": "default", "name": "b"}
    last.close()


def test_our_client(server: Server) -> None:
    with MasenkoClient("127.0.0.1", server.ports["masenko"]) as client:
        assert client.push({"name": "a", "queue": "q", "payload": [1.5]}) == 1
        job = client.take(["q"], 1.0)
        assert job == ("1", "q", "a", b"[1.5]")
        client.failed(job, "why")
        job = client.take(["q"], 3.0)
        assert job is not None and job.ident == "1"
        client.done(job)
        assert client.take(["q"], 0.0) is None
        with pytest.raises(Refused, match="task not acquired"):
            client.done(job)
        with pytest.raises(Refused, match="invalid task name"):
            client.push({"name": ""})
