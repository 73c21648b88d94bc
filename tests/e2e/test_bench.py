"""The benchmark runs, checks replies, and prints no figure for a server with wrong replies. Speed is not tested."""

import hashlib
import json
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
import redis
from bench.driver import Driver, LoadFailed
from bench.faktory import job_text
from bench.protocols.endpoint import with_script
from bench.protocols.masenko import Masenko
from bench.protocols.workq import Workq
from bench.replies import Unexpected
from bench.steps import Bench as Steps
from bench.target import Target, parse

from tests.support.patience import PATIENCE_S, PROGRAM_PATIENCE_S
from tests.support.server import Server

_RUN: Final = Path(__file__).parents[2] / "bench" / "run.py"
_JOB: Final = re.compile(rb'"jid":"(\w+)"')


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CROSSDOCK_")}
    return subprocess.run(
        [sys.executable, str(_RUN), *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=PROGRAM_PATIENCE_S,
        env=clean,
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
def test_every_phase_is_measured_once(tmp_path: Path) -> None:
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
    assert [path.name for path in tmp_path.iterdir()] == ["other"], "temporary folders must be removed"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "phases"), [("workq", ["add", "lease", "complete"]), ("masenko", ["PUSH", "FETCH", "ACK"])]
)
def test_another_protocol_is_measured(tmp_path: Path, protocol: str, phases: list[str]) -> None:
    done = bench("--quick", "--protocol", protocol, "--jobs", "500", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = rows(done.stdout)
    assert [cells[0] for cells in found["Crossdock always"]] == phases
    assert f"{phases[0]}, 64 connections, a second" in found


@pytest.mark.slow
def test_resqu_is_measured(tmp_path: Path) -> None:
    done = bench("--quick", "--protocol", "resqu", "--jobs", "500", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = rows(done.stdout)
    assert {"enqueue", "batch push", "batch commit", "plan create", "enqueue while due"} <= set(found)
    assert {"commit of a batch of 2,000, s", "worst Faktory PUSH while 200 plans are due, s"} <= set(found)


class _FaultyFaktory(socketserver.StreamRequestHandler):
    """Replies as Faktory does, except for one wrong reply."""

    fault: str
    jobs: Final[list[bytes]] = []

    def handle(self) -> None:
        self.wfile.write(b'+HI {"v":2}\r\n')
        for line in self.rfile:
            verb, _, body = line.strip().partition(b" ")
            self.wfile.write(self.answer(verb, body))

    def answer(self, verb: bytes, body: bytes) -> bytes:
        if verb == b"PUSH":
            self.jobs.append(body)
            return b"+OK \r\n" if self.fault == "wrong reply text" and len(self.jobs) > 500 else b"+OK\r\n"
        if verb == b"FETCH":
            job = self.jobs[0] if self.fault == "duplicate job" else self.jobs.pop()
            if self.fault == "wrong payload":
                job = job.replace(b'[1,"string",3]', b'[1,"string",4]')
            if self.fault == "unknown job":
                job = _JOB.sub(b'"jid":"ffffffffffffffff"', job)
            return b"$-1\r\n" if self.fault == "no job" else b"$%d\r\n%b\r\n" % (len(job), job)
        if verb == b"ACK" and self.fault == "extra reply":
            return b"+OK\r\n+OK\r\n"
        return b"+OK\r\n"


@contextmanager
def faulty_faktory(fault: str) -> Iterator[int]:
    handler = type("Handler", (_FaultyFaktory,), {"fault": fault, "jobs": []})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.parametrize(
    "fault",
    ["wrong reply text", "no job", "wrong payload", "unknown job", "duplicate job", "extra reply"],
)
def test_a_load_prints_no_figure_after_one_unexpected_reply(fault: str, capfd: pytest.CaptureFixture[str]) -> None:
    with (
        faulty_faktory(fault) as port,
        Driver(Target("faktory", "127.0.0.1", port), 8) as load,
        pytest.raises(LoadFailed),
    ):
        load.step("phases", 1_000)
    assert "bench: no figures: " in capfd.readouterr().err


def test_a_load_prints_figures_for_a_correct_server() -> None:
    with faulty_faktory("none") as port, Driver(Target("faktory", "127.0.0.1", port), 8) as load:
        run = load.step("phases", 1_000)
    assert list(run) == ["PUSH", "FETCH", "ACK"]
    for figures in run.values():
        assert figures.count == 1_000
        assert 0 < figures.p50 <= figures.p99 <= figures.p999 <= figures.worst <= figures.seconds


def test_the_workq_load_checks_each_reply() -> None:
    dialect = Workq("q")
    (add,) = dialect.pushes(1)
    reply = b"+OK 1\r\n" + add.split()[1] + b" q 100\r\n" + b"x" * 100 + b"\r\n"
    assert [dialect.taken(reply[:length]) for length in (1, 30, len(reply) - 1, len(reply))] == [False] * 3 + [True]
    for fault in (b"-TIMEOUT\r\n", reply + b"+", reply.replace(b"x\r", b"y\r"), reply.replace(b" q ", b" r ")):
        with pytest.raises(Unexpected):
            dialect.taken(fault)
    dialect.settle(reply)
    with pytest.raises(Unexpected):
        dialect.settle(reply)


def test_the_masenko_load_checks_each_reply() -> None:
    dialect = Masenko("q")
    assert [dialect.pushed(b'OK {"id":7}\n'[:length]) for length in (1, 11, 12)] == [False, False, True]
    reply = b'OK {"id":7,"queue":"q","name":"bench","payload":"%b"}\n' % (b"x" * 100)
    assert [dialect.taken(reply[:length]) for length in (1, 30, len(reply) - 1, len(reply))] == [False] * 3 + [True]
    for fault in (b"EMPTY {}\n", reply + b"O", reply.replace(b'x"', b'y"'), reply.replace(b'"q"', b'"r"')):
        with pytest.raises(Unexpected):
            dialect.taken(fault if fault.endswith(b"\n") else fault + b"\n")
    assert dialect.settle(reply) == b'ACK {"id":7}\n'
    with pytest.raises(Unexpected):
        dialect.settle(reply)


def test_the_bench_prints_no_table_when_a_load_has_failed(tmp_path: Path) -> None:
    with faulty_faktory("no job") as port:
        done = bench("--quick", "--jobs", "300", "--against", f"faktory://127.0.0.1:{port}", "--folder", str(tmp_path))
    assert done.returncode == 1
    assert "bench: no figures: " in done.stderr
    assert rows(done.stdout) == {}
    assert not list(tmp_path.iterdir()), "temporary folders must be removed"


@pytest.mark.parametrize(
    "words",
    [
        ("--protocol", "redis"),
        ("--against", "http://127.0.0.1:1"),
        ("--against", "x"),
        ("--against", "redis://127.0.0.1:1"),
        ("--against", "faktory://127.0.0.1:1", "--protocol", "qless"),
        ("--against", "redis://127.0.0.1:1", "--protocol", "workq"),
    ],
)
def test_invalid_arguments_are_refused_with_a_reason(words: tuple[str, ...]) -> None:
    done = bench("--quick", *words)
    assert done.returncode != 0
    assert any(each in done.stderr for each in (words[1], "127.0.0.1:1", "--against needs"))
    assert rows(done.stdout) == {}


#: A script is recognised by its content: this text resembles qless' unified scripts but belongs to no release.
_TEXT: Final = b"local QlessAPI = {} -- function(now, me, queue"


@pytest.mark.slow
@pytest.mark.parametrize("named", ["", "qless", "hash", "file"])
def test_qless_scripts_of_another_server_are_measured(tmp_path: Path, named: str) -> None:
    file = tmp_path / "qless.lua"
    file.write_bytes(_TEXT)
    with Server(tmp_path / "other", {"redis.password": "s3cret"}, protocols=("redis",)) as other:
        where = f"127.0.0.1:{other.ports['redis']}"
        script = {"hash": hashlib.sha1(_TEXT).hexdigest(), "file": str(file)}.get(named, named)
        target = parse(f"redis://:s3cret@{where}")
        if named == "hash":
            with_script(target, str(file))  # this loads the script
        words = ("--protocol", "qless", "--jobs", "200", "--against", f"redis://:s3cret@{where}", "--script", script)
        done = bench("--quick", *words, "--folder", str(tmp_path))
        assert done.returncode == 0, done.stderr
        with redis.Redis(port=other.ports["redis"], password="s3cret", socket_timeout=PATIENCE_S) as client:
            queues = json.loads(client.fcall("qless", 0, "queues", "1"))
    assert [each["running"] + each["waiting"] for each in queues] == [0, 0], "all jobs must be completed"
    found = rows(done.stdout)
    phases = ["put", "pop", "complete", "pop of 50"]
    for name in ("Crossdock always", f"redis://{where}"):
        assert [cells[0] for cells in found[name]] == phases * 2
    assert f"whole jobs, 16 connections: Crossdock / redis://{where}" in found
    assert "s3cret" not in done.stdout + done.stderr


@pytest.mark.parametrize("named", ["", "reqless", "0" * 40])
def test_an_endpoint_without_the_script_is_reported(tmp_path: Path, named: str) -> None:
    class Bare(socketserver.StreamRequestHandler):
        """A Redis without loaded scripts."""

        def handle(self) -> None:
            count = int(self.rfile.readline()[1:])
            words = [self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2] for _ in range(count)]
            if words[0] == b"SCRIPT":
                self.wfile.write(b"*%d\r\n" % (count - 2) + b":0\r\n" * (count - 2))
            elif words[0] == b"FCALL":
                self.wfile.write(b"-ERR Function not found\r\n")
            else:
                self.wfile.write(b"-NOSCRIPT No matching script. Please use EVAL.\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Bare) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"redis://127.0.0.1:{server.server_address[1]}"
        done = bench("--quick", "--protocol", "qless", "--against", url, "--script", named, "--folder", str(tmp_path))
        server.shutdown()
    assert done.returncode == 1
    assert url in done.stderr
    assert (f"does not answer {named}" if named else "has no script of qless") in done.stderr
    assert rows(done.stdout) == {}


def test_instruction_counts_per_request_are_repeatable() -> None:
    jobs = [f"{n:032d}".encode() for n in range(64)]
    pushes = [b"PUSH %b\r\n" % (job_text(b"q") % jid) for jid in jobs]
    acks = [b'ACK {"jid":"%b"}\r\n' % jid for jid in jobs]
    counted = []
    for _ in range(3):  # the first run fills caches
        steps = Steps()
        counted.append([steps.count(each) for each in (pushes, [b"FETCH q\r\n"] * 64, acks)])
        steps.close()
    for one, other in zip(counted[1], counted[2], strict=True):  # they may differ by the digits of a time
        assert abs(one.total() - other.total()) < one.total() / 100
    assert ["engine/jobs/enqueue.py pushed" in each for each in counted[0]] == [True, False, False]
    assert ["engine/jobs/lease.py leased" in each for each in counted[0]] == [False, True, False]
    assert ["engine/jobs/complete.py succeeded" in each for each in counted[0]] == [False, False, True]
