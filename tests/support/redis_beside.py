"""A real redis-server, and the replies of two servers to the same requests."""

import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Self

from tests.support.patience import PATIENCE_S
from tests.support.ports import hold_port


def missing_redis() -> str | None:
    """Why no comparable Redis is available, or None. Error texts and checks differ between releases."""
    if shutil.which("redis-server") is None:
        return "redis-server is not installed"
    said = subprocess.run(["redis-server", "--version"], capture_output=True, text=True, check=True).stdout
    return None if " v=7.0." in said else f"redis-server is another than 7.0: {said.strip()}"


class RealRedis:
    """A Redis with one database and no persistence on a free port."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._held = hold_port()
        self.port: int = self._held.getsockname()[1]
        self._process = subprocess.Popen(
            [
                *("redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(folder)),
                *("--databases", "1", "--appendonly", "no", "--save", "", *options),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        give_up = time.monotonic() + PATIENCE_S
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as peer:
                    peer.sendall(b"PING\r\n")
                    if peer.recv(100):
                        return self
            except ConnectionRefusedError:
                if self._process.poll() is not None or time.monotonic() > give_up:
                    raise
            time.sleep(0.01)

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        self._held.close()


class Reply(NamedTuple):
    """A reply with its type on the wire: `*-1` differs from `$-1`, and a push from an array."""

    kind: str
    value: Any

    def __repr__(self) -> str:
        text = f"{self.kind}{self.value!r}"
        return text if len(text) <= 2_000 else f"{text[:2_000]}…"


GONE: Final = Reply("closed", None)


class Peer:
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self._file: BinaryIO = self._socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def read(self) -> Reply:
        line = self._file.readline()
        if not line:
            return GONE
        kind, rest = chr(line[0]), line[1:-2]
        match kind:
            case "$" | "=":
                size = int(rest)
                return Reply(kind, None if size < 0 else self._file.read(size + 2)[:-2])
            case "*" | "~" | ">" | "%":
                count = int(rest) * (2 if kind == "%" else 1)
                return Reply(kind, None if count < 0 else [self.read() for _ in range(count)])
        return Reply(kind, rest.decode("latin-1"))

    def close(self) -> None:
        """Wait until the server has closed the connection, so that it no longer counts as a subscriber."""
        with suppress(ConnectionError):
            self.send(b"QUIT\r\n")
            while self.read() != GONE:
                pass
        self._file.close()
        self._socket.close()


class Both:
    """A connection to Redis and one to Crossdock that receive the same requests."""

    def __init__(self, redis: int, ours: int) -> None:
        self.redis, self.ours = Peer(redis), Peer(ours)

    def ask(self, data: bytes) -> tuple[Reply, Reply]:
        self.send(data)
        return self.read()

    def send(self, data: bytes) -> None:
        self.redis.send(data)
        self.ours.send(data)

    def read(self) -> tuple[Reply, Reply]:
        return self.redis.read(), self.ours.read()

    def close(self) -> None:
        self.redis.close()
        self.ours.close()


def array(words: list[str]) -> bytes:
    coded = [word.encode() for word in words]
    return b"*%d\r\n" % len(coded) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in coded)


def inline(words: list[str]) -> bytes:
    """The same as an inline command, each word in quotes."""
    escapes = str.maketrans({'"': '\\"', "\\": "\\\\", "\r": "\\r", "\n": "\\n"})
    return " ".join(f'"{word.translate(escapes)}"' for word in words).encode() + b"\r\n"
