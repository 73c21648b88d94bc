"""RQ on Redis: the worker forks a process for each job."""

from common import URL, SharedTally, main
from redis import Redis
from rq import Queue

tally = SharedTally()


def noop() -> None:
    tally.job()


def stamp(pushed_ns: int) -> None:
    tally.started(pushed_ns)


if __name__ == "__main__":
    # A worker imports a function by the name of its module.
    import peer_rq as named

    queue = Queue(connection=Redis.from_url(URL))

    def bulk(count: int) -> None:
        queue.enqueue_many([Queue.prepare_data(named.noop) for _ in range(count)])

    main(lambda: queue.enqueue(named.noop), lambda pushed_ns: queue.enqueue(named.stamp, pushed_ns), bulk)
