"""The Workq protocol of a real server: sockets, waits, restarts and the command line."""

import shutil
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import Ended, Operator
from tests.support.patience import PATIENCE_S
from tests.support.server import Server
from tests.support.terminal import Terminal
from tests.support.workq_peer import WorkqPeer

BOTH = ("faktory", "workq")
TTL_S = 3


def ident(number: int) -> str:
    return f"61a444a0-6128-41c0-8078-{number:012d}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", protocols=BOTH) as running:
        yield running


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """One server for all refused commands."""
    folder = tmp_path_factory.mktemp("refused")
    with Server(folder / "data", protocols=BOTH) as running:
        yield Operator.at(folder, running.ports)


@pytest.fixture
def peer(server: Server) -> Iterator[WorkqPeer]:
    with WorkqPeer(server.ports["workq"]) as connected:
        yield connected


@pytest.fixture
def other(server: Server) -> Iterator[WorkqPeer]:
    with WorkqPeer(server.ports["workq"]) as connected:
        yield connected


def test_the_example_of_the_original_document_works(peer: WorkqPeer) -> None:
    one = ident(1)
    peer.send(f"add {one} ping 1000 60000 4 -priority=10 -max-attempts=3 -max-fails=1", "pong", "lease other ping 500")
    peer.expect("+OK", "+OK 1", f"{one} ping 4", "pong")
    peer.send(f"complete {one} 2", "ok", f"complete {one} 2", "ok", f"result {one} 0")
    peer.expect("+OK", "-CLIENT-ERROR Duplicate result", "+OK 1", f"{one} 1 2", "ok")
    peer.send(f"delete {one}", f"delete {one}", "lease ping 20")
    peer.expect("+OK", "-NOT-FOUND", "-TIMEOUT")


def test_a_lease_reply_has_four_fields_if_configured(tmp_path: Path) -> None:
    settings = {"workq.lease_ttr": "true"}
    with Server(tmp_path / "data", settings, protocols=("workq",)) as server, WorkqPeer(server.ports["workq"]) as peer:
        peer.send(f"add {ident(1)} ping 1500 60000 4", "pong", "lease ping 0")
        peer.expect("+OK", "+OK 1", f"{ident(1)} ping 1500 4", "pong")


def test_run_receives_its_result_immediately(peer: WorkqPeer, other: WorkqPeer) -> None:
    """There is no polling: the wait itself would end ten minutes later."""
    other.send("lease ping 600000")
    peer.send(f"run {ident(1)} ping 600000 600000 4", "ping")
    other.expect("+OK 1", f"{ident(1)} ping 4", "ping")
    other.send(f"complete {ident(1)} 4", "pong")
    other.expect("+OK")
    peer.expect("+OK 1", f"{ident(1)} 1 4", "pong")


def test_run_is_answered_when_the_ttr_ends(peer: WorkqPeer, other: WorkqPeer) -> None:
    peer.send(f"run {ident(1)} ping 300 600000 4", "ping")
    began = time.monotonic()
    other.send("lease ping 600000")
    other.expect("+OK 1", f"{ident(1)} ping 4", "ping")
    peer.expect("-TIMEOUT")
    assert time.monotonic() - began >= 0.3
    other.send(f"complete {ident(1)} 0", "")
    other.expect("-NOT-FOUND")


def test_run_of_a_lost_connection_leaves_no_job(server: Server, peer: WorkqPeer) -> None:
    lost = WorkqPeer(server.ports["workq"])
    lost.send(f"run {ident(1)} ping 5000 60000 4", "ping")
    _until(peer, "inspect queue ping", "ready-len 1")
    lost.reset()
    _until(peer, "inspect queue ping", "ready-len 0")
    peer.send(f"inspect job {ident(1)}")
    peer.expect("-NOT-FOUND")


def _until(peer: WorkqPeer, ask: str, line: str) -> None:
    """Send the request until the reply has that line. The first line of a reply is the number of lines that follow."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        peer.send(ask)
        first = peer.line()
        said = [first]
        if first == b"+OK 1":
            said = [peer.line()]
            said += [peer.line() for _ in range(int(said[0].split()[1]))]
        if line.encode() in said:
            return
        assert time.monotonic() < give_up, said
        time.sleep(0.01)


@pytest.mark.parametrize("how", ["reset", "close"])
def test_a_disconnected_client_takes_no_job(server: Server, peer: WorkqPeer, how: str) -> None:
    for _ in range(20):
        lost = WorkqPeer(server.ports["workq"])
        lost.send("inspect queues 0 1", "lease ping 60000")
        assert lost.line().startswith(b"+OK")  # sent after the lease, which is therefore waiting
        if how == "reset":
            lost.reset()
        else:
            lost.socket.close()
    _until(peer, "inspect server", "active-clients 1")
    peer.send(f"add {ident(1)} ping 60000 60000 4", "pong", "lease ping 0")
    peer.expect("+OK", "+OK 1", f"{ident(1)} ping 4", "pong")


def test_a_half_closed_client_receives_its_reply(peer: WorkqPeer) -> None:
    """As with `printf …

    nc -N`.
    """
    peer.send(f"add {ident(1)} q 1000 60000 2", "hi", "inspect queue q", "lease other 60000")
    peer.socket.shutdown(socket.SHUT_WR)
    peer.expect("+OK", "+OK 1", "q 2", "ready-len 1", "scheduled-len 0")
    assert peer.ended()


def test_a_syntax_error_closes_the_connection_after_the_earlier_replies(server: Server, peer: WorkqPeer) -> None:
    peer.socket.sendall(b"inspect queues 0 1\r\nfoo\ninspect queues 0 1\r\n")
    peer.expect("+OK 0")
    assert peer.ended()
    with WorkqPeer(server.ports["workq"]) as endless:
        endless.socket.sendall(b"\n")
        assert endless.ended()


def test_a_line_without_end_closes_the_connection(server: Server) -> None:
    with WorkqPeer(server.ports["workq"]) as endless:
        endless.socket.sendall(b"x" * 1_058_577)
        assert endless.ended()


def test_an_idle_client_is_not_closed(peer: WorkqPeer) -> None:
    """There is no handshake and so no deadline for one: pools connect in advance."""
    time.sleep(2.5)
    peer.send("inspect queues 0 1")
    peer.expect("+OK 0")


def test_a_connection_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    settings = {"limits.connections": 2}
    with Server(tmp_path / "data", settings, protocols=("workq",)) as server:
        port = server.ports["workq"]
        with WorkqPeer(port) as one, WorkqPeer(port) as two, WorkqPeer(port) as three:
            three.expect("-SERVER-ERROR Too many connections: 3")
            assert three.ended()
            for each in (one, two):
                each.send("inspect queues 0 1")
                each.expect("+OK 0")


def test_every_job_is_leased_once(server: Server) -> None:
    """While there are jobs, none of 16 clients in LEASE may time out.

    The original server loses wake-ups here (workq.md section 5.5). The clients wait without a limit until each receives
    a job that ends it.
    """
    jobs, leasers, found = 400, 16, list[bytes]()

    def work() -> None:
        with WorkqPeer(server.ports["workq"]) as peer:
            while True:
                peer.send("lease ping 600000")
                peer.expect("+OK 1")
                leased, text = peer.line().split()[0], peer.line()
                found.append(leased)
                peer.send(f"complete {leased.decode()} 0", "")
                peer.expect("+OK")
                if text == b"go":
                    return

    threads = [threading.Thread(target=work) for _ in range(leasers)]
    for thread in threads:
        thread.start()
    with WorkqPeer(server.ports["workq"]) as pusher:
        for number in range(jobs + leasers):
            text = "" if number < jobs else "go"
            pusher.send(f"add {ident(number)} ping 600000 600000 {len(text)}", text)
            pusher.expect("+OK")
    for thread in threads:
        thread.join()
    assert Counter(found) == {ident(number).encode(): 1 for number in range(jobs + leasers)}


def test_a_kill_keeps_results_and_does_not_restart_the_ttl(server: Server) -> None:
    port = server.ports["workq"]
    with WorkqPeer(port) as peer, WorkqPeer(port) as runner:
        peer.send(
            f"add {ident(2)} ping 600000 600000 4", "pong",
            f"complete {ident(2)} 4", "done",
            f"add {ident(3)} other 600000 600000 1 -max-attempts=5", "x",
            "lease other 0",
        )  # fmt: skip
        peer.expect("+OK", "+OK", "+OK", "+OK 1", f"{ident(3)} other 1", "x")
        runner.send(f"run {ident(4)} ping 600000 600000 1", "x")
        _until(peer, "inspect queue ping", "ready-len 1")
        added = time.monotonic()
        peer.send(f"add {ident(1)} ping 600000 {TTL_S * 1_000} 4", "pong")
        peer.expect("+OK")
    server.kill()
    time.sleep(max(0.0, added + TTL_S - time.monotonic()))  # time while the server is down counts: the TTL has passed
    server.start()
    with WorkqPeer(server.ports["workq"]) as peer:
        asked = time.monotonic()
        peer.send(f"result {ident(2)} 0", f"inspect job {ident(4)}", f"result {ident(1)} 600000")
        peer.expect("+OK 1", f"{ident(2)} 1 4", "done", "-NOT-FOUND", "-NOT-FOUND")
        assert time.monotonic() - asked < TTL_S, "the TTL must not restart"
        peer.send("inspect server")
        peer.expect("+OK 1", "server 3", "active-clients 1", "evicted-jobs 1")
        assert peer.line().startswith(b"started 20")
        peer.send("lease other 0", f"complete {ident(3)} 0", "")
        peer.expect("-TIMEOUT", "+OK")


def test_a_server_stop_ends_waits(server: Server, peer: WorkqPeer, other: WorkqPeer) -> None:
    peer.send("inspect queues 0 1", "lease ping 60000")
    peer.expect("+OK 0")  # sent after the lease, which is therefore waiting
    other.send(f"run {ident(1)} other 1000 60000 1", "x")
    with WorkqPeer(server.ports["workq"]) as look:
        _until(look, "inspect queue other", "ready-len 1")
    assert server.stop() == 0
    peer.expect("-TIMEOUT")
    other.expect("-TIMEOUT")
    assert peer.ended() and other.ended()


def test_the_session_in_the_reference_works(peer: WorkqPeer) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "workq.md").read_text("utf-8")
    lines = page.partition("$ nc -C localhost 9922\n")[2].partition("```")[0].splitlines()
    block_follows = False
    for line in lines:
        verb = line.partition(" ")[0]
        if block_follows or verb in ("add", "lease", "complete", "result"):
            peer.send(line)
            block_follows = verb in ("add", "complete")
        else:
            peer.expect(line)


class TestCommandLine:
    @pytest.fixture
    def operator(self, server: Server, tmp_path: Path) -> Operator:
        return Operator.at(tmp_path, server.ports)

    def test_push_and_take(self, operator: Operator, peer: WorkqPeer) -> None:
        jid = operator.output("push", "ping", "any text", "--via", "workq", "--priority", "-3", "--retry", "1").strip()
        found = operator.json("job", "show", jid)["job"]
        assert (found["queue"], found["kind"], found["payload"]) == ("ping", "ping", "any text")
        assert (found["priority"], found["policy"]["max_failures"], found["policy"]["lease_s"]) == (-3, 1, 60)
        shown = operator.output("job", "take", "other", "ping", "--via", "workq", "--done")
        assert shown == f"id       {jid}\nqueue    ping\nkind     ping\npayload  any text\ndone\n"
        peer.send(f"result {jid} 0")
        peer.expect("+OK 1", f"{jid} 1 0", "")

    def test_push_with_a_delay(self, operator: Operator, peer: WorkqPeer) -> None:
        operator.output("push", "ping", "x", "--via", "workq", "--at", "10m", "--jid", ident(1), "--ttl", "2h")
        (row,) = operator.json("job", "list", "--state", "scheduled")["jobs"]
        assert row["jid"] == ident(1)

    def test_take_and_fail(self, operator: Operator, peer: WorkqPeer) -> None:
        peer.send(f"add {ident(1)} ping 60000 60000 4", "pong")
        peer.expect("+OK")
        answer = operator.json("job", "take", "ping", "--via", "workq", "--fail", "no luck")
        assert answer["settled"] == "failed"
        assert answer["job"] == {"ident": ident(1), "queue": "ping", "kind": "ping", "payload": "pong"}
        peer.send(f"result {ident(1)} 0")
        peer.expect("+OK 1", f"{ident(1)} 0 7", "no luck")

    def test_take_through_faktory(self, operator: Operator) -> None:
        for args in ("[1]", "[2]", "[3]"):
            operator.output("push", "mail", "welcome", args)
        assert operator.output("job", "take", "mail", "--done").endswith("kind     welcome\npayload  [1]\ndone\n")
        assert operator.output("job", "take", "mail", "--leave").endswith(
            "  [2]\nleft: it returns to its queue when its lease expires\n"
        )
        assert (
            operator.json("job", "take", "mail", "--fail", "why")["settled"] == "failed"
        )  # last, because the job is retried soon
        counted = {row["state"]: row["error"] for row in operator.json("job", "list")["jobs"]}
        assert counted == {"leased": None, "retrying": "Failed: why"}

    @pytest.mark.skipif(
        shutil.which("tmux") is None, reason="tmux is missing, so the question of job take was not tested; install tmux"
    )
    @pytest.mark.parametrize(
        ("keys", "said"),
        [
            (["done", "Enter"], "done"),
            (["fail", "Enter", "no luck", "Enter"], "failed"),
            (["Enter"], "left: it returns to its queue when its lease expires"),
            ([], "left: it returns to its queue when its lease expires"),  # Ctrl-C
        ],
    )
    def test_take_asks_for_the_outcome(
        self, operator: Operator, peer: WorkqPeer, tmp_path: Path, keys: list[str], said: str
    ) -> None:
        peer.send(f"add {ident(1)} ping 60000 60000 4", "pong")
        peer.expect("+OK")
        command = [sys.executable, "-m", "crossdock", "job", "take", "ping", "--via", "workq"]
        with Terminal(command, tmp_path, operator.environment, 100, 24) as terminal:
            terminal.wait("payload  pong")
            terminal.wait("what to do with it")
            for key in keys:
                terminal.press(key)
            terminal.wait(said) if keys else terminal.interrupt(said)
            terminal.wait("ended with 0")
        peer.send(f"result {ident(1)} 0")
        result = {"done": ("+OK 1", f"{ident(1)} 1 0", ""), "failed": ("+OK 1", f"{ident(1)} 0 7", "no luck")}
        peer.expect(*result.get(said, ("-TIMEOUT",)))

    def test_take_from_an_empty_queue_reports_it(self, operator: Operator) -> None:
        ended = operator.run("job", "take", "ping", "--via", "workq", "--wait", "0.1s", "--done")
        assert ended == Ended("", "no job within 0.1s in ping\n", 1)
        ended = operator.run("job", "take", "ping", "--via", "workq", "--wait", "0s", "--done", "--json")
        assert (ended.code, ended.out) == (1, '{\n  "job": null,\n  "settled": null\n}\n')

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (
                ["job", "take", "ping"],
                "stdin is not a terminal; pass --done, --fail or --leave",
            ),
            (["job", "take", "ping", "--done", "--leave"], "give one of --done, --fail and --leave"),
            (["job", "take", "p!ng", "--via", "workq", "--done"], "CLIENT-ERROR Invalid Name"),
            (["push", "ping", "--via", "workq"], "through Workq give NAME PAYLOAD, such as: ping 'any text'"),
            (["push", "p!ng", "x", "--via", "workq"], "CLIENT-ERROR Invalid Name"),
            (["push", "ping", "x", "--via", "workq", "--custom", "{}"], "workq has no --custom"),
            (["push", "ping", "x", "[]", "--ttl", "1h"], "faktory has no --ttl"),
            (["push", "ping", "x", "--via", "workq", "--retry", "-1"], "through Workq, --retry is 0 or more"),
            (["push", "ping", "x", "--via", "workq", "--jid", "a\nb"], "Workq accepts printable ASCII only"),
            (["job", "take", "ping", "--via", "workq", "--done", "--listen", "workq=off"], "listen.workq is off"),
            (
                ["job", "take", "ping", "--via", "workq", "--done", "--listen", "workq=127.0.0.1:1"],
                "no Workq server at",
            ),
        ],
    )
    def test_an_error_is_reported_in_one_sentence(self, refused: Operator, arguments: list[str], sentence: str) -> None:
        ended = refused.run(*arguments)
        assert ended.code in (1, 2)
        assert ended.out == ""
        assert ended.err.startswith(f"crossdock: {sentence}")
        assert ended.err.count("\n") == 1
