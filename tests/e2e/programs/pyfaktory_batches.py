"""The batch calls of PyPI `pyfaktory`: `push` creates a nested batch, `work` runs jobs and callbacks.

pyfaktory returns the raw reply of BATCH NEW. Its users extract the id as `bid` does.
"""

import json
import sys
from collections.abc import Callable

from pyfaktory import Client, Consumer, Job, Producer  # type: ignore[import-untyped]
from pyfaktory.models import Batch, TargetJob  # type: ignore[import-untyped]


def bid(reply: str) -> str:
    head, name = reply.split("\r\n")
    assert head == f"${len(name)}", reply
    return name


def status(client: Client, name: str) -> str:
    reply = json.loads(client._batch_status(name).split("\r\n")[1])
    return " ".join(
        str(reply[key]) for key in ("total", "pending", "failed", "complete_st", "success_st") if reply[key] != ""
    )


def target(what: str) -> TargetJob:
    return TargetJob(jobtype="call", args=[what], queue="default")


def push(url: str) -> None:
    with Client(faktory_url=url, role="producer") as client:
        producer = Producer(client)
        parent = bid(
            producer.batch_new(
                Batch(parent_bid=None, description="a parent", success=target("parent success"), complete=None)
            )
        )
        child = bid(
            producer.batch_new(
                Batch(
                    parent_bid=parent,
                    description=None,
                    success=target("child success"),
                    complete=target("child complete"),
                )
            )
        )
        print("batches", parent, child, flush=True)
        print("pushed", producer.push(Job(jobtype="add", args=[1, 2], custom={"bid": child})), flush=True)
        flaky = Job(jid="flaky-member", jobtype="flaky", args=["once"], custom={"bid": child})
        print("refused", producer.push_bulk([flaky]), flush=True)
        print("opened", producer.batch_open(child), flush=True)
        print("status", status(client, child), flush=True)
        print("committed", producer.batch_commit(child), producer.batch_commit(parent), flush=True)
        wrong: list[Callable[[], object]] = [
            lambda: producer.batch_commit("b-none"),
            lambda: producer.push(Job(jobtype="add", args=[], custom={"bid": "b-none"})),
            lambda: producer.batch_new(Batch(parent_bid="b-none", description="", success=target(""), complete=None)),
            lambda: producer.batch_new(Batch(parent_bid=None, description="", success=None, complete=None)),
        ]
        for refused in wrong:
            try:
                refused()
            except Exception as error:  # noqa: BLE001 pyfaktory raises one of its own
                print(error, flush=True)


def add(a: int, b: int) -> None:
    print("worked", a + b, flush=True)


seen: set[str] = set()


def flaky(name: str) -> None:
    if name not in seen:
        seen.add(name)
        print("failing", name, flush=True)
        raise ValueError("not yet")
    print("worked", name, flush=True)


def call(what: str) -> None:
    print("called", what, flush=True)


def work(url: str) -> None:
    with Client(faktory_url=url, role="consumer", worker_id="batch-worker", beat_period=1) as client:
        consumer = Consumer(client=client, queues=["default"], concurrency=1, grace_period=5)
        for handler in (add, flaky, call):
            consumer.register(handler.__name__, handler)
        consumer.run()


if __name__ == "__main__":
    verb, url = sys.argv[1:]
    if verb == "push":
        push(url)
    else:
        work(url)
