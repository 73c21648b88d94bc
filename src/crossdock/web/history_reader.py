"""The web process' side of the history: starts the child process on demand, limits it, and ends it when it is idle."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec

from crossdock import logs
from crossdock.journal.child_process import Child
from crossdock.web.admin import Refused, ServerUnavailable

log = logging.getLogger("crossdock.web")

#: Seconds for one request, and until an idle process ends.
REQUEST_S: Final = 10.0
IDLE_S: Final = 30.0

MEMORY_MIB: Final = 300
_WATCH_S: Final = 0.05

#: Requests that wait for the process. It serves one at a time.
_WAITING: Final = 8

_PART_BYTES: Final = 64 * 1024 * 1024
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")

Part = dict[str, Any]


class History:
    def __init__(self, data: str, lake: str, tables: str, segment_s: float | None) -> None:
        """`segment_s` is lake.segment_s; None: the server writes no lake."""
        self._data = data
        self._lake = lake
        self._segment_s = segment_s
        self._tables = tables
        self._child = Child("crossdock.web.history_process")
        self._child.hurried = True
        self._output: asyncio.StreamReader | None = None
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._idle: asyncio.TimerHandle | None = None
        self._too_large = False

    @property
    def pid(self) -> int | None:
        """None: the process does not run."""
        return self._child.pid if self._child.is_running else None

    async def job(self, ident: int | str) -> AsyncIterator[Part]:
        """The events of a job, by its number or jid, a part for each day, newest first. The last part has `finished`
        and says how far the search went. Raises Refused or ServerUnavailable."""
        async for part in self._ask(do="job", lake=self._lake, ident=ident, segment_s=self._segment_s):
            yield part

    async def whole_job(self, ident: int | str) -> Part:
        """The events of a job in one part, oldest first."""
        events: list[Part] = []
        last: Part = {}
        async for part in self.job(ident):
            events += part.get("events", [])
            last = part
        return last | {"events": events[::-1]}

    async def table(
        self, name: str, days: int = 30, until: str | None = None, queue: str | None = None, limit: int = 1_000
    ) -> Part:
        """Rows of one of the pipeline's tables. Raises Refused or ServerUnavailable."""
        found: Part = {}
        fields = {"name": name, "days": days, "until": until, "queue": queue, "limit": limit}
        async for part in self._ask(do="table", tables=self._tables, lake=self._lake, **fields):
            found = part
        return found

    async def checks(self) -> list[str]:
        """What doctor finds wrong with the journal and the lake. Raises Refused or ServerUnavailable."""
        found: list[str] = []
        lake = self._lake if self._segment_s is not None else None
        async for part in self._ask(do="checks", data=self._data, lake=lake):
            found = part["warnings"]
        return found

    async def _ask(self, **request: Any) -> AsyncIterator[Part]:
        if self._waiting >= _WAITING:
            raise ServerUnavailable("too many requests for history; try again in a few seconds")
        self._waiting += 1
        try:
            await self._turn.acquire()
        finally:
            self._waiting -= 1
        is_done, until = False, asyncio.get_running_loop().time() + REQUEST_S
        try:
            await self._begin(request)
            while not is_done:
                async with asyncio.timeout_at(until):
                    part = await self._part()
                is_done = "finished" in part or "error" in part
                if "error" in part:
                    raise Refused(part["error"])
                yield part
        except TimeoutError as error:
            raise ServerUnavailable(f"reading the history took longer than {REQUEST_S:.0f} s") from error
        finally:
            if is_done:
                self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._stop)
            else:  # the rest of the reply would be taken for the next one
                self._stop()
            self._turn.release()

    def _stop(self) -> None:
        """The process may still be listed for a moment, so the next request must not use it."""
        self._output = None
        self._child.kill()

    async def _begin(self, request: Part) -> None:
        if self._idle is not None:
            self._idle.cancel()
        if self._output is None or self._output.at_eof() or not self._child.is_running:
            self._child.kill()
            await self._child.ended()
            self._output = await self._child.start()
        self._too_large = False
        self._child.send(msgspec.json.encode(request) + b"\n")

    async def _part(self) -> Part:
        """Raises ServerUnavailable if the process ends."""
        if self._output is None:
            raise RuntimeError("the process is not running")
        watch = asyncio.create_task(self._watch())
        try:
            size = int(await self._output.readuntil(b"\n"))
            if size > _PART_BYTES:
                raise ServerUnavailable("the history of this job is too large to show")
            part: Part = msgspec.json.decode(await self._output.readexactly(size))
        except (asyncio.IncompleteReadError, ValueError) as error:
            what = f"needed more than {MEMORY_MIB} MiB" if self._too_large else "ended; the server's log has the reason"
            raise ServerUnavailable(f"the process that reads the history {what}") from error
        finally:
            watch.cancel()
        return part

    async def _watch(self) -> None:
        """Kill the process when it is too large. A limit on its address space would stop Arrow, which reserves much
        more than it uses."""
        while True:
            if resident_mib(self._child.pid) > MEMORY_MIB:
                text = f"the process that reads the history was stopped: it needed more than {MEMORY_MIB} MiB"
                logs.event(log, logging.WARNING, "history-stopped", text)
                self._too_large = True
                self._child.kill()
                return
            await asyncio.sleep(_WATCH_S)

    async def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._stop()
        await self._child.ended()


def resident_mib(pid: int | None) -> float:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]
    except (OSError, IndexError):  # it has ended
        return 0.0
    return int(pages) * _PAGE_BYTES / 1024 / 1024
