"""The Masenko protocol of a real server: raw bytes over a socket, and our client."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.client.admin import AdminClient
from crossdock.client.errors import Refused
from crossdock.client.masenko import MasenkoClient
from crossdock.settings.schema import MasenkoSettings
from tests.support.command_line import Operator
from tests.support.masenko_raw import Raw, ok_body
from tests.support.patience import PATIENCE_S, wait_until
from tests.support.server import Server

PROTOCOLS = ("faktory", "masenko")
IDLE_TIMEOUT_S = 1.5
DEFAULT_S = MasenkoSettings().heartbeat


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", protocols=PROTOCOLS) as server:
        yield server


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Server]:
    """A server with a short idle timeout."""
    with Server(tmp_path / "data", {"masenko.heartbeat": IDLE_TIMEOUT_S}, protocols=PROTOCOLS) as server:
        yield server


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """One server for all refused commands."""
    folder = tmp_path_factory.mktemp("refused")
    with Server(folder / "data", protocols=PROTOCOLS) as running:
        yield Operator.at(folder, running.ports)


@pytest.fixture
def raw(server: Server) -> Iterator[Raw]:
    peer = Raw(server)
    yield peer
    peer.close()


def test_a_session_of_all_commands(server: Server, raw: Raw) -> None:
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


def test_the_idle_timeout_closes_the_connection_and_fails_its_task(strict: Server) -> None:
    raw = Raw(strict)
    began = time.monotonic()
    raw.send('PUSH {"name":"a"}', "FETCH")
    assert ok_body(raw.line()) == {"id": 1}
    assert ok_body(raw.line())["name"] == "a"
    assert raw.line() == 'ERR {"msg":"no heartbeat"}\n'
    assert raw.line() == ""
    assert IDLE_TIMEOUT_S <= time.monotonic() - began < DEFAULT_S, "closed by the setting and not earlier"
    raw.close()
    with AdminClient(strict.data) as control:
        wait_until(lambda: control.job(1)["job"]["failures"] == 1, "the failure of the task")


def test_pings_keep_the_connection_open(strict: Server) -> None:
    """A busy machine may delay the pings of this test for too long.

    tests/unit/protocols/masenko/test_connection.py checks that a ping sent in time always counts, even if the server
    reads it late.
    """
    raw, longest, last = Raw(strict), 0.0, time.monotonic()
    for _ in range(5):
        time.sleep(0.5)
        said = raw.ask("PING")
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
        assert said == "PONG {}\n" or longest >= IDLE_TIMEOUT_S
        if longest >= IDLE_TIMEOUT_S:
            break
    raw.close()


def test_a_client_that_disconnects_during_a_wait_takes_no_job(server: Server, raw: Raw) -> None:
    gone = Raw(server)
    gone.send("PING", 'FETCH {"timeout":"40s"}')
    assert gone.line() == "PONG {}\n"
    with AdminClient(server.data) as control:
        there = control.ask("status")["status"]["connections"]  # requested after the fetch, which is therefore waiting
        gone.close()
        wait_until(lambda: control.ask("status")["status"]["connections"] < there, "the end of the connection")
    raw.ask('PUSH {"name":"a"}')
    assert ok_body(raw.ask("FETCH")) == {"id": 1, "queue": "default", "name": "a"}


def test_a_disconnect_fails_the_tasks_of_the_connection(server: Server, raw: Raw) -> None:
    other = Raw(server)
    raw.ask('PUSH {"name":"a","retry":0,"deadqueue":"dead"}')
    other.ask("FETCH")
    other.close()
    assert ok_body(raw.ask('FETCH {"queues":["dead"],"timeout":"40s"}'))["name"] == "a"


def test_20_000_pushes_in_one_transaction(raw: Raw) -> None:
    raw.send("ATOMIC", *['PUSH {"name":"a"}'] * 20_000, "DONE")
    assert ok_body(raw.line())["ids"] == list(range(1, 20_001))


def test_a_restart_keeps_all_jobs_and_releases_leases(server: Server, raw: Raw) -> None:
    raw.ask('PUSH {"name":"a"}')
    raw.ask('PUSH {"name":"b","blocked_by":[1]}')
    raw.ask("FETCH")
    server.restart()
    again = Raw(server)
    assert ok_body(again.ask("FETCH")) == {"id": 1, "queue": "default", "name": "a"}
    assert again.ask('ACK {"id":1}') == "OK {}\n"
    assert ok_body(again.ask("FETCH"))["name"] == "b"
    # SIGTERM: the client receives an error and no attempt is counted.
    again.send("PING", 'FETCH {"timeout":"40s"}')
    assert again.line() == "PONG {}\n"  # sent with the fetch, so the fetch was read
    assert server.stop() == 0
    assert [again.line(), again.line()] == ["EMPTY {}\n", 'ERR {"msg":"shutdown in progress"}\n']
    again.close()
    server.start()
    last = Raw(server)
    assert ok_body(last.ask("FETCH")) == {"id": 2, "queue": "default", "name": "b"}
    last.close()


def test_our_client(server: Server) -> None:
    with MasenkoClient("127.0.0.1", server.ports["masenko"]) as client:
        assert client.push({"name": "a", "queue": "q", "payload": [1.5]}) == 1
        job = client.take(["q"], 1.0)
        assert job == ("1", "q", "a", b"[1.5]")
        client.failed(job, "why")
        job = client.take(["q"], PATIENCE_S)
        assert job is not None and job.ident == "1"
        client.done(job)
        assert client.take(["q"], 0.0) is None
        with pytest.raises(Refused, match="task not acquired"):
            client.done(job)
        with pytest.raises(Refused, match="invalid task name"):
            client.push({"name": ""})


def test_the_session_in_the_reference_works(raw: Raw) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "masenko.md").read_text("utf-8")
    lines = page.partition("$ nc localhost 12345\n")[2].partition("```")[0].splitlines()
    assert len(lines) == 10
    for line in lines:
        if line.startswith("OK "):
            assert raw.line() == line + "\n"
        else:
            raw.send(line.replace("5s", "1s"))


class TestCommandLine:
    @pytest.fixture
    def operator(self, server: Server, tmp_path: Path) -> Operator:
        return Operator.at(tmp_path, server.ports)

    def test_push_and_take(self, operator: Operator) -> None:
        said = operator.output("push", "mail", "welcome", '{"to": [42, 1.50]}', "--via", "masenko", "--retry", "3")
        assert said == "1\n"
        found = operator.json("job", "show", "1")["job"]
        assert (found["queue"], found["kind"], found["policy"]["max_failures"]) == ("mail", "welcome", 3)
        assert operator.json("push", "mail", "bare", "--via", "masenko") == {"id": 2}
        shown = operator.output("job", "take", "mail", "--via", "masenko", "--done")
        assert shown == 'id       1\nqueue    mail\nkind     welcome\npayload  {"to":[42,1.50]}\ndone\n'
        assert operator.json("job", "take", "mail", "--via", "masenko", "--fail", "why")["settled"] == "failed"
        (row,) = operator.json("job", "list")["jobs"]
        assert (row["number"], row["failures"]) == (2, 1)  # it waits a second for its retry
        ended = operator.run("job", "take", "nothing-there", "--via", "masenko", "--done", "--wait", "0s")
        assert ended.code == 1

    def test_a_task_that_is_left_counts_as_failed(self, operator: Operator) -> None:
        operator.output("push", "mail", "welcome", "--via", "masenko")
        said = operator.output("job", "take", "mail", "--via", "masenko", "--leave")
        assert said.endswith("left: it counts as failed, because its connection has ended\n")
        (row,) = operator.json("job", "list")["jobs"]
        assert row["failures"] == 1

    def test_push_with_a_delay(self, operator: Operator) -> None:
        operator.output("push", "mail", "welcome", "--via", "masenko", "--at", "10m")
        (row,) = operator.json("job", "list", "--state", "scheduled")["jobs"]
        assert row["kind"] == "welcome"

    def test_a_lease_without_an_end_is_shown(self, operator: Operator, raw: Raw) -> None:
        raw.ask('PUSH {"name":"a","queue":"odd \\"name\\""}')
        raw.ask('FETCH {"queues":["odd \\"name\\""]}')
        for look in (["job", "show", "1"], ["queue", "list"], ["job", "list", "--state", "leased"]):
            shown = operator.output(*look)
            assert raw.ask("PING") == "PONG {}\n"
            assert "odd" in shown

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["push", "mail", "--via", "masenko"], "through Masenko give QUEUE NAME and maybe PAYLOAD_JSON"),
            (["push", "mail", "a", "{x", "--via", "masenko"], "PAYLOAD_JSON must be a JSON value, such as"),
            (["push", "mail", "!", "--via", "masenko"], 'invalid task name "!"'),
            (["push", "mail", "a", "--via", "masenko", "--retry", "256"], "cannot unmarshal payload"),
            (["push", "mail", "a", "--via", "masenko", "--priority", "3"], "masenko has no --priority"),
            (["push", "mail", "a", "--via", "masenko", "--reserve-for", "3"], "masenko has no --reserve-for"),
            (
                ["job", "take", "a", "--via", "masenko", "--done", "--listen", "masenko=off"],
                "listen.masenko is off",
            ),
        ],
    )
    def test_an_error_is_reported_in_one_sentence(self, refused: Operator, arguments: list[str], sentence: str) -> None:
        ended = refused.run(*arguments)
        assert ended.code != 0
        assert sentence in ended.err
