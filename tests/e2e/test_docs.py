"""The examples of the README and the docs, run unchanged against a real server."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.lake.location import POSITION
from tests.support.doc_pages import blocks
from tests.support.patience import PATIENCE_S, wait_until
from tests.support.server import Server

_SAID_BY_SERVER = ("+", "-", "$", "{", "b-", "…")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as running:
        yield running


def _script(tmp_path: Path, name: str, text: str, port: int) -> list[str]:
    path = tmp_path / name
    path.write_text(text.replace("localhost:7419", f"127.0.0.1:{port}"))
    return [sys.executable, str(path)]


@pytest.mark.clients
def test_the_readme_tour_works(server: Server, tmp_path: Path) -> None:
    tasks, push, ask, _ = blocks("README.md", "python")
    _script(tmp_path, "tasks.py", tasks, server.port)
    subprocess.run(_script(tmp_path, "push.py", push, server.port), check=True, timeout=PATIENCE_S)
    server.restart()
    _script(tmp_path, "tasks.py", tasks, server.port)  # it has another port now
    with subprocess.Popen(
        [sys.executable, "-m", "crossdock", "worker", "run", "tasks", "-q", "sums"], cwd=tmp_path
    ) as worker:
        try:
            asked = subprocess.run(
                _script(tmp_path, "ask.py", ask, server.port),
                check=True,
                timeout=PATIENCE_S,
                capture_output=True,
                text=True,
            )
            assert asked.stdout.strip() == "42"
        finally:
            worker.send_signal(signal.SIGINT)
    assert worker.returncode == 0


@pytest.mark.clients
def test_the_example_of_a_foreign_client_works(server: Server, tmp_path: Path) -> None:
    push, work = blocks("docs/start.md", "python")
    pushed = subprocess.run(
        _script(tmp_path, "push.py", push, server.port), check=True, timeout=PATIENCE_S, capture_output=True, text=True
    )
    assert pushed.stdout.strip() == "1"
    server.restart()
    worker = subprocess.Popen(_script(tmp_path, "work.py", work, server.port), stdout=subprocess.PIPE, text=True)
    try:
        assert worker.stdout is not None
        assert worker.stdout.readline().strip() == "2 + 3 = 5"
    finally:
        worker.send_signal(signal.SIGINT)
        worker.communicate(timeout=PATIENCE_S)


@pytest.mark.clients
def test_the_readme_shows_the_history_of_a_job(tmp_path: Path) -> None:
    tasks, push, _, history = blocks("README.md", "python")
    with Server(tmp_path / "crossdock-data", {"lake.segment_s": 0.1}) as server:
        _script(tmp_path, "tasks.py", tasks, server.port)
        subprocess.run(_script(tmp_path, "push.py", push, server.port), check=True, timeout=PATIENCE_S)
        with server.client() as client:
            job = client.fetch("sums")
            assert job is not None
            client.ack(job["jid"])

        def shown() -> str:
            if not (tmp_path / "crossdock-data" / POSITION).exists():
                return ""
            script = _script(tmp_path, "history.py", history, server.port)
            return subprocess.run(
                script, cwd=tmp_path, check=True, timeout=PATIENCE_S, capture_output=True, text=True
            ).stdout

        wait_until(lambda: "succeeded" in shown(), "the last step of the job")
        assert re.findall(r"pushed|leased|succeeded", shown()) == ["pushed", "leased", "succeeded"]


def _conversations() -> Iterator[tuple[str, str]]:
    for page in ("docs/start.md", "docs/how-to/special-jobs.md"):
        for body in blocks(page, ""):
            if any(line.split(" ")[0] in ("PUSH", "HELLO", "MUTATE", "BATCH") for line in body.splitlines()):
                yield page, body


@pytest.mark.parametrize(("page", "body"), list(_conversations()))
def test_a_session_in_the_docs_works(page: str, body: str, server: Server) -> None:
    """Play the session against a server.

    Server lines begin with their protocol's markers. `…` matches anything, and the first b-… stands for the batch's id.
    """
    with socket.create_connection(server.address, PATIENCE_S) as peer, peer.makefile("rwb") as wire:

        def read_line() -> str:
            return bytes(wire.readline()).decode().rstrip("\r\n")

        def send_line(line: str) -> None:
            wire.write(line.encode() + b"\n")
            wire.flush()

        lines = [line for line in body.splitlines() if not line.startswith("$ nc")]
        if lines[0] != '+HI {"v":2}':
            lines = ['+HI {"v":2}', 'HELLO {"v":2}', "+OK", *lines]
        batch = ""
        for line in lines:
            if not line.startswith(_SAID_BY_SERVER):
                send_line(line.replace("b-KzJg9lop_mF3Bw", batch))
                continue
            received = read_line()
            if line.startswith("b-"):
                batch = received
                assert re.fullmatch(r"b-[\w-]{14}", received)
            elif line.startswith("$") and "…" not in line:
                # A time has six decimals or fewer, because trailing zeros are omitted.
                assert 0 <= int(line[1:]) - int(received[1:]) <= 14, f"{page}: {line!r}, received {received!r}"
            else:
                expected = ".*".join(map(re.escape, line.replace("b-KzJg9lop_mF3Bw", batch).split("…")))
                assert re.fullmatch(expected, received), f"{page}: {line!r}, received {received!r}"
