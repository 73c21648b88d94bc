"""The server of the demo: a process on free ports, with its data in a temporary folder."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from crossdock.model.errors import CrossdockError
from crossdock.settings.address import Address, parse_address

#: The protocols that clients speak. Resqu and qless share the Redis listener.
PROTOCOLS: Final = ("faktory", "workq", "masenko", "redis")

#: Throttled: one `transcode` at a time. Two schedules. A pool for the jobs of Resqu, another for its batches.
_SETTINGS: Final = """\
[server]
log = "warning"
[lake]
segment_s = 5.0
[throttles]
video = { concurrency = 2 }
[[cron]]
name = "sweep old carts"
schedule = "* * * * *"
job = { type = "SweepCarts", queue = "chores", args = ["older than", 30] }
[[cron]]
name = "daily revenue report"
schedule = "0 6 * * *"
timezone = "Europe/Berlin"
job = { type = "RevenueReport", queue = "reports", args = ["yesterday"] }
[mapping.static.default]
default = "sync"
[mapping.batch.default]
default = "imports"
"""

#: Seconds for the server's shutdown.
_STOP_S: Final = 15.0
#: The end of the log that an error quotes.
_QUOTED_BYTES: Final = 2_000


class DemoFailed(CrossdockError):
    """The demo's server did not start. The text has the end of its log."""


class DemoServer:
    """Starts the server as a context manager. At the end the server is stopped and its folder removed."""

    def __init__(self, http: str) -> None:
        """`http` is the address of the dashboard."""
        self._http = http
        self.folder = Path(tempfile.mkdtemp(prefix="crossdock-demo-"))
        self.data = self.folder / "data"
        self.log = self.folder / "server.log"
        self.dashboard = ""  #: its URL
        self._addresses: dict[str, Address] = {}

    def address(self, protocol: str) -> Address:
        return self._addresses[protocol]

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        return self

    def _start(self) -> None:
        config = self.folder / "crossdock.toml"
        config.write_text(_SETTINGS, "utf-8")
        listen = [f"--listen={name}=127.0.0.1:0" for name in PROTOCOLS]
        command = [sys.executable, "-m", "crossdock", "up", "--config", str(config), "--data", str(self.data)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CROSSDOCK_")}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, *listen, f"--listen=http={self._http}"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for this process, which then stops the server
            )
        try:
            self._read_addresses()
        except BaseException:
            self._stop()
            raise

    def _read_addresses(self) -> None:
        """Read what `crossdock up` prints, until it is ready."""
        if self._process.stdout is None:
            raise RuntimeError("a pipe was requested")
        for line in self._process.stdout:
            match line.decode("utf-8", "replace").split():
                case ["ready", *_]:
                    return
                case ["dashboard", url]:
                    self.dashboard = url
                case [name, text] if name in PROTOCOLS and (address := parse_address(text)) is not None:
                    self._addresses[name] = address
        raise DemoFailed(f"the demo's server did not start: {self._end_of_log()}")

    def _end_of_log(self) -> str:
        text = self.log.read_bytes()[-_QUOTED_BYTES:].decode("utf-8", "replace").strip()
        return text.rpartition("\n")[2] or "its log is empty"

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def _stop(self) -> None:
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self.runs:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
