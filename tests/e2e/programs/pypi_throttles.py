"""A program that uses the API of PyPI `qless-with-throttles` and prints one result per line."""

import sys
from typing import Any

import qless


def life(client: Any) -> None:
    queue, other = client.queues["th-life"], client.queues["th-other"]
    queue.put("app.Job", {"a": 1}, jid="th-moved", tags=["th-blue"])
    queue.put("app.Job", {}, jid="th-waits", depends=["th-moved"])
    print("peeked", [job.jid for job in queue.peek(5)])
    job = queue.pop()
    print("popped", job.jid, job.data, job.tags, job.throttles, job.heartbeat() > 0)
    print("advanced", job.complete("th-other"), client.jobs["th-waits"].state)
    other.pop().fail("th-oops", "it broke")
    print("failed", client.jobs.failed("th-oops")["total"])
    print("unfailed", client("unfail", "th-other", "th-oops"))
    print("retries", other.pop().retry(), other.pop().complete(), client.jobs["th-waits"].state)
    queue.recur("app.Job", {}, 60, jid="th-every", throttles=["th-gate"])
    print("spawned", sorted(job.jid for job in queue.pop(5)), client.jobs["th-every"].count)


def throttles(client: Any) -> None:
    queue, gate = client.queues["th-gated"], client.throttles["th-narrow"]
    gate.set_maximum(1, 100)
    print("set", gate.maximum(), 0 < gate.ttl() <= 100)
    for jid in ("th-a", "th-b"):
        queue.put("app.Job", {}, jid=jid, throttles=["th-narrow"], priority=int(jid == "th-a"))
    print("one", [job.jid for job in queue.pop(2)], gate.locks(), gate.pending(), client.jobs["th-b"].state)
    client.jobs["th-a"].complete()
    print("next", [job.jid for job in queue.pop(2)], gate.locks(), gate.pending())
    client.jobs["th-b"].cancel()
    print("free", gate.locks())
    gate.delete()
    print("deleted", gate.maximum(), gate.ttl())


if __name__ == "__main__":
    connected = qless.Client(sys.argv[1])
    for act in (life, throttles):
        act(connected)
