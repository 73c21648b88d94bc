"""Huey on Redis, with its blocking queue. It has no bulk push."""

from common import URL, Tally, main
from huey import RedisHuey

huey = RedisHuey("bench", url=URL, results=False, immediate=False)
tally = Tally()


@huey.task()
def noop() -> None:
    tally.job()


@huey.task()
def stamp(pushed_ns: int) -> None:
    tally.started(pushed_ns)


if __name__ == "__main__":
    # The module of a task is part of its name, and a worker imports this one by its name.
    import peer_huey as named

    main(named.noop, named.stamp)
