"""Make the picture of `crossdock top` for the README and the docs, from a server under a small load.

    python -m tools.top_picture [FILE]

The script starts a server on a temporary data folder and free ports. Producers push jobs and workers of the Faktory
protocol run them for some seconds. Then it runs `crossdock top --once` in a pseudo terminal and saves the screen as
SVG, by default in docs/images/top.svg.
"""

import argparse
import fcntl
import os
import pty
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE: Final = Path(__file__).parents[1] / "docs" / "images" / "top.svg"

_WIDTH: Final = 110
_HEIGHT: Final = 22
#: The rates on the screen are those of the last ten seconds.
_LOAD_S: Final = 13.0
#: Each queue: the kind of its jobs, how many are pushed per second, and how many of 100 fail.
_QUEUES: Final = {
    "mail": ("welcome", 55, 1),
    "thumbnails": ("resize", 90, 2),
    "search": ("reindex", 30, 0),
    "reports": ("monthly", 4, 0),
}
_WORKERS: Final = ("mailer-1", "images-1", "images-2", "index-1")


class _Peer:
    """A connection that speaks the Faktory protocol."""

    def __init__(self, port: int, **hello: Any) -> None:
        self._wire = socket.create_connection(("127.0.0.1", port), 30).makefile("rwb")
        self._wire.readline()
        self.ask(b"HELLO", {"v": 2, **hello})

    def ask(self, verb: bytes, body: dict[str, Any]) -> None:
        self._send(verb + b" " + msgspec.json.encode(body))
        if (line := self._wire.readline()) != b"+OK\r\n":
            raise RuntimeError(f"{verb.decode()} returned {line!r}")

    def fetch(self, *queues: str) -> dict[str, Any] | None:
        self._send(" ".join(("FETCH", *queues)).encode())
        size = int(self._wire.readline()[1:])
        if size < 0:
            return None
        return dict(msgspec.json.decode(self._wire.read(size + 2)[:size]))

    def _send(self, line: bytes) -> None:
        self._wire.write(line + b"\r\n")
        self._wire.flush()


def _produce(port: int, until: float) -> None:
    peer = _Peer(port)
    for number in range(12):
        peer.ask(b"PUSH", {"jid": f"export-{number:05}", "jobtype": "nightly", "args": [number], "queue": "exports"})
    total = sum(rate for _, rate, _ in _QUEUES.values())
    queues = random.Random(7).choices(list(_QUEUES), [rate for _, rate, _ in _QUEUES.values()], k=100_000)
    for number, queue in enumerate(queues):
        if time.monotonic() > until:
            return
        peer.ask(b"PUSH", {"jid": f"job-{number:08}", "jobtype": _QUEUES[queue][0], "args": [number], "queue": queue})
        time.sleep(1 / total)


def _work(port: int, host: str, number: int, until: float) -> None:
    wid = f"{host}.{number}"
    peer = _Peer(port, wid=wid, hostname=host, pid=4_100 + number, labels=["demo"])
    chance = random.Random(number)
    queues = list(_QUEUES)[number % 2 :]
    beat = 0.0
    while time.monotonic() < until:
        if time.monotonic() > beat:
            peer.ask(b"BEAT", {"wid": wid, "rss_kb": 48_000 + 3_171 * number})
            beat = time.monotonic() + 3
        job = peer.fetch(*queues)
        if job is None:
            continue
        time.sleep(chance.uniform(0.015, 0.045))
        if time.monotonic() > until:
            return  # its last job stays leased, for the picture
        if chance.randrange(100) < _QUEUES[job["queue"]][2]:
            peer.ask(b"FAIL", {"jid": job["jid"], "errtype": "Timeout", "message": "no answer within 5 s"})
        else:
            peer.ask(b"ACK", {"jid": job["jid"]})


@contextmanager
def _server(data: Path) -> Iterator[int]:
    """Run a server and yield its Faktory port."""
    addresses = ("faktory=127.0.0.1:0", "redis=127.0.0.1:0", "workq=off", "masenko=off")
    listen = [word for address in addresses for word in ("--listen", address)]
    command = [sys.executable, "-m", "crossdock", "up", "--data", str(data), *listen]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = 0
            for line in process.stdout:
                if found := re.match(r" +faktory +\S+:(\d+)", line):
                    port = int(found[1])
                if line.startswith("ready"):
                    break
            yield port
        finally:
            process.terminate()


def _screen(command: list[str]) -> str:
    """What a command writes to a terminal of the picture's size, with its escape sequences."""
    terminal, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", _HEIGHT, _WIDTH, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    with subprocess.Popen(command, stdin=inner, stdout=inner, env=environment):
        os.close(inner)
        written = b""
        try:
            while more := os.read(terminal, 65_536):
                written += more
        except OSError:
            pass  # Linux reports the end of a pseudo terminal as an error
    os.close(terminal)
    return written.decode().replace("\r\n", "\n")


def picture(load_s: float = _LOAD_S) -> str:
    """Return the SVG."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        with _server(data) as port:
            until = time.monotonic() + load_s
            threads = [threading.Thread(target=_produce, args=(port, until))]
            threads += [
                threading.Thread(target=_work, args=(port, host, number, until + 1))
                for number, host in enumerate(_WORKERS)
            ]
            for thread in threads:
                thread.start()
            time.sleep(max(0.0, until - time.monotonic()))
            screen = _screen([sys.executable, "-m", "crossdock", "top", "--once", "--data", str(data)])
            for thread in threads:
                thread.join()
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=_WIDTH, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi(screen))
        return console.export_svg(title="crossdock top", theme=MONOKAI, unique_id="top", font_aspect_ratio=0.61)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=PICTURE)
    file: Path = parser.parse_args().file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(picture(), "utf-8")
    print(f"wrote {file}")


if __name__ == "__main__":
    main()
