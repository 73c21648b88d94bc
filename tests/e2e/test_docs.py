"""The examples of the README and the docs, run as they stand against a real server."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.doc_pages import blocks
from tests.support.patience import PATIENCE_S
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
def test_the_tour_of_the_readme(server: Server, tmp_path: Path) -> None:
    push, work = blocks("README.md", "python")
    pushed = subprocess.run(
        _script(tmp_path, "push.py", push, server.port), check=True, timeout=PATIENCE_S, capture_output=True, text=True
    )
    assert pushed.stdout.strip() == "{'sums': 1}"
    server.restart()
    worker = subprocess.Popen(_script(tmp_path, "work.py", work, server.port), stdout=subprocess.PIPE, text=True)
    try:
        assert worker.stdout is not None
        assert worker.stdout.readline().strip() == "2 + 3 = 5"
    finally:
        worker.send_signal(signal.SIGINT)
        worker.communicate(timeout=PATIENCE_S)


def _conversations() -> Iterator[tuple[str, str]]:
    for page in ("docs/start.md", "docs/how-to/special-jobs.md"):
        for body in blocks(page, ""):
            if any(line.split(" ")[0] in ("PUSH", "HELLO", "MUTATE", "BATCH") for line in body.splitlines()):
                yield page, body


@pytest.mark.parametrize(("page", "body"), list(_conversations()))
def test_a_conversation(page: str, body: str, server: Server) -> None:
    """Lines of the server begin with its signs; `…` stands for anything, and the first b-… for the batch's real id."""
    with socket.create_connection(server.address, PATIENCE_S) as peer, peer.makefile("rwb") as wire:

        def said() -> str:
            return bytes(wire.readline()).decode().rstrip("\r\n")

        def say(line: str) -> None:
            wire.write(line.encode() + b"\n")
            wire.flush()

        lines = [line for line in body.splitlines() if not line.startswith("$ nc")]
        if lines[0] != '+HI {"v":2}':
            lines = ['+HI {"v":2}', 'HELLO {"v":2}', "+OK", *lines]
        batch = ""
        for line in lines:
            if not line.startswith(_SAID_BY_SERVER):
                say(line.replace("b-KzJg9lop_mF3Bw", batch))
                continue
            heard = said()
            if line.startswith("b-"):
                batch = heard
                assert re.fullmatch(r"b-[\w-]{14}", heard)
            elif line.startswith("$") and "…" not in line:
                # Times are six digits long, or shorter by the zeros at their end.
                assert 0 <= int(line[1:]) - int(heard[1:]) <= 14, f"{page}: {line!r}, heard {heard!r}"
            else:
                expected = ".*".join(map(re.escape, line.replace("b-KzJg9lop_mF3Bw", batch).split("…")))
                assert re.fullmatch(expected, heard), f"{page}: {line!r}, heard {heard!r}"
