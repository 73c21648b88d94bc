"""A client program in a separate process. A test can wait for its output lines."""

import os
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from tests.support.patience import PATIENCE_S


class Program:
    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            command,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._unread: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        if self._process.stdout is not None:
            for line in self._process.stdout:
                self._unread.put(line.rstrip("\n"))
        self._unread.put(None)

    def wait_for(self, line: str, seconds: float = PATIENCE_S) -> None:
        """Wait until the program has printed this line."""
        while line not in self.lines:
            try:
                found = self._unread.get(timeout=seconds)
            except queue.Empty:
                found = None
            if found is None:
                raise AssertionError(f"the program did not print {line!r}; its output:\n" + "\n".join(self.lines))
            self.lines.append(found)

    def end(self, seconds: float = PATIENCE_S) -> list[str]:
        """Wait until the program ends and return all its output lines."""
        self._process.wait(seconds)
        while (line := self._unread.get(timeout=seconds)) is not None:
            self.lines.append(line)
        return self.lines

    @property
    def code(self) -> int | None:
        return self._process.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        if self._process.stdout is not None:
            self._process.stdout.close()
