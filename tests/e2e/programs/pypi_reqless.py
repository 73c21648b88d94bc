"""A program that uses the API of PyPI `reqless` and prints one result per line."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import reqless
from reqless.exceptions import ReqlessError


def life(client: Any) -> None:
    queue, other = client.queues["rq-life"], client.queues["rq-other"]
    queue.put("app.Job", '{"a": [1, "é"]}', jid="rq-moved", priority=1, tags=["rq-blue"])
    queue.put("app.Job", "{}", jid="rq-urgent", priority=9)
    print("peeked", [job.jid for job in queue.peek(0, 5)], [job.jid for job in queue.peek(1, 5)])
    urgent, moved = queue.pop(2)
    print("popped", urgent.jid, moved.jid, json.loads(moved.data)["a"], moved.tags, moved.throttles)
    print("renewed", moved.heartbeat() > 0 and moved.ttl > 50)
    print("advanced", moved.complete("rq-other"), client.jobs["rq-moved"].queue_name)
    print("done", urgent.complete(), client.jobs["rq-urgent"].state)
    other.pop().fail("rq-oops", "it broke")
    print("failed", client.jobs.failed("rq-oops")["total"], client.jobs["rq-moved"].failure["message"])
    print("unfailed", client.unfail("rq-oops", "rq-other"), client.jobs["rq-moved"].state)
    print("retries", other.pop().retry(), client.jobs["rq-moved"].retries_left)
    other.pop().timeout()
    print("stalled", client.jobs["rq-moved"].state)
    print("history", [each["what"] for each in client.jobs["rq-moved"].history])


def links(client: Any) -> None:
    queue = client.queues["rq-links"]
    queue.put("app.Job", "{}", jid="rq-first")
    queue.put("app.Job", "{}", jid="rq-second", depends=["rq-first"])
    second = client.jobs["rq-second"]
    print("waits", second.state, second.dependencies, client.jobs["rq-first"].dependents)
    queue.pop().complete()
    print("freed", client.jobs["rq-second"].state)
    queue.recur("app.Job", "{}", 60, jid="rq-every", tags=["rq-often"], throttles=["rq-gate"])
    every = client.jobs["rq-every"]
    print("recurs", every.count, every.interval, every.next > 0, every.throttles)
    print("spawned", sorted(job.jid for job in queue.pop(5)))
    every.cancel()
    print("gone", client.jobs["rq-every"])
    try:
        client.jobs["rq-first"].complete()
    except ReqlessError as error:
        print("refused", "Complete(): Job is not currently running: complete" in str(error))


def throttles(client: Any) -> None:
    queue, gate = client.queues["rq-gated"], client.throttles["rq-narrow"]
    gate.set_maximum(1)
    print("set", gate.maximum(), gate.ttl())
    for jid in ("rq-a", "rq-b", "rq-c"):
        queue.put("app.Job", "{}", jid=jid, throttles=["rq-narrow"], priority={"rq-a": 3, "rq-b": 2}.get(jid, 1))
    print("one", [job.jid for job in queue.pop(3)], gate.locks(), sorted(gate.pending()))
    print("held", [client.jobs[jid].state for jid in ("rq-a", "rq-b", "rq-c")], queue.counts["throttled"])
    client.jobs["rq-a"].complete()
    print("next", [job.jid for job in queue.pop(3)], gate.locks(), gate.pending())
    client.jobs["rq-b"].fail("rq-bad", "it broke")
    gate.set_maximum(0)
    print("open", [job.jid for job in queue.pop(3)], gate.pending())
    client.jobs["rq-c"].complete()
    gate.set_maximum(5, 100)
    print("ends", 0 < gate.ttl() <= 100)
    gate.delete()
    print("deleted", gate.maximum(), gate.ttl(), gate.locks())
    queue.throttle.set_maximum(1)
    for jid in ("rq-d", "rq-e"):
        queue.put("app.Job", "{}", jid=jid)
    print("of the queue", len(queue.pop(2)), queue.throttle.name, queue.throttle.locks() == queue.jobs.running())


def lists(client: Any) -> None:
    job = client.jobs["rq-moved"]
    job.track()
    job.tag("rq-green")
    print("tracked", [each.jid for each in client.jobs.tracked()["jobs"]])
    print("tagged", client.jobs.tagged("rq-green")["jobs"])
    print("stats", client.queues["rq-life"].stats()["run"]["count"])
    client.config["rq-life-heartbeat"] = 90
    print("config", client.queues["rq-life"].heartbeat, client.config["heartbeat"])
    print("workers", [each["jobs"] > 0 for each in client.workers.counts if each["name"] == client.worker_name])


def events(client: Any) -> None:
    events: list[str] = []
    for name in ("track", "popped", "completed"):
        client.events.on(name, lambda jid, name=name: events.append(f"{name} {jid}"))
    with client.events.thread():
        until(lambda: client.redis.pubsub_numsub("ql:completed")[0][1])
        client.jobs["rq-moved"].track()
        client.queues["rq-other"].pop().complete()
        until(lambda: len(events) == 3)
    print("events", events)


def until(there: Callable[[], Any]) -> None:
    give_up = time.monotonic() + 120
    while not there():
        assert time.monotonic() < give_up
        time.sleep(0.01)


if __name__ == "__main__":
    connected = reqless.Client(sys.argv[1])
    for act in (life, links, throttles, lists, events):
        act(connected)
