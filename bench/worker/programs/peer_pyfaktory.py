"""pyfaktory, whose worker runs jobs in ten processes, against the Crossdock server of this run."""

import threading

from common import URL, SharedTally, main
from pyfaktory import Client, Consumer, Job, Producer

tally = SharedTally()


def noop() -> None:
    tally.job()


def stamp(pushed_ns: int) -> None:
    tally.started(pushed_ns)


def work() -> None:
    with Client(faktory_url=URL, role="consumer") as client:
        consumer = Consumer(client=client, queues=["default"], concurrency=10)
        consumer.register("noop", noop)
        consumer.register("stamp", stamp)
        consumer.run()


if __name__ == "__main__":
    local = threading.local()

    def producer() -> Producer:
        """One connection per thread, because a client has one socket."""
        if not hasattr(local, "producer"):
            client = Client(faktory_url=URL, role="producer")
            client.connect()
            local.producer = Producer(client=client)
        return local.producer

    main(
        lambda: producer().push(Job(jobtype="noop", args=(), queue="default")),
        lambda pushed_ns: producer().push(Job(jobtype="stamp", args=(pushed_ns,), queue="default")),
        lambda count: producer().push_bulk([Job(jobtype="noop", args=(), queue="default") for _ in range(count)]),
        work,
    )
