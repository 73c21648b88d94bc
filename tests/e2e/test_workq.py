"""The Workq door of a real server: sockets, waits, restarts and the command line."""

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
    """At one server for all that is refused."""
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


def test_the_worked_example(peer: WorkqPeer) -> None:
    one = ident(1)
    peer.send(f"add {one} ping 1000 60000 4 -priority=10 -max-attempts=3 -max-fails=1", "pong", "lease other ping 500")
    peer.hear("+OK", "+OK 1", f"{one} ping 4", "pong")
    peer.send(f"complete {one} 2", "ok", f"complete {one} 2", "ok", f"result {one} 0")
    peer.hear("+OK", "-CLIENT-ERROR Duplicate result", "+OK 1", f"{one} 1 2", "ok")
    peer.send(f"delete {one}", f"delete {one}", "lease ping 20")
    peer.hear("+OK", "-NOT-FOUND", "-TIMEOUT")


def test_four_fields(tmp_path: Path) -> None:
    settings = {"workq.lease_ttr": "true"}
    with Server(tmp_path / "data", settings, protocols=("workq",)) as server, WorkqPeer(server.ports["workq"]) as peer:
        peer.send(f"add {ident(1)} ping 1500 60000 4", "pong", "lease ping 0")
        peer.hear("+OK", "+OK 1", f"{ident(1)} ping 1500 4", "pong")


def test_run_hears_of_its_result_at_once(peer: WorkqPeer, other: WorkqPeer) -> None:
    """Nobody looks from time to time: its own wait would end ten minutes later."""
    other.send("lease ping 600000")
    peer.send(f"run {ident(1)} ping 600000 600000 4", "ping")
    other.hear("+OK 1", f"{ident(1)} ping 4", "ping")
    other.send(f"complete {ident(1)} 4", "pong")
    other.hear("+OK")
    peer.hear("+OK 1", f"{ident(1)} 1 4", "pong")


def test_run_is_answered_when_the_ttr_ends(peer: WorkqPeer, other: WorkqPeer) -> None:
    peer.send(f"run {ident(1)} ping 300 600000 4", "ping")
    began = time.monotonic()
    other.send("lease ping 600000")
    other.hear("+OK 1", f"{ident(1)} ping 4", "ping")
    peer.hear("-TIMEOUT")
    assert time.monotonic() - began >= 0.3
    other.send(f"complete {ident(1)} 0", "")
    other.hear("-NOT-FOUND")


def test_run_of_a_lost_connection_leaves_nothing(server: Server, peer: WorkqPeer) -> None:
    lost = WorkqPeer(server.ports["workq"])
    lost.send(f"run {ident(1)} ping 5000 60000 4", "ping")
    _until(peer, "inspect queue ping", "ready-len 1")
    lost.vanish()
    _until(peer, "inspect queue ping", "ready-len 0")
    peer.send(f"inspect job {ident(1)}")
    peer.hear("-NOT-FOUND")


def _until(peer: WorkqPeer, ask: str, line: str) -> None:
    """Ask until the answer has that line. Its first says how many follow."""
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


@pytest.mark.parametrize("how", ["vanish", "close"])
def test_a_client_that_is_gone_takes_no_job(server: Server, peer: WorkqPeer, how: str) -> None:
    for _ in range(20):
        lost = WorkqPeer(server.ports["workq"])
        lost.send("inspect queues 0 1", "lease ping 60000")
        assert lost.line().startswith(b"+OK")  # the lease came with it: it waits by now
        if how == "vanish":
            lost.vanish()
        else:
            lost.socket.close()
    _until(peer, "inspect server", "active-clients 1")
    peer.send(f"add {ident(1)} ping 60000 60000 4", "pong", "lease ping 0")
    peer.hear("+OK", "+OK 1", f"{ident(1)} ping 4", "pong")


def test_a_client_that_sends_no_more_is_answered(peer: WorkqPeer) -> None:
    """As `printf … | nc -N` is one."""
    peer.send(f"add {ident(1)} q 1000 60000 2", "hi", "inspect queue q", "lease other 60000")
    peer.socket.shutdown(socket.SHUT_WR)
    peer.hear("+OK", "+OK 1", "q 2", "ready-len 1", "scheduled-len 0")
    assert peer.ended()


def test_a_client_that_breaks_the_grammar_is_closed_after_its_replies(server: Server, peer: WorkqPeer) -> None:
    peer.socket.sendall(b"inspect queues 0 1\r\nfoo\ninspect queues 0 1\r\n")
    peer.hear("+OK 0")
    assert peer.ended()
    with WorkqPeer(server.ports["workq"]) as endless:
        endless.socket.sendall(b"\n")
        assert endless.ended()


def test_a_line_without_end(server: Server) -> None:
    with WorkqPeer(server.ports["workq"]) as endless:
        endless.socket.sendall(b"x" * 1_058_577)
        assert endless.ended()


def test_silence_is_allowed(peer: WorkqPeer) -> None:
    """There is no handshake, so there is no deadline for one: pools connect ahead."""
    time.sleep(2.5)
    peer.send("inspect queues 0 1")
    peer.hear("+OK 0")


def test_too_many_connections(tmp_path: Path) -> None:
    settings = {"limits.connections": 2}
    with Server(tmp_path / "data", settings, protocols=("workq",)) as server:
        port = server.ports["workq"]
        with WorkqPeer(port) as one, WorkqPeer(port) as two, WorkqPeer(port) as three:
            three.hear("-SERVER-ERROR Too many connections: 3")
            assert three.ended()
            for each in (one, two):
                each.send("inspect queues 0 1")
                each.hear("+OK 0")


def test_every_job_is_leased_once(server: Server) -> None:
    """Upstream loses wake-ups here (5.5): 16 leasers, and none may time out while there are jobs. They wait for ever,
    until each is given a job that tells it to go."""
    jobs, leasers, found = 400, 16, list[bytes]()

    def work() -> None:
        with WorkqPeer(server.ports["workq"]) as peer:
            while True:
                peer.send("lease ping 600000")
                peer.hear("+OK 1")
                leased, text = peer.line().split()[0], peer.line()
                found.append(leased)
                peer.send(f"complete {leased.decode()} 0", "")
                peer.hear("+OK")
                if text == b"go":
                    return

    threads = [threading.Thread(target=work) for _ in range(leasers)]
    for thread in threads:
        thread.start()
    with WorkqPeer(server.ports["workq"]) as pusher:
        for number in range(jobs + leasers):
            text = "" if number < jobs else "go"
            pusher.send(f"add {ident(number)} ping 600000 600000 {len(text)}", text)
            pusher.hear("+OK")
    for thread in threads:
        thread.join()
    assert Counter(found) == {ident(number).encode(): 1 for number in range(jobs + leasers)}


def test_a_restart(server: Server) -> None:
    port = server.ports["workq"]
    with WorkqPeer(port) as peer, WorkqPeer(port) as runner:
        peer.send(
            f"add {ident(2)} ping 600000 600000 4", "pong",
            f"complete {ident(2)} 4", "done",
            f"add {ident(3)} other 600000 600000 1 -max-attempts=5", "x",
            "lease other 0",
        )  # fmt: skip
        peer.hear("+OK", "+OK", "+OK", "+OK 1", f"{ident(3)} other 1", "x")
        runner.send(f"run {ident(4)} ping 600000 600000 1", "x")
        _until(peer, "inspect queue ping", "ready-len 1")
        added = time.monotonic()
        peer.send(f"add {ident(1)} ping 600000 {TTL_S * 1_000} 4", "pong")
        peer.hear("+OK")
    server.kill()
    time.sleep(max(0.0, added + TTL_S - time.monotonic()))  # time down counts: it is over
    server.start()
    with WorkqPeer(server.ports["workq"]) as peer:
        asked = time.monotonic()
        peer.send(f"result {ident(2)} 0", f"inspect job {ident(4)}", f"result {ident(1)} 600000")
        peer.hear("+OK 1", f"{ident(2)} 1 4", "done", "-NOT-FOUND", "-NOT-FOUND")
        assert time.monotonic() - asked < TTL_S, "its TTL did not begin anew"
        peer.send("inspect server")
        peer.hear("+OK 1", "server 3", "active-clients 1", "evicted-jobs 1")
        assert peer.line().startswith(b"started 20")
        peer.send("lease other 0", f"complete {ident(3)} 0", "")
        peer.hear("-TIMEOUT", "+OK")


def test_shutdown_ends_waits(server: Server, peer: WorkqPeer, other: WorkqPeer) -> None:
    peer.send("inspect queues 0 1", "lease ping 60000")
    peer.hear("+OK 0")  # the lease came with it: it waits by now
    other.send(f"run {ident(1)} other 1000 60000 1", "x")
    with WorkqPeer(server.ports["workq"]) as look:
        _until(look, "inspect queue other", "ready-len 1")
    assert server.stop() == 0
    peer.hear("-TIMEOUT")
    other.hear("-TIMEOUT")
    assert peer.ended() and other.ended()


def test_the_conversation_of_the_reference(peer: WorkqPeer) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "workq.md").read_text("utf-8")
    lines = page.partition("$ nc -C localhost 9922\n")[2].partition("```")[0].splitlines()
    block_follows = False
    for line in lines:
        verb = line.partition(" ")[0]
        if block_follows or verb in ("add", "lease", "complete", "result"):
            peer.send(line)
            block_follows = verb in ("add", "complete")
        else:
            peer.hear(line)


class TestCommandLine:
    @pytest.fixture
    def operator(self, server: Server, tmp_path: Path) -> Operator:
        return Operator.at(tmp_path, server.ports)

    def test_push_and_try(self, operator: Operator, peer: WorkqPeer) -> None:
        jid = operator.tell("push", "ping", "any text", "--via", "workq", "--priority", "-3", "--retry", "1").strip()
        found = operator.json("job", "show", jid)["job"]
        assert (found["queue"], found["kind"], found["payload"]) == ("ping", "ping", "any text")
        assert (found["priority"], found["policy"]["max_failures"], found["policy"]["lease_s"]) == (-3, 1, 60)
        shown = operator.tell("job", "take", "other", "ping", "--via", "workq", "--done")
        assert shown == f"id       {jid}\nqueue    ping\nkind     ping\npayload  any text\ndone\n"
        peer.send(f"result {jid} 0")
        peer.hear("+OK 1", f"{jid} 1 0", "")

    def test_push_later(self, operator: Operator, peer: WorkqPeer) -> None:
        operator.tell("push", "ping", "x", "--via", "workq", "--at", "10m", "--jid", ident(1), "--ttl", "2h")
        (row,) = operator.json("job", "list", "--state", "scheduled")["jobs"]
        assert row["jid"] == ident(1)

    def test_try_and_fail(self, operator: Operator, peer: WorkqPeer) -> None:
        peer.send(f"add {ident(1)} ping 60000 60000 4", "pong")
        peer.hear("+OK")
        answer = operator.json("job", "take", "ping", "--via", "workq", "--fail", "no luck")
        assert answer["settled"] == "failed"
        assert answer["job"] == {"ident": ident(1), "queue": "ping", "kind": "ping", "payload": "pong"}
        peer.send(f"result {ident(1)} 0")
        peer.hear("+OK 1", f"{ident(1)} 0 7", "no luck")

    def test_try_through_faktory(self, operator: Operator) -> None:
        for args in ("[1]", "[2]", "[3]"):
            operator.tell("push", "mail", "welcome", args)
        assert operator.tell("job", "take", "mail", "--done").endswith("kind     welcome\npayload  [1]\ndone\n")
        assert operator.tell("job", "take", "mail", "--leave").endswith(
            "  [2]\nleft: it comes back when its lease ends\n"
        )
        assert (
            operator.json("job", "take", "mail", "--fail", "why")["settled"] == "failed"
        )  # the last, for it comes again soon
        counted = {row["state"]: row["error"] for row in operator.json("job", "list")["jobs"]}
        assert counted == {"leased": None, "retrying": "Failed: why"}

    @pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is missing, so try was not seen to ask")
    @pytest.mark.parametrize(
        ("keys", "said"),
        [
            (["done", "Enter"], "done"),
            (["fail", "Enter", "no luck", "Enter"], "failed"),
            (["Enter"], "left: it comes back when its lease ends"),
            (["C-c"], "left: it comes back when its lease ends"),
        ],
    )
    def test_try_asks(self, operator: Operator, peer: WorkqPeer, tmp_path: Path, keys: list[str], said: str) -> None:
        peer.send(f"add {ident(1)} ping 60000 60000 4", "pong")
        peer.hear("+OK")
        command = [sys.executable, "-m", "crossdock", "job", "take", "ping", "--via", "workq"]
        with Terminal(command, tmp_path, operator.environment, 100, 24) as terminal:
            terminal.wait("payload  pong")
            terminal.wait("what to do with it")
            for key in keys:
                terminal.press(key)
            terminal.wait(said)
            terminal.wait("ended with 0")
        peer.send(f"result {ident(1)} 0")
        result = {"done": ("+OK 1", f"{ident(1)} 1 0", ""), "failed": ("+OK 1", f"{ident(1)} 0 7", "no luck")}
        peer.hear(*result.get(said, ("-TIMEOUT",)))

    def test_there_is_nothing_to_try(self, operator: Operator) -> None:
        ended = operator.run("job", "take", "ping", "--via", "workq", "--wait", "0.1s", "--done")
        assert ended == Ended("", "no job came in 0.1s in ping\n", 1)
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
            (["push", "ping", "x", "--via", "workq", "--jid", "a\nb"], "Workq's words are printable ASCII"),
            (["job", "take", "ping", "--via", "workq", "--done", "--listen", "workq=off"], "the Workq door is closed"),
            (
                ["job", "take", "ping", "--via", "workq", "--done", "--listen", "workq=127.0.0.1:1"],
                "no Workq door answers at",
            ),
        ],
    )
    def test_an_error_is_reported_in_one_sentence(self, refused: Operator, arguments: list[str], sentence: str) -> None:
        ended = refused.run(*arguments)
        assert ended.code in (1, 2)
        assert ended.out == ""
        assert ended.err.startswith(f"crossdock: {sentence}")
        assert ended.err.count("\n") == 1
