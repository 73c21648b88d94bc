"""The servers behind the libraries: Debian's Redis and PostgreSQL, and Crossdock, each on a free port."""

import glob
import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

import msgspec

from bench.process import Process, free_port
from bench.servers import Crossdock
from bench.target import connect
from bench.worker.venvs import NotInstalled

_PATIENCE_S: Final = 60.0


class Service(Protocol):
    url: str

    def clear(self) -> None:
        """Remove all jobs."""

    def done(self) -> int | None:
        """Jobs completed since the last `clear`, if the server counts them."""


class _Redis:
    def __init__(self, port: int) -> None:
        self.url = f"redis://127.0.0.1:{port}/0"
        self._port = port

    def clear(self) -> None:
        self.ask(b"FLUSHALL SYNC")

    def done(self) -> None:
        return None

    def ask(self, command: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self._port), _PATIENCE_S) as connection:
            connection.sendall(command + b"\r\n")
            return connection.recv(64)

    def answers(self) -> bool:
        try:
            return self.ask(b"PING").startswith(b"+PONG")
        except OSError:
            return False


@contextmanager
def redis(folder: Path) -> Iterator[Service]:
    """Redis without persistence: no other setting is as fast, and none is as unsafe."""
    program = shutil.which("redis-server")
    if program is None:
        raise NotInstalled("redis-server is not installed (Debian: apt-get install redis-server)")
    port = free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    with Process(command, folder) as process:
        service = _Redis(port)
        process.wait_until(service.answers, "answer to PING")
        yield service


class _Postgres:
    def __init__(self, tools: Path, port: int) -> None:
        self.url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        self._tools = tools

    def clear(self) -> None:
        self._query("TRUNCATE oban_jobs")

    def done(self) -> None:
        return None

    def answers(self) -> bool:
        return self._query("SELECT 1", check=False) == 0

    def _query(self, text: str, *, check: bool = True) -> int:
        command = [str(self._tools / "psql"), "--quiet", "--command", text, self.url]
        return subprocess.run(command, check=check, capture_output=True, timeout=_PATIENCE_S).returncode


def _postgres_tools() -> Path:
    """The folder of PostgreSQL's programs. Debian does not have them in PATH. Raises NotInstalled."""
    places = [shutil.which("postgres") or "", *sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"), reverse=True)]
    for place in filter(None, places):
        tools = Path(place).resolve().parent
        if (tools / "initdb").exists() and (tools / "psql").exists():
            return tools
    raise NotInstalled("PostgreSQL is not installed (Debian: apt-get install postgresql)")


@contextmanager
def postgres(folder: Path) -> Iterator[Service]:
    """PostgreSQL with its own settings: every commit is synced to disk."""
    tools = _postgres_tools()
    data, port = folder / "data", free_port()
    data.mkdir(parents=True)
    as_user: list[str] = []
    if os.getuid() == 0:  # PostgreSQL refuses to run as root
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            raise NotInstalled("PostgreSQL does not run as root, and there is no user postgres") from None
        as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        os.chown(data, user.pw_uid, user.pw_gid)
    first = [
        str(tools / "initdb"),
        "-D",
        str(data),
        "--username=postgres",
        "--auth=trust",
        "--no-locale",
        "--encoding=UTF8",
    ]
    try:
        subprocess.run([*as_user, *first], check=True, capture_output=True, text=True, timeout=_PATIENCE_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise NotInstalled(f"initdb failed: {getattr(error, 'stderr', None) or error}") from error
    settings = (
        "listen_addresses=127.0.0.1",
        f"port={port}",
        f"unix_socket_directories={data}",
        "logging_collector=off",
    )
    command = [
        *as_user,
        str(tools / "postgres"),
        "-D",
        str(data),
        *(word for each in settings for word in ("-c", each)),
    ]
    with Process(command, folder / "log") as process:
        service = _Postgres(tools, port)
        process.wait_until(service.answers, "answer to SELECT 1")
        yield service


class _Crossdock:
    """The server of this working tree, with its default settings: every job is synced to disk before its reply."""

    def __init__(self, server: Crossdock) -> None:
        self.url = f"tcp://{server.target.host}:{server.target.port}"
        self._server = server
        self._before = 0

    def clear(self) -> None:
        self._ask(b"FLUSH")
        self._before = self._processed()

    def done(self) -> int:
        return self._processed() - self._before

    def _processed(self) -> int:
        info = msgspec.json.decode(self._ask(b"INFO"))
        return int(info["faktory"]["total_processed"])

    def _ask(self, command: bytes) -> bytes:
        with connect(self._server.target) as connection, connection.makefile("rb") as replies:
            connection.sendall(command + b"\r\n")
            head = replies.readline()
            return replies.read(int(head[1:])) if head.startswith(b"$") else head


@contextmanager
def crossdock(folder: Path) -> Iterator[Service]:
    with Crossdock(folder) as server:
        yield _Crossdock(server)


SERVICES: Final[dict[str, Callable[[Path], AbstractContextManager[Service]]]] = {
    "redis": redis,
    "postgres": postgres,
    "crossdock": crossdock,
}
