"""The bench runs, checks what it is told, and gives no figure for a server that answers wrongly. Never how fast."""

import os
import re
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from bench.doors.masenko import Masenko
from bench.doors.workq import Workq
from bench.driver import Driver, LoadFailed
from bench.faktory import job_text
from bench.replies import Unexpected
from bench.steps import Bench as Steps
from bench.target import Target

from tests.support.server import Server

_RUN: Final = Path(__file__).parents[2] / "bench" / "run.py"
_JOB: Final = re.compile(rb'"jid":"(\w+)"')


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CROSSDOCK_")}
    return subprocess.run(
        [sys.executable, str(_RUN), *words], check=False, capture_output=True, text=True, timeout=300, env=clean
    )


def rows(output: str) -> dict[str, list[list[str]]]:
    """The cells of all table rows, by their first cell."""
    found: dict[str, list[list[str]]] = {}
    for line in output.splitlines():
        if line.startswith("| "):
            first, *rest = (cell.strip() for cell in line.strip("| ").split("|"))
            found.setdefault(first, []).append(rest)
    return found


@pytest.mark.slow
def test_everything_is_measured_once(tmp_path: Path) -> None:
    with Server(tmp_path / "other", {"faktory.password": "s3cret"}) as other:
        url = f"faktory://:s3cret@127.0.0.1:{other.port}"
        done = bench("--quick", "--all", "--against", "", "--against", url, "--folder", str(tmp_path))
        assert done.returncode == 0, done.stderr
        with other.client() as client:
            assert client.sizes() == {"enqueued": 0, "scheduled": 0, "retries": 0, "dead": 0, "working": 0}
    assert "s3cret" not in done.stdout + done.stderr
    found = rows(done.stdout)
    for name in ("Crossdock always", f"faktory://127.0.0.1:{other.port}"):
        rates, push, fetch, ack, *_, bulk = found[name]
        assert len(rates) == 4
        assert [each[0] for each in (push, fetch, ack)] == ["PUSH", "FETCH", "ACK"]
        assert all(float(figure.replace(",", "")) > 0 for figure in (*rates, *push[1:], *bulk))
    assert {"lake off", "lake on"} <= set(found)
    goals = {name: cells for name, (*_, cells) in found.items() if cells[-1] in ("good", "met", "missed")}
    assert {
        "whole jobs, 64 connections: everysec / always",
        "PUSH p99, 64 connections, ms",
        "PUSHB, jobs/s",
        "whole jobs: cost at 5,000 / at 500 queued",
        "bytes a queued job beyond args and custom",
        "seconds to accept after SIGKILL",
        "MiB with 100 idle connections",
    } <= set(goals)
    assert [path.name for path in tmp_path.iterdir()] == ["other"], "temporary folders stay behind"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("door", "phases"), [("workq", ["add", "lease", "complete"]), ("masenko", ["PUSH", "FETCH", "ACK"])]
)
def test_another_door(tmp_path: Path, door: str, phases: list[str]) -> None:
    done = bench("--quick", "--door", door, "--jobs", "500", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = rows(done.stdout)
    assert [cells[0] for cells in found["Crossdock always"]] == phases
    assert f"{phases[0]}, 64 connections, a second" in found


class _Liar(socketserver.StreamRequestHandler):
    """Answers as Faktory does, but for one lie."""

    lie: str
    jobs: Final[list[bytes]] = []

    def handle(self) -> None:
        self.wfile.write(b'+HI {"v":2}\r\n')
        for line in self.rfile:
            verb, _, body = line.strip().partition(b" ")
            self.wfile.write(self.answer(verb, body))

    def answer(self, verb: bytes, body: bytes) -> bytes:
        if verb == b"PUSH":
            self.jobs.append(body)
            return b"+OK \r\n" if self.lie == "another word" and len(self.jobs) > 500 else b"+OK\r\n"
        if verb == b"FETCH":
            job = self.jobs[0] if self.lie == "twice the same job" else self.jobs.pop()
            if self.lie == "another payload":
                job = job.replace(b'[1,"string",3]', b'[1,"string",4]')
            if self.lie == "a job nobody pushed":
                job = _JOB.sub(b'"jid":"ffffffffffffffff"', job)
            return b"$-1\r\n" if self.lie == "no job" else b"$%d\r\n%b\r\n" % (len(job), job)
        if verb == b"ACK" and self.lie == "one answer too many":
            return b"+OK\r\n+OK\r\n"
        return b"+OK\r\n"


@contextmanager
def liar(lie: str) -> Iterator[int]:
    handler = type("Handler", (_Liar,), {"lie": lie, "jobs": []})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.parametrize(
    "lie",
    ["another word", "no job", "another payload", "a job nobody pushed", "twice the same job", "one answer too many"],
)
def test_a_load_gives_no_figure_after_one_unexpected_reply(lie: str, capfd: pytest.CaptureFixture[str]) -> None:
    with liar(lie) as port, Driver(Target("faktory", "127.0.0.1", port), 8) as load, pytest.raises(LoadFailed):
        load.step("phases", 1_000)
    assert "bench: no figures: " in capfd.readouterr().err


def test_a_load_gives_figures_for_a_server_that_does_not_lie() -> None:
    with liar("none") as port, Driver(Target("faktory", "127.0.0.1", port), 8) as load:
        run = load.step("phases", 1_000)
    assert list(run) == ["PUSH", "FETCH", "ACK"]
    for figures in run.values():
        assert figures.count == 1_000
        assert 0 < figures.p50 <= figures.p99 <= figures.p999 <= figures.worst <= figures.seconds


def test_the_workq_load_judges_each_reply() -> None:
    dialect = Workq("q")
    (add,) = dialect.pushes(1)
    reply = b"+OK 1\r\n" + add.split()[1] + b" q 100\r\n" + b"x" * 100 + b"\r\n"
    assert [dialect.taken(reply[:length]) for length in (1, 30, len(reply) - 1, len(reply))] == [False] * 3 + [True]
    for lie in (b"-TIMEOUT\r\n", reply + b"+", reply.replace(b"x\r", b"y\r"), reply.replace(b" q ", b" r ")):
        with pytest.raises(Unexpected):
            dialect.taken(lie)
    dialect.settle(reply)
    with pytest.raises(Unexpected):
        dialect.settle(reply)


def test_the_masenko_load_judges_each_reply() -> None:
    dialect = Masenko("q")
    assert [dialect.pushed(b'OK {"id":7}\n'[:length]) for length in (1, 11, 12)] == [False, False, True]
    reply = b'OK {"id":7,"queue":"q","name":"bench","payload":"%b"}\n' % (b"x" * 100)
    assert [dialect.taken(reply[:length]) for length in (1, 30, len(reply) - 1, len(reply))] == [False] * 3 + [True]
    for lie in (b"EMPTY {}\n", reply + b"O", reply.replace(b'x"', b'y"'), reply.replace(b'"q"', b'"r"')):
        with pytest.raises(Unexpected):
            dialect.taken(lie if lie.endswith(b"\n") else lie + b"\n")
    assert dialect.settle(reply) == b'ACK {"id":7}\n'
    with pytest.raises(Unexpected):
        dialect.settle(reply)


def test_the_bench_prints_no_table_when_a_load_has_failed(tmp_path: Path) -> None:
    with liar("no job") as port:
        done = bench("--quick", "--against", f"faktory://127.0.0.1:{port}", "--folder", str(tmp_path))
    assert done.returncode == 1
    assert "bench: no figures: " in done.stderr
    assert rows(done.stdout) == {}
    assert not list(tmp_path.iterdir()), "temporary folders stay behind"


@pytest.mark.parametrize("words", [("--door", "redis"), ("--against", "http://127.0.0.1:1"), ("--against", "x")])
def test_what_cannot_be_measured_is_said(words: tuple[str, str]) -> None:
    done = bench("--quick", *words)
    assert done.returncode != 0
    assert words[1] in done.stderr
    assert rows(done.stdout) == {}


def test_the_steps_of_each_request_are_counted_alike_every_time() -> None:
    jobs = [f"{n:032d}".encode() for n in range(64)]
    pushes = [b"PUSH %b\r\n" % (job_text(b"q") % jid) for jid in jobs]
    acks = [b'ACK {"jid":"%b"}\r\n' % jid for jid in jobs]
    counted = []
    for _ in range(3):  # the first time fills caches
        steps = Steps()
        counted.append([steps.count(each) for each in (pushes, [b"FETCH q\r\n"] * 64, acks)])
        steps.close()
    for one, other in zip(counted[1], counted[2], strict=True):  # they differ by the digits of a time
        assert abs(one.total() - other.total()) < one.total() / 100
    assert ["engine/enqueue.py pushed" in each for each in counted[0]] == [True, False, False]
    assert ["engine/lease.py leased" in each for each in counted[0]] == [False, True, False]
    assert ["engine/settle.py succeeded" in each for each in counted[0]] == [False, False, True]
