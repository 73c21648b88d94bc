"""Dramatiq on Redis. It has no bulk push. With asyncio the actors are coroutines of one loop."""

import dramatiq
from common import IS_ASYNC, URL, Tally, main
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware.asyncio import AsyncIO

broker = RedisBroker(url=URL)
if IS_ASYNC:
    broker.add_middleware(AsyncIO())
dramatiq.set_broker(broker)
tally = Tally()

if IS_ASYNC:

    @dramatiq.actor
    async def noop() -> None:
        tally.job()

    @dramatiq.actor
    async def stamp(pushed_ns: int) -> None:
        tally.started(pushed_ns)

else:

    @dramatiq.actor
    def noop() -> None:
        tally.job()

    @dramatiq.actor
    def stamp(pushed_ns: int) -> None:
        tally.started(pushed_ns)


if __name__ == "__main__":
    main(noop.send, stamp.send)
