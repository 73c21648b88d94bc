"""Starts the load program, sends it steps and reads its figures."""

import subprocess
import sys
from pathlib import Path
from secrets import token_hex
from typing import Final

import msgspec

from bench.figures import Run
from bench.load import Order
from bench.target import Target
from crossdock.client.base import Closes

_ROOT: Final = Path(__file__).resolve().parent.parent


class LoadFailed(Exception):
    """The load program ended early. It has printed the reason."""


class Driver(Closes):
    """A new queue name for each load: an external server may have other jobs."""

    def __init__(self, target: Target, connections: int, beside: Target | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.load"],
            cwd=_ROOT,
            bufsize=0,  # a buffered line that cannot be written would fail again when the pipe is closed
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._tell(msgspec.json.encode(Order(target, connections, f"bench-{token_hex(4)}", beside)))

    def _tell(self, line: bytes) -> None:
        if self._process.stdin is None:
            raise RuntimeError("the load was started without a pipe")
        try:
            self._process.stdin.write(line + b"\n")
        except BrokenPipeError:
            raise self._failed() from None

    def _failed(self) -> LoadFailed:
        return LoadFailed(f"the load ended with exit code {self._process.wait()}")

    def step(self, name: str, size: int = 0) -> Run:
        self._tell(f"{name} {size}".encode())
        if self._process.stdout is None:
            raise RuntimeError("the load was started without a pipe")
        line = self._process.stdout.readline()
        if not line:
            raise self._failed()
        return msgspec.json.decode(line, type=Run)

    def close(self) -> None:
        """End the load program, which closes its connections."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
