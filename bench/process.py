"""A server process under test."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from bench.target import Target, connect

START_S: Final = 60.0
_STOP_S: Final = 20.0
_POLL_S: Final = 0.002


class ServerFailed(Exception):
    """A server under test did not start, or ended by itself. The message has its log."""


class Process:
    """Runs in its own session, as under a service manager, because the kernel divides the processors by session."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "stderr"
        self._said = folder / "stdout"
        self.started = time.perf_counter()
        with self._log.open("wb") as log, self._said.open("wb") as said:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def said(self) -> str:
        """Its stdout so far."""
        return self._said.read_text("utf-8", "replace")

    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def check(self) -> None:
        """Raises ServerFailed if it has ended."""
        code = self._process.poll()
        if code is not None:
            raise ServerFailed(f"{self._process.args!r} ended with exit code {code}\n{self.log()[-4_000:]}")

    def wait_until(self, happened: Callable[[], bool], what: str, patience_s: float = START_S) -> None:
        give_up = time.perf_counter() + patience_s
        while not happened():
            self.check()
            if time.perf_counter() > give_up:
                raise ServerFailed(f"{self._process.args!r}: no {what} in {patience_s:.0f} s\n{self.log()[-4_000:]}")
            time.sleep(_POLL_S)

    def await_hello(self, target: Target) -> None:
        """Wait until a connection may send its first command."""

        def greeted() -> bool:
            try:
                connect(target).close()
            except ConnectionError:
                return False
            return True

        self.wait_until(greeted, "answer to HELLO")

    def rss(self) -> int:
        """Memory in bytes. The counters of /proc/PID/statm are not exact with several threads."""
        with open(f"/proc/{self._process.pid}/smaps_rollup", encoding="ascii") as file:
            for line in file:
                if line.startswith("Rss:"):
                    return int(line.split()[1]) * 1024
        raise ServerFailed(f"process {self._process.pid} tells no Rss")

    def cpu_seconds(self) -> float:
        """Processor time of all threads so far. On a busy machine it is more reliable than wall time."""
        times = Path(f"/proc/{self._process.pid}/stat").read_text("ascii").rpartition(")")[2].split()[11:13]
        return sum(int(ticks) for ticks in times) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def free_port() -> int:
    """A free port, for servers that cannot report their own. Another process could take it meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def clean_environment() -> dict[str, str]:
    """The environment without settings of the user's own server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("CROSSDOCK_")}
