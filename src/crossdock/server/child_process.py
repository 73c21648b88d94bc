"""A process of the server's own. It ends with the server, and runs at the lowest priority, in the server's session: it
takes what nobody else wants of the processors. In a hurry it runs at the server's.

An ordinary user may lower a priority but not raise it again. There the process is ended and started anew: those that
are kept this way may be killed at any moment.
"""

import asyncio
import os
import sys
from typing import Final

#: Starts a module as a child process that ignores SIGHUP, as the server does.
RUNNER: Final = "crossdock.journal.child_process"

_IDLE: Final = (os.SCHED_IDLE, os.sched_param(0))
_AS_SERVER: Final = (os.SCHED_OTHER, os.sched_param(0))


class Child:
    def __init__(self, module: str) -> None:
        self._module = module
        self._process: asyncio.subprocess.Process | None = None
        self.hurried = False  #: it runs at the server's priority, and so will the next one
        self.replaced = False  #: it was ended for the next one's sake

    async def start(self, *args: str | bytes) -> asyncio.StreamReader:
        """Its output. Its stdin stays open as long as the server runs, and it ends when that does."""
        pipe = asyncio.subprocess.PIPE
        self.replaced = False
        command = (sys.executable, "-m", RUNNER, self._module, *args)
        self._process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        if not self.hurried:
            self._set(self._process, _IDLE)
        if self._process.stdout is None:
            raise RuntimeError("a pipe was asked for")
        return self._process.stdout

    async def ended(self) -> int:
        """Its exit code, once it has one."""
        code = 0 if self._process is None else await self._process.wait()
        self._process = None
        return code

    def hurry(self, hurried: bool) -> None:
        if self._process is not None and self._process.returncode is None and hurried is not self.hurried:
            self.hurried = hurried
            self._set(self._process, _AS_SERVER if hurried else _IDLE)

    def _set(self, process: asyncio.subprocess.Process, policy: tuple[int, os.sched_param]) -> None:
        try:
            os.sched_setscheduler(process.pid, *policy)
        except ProcessLookupError:
            pass  # it has ended by itself
        except PermissionError:
            self.replaced = True
            process.kill()

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
