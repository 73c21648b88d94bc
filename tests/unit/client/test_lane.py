"""The asyncio client over a real socket, with a server that is silent, slow to read, or gone."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from crossdock.client.aio import AsyncClient
from crossdock.client.errors import Broken
from crossdock.client.jobs import NewJob
from tests.support.fake_faktory import EXTENSIONS, bulk
from tests.support.patience import PATIENCE_S

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def run(serve: Serve, use: Callable[[str], Awaitable[None]]) -> None:
    async def handled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'+HI {"v":2}\r\n')
        await reader.readline()
        limits = {"line_bytes": 16_000_000, "fetch_many": 10}
        writer.write(bulk({"server": "test", "extensions": EXTENSIONS, "limits": limits}))
        try:
            await serve(reader, writer)
        finally:
            writer.transport.abort()

    async def main() -> None:
        server = await asyncio.start_server(handled, "127.0.0.1", 0, limit=2**21)
        async with server:
            async with asyncio.timeout(PATIENCE_S):
                await use(f"crossdock://127.0.0.1:{server.sockets[0].getsockname()[1]}")

    asyncio.run(main())


def test_a_server_that_does_not_reply() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def use(url: str) -> None:
        async with AsyncClient(url, timeout_s=0.1, patience_s=0) as client:
            for _ in range(2):
                with pytest.raises(Broken, match="did not reply in time"):
                    await client.push(NewJob(kind="k"))

    run(serve, use)


def test_concurrent_pushes_are_sent_together_and_replies_come_in_order() -> None:
    reads: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(2**20):
            reads.append(data.count(b"\n"))
            for line in data.splitlines():
                writer.write(b"-ERR odd\r\n" if b"[1]" in line else b"+OK\r\n")

    async def use(url: str) -> None:
        async with AsyncClient(url) as client:
            await client.features()
            jobs = [NewJob(kind="k", args=[number % 2]) for number in range(50)]
            found = await asyncio.gather(*map(client.push, jobs), return_exceptions=True)
            assert [isinstance(each, Exception) for each in found] == [number % 2 == 1 for number in range(50)]

    run(serve, use)
    assert reads == [50]


def test_a_cancelled_push_does_not_disturb_the_others() -> None:
    release = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = [await reader.readline() for _ in range(3)]
        await release.wait()
        writer.write(b"+OK\r\n-ERR the cancelled one\r\n+OK\r\n")
        assert len(lines) == 3
        await reader.read()

    async def use(url: str) -> None:
        async with AsyncClient(url) as client:
            await client.features()
            pushes = [asyncio.create_task(client.push(NewJob(kind="k"))) for _ in range(3)]
            await asyncio.sleep(0.05)
            pushes[1].cancel()
            await asyncio.sleep(0)
            release.set()
            assert await pushes[0] and await pushes[2]
            assert pushes[1].cancelled()

    run(serve, use)


def test_a_server_that_reads_slowly_holds_up_the_client() -> None:
    """Requests are written when the server has read the ones before, so that memory is bounded."""
    release = asyncio.Event()
    waiting: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        while await reader.readline():
            writer.write(b"+OK\r\n")

    async def use(url: str) -> None:
        async with AsyncClient(url, pool_size=1) as client:
            await client.features()
            text = "x" * 1_000_000

            async def push() -> None:
                await client.push(NewJob(kind="k", args=[text]))

            pushes = []
            for _ in range(40):
                pushes.append(asyncio.create_task(push()))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            lane = client._lanes._shared[0]
            waiting.append(len(lane.waiting))
            release.set()
            await asyncio.gather(*pushes)

    run(serve, use)
    assert waiting[0] < 40


def test_a_connection_that_the_server_ends_is_replaced() -> None:
    connections: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        await reader.readline()
        writer.write(b"+OK\r\n-ERR shutdown in progress\r\n")
        await writer.drain()

    async def use(url: str) -> None:
        async with AsyncClient(url) as client:
            for _ in range(3):
                await client.push(NewJob(kind="k"))

    run(serve, use)
    assert len(connections) >= 3


def test_a_wait_that_is_given_up_closes_its_connection() -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await reader.readline()).startswith(b"FETCHB"):
            await reader.read()
            ended.set()

    async def use(url: str) -> None:
        async with AsyncClient(url) as client:
            fetch = asyncio.create_task(client.fetch(["q"], 1, 60))
            await asyncio.sleep(0.1)
            fetch.cancel()
            await ended.wait()

    run(serve, use)
