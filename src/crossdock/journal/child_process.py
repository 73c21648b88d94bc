"""Child processes of the server: the server's side (`Child`) and the child's side (`main`, `end_with_server`).

    python -m crossdock.journal.child_process LOG MODULE ARGUMENT...

LOG is the level and the format of the log, as in `logs.LogOptions`: the child logs to stderr as the server does.

A child ends with the server: the server keeps the child's stdin open. A child runs at the lowest priority, in the
server's session, and uses CPU time that no other process wants. If it must hurry it runs at the server's priority. An
ordinary user may lower a priority but not raise it again; then the child is killed and started again. So only work that
may be killed at any moment runs this way.

A closed terminal sends SIGHUP to the server and to its children. Python resets a signal that the server ignores when it
starts a process, so `main` ignores it before MODULE is imported, which may take a second. For the same reason asyncio
is imported only on the server's side, and the log after that.
"""

import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio

_MODULE: Final = "crossdock.journal.child_process"
_IDLE: Final = (os.SCHED_IDLE, os.sched_param(0))
_AS_SERVER: Final = (os.SCHED_OTHER, os.sched_param(0))


class Child:
    def __init__(self, module: str) -> None:
        self._module = module
        self._process: asyncio.subprocess.Process | None = None
        self.hurried = False  #: it runs at the server's priority, and so does the next one
        self.replaced = False  #: it was killed to start the next one at another priority

    async def start(self, *args: str | bytes, pass_fds: tuple[int, ...] = ()) -> "asyncio.StreamReader":
        """Start the process and return its output. It inherits the descriptors of `pass_fds`."""
        import asyncio

        pipe = asyncio.subprocess.PIPE
        self.replaced = False
        command = (*command_line(self._module), *args)
        self._process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, pass_fds=pass_fds)
        if not self.hurried:
            self._set(self._process, _IDLE)
        if self._process.stdout is None:
            raise RuntimeError("a pipe was requested")
        return self._process.stdout

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def ended(self) -> int:
        """Wait for the process and return its exit code."""
        code = 0 if self._process is None else await self._process.wait()
        self._process = None
        return code

    def hurry(self, hurried: bool) -> None:
        """Change the priority of a running process."""
        if self._process is not None and self._process.returncode is None and hurried is not self.hurried:
            self.hurried = hurried
            self._set(self._process, _AS_SERVER if hurried else _IDLE)

    def _set(self, process: "asyncio.subprocess.Process", policy: tuple[int, os.sched_param]) -> None:
        """Set the policy of all threads. Each has its own, and libraries such as delta-rs work in threads of theirs.
        The second round sees the threads that were started during the first."""
        try:
            for _ in range(2):
                for thread in os.listdir(f"/proc/{process.pid}/task"):
                    with suppress(ProcessLookupError):  # it has ended
                        os.sched_setscheduler(int(thread), *policy)
        except FileNotFoundError:
            pass  # the process has ended
        except PermissionError:
            self.replaced = True
            process.kill()

    def nudge(self) -> None:
        """Call what the process has passed to `end_with_server`."""
        self.send(b"\n")

    def send(self, data: bytes) -> bool:
        """Write to the process' stdin. False: it does not run."""
        if self._process is None or self._process.returncode is not None or self._process.stdin is None:
            return False
        self._process.stdin.write(data)
        return True

    def unsent_bytes(self) -> int:
        """Bytes written to stdin that the process has not read."""
        process = self._process
        return 0 if process is None or process.stdin is None else process.stdin.transport.get_write_buffer_size()

    def replace(self) -> None:
        """Kill it, so that the next one is started with other options. One that is just being started gets them."""
        if self._process is not None:
            self.replaced = True
            self.kill()

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()


def command_line(module: str) -> list[str]:
    """The command that starts a child, without its arguments."""
    from crossdock import logs

    return [sys.executable, "-m", _MODULE, str(logs.options()), module]


def end_with_server(nudged: Callable[[], None] = lambda: None) -> None:
    """Called in the child: exit when stdin ends. `nudged` is called in another thread when the server asks for it."""
    threading.Thread(target=_watch, args=(nudged,), daemon=True).start()


def _watch(nudged: Callable[[], None]) -> None:
    # Without sys.stdin: its lock, held by this thread, would make the interpreter abort at its exit.
    while os.read(0, 4_096):
        nudged()
    os._exit(1)


def main() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    from crossdock import logs

    logs.configure(logs.LogOptions.parse(sys.argv[1]), sys.argv[2].removeprefix("crossdock."))
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
