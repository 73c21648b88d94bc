"""A real worker in a process of its own, on a real server."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.command_line import CLEAN
from tests.support.patience import PATIENCE_S, wait_until
from tests.support.server import Server

ROOT = Path(__file__).parents[2]
TASKS = "tests.support.worker_tasks"


class WorkerProcess:
    """Runs the tasks of `worker_tasks.py` unless another module is named."""

    def __init__(
        self,
        folder: Path,
        url: str,
        *options: str,
        target: str = TASKS,
        app_dir: Path = ROOT,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.events_file = folder / "events"
        self.status = folder / "status.json"
        self._log_file = folder / "worker.log"
        self._options = [
            target, "--app-dir", str(app_dir), "--status", str(self.status), "--log-level", "debug", *options
        ]  # fmt: skip
        self._environment = CLEAN | {
            "WORKER_EVENTS": str(self.events_file),
            "CROSSDOCK_URL": url,
            **(environment or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def on(cls, server: Server, folder: Path, *options: str, **more: str) -> Self:
        return cls(folder, server.url, *options, environment=more)

    def start(self, *, ready: bool = True) -> Self:
        """Start it, and wait until a process is ready to run tasks."""
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "crossdock", "worker", "run", *self._options],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        if ready:
            self.wait_for_log("signals:")
        return self

    @property
    def process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the worker was not started")
        return self._process

    def log(self) -> str:
        return self._log_file.read_text("utf-8", "replace") if self._log_file.exists() else ""

    def wait_for_log(self, text: str, times: int = 1) -> None:
        def logged() -> bool:
            if self.log().count(text) >= times:
                return True
            if self.process.poll() is not None and self.log().count(text) < times:
                raise AssertionError(f"the worker ended before it logged {text!r}:\n{self.log()}")
            return False

        wait_until(logged, lambda: f"{text!r} in the log:\n{self.log()}")

    def events(self, *beginning: str) -> list[list[str]]:
        """The lines that tasks have written, those that begin with these words."""
        if not self.events_file.exists():
            return []
        lines = [line.split(" ") for line in self.events_file.read_text("utf-8").splitlines()]
        return [line for line in lines if tuple(line[: len(beginning)]) == beginning]

    def wait_for(self, *beginning: str, times: int = 1) -> list[list[str]]:
        wait_until(
            lambda: len(self.events(*beginning)) >= times,
            lambda: f"{beginning} {times} times in {self.events()}; the log:\n{self.log()}",
        )
        return self.events(*beginning)

    def open_gate(self, name: str) -> None:
        (self.events_file.parent / f"gate-{name}").touch()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"the worker still runs; its log:\n{self.log()}") from late

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.wait()

    def children(self) -> list[int]:
        """Process IDs of its child processes. Linux only."""
        try:
            found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text("ascii")
        except OSError:
            return []
        return [int(pid) for pid in found.split()]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            sys.stderr.write(self.log()[-10_000:])
        if self._process is not None and self._process.poll() is None:
            self.kill()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
