"""A real server process in a folder: start, SIGTERM, SIGKILL, restart. Waits for log lines, not for fixed times."""

import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from crossdock.server.endpoints import LISTENERS
from tests.support.faktory_client import Client
from tests.support.patience import IDLE_PATIENCE_S, PATIENCE_S, wait_until
from tests.support.ports import hold_port

_DOOR: Final = re.compile(r"^ +(\w+) +\S*:(\d+)$", re.MULTILINE)
_READY: Final = re.compile(rb"^ready", re.MULTILINE)
_FAULTY: Final = Path(__file__).with_name("faulty_server.py")

#: A test that pauses for some seconds before its HELLO is not a slow client. Tests of slow clients set their own limit.
_PATIENT: Final = {"faktory.handshake_s": 60, "redis.handshake_s": 60}


class Server:
    """`settings` are full names (`limits.jobs`); `fault` is one of faulty_server.py; `config` is a settings file;
    the protocols in `tls` speak TLS."""

    def __init__(
        self,
        data: Path,
        settings: Mapping[str, object] | None = None,
        fault: str = "",
        protocols: Collection[str] = ("faktory",),
        *,
        keeps_ports: bool = False,
        config: Path | None = None,
        tls: Collection[str] = (),
    ) -> None:
        self.data = data
        self._config = config
        self._fault = fault
        self._protocols = protocols
        self._tls = tls
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("CROSSDOCK_")} | {
            f"CROSSDOCK_{name.replace('.', '_').upper()}": str(value)
            for name, value in (_PATIENT | dict(settings or {})).items()
        }
        self.password = str((settings or {}).get("faktory.password", ""))
        self._process: subprocess.Popen[bytes] | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115, closed with the server
        self.ports: dict[str, int] = {}  #: of its listeners, once it is ready
        self._orphans: list[tuple[int, str]] = []  #: child processes of a killed server
        #: Reserved ports of listeners that keep their port across restarts
        self._held: dict[str, socket.socket] = {name: hold_port() for name in protocols} if keeps_ports else {}

    @property
    def port(self) -> int:
        return self.ports["faktory"]

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    @property
    def url(self) -> str:
        secret = f":{self.password}@" if self.password else ""
        return f"tcp://{secret}127.0.0.1:{self.port}"

    @property
    def process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the server was not started")
        return self._process

    def spawn(self) -> None:
        """Start the process without waiting."""
        how = ["-P", str(_FAULTY), self._fault] if self._fault else ["-m", "crossdock"]
        self._process = subprocess.Popen(
            [sys.executable, *how, "up", "--data", str(self.data), *self._listen(), *self._file()],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )

    def _listen(self) -> Iterator[str]:
        """Use free ports, because another server on this machine may use the default ones."""
        for name in LISTENERS:
            port = self._held[name].getsockname()[1] if name in self._held else 0
            yield from (
                "--listen",
                f"{name}={self._scheme(name)}127.0.0.1:{port}" if name in self._protocols else f"{name}=off",
            )

    def _scheme(self, name: str) -> str:
        return "tls:" if name in self._tls else ""

    def _file(self) -> list[str]:
        return [] if self._config is None else ["--config", str(self._config)]

    def start(self) -> Self:
        self.spawn()
        said = self._read_until(_READY, PATIENCE_S)
        self.ports = {name: int(port) for name, port in _DOOR.findall(said.decode())}
        if set(self.ports) != set(self._protocols):
            raise AssertionError(f"the server reports other listeners than {self._protocols}: {said!r}")
        return self

    def _read_until(self, pattern: re.Pattern[bytes], seconds: float) -> bytes:
        stdout = self.process.stdout
        if stdout is None:
            raise RuntimeError("the server's output is not read")
        said = b""
        give_up = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while not pattern.search(said):
                if not selector.select(max(0.0, give_up - time.monotonic())):
                    raise AssertionError(f"not ready after {seconds} s: {said!r}\n{self.log()}")
                chunk = os.read(stdout.fileno(), 65_536)
                if not chunk:
                    code = self._wait()
                    raise AssertionError(f"ended with code {code} before it was ready: {said!r}\n{self.log()}")
                said += chunk
        return said

    def log(self) -> str:
        self._log.flush()
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode("utf-8", "replace")

    def client(self, **options: Any) -> Client:
        return Client(self.address, password=self.password, **options)

    def signal(self, signum: int) -> None:
        self.process.send_signal(signum)

    def kill(self) -> None:
        self._orphans += self.children()
        self.signal(signal.SIGKILL)
        self._wait()

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.signal(signal.SIGTERM)
        return self._wait()

    def _wait(self) -> int:
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"still running after {PATIENCE_S} s\n{self.log()}") from late
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    wait = _wait

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def restart(self) -> None:
        if self.running:
            self.kill()
        self.start()

    def rss_mib(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_bytes().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            sys.stderr.write(self.log()[-10_000:])
        self.close()

    def close(self) -> None:
        """End all running processes and wait for the server's children, which have files of the data folder open."""
        if self.running:
            self.kill()
        elif self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()
        wait_until(lambda: not any(map(_runs, self._orphans)), "the end of its children", IDLE_PATIENCE_S)
        self._log.close()
        for held in self._held.values():
            held.close()

    def children(self) -> list[tuple[int, str]]:
        """The processes of the compactor and the lake, if they run, with their start times."""
        try:
            pids = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text("ascii")
        except OSError:  # the process has ended
            return []
        return [(pid, _started(pid)) for pid in map(int, pids.split())]


def _started(pid: int) -> str:
    """Start time by the kernel's clock; "" if the process has ended."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else fields[18]


def _runs(child: tuple[int, str]) -> bool:
    pid, started = child
    return started != "" and _started(pid) == started
