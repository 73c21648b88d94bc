"""A TCP proxy, perhaps with TLS, that loses replies at random: it closes the connection instead of passing one on."""

import asyncio
import ssl
import threading
from contextlib import suppress
from random import Random
from types import TracebackType
from typing import Self

from tests.support.patience import PATIENCE_S


class LossyProxy:
    """`loss` is the share of chunks from the server that are lost. The first two of a connection, which belong to the
    handshake, never are."""

    def __init__(
        self, address: tuple[str, int], *, loss: float = 0.0, seed: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        self._target = address
        self._loss = loss
        self._random = Random(seed)
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.lost = 0
        self.connections = 0

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        while self._writers:
            await asyncio.sleep(0.01)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            self._writers.discard(writer)
            return
        self._writers.add(far_writer)
        with suppress(OSError):
            requests = asyncio.create_task(self._pass_on(reader, far_writer))
            await self._pass_back(far_reader, writer)
            await requests
        for each in (writer, far_writer):
            each.transport.abort()
            with suppress(OSError):
                await each.wait_closed()
            self._writers.discard(each)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
            writer.transport.abort()

    async def _pass_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        chunks = 0
        while data := await reader.read(65_536):
            chunks += 1
            if chunks > 2 and self._random.random() < self._loss:
                self.lost += 1
                break
            writer.write(data)
            await writer.drain()
        writer.transport.abort()
