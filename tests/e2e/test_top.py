"""`crossdock top` in a real terminal: its screen, and that it restores the terminal."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import Operator
from tests.support.server import Server
from tests.support.terminal import Terminal

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None,
    reason="tmux is missing, so crossdock top was not tested in a terminal; install tmux",
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as running:
        yield running


@pytest.fixture
def terminal(server: Server, tmp_path: Path) -> Iterator[Terminal]:
    command = [sys.executable, "-m", "crossdock", "top", "--data", "data", "--every", "0.2"]
    with Terminal(command, tmp_path, Operator(tmp_path).environment, 100, 24) as shown:
        yield shown


@pytest.mark.parametrize("key", ["q", "C-c"])
def test_top_shows_the_state_and_restores_the_screen(server: Server, terminal: Terminal, key: str) -> None:
    terminal.wait("oldest")
    with server.client(wid="worker-7") as client:
        for n in range(40):
            client.push(f"job-{n:05d}", f"queue-{n:02d}")
        client.push("job-more", "queue-07", priority=9)
        client.call("QUEUE PAUSE queue-07")
        client.fetch("queue-08")
        for text in ("leased 1", "paused", "running"):  # in the order of one screen, after all events
            terminal.wait(text)
        screen = terminal.screen()
        assert re.search(r"^Crossdock \S+  up \S+  \d+ connections  \d+ MiB$", screen, re.MULTILINE)
        assert re.search(r"^listen +faktory 127\.0\.0\.1:\d+$", screen, re.MULTILINE)
        assert re.search(r"^jobs +ready 40  scheduled 0  leased 1  retrying 0  dead 0", screen, re.MULTILINE)
        assert re.search(r"^rates +pushed [\d.,]+/s  leased", screen, re.MULTILINE)
        assert re.search(r"^disk +sync p50 [\d.]+ ms p99 [\d.]+ ms", screen, re.MULTILINE)
        assert re.search(r"^queue-07 +2 +\S+ +\S+ +\S+ +\S+ +paused", screen, re.MULTILINE), (
            "the longest queue is first"
        )
        assert re.search(r"^worker-7 +test +1 +running +1 ", screen, re.MULTILINE), (
            "queues must leave space for workers"
        )
        assert re.search(r"^and \d+ more queues$", screen, re.MULTILINE)
        assert len(screen.rstrip().splitlines()) <= 24
    terminal.press(key)
    terminal.end()
    screen = terminal.screen()
    assert "ended with 0" in screen
    assert "queue-07" not in screen, "the previous screen is restored"


def test_a_server_stop_ends_top_with_a_message(server: Server, terminal: Terminal) -> None:
    terminal.wait("oldest")
    server.stop()
    terminal.end()
    screen = terminal.screen()
    assert "crossdock: the server" in screen
    assert "ended with 1" in screen
