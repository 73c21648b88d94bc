"""Runs the web process, which serves the HTTP listener, and starts it again if it ends.

The server binds the socket and passes it on. So an address in use stops the start, and while the process starts again
connections wait in the socket's backlog.
"""

import asyncio
import logging
import os
from typing import Final

from crossdock import logs
from crossdock.journal.child_process import Child
from crossdock.lake.location import absolute
from crossdock.server import listeners
from crossdock.server.lake_keeper import location_of
from crossdock.settings.address import Address
from crossdock.settings.schema import Settings
from crossdock.web.options import WebOptions, encode

log = logging.getLogger("crossdock.web")

#: Seconds until a process that ended is started again. The delay doubles if it ends soon.
RETRY_S: Final = 1.0
_RETRY_MOST_S: Final = 60.0
_SOON_S: Final = 10.0


class WebKeeper:
    def __init__(self, settings: Settings, where: Address) -> None:
        self._settings = settings
        self._where = where
        self._child = Child("crossdock.web.process")
        self._child.hurried = True  # it serves people; it runs at the server's priority
        self._task: asyncio.Task[None] | None = None
        self._files_read = self._files()

    def bind(self) -> Address:
        """Bind the address and return it, with the port that was chosen. Raises CannotStart."""
        self._socket = listeners.bind_http(self._where)
        if not self._where.path:
            self._where = self._where._replace(port=self._socket.getsockname()[1])
        return self._where

    def start(self) -> None:
        self._socket.listen(128)
        self._task = asyncio.create_task(self._run())

    def _options(self) -> WebOptions:
        http, tls = self._settings.http, self._settings.tls
        return WebOptions(
            data=self._settings.server.data.absolute(),
            address=str(self._where),
            descriptor=self._socket.fileno(),
            password=http.password,
            token_file=http.token_file,
            hosts=tuple(name for part in http.hosts.split(",") if (name := part.strip())),
            tls_cert=tls.cert if self._where.tls else "",
            tls_key=tls.key if self._where.tls else "",
            lake=absolute(location_of(self._settings)),
            segment_s=self._settings.lake.segment_s if self._settings.lake.on else None,
            tables=absolute(self._settings.server.data / "tables"),
        )

    def reload(self, settings: Settings, changed: bool) -> bool:
        """Start the process again if its settings, its tokens or its certificate have changed. Returns whether it is.
        The sockets of its clients are closed, and users sign in again."""
        self._settings = settings
        files = self._files()
        if not changed and files == self._files_read:
            return False
        self._files_read = files
        self._child.replace()
        return True

    def _files(self) -> list[tuple[int, int] | None]:
        """The time and size of the files that the process reads at its start."""
        tls = self._settings.tls
        return [_version(name) for name in (self._settings.http.token_file, tls.cert, tls.key) if name]

    async def _run(self) -> None:
        loop, delay = asyncio.get_running_loop(), RETRY_S
        while True:
            started = loop.time()
            output = await self._child.start(pass_fds=(self._socket.fileno(),))
            self._child.send(encode(self._options()))
            async for line in output:
                logs.event(log, logging.INFO, "web-output", line.decode("utf-8", "replace").rstrip())
            code = await self._child.ended()
            if self._child.replaced:
                continue
            delay = RETRY_S if loop.time() - started > _SOON_S else min(2 * delay, _RETRY_MOST_S)
            text = f"the web process ended (exit code {code}); it is started again in {delay:.0f} s"
            logs.event(log, logging.ERROR, "web-ended", text, code=code)
            await asyncio.sleep(delay)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._child.kill()
            await asyncio.gather(self._task, return_exceptions=True)

    def close(self) -> None:
        self._socket.close()


def _version(name: str) -> tuple[int, int] | None:
    try:
        found = os.stat(name)
    except OSError:  # the process reports it
        return None
    return found.st_mtime_ns, found.st_size
