"""A program that uses PyPI `pyfaktory`: `push` uses all producer calls, `work` works until the server ends it."""

import sys

from pyfaktory import Client, Consumer, Job, Producer  # type: ignore[import-untyped]
from pyfaktory.models import JobFilter, MutateOperation  # type: ignore[import-untyped]


def push(url: str) -> None:
    with Client(faktory_url=url, role="producer") as client:
        producer = Producer(client)
        one = Job(jid="pyfaktory-add", jobtype="add", args=[1, 2], custom={"who": "é"})
        print("pushed", producer.push(one), flush=True)
        many = [Job(jid=f"pyfaktory-{n}", jobtype="add", args=[n, n]) for n in range(10)]
        bad = Job(jid="short", jobtype="add", args=[])
        print("refused", producer.push_bulk([*many, bad]), flush=True)
        print("pushed", producer.push(Job(jid="pyfaktory-flaky", jobtype="flaky", args=["once"])), flush=True)
        later = [Job(jid=f"later-00{n}", jobtype="later", args=[], at="2999-01-01T00:00:00Z") for n in range(3)]
        print("refused", producer.push_bulk(later), flush=True)
        some = JobFilter(jids=["later-000"], regexp=None, jobtype=None)
        print("mutated", client.mutate(MutateOperation(cmd="discard", target="scheduled", filter=some)), flush=True)
        print("mutated", client.mutate(MutateOperation(cmd="kill", target="scheduled")), flush=True)
        print("mutated", client.mutate(MutateOperation(cmd="clear", target="dead")), flush=True)
        print("paused", client.queue_pause(["default"]), client.queue_unpause(all_queues=True), flush=True)
        info = client.info()
        print("info", info["faktory"]["queues"], info["faktory"]["sets"]["scheduled"], flush=True)


def add(a: int, b: int) -> int:
    print("worked", a + b, flush=True)
    return a + b


seen: set[str] = set()


def flaky(name: str) -> None:
    if name not in seen:
        seen.add(name)
        print("failing", name, flush=True)
        raise ValueError("not yet")
    print("worked", name, flush=True)


def work(url: str, wid: str) -> None:
    with Client(faktory_url=url, role="consumer", worker_id=wid, beat_period=1) as client:
        consumer = Consumer(client=client, queues=["default"], concurrency=1, grace_period=5)
        consumer.register("add", add)
        consumer.register("flaky", flaky)
        consumer.run()


if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    if verb == "push":
        push(*arguments)
    else:
        work(*arguments)
