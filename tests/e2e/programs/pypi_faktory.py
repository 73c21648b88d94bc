"""A program that uses PyPI `faktory`: `push` pushes and ends, `work` works until the server sends terminate."""

import sys

import faktory  # type: ignore[import-untyped]


def push(url: str) -> None:
    with faktory.connection(url) as client:
        now = client.queue("add", args=(1, 2), jid="faktory-add", priority=7, custom={"who": "é"})
        print("pushed", now, flush=True)
        print("pushed", client.queue("flaky", args=("once",), jid="faktory-flaky", retry=3), flush=True)
        later = client.queue("add", args=(3, 4), jid="faktory-later", at="2999-01-01T00:00:00Z", reserve_for=60)
        print("pushed", later, flush=True)


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
    worker = faktory.Worker(url, worker_id=wid, queues=["default"], concurrency=1, use_threads=True)
    worker.send_heartbeat_every = 1
    worker.register("add", add)
    worker.register("flaky", flaky)
    worker.run()


if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    if verb == "push":
        push(*arguments)
    else:
        work(*arguments)
