"""A program that uses the API of PyPI `qless-py` and prints one result per line."""

import sys
import time
from collections.abc import Callable
from typing import Any

import qless
from qless.exceptions import QlessException


def life(client: Any) -> None:
    queue, other = client.queues["life"], client.queues["other"]
    queue.put("app.Job", {"a": [1, "é"]}, jid="moved", priority=1, tags=["blue"])
    queue.put("app.Job", {}, jid="urgent", priority=9)
    print("length", len(queue))
    urgent, moved = queue.pop(2)
    print("popped", urgent.jid, moved.jid, moved.data["a"], moved.tags)
    print("renewed", moved.heartbeat() > 0 and moved.ttl > 50)
    print("advanced", moved.complete("other"), client.jobs["moved"].queue_name)
    print("done", urgent.complete(), client.jobs["urgent"].state)
    job = other.pop()
    job.fail("oops", "it broke")
    print("failed", client.jobs.failed(), [each.jid for each in client.jobs.failed("oops")["jobs"]])
    print("unfailed", client("unfail", "other", "oops"), client.jobs["moved"].state)
    job = other.pop()
    print("retries", job.retry(), client.jobs["moved"].retries_left)
    print("history", [each["what"] for each in client.jobs["moved"].history])


def links(client: Any) -> None:
    queue = client.queues["links"]
    queue.put("app.Job", {}, jid="first")
    queue.put("app.Job", {}, jid="second", depends=["first"])
    second = client.jobs["second"]
    print("waits", second.state, second.dependencies, client.jobs["first"].dependents)
    queue.pop().complete()
    print("freed", client.jobs["second"].state)
    queue.recur("app.Job", {"n": 1}, 60, jid="every", tags=["often"])
    every = client.jobs["every"]
    print("recurs", every.count, every.interval, every.next > 0)
    print("spawned", sorted(job.jid for job in queue.pop(5)))
    print("next", client.jobs["every"].count)
    every.cancel()
    print("gone", client.jobs["every"])
    try:
        client.jobs["first"].complete()
    except QlessException as error:
        print("refused", "Complete(): Job is not currently running: complete" in str(error))


def lists(client: Any) -> None:
    job = client.jobs["moved"]
    job.track()
    job.tag("green")
    print("tracked", [each.jid for each in client.jobs.tracked()["jobs"]])
    print("tagged", client.jobs.tagged("green")["jobs"])
    print("complete", client.jobs.complete())
    print("counts", {each["name"]: each["waiting"] for each in client.queues.counts})
    stats = client.queues["life"].stats()
    print("stats", stats["wait"]["count"], stats["run"]["count"], len(stats["run"]["histogram"]))
    client.config["heartbeat"] = 90
    print("config", client.config["heartbeat"])
    print("workers", [each["name"] == client.worker_name for each in client.workers.counts])


def events(client: Any) -> None:
    events: list[str] = []
    for name in ("track", "popped", "completed"):
        client.events.on(name, lambda jid, name=name: events.append(f"{name} {jid}"))
    with client.events.thread():
        until(lambda: client.redis.pubsub_numsub("ql:completed")[0][1])
        client.jobs["moved"].track()
        client.queues["other"].pop().complete()
        until(lambda: len(events) == 3)
    print("events", events)


def until(there: Callable[[], Any]) -> None:
    give_up = time.monotonic() + 120
    while not there():
        assert time.monotonic() < give_up
        time.sleep(0.01)


if __name__ == "__main__":
    connected = qless.Client(sys.argv[1])
    for act in (life, links, lists, events):
        act(connected)
