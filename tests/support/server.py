"""A real server process in a folder: start, SIGTERM, SIGKILL, restart. Waits for its words, never for luck."""

import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from crossdock.server.doors import BUILT
from tests.support.faktory_client import Client

START_S: Final = 30.0
_DOOR: Final = re.compile(r"^ +(\w+) +\S*:(\d+)$", re.MULTILINE)
_READY: Final = re.compile(rb"^ready", re.MULTILINE)
_FAULTY: Final = Path(__file__).with_name("faulty_server.py")


class Server:
    """`settings` are full names (`limits.jobs`); `fault` names one of faulty_server.py's."""

    def __init__(
        self,
        data: Path,
        settings: Mapping[str, object] | None = None,
        fault: str = "",
        doors: Collection[str] = ("faktory",),
    ) -> None:
        self.data = data
        self._fault = fault
        self._doors = doors
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("CROSSDOCK_")} | {
            f"CROSSDOCK_{name.replace('.', '_').upper()}": str(value) for name, value in (settings or {}).items()
        }
        self.password = str((settings or {}).get("faktory.password", ""))
        self._process: subprocess.Popen[bytes] | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115, closed with the server
        self.ports: dict[str, int] = {}  #: of its doors, once it is ready
        self.keeps_ports = False  #: when it is started again

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
        """Start the process and do not wait."""
        how = ["-P", str(_FAULTY), self._fault] if self._fault else ["-m", "crossdock"]
        self._process = subprocess.Popen(
            [sys.executable, *how, "up", "--data", str(self.data), *self._listen()],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )

    def _listen(self) -> Iterator[str]:
        """Free ports: another server on this machine may have the usual ones."""
        for name in BUILT:
            port = self.ports.get(name, 0) if self.keeps_ports else 0
            yield from ("--listen", f"{name}={f'127.0.0.1:{port}' if name in self._doors else 'off'}")

    def start(self) -> Self:
        self.spawn()
        said = self._read_until(_READY, START_S)
        self.ports = {name: int(port) for name, port in _DOOR.findall(said.decode())}
        if set(self.ports) != set(self._doors):
            raise AssertionError(f"the server names other doors than {self._doors}: {said!r}")
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
                if not selector.select(give_up - time.monotonic()):
                    raise AssertionError(f"not ready after {seconds} s: {said!r}\n{self.log()}")
                chunk = os.read(stdout.fileno(), 65_536)
                if not chunk:
                    code = self._wait(10)
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
        self.signal(signal.SIGKILL)
        self._wait(10)

    def stop(self, seconds: float = 20.0) -> int:
        """SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        return self._wait(seconds)

    def _wait(self, seconds: float) -> int:
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"still running after {seconds} s\n{self.log()}") from late
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
        """End whatever still runs."""
        if self.running:
            self.kill()
        elif self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()
