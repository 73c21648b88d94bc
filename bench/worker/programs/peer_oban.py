"""Oban on PostgreSQL, with uvloop and orjson, as its own command line has it."""

import asyncio
import sys
from contextlib import AsyncExitStack
from typing import Any

import orjson
import uvloop
from common import URL, Tally, main_async
from oban import Oban, worker
from oban.schema import install
from psycopg.types.json import set_json_dumps, set_json_loads

set_json_dumps(orjson.dumps)
set_json_loads(orjson.loads)
tally = Tally()


@worker(queue="default")
class Noop:
    async def process(self, job: Any) -> None:
        tally.job()


@worker(queue="default")
class Stamp:
    async def process(self, job: Any) -> None:
        tally.started(job.args["pushed_ns"])


async def work() -> None:
    pool = await Oban.create_pool(URL)
    async with Oban(pool=pool, queues={"default": 100}):
        await asyncio.Event().wait()


async def set_up() -> None:
    pool = await Oban.create_pool(URL)
    await install(pool)
    await pool.close()


class Client:
    """A client without queues. Workers are named by their module, which is not the one that runs."""

    def __init__(self, named: Any) -> None:
        self._named = named
        self._open = AsyncExitStack()

    async def opened(self) -> None:
        pool = await Oban.create_pool(URL, max_size=16)
        self._open.push_async_callback(pool.close)
        self._oban = await self._open.enter_async_context(Oban(pool=pool))

    async def push(self) -> None:
        await self._oban.enqueue(self._named.Noop.new({}))

    async def stamp(self, pushed_ns: int) -> None:
        await self._oban.enqueue(self._named.Stamp.new({"pushed_ns": pushed_ns}))

    async def bulk(self, count: int) -> None:
        await self._oban.enqueue_many([self._named.Noop.new({}) for _ in range(count)])

    async def closed(self) -> None:
        await self._open.aclose()


if __name__ == "__main__":
    import peer_oban

    uvloop.install()
    if sys.argv[1] == "work":
        asyncio.run(peer_oban.work())
    elif sys.argv[1] == "set-up":
        asyncio.run(set_up())
    else:
        client = Client(peer_oban)
        main_async(client.opened, client.push, client.stamp, client.bulk, client.closed)
