"""taskiq on Redis lists, its fastest broker: a message is gone from Redis when a worker has it. It has no bulk push."""

from common import IS_ASYNC, URL, Tally, main_async
from taskiq_redis import ListQueueBroker

broker = ListQueueBroker(url=URL)
tally = Tally()

if IS_ASYNC:

    @broker.task(task_name="noop")
    async def noop() -> None:
        tally.job()

    @broker.task(task_name="stamp")
    async def stamp(pushed_ns: int) -> None:
        tally.started(pushed_ns)

else:

    @broker.task(task_name="noop")
    def noop() -> None:
        tally.job()

    @broker.task(task_name="stamp")
    def stamp(pushed_ns: int) -> None:
        tally.started(pushed_ns)


if __name__ == "__main__":
    main_async(broker.startup, noop.kiq, stamp.kiq, closed=broker.shutdown)
