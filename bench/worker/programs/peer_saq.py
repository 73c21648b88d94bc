"""SAQ on Redis. It has no bulk push. Without asyncio its functions run in its pool of threads."""

from typing import Any

from common import IS_ASYNC, URL, Tally, main_async
from saq import Queue

queue = Queue.from_url(URL)
tally = Tally()

if IS_ASYNC:

    async def noop(ctx: Any) -> None:
        tally.job()

    async def stamp(ctx: Any, *, pushed_ns: int) -> None:
        tally.started(pushed_ns)

else:

    def noop(ctx: Any) -> None:
        tally.job()

    def stamp(ctx: Any, *, pushed_ns: int) -> None:
        tally.started(pushed_ns)


settings = {"queue": queue, "functions": [noop, stamp], "concurrency": 100 if IS_ASYNC else 10}


if __name__ == "__main__":
    main_async(
        queue.connect,
        lambda: queue.enqueue("noop"),
        lambda pushed_ns: queue.enqueue("stamp", pushed_ns=pushed_ns),
        closed=queue.disconnect,
    )
