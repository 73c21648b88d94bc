"""A real terminal: a program in tmux, the keys sent to it, and the screen as a user sees it."""

import os
import selectors
import shlex
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support.patience import PATIENCE_S

_INTERRUPTS: Final = 6


class Terminal:
    """Starts the program on entry. Its output is read from a pipe, so that a test can wait for a text."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str], width: int, height: int) -> None:
        self._folder = folder
        self._environment = environment
        self._pipe = folder / "terminal.pipe"
        program = shlex.join(command)
        self._line = (
            f"{self._self()} wait-for begin; {program}; echo ended with $?; {self._self()} wait-for -S end; cat"
        )
        self._size = ["-x", str(width), "-y", str(height)]
        self._said = b""

    def _self(self) -> str:
        return shlex.join(["tmux", "-S", str(self._folder / "tmux"), "-f", "/dev/null"])

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            [*shlex.split(self._self()), *words],
            cwd=self._folder, env=self._environment | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
            check=True, capture_output=True, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
        return done.stdout

    def __enter__(self) -> Self:
        os.mkfifo(self._pipe)
        self._reader = os.open(self._pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._tmux("new-session", "-d", *self._size, self._line)
        self._tmux("pipe-pane", f"exec cat > {shlex.quote(str(self._pipe))}")
        self._tmux("wait-for", "-S", "begin")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tmux("kill-server")
        os.close(self._reader)

    def wait(self, text: str, seconds: float = PATIENCE_S) -> None:
        """Wait until the program has written this text, after the text of the previous wait."""
        wanted = text.encode()
        give_up = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._reader, selectors.EVENT_READ)
            while wanted not in self._said:
                if not selector.select(max(0.0, give_up - time.monotonic())):
                    raise AssertionError(f"{text!r} did not appear; the screen:\n{self.screen()}")
                self._said += os.read(self._reader, 65_536)
        self._said = self._said.partition(wanted)[2]

    def press(self, key: str) -> None:
        self._tmux("send-keys", key)

    def interrupt(self, text: str) -> None:
        """Press Ctrl-C until the program has written this text. Python's `input` misses a Ctrl-C that arrives just
        before it begins to read."""
        for _ in range(_INTERRUPTS):
            self.press("C-c")
            with suppress(AssertionError):
                return self.wait(text, PATIENCE_S / _INTERRUPTS)
        raise AssertionError(f"{text!r} did not appear after Ctrl-C; the screen:\n{self.screen()}")

    def end(self) -> None:
        """Wait until the program has ended."""
        self._tmux("wait-for", "end")

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")
