"""Why a job is not running: one job for each reason, and its sentence."""

import json
from collections.abc import Callable
from typing import Final, NamedTuple

import pytest

from crossdock.engine.index.dependents import AT_ONCE
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu
from crossdock.model.commands.admin import PauseQueues
from crossdock.model.job import Job, Links
from crossdock.model.records import FROM_SETTINGS, Per, RateScope, RateSpec
from crossdock.protocols.admin.measurements import Demand
from crossdock.protocols.admin.waiting_reasons import SENTENCES, Reason, why_waiting
from crossdock.protocols.redis.qless.call import REQLESS
from crossdock.server.lease_requests import LeaseRequests
from tests.model.bench import TERMS, spec
from tests.model.resqu_bench import ResquBench
from tests.qless.replay import QlessDispatcher
from tests.support.control_peer import ControlPeer
from tests.support.conversation import ClockedFaktory, worker
from tests.support.dispatcher import PlainDispatcher
from tests.support.five_jobs import STATES, five_jobs


class Scene(NamedTuple):
    """A job that waits, and what it waits in."""

    job: Job
    state: EngineState
    demand: Demand
    now: Now


def scene(dispatcher: PlainDispatcher, jid: str) -> Scene:
    (job,) = (job for job in dispatcher.state.jobs.values() if job.jid == jid)
    return Scene(job, dispatcher.state, dispatcher.lease_requests, dispatcher.now)


def asked(queue: str = "mail") -> PlainDispatcher:
    """A worker has just asked for the queue and got nothing."""
    dispatcher = PlainDispatcher()
    assert ask(dispatcher, queue) is None
    return dispatcher


def ask(dispatcher: PlainDispatcher, queue: str = "mail", name: str = "w1") -> Job | None:
    return dispatcher.do(c.LeaseNext("faktory", (queue,), name, TERMS))


def push(dispatcher: PlainDispatcher, *jids: str, links: Links | None = None, due: float = 0.0) -> None:
    dispatcher.do(c.Enqueue("faktory", [spec(jid, "mail", links=links, due=due) for jid in jids]))


def qless(queue: str = "mail") -> QlessDispatcher:
    dispatcher = QlessDispatcher()
    dispatcher.dialect = REQLESS
    ask(dispatcher, queue)
    return dispatcher


def put(dispatcher: QlessDispatcher, jid: str, *options: str, delay: str = "0") -> None:
    dispatcher.advance(1.0)  # jobs of one second come in any order
    t = f"{dispatcher.now.wall:.0f}"
    dispatcher.call("queue.put", t, "w", "mail", jid, "klass", "{}", delay, *options)


def paused() -> Scene:
    dispatcher = asked()
    push(dispatcher, "a")
    dispatcher.do(PauseQueues(["mail"]))
    return scene(dispatcher, "a")


def throttled() -> Scene:
    dispatcher = qless()
    dispatcher.call("throttle.set", "1", "api", "2")
    for jid in ("a", "b", "c"):
        put(dispatcher, jid, "throttles", '["api"]')
    for name in ("w1", "w2", "w3"):
        ask(dispatcher, name=name)
    return scene(dispatcher, "c")


def throttled_queue() -> Scene:
    dispatcher = asked()
    dispatcher.do(c.SetThrottles([("mail", 4, Per.QUEUE, 0.0)]))
    push(dispatcher, *"abcde")
    for name in ("w1", "w2", "w3", "w4"):
        ask(dispatcher, name=name)
    return scene(dispatcher, "e")


def limited() -> Scene:
    dispatcher = qless()
    dispatcher.call("config.set", "1", "mail-max-concurrency", "1")
    put(dispatcher, "a")
    put(dispatcher, "b")
    assert ask(dispatcher) is not None
    return scene(dispatcher, "b")


def with_rate(dispatcher: PlainDispatcher, scope: RateScope, target: str) -> None:
    dispatcher.do(c.SetRates(FROM_SETTINGS, [RateSpec("welcome", scope, target, 10, 60.0)]))
    push(dispatcher, *(f"job-{n}" for n in range(12)))
    for _ in range(11):
        ask(dispatcher)


def rated_queue() -> Scene:
    dispatcher = asked()
    with_rate(dispatcher, RateScope.QUEUE, "mail")
    return scene(dispatcher, "job-11")


def rated_kind() -> Scene:
    dispatcher = asked()
    with_rate(dispatcher, RateScope.KIND, "kind")
    return scene(dispatcher, "job-11")


def rated_and_not_asked() -> Scene:
    """No worker has asked since the limit was used up, so the job is still ready."""
    dispatcher = asked()
    with_rate(dispatcher, RateScope.KIND, "kind")
    push(dispatcher, "last")
    return scene(dispatcher, "last")


def rated_and_paused() -> Scene:
    dispatcher = asked()
    with_rate(dispatcher, RateScope.KIND, "kind")
    dispatcher.do(PauseQueues(["mail"]))
    return scene(dispatcher, "job-11")


def unasked() -> Scene:
    dispatcher = PlainDispatcher()
    dispatcher.advance(60.0)
    push(dispatcher, "a")
    dispatcher.advance(3 * 3_600.0)
    return scene(dispatcher, "a")


def unasked_lately() -> Scene:
    dispatcher = asked()
    push(dispatcher, "a")
    dispatcher.advance(3 * 3_600.0 + 5)
    return scene(dispatcher, "a")


def behind() -> Scene:
    dispatcher = asked()
    push(dispatcher, "a", "b", "c")
    return scene(dispatcher, "c")


def behind_one() -> Scene:
    dispatcher = asked()
    push(dispatcher, "a", "b")
    return scene(dispatcher, "b")


def first() -> Scene:
    dispatcher = asked()
    push(dispatcher, "a")
    return scene(dispatcher, "a")


def scheduled() -> Scene:
    dispatcher = asked()
    push(dispatcher, "a", due=dispatcher.now.wall + 7_205)
    return scene(dispatcher, "a")


def scheduled_far() -> Scene:
    dispatcher = asked()
    push(dispatcher, "a", due=dispatcher.now.wall + 3 * 86_400)
    return scene(dispatcher, "a")


def retrying() -> Scene:
    dispatcher = PlainDispatcher()
    five_jobs(worker(dispatcher, ClockedFaktory(dispatcher), "w1"))
    return scene(dispatcher, "job-00003")


def due() -> Scene:
    dispatcher = qless()
    put(dispatcher, "a", delay="10")
    dispatcher.advance(15.0)
    return scene(dispatcher, "a")


def blocked() -> Scene:
    dispatcher = asked()
    push(dispatcher, "a", "b", "c", "d")
    assert ask(dispatcher) is not None
    push(dispatcher, "e", links=Links(depends_on=(1, 2, 3, 4)))
    return scene(dispatcher, "e")


def unblocking() -> Scene:
    dispatcher = asked()
    push(dispatcher, "a")
    push(dispatcher, *(f"b{n}" for n in range(AT_ONCE + 1)), links=Links(depends_on=(1,)))
    job = ask(dispatcher)
    assert job is not None
    assert job.lease is not None
    dispatcher.do(c.Succeed("a", c.Claim("faktory", "w1", (job.number, job.lease.token))))
    return scene(dispatcher, f"b{AT_ONCE}")


def freeing() -> Scene:
    before = throttled()
    before.state.throttles["api"].maximum = 5
    return before


def of_resqu(bench: ResquBench, jid: str) -> Scene:
    (job,) = (job for job in bench.state.jobs.values() if job.jid == jid)
    return Scene(job, bench.state, LeaseRequests({}, bench.now.steady), bench.now)


def resqu_bench() -> ResquBench:
    bench = ResquBench()
    bench.do(c.Start())
    return bench


def uncommitted() -> Scene:
    bench = resqu_bench()
    bench.batch("import-1", "a", commit=False)
    return of_resqu(bench, "a")


def unassigned() -> Scene:
    bench = resqu_bench()
    bench.batch("import-1", "a")
    return of_resqu(bench, "a")


def backlog() -> Scene:
    bench = resqu_bench()
    bench.mapped()
    bench.batch("import-1", "a")
    bench.batch("import-2", "b")
    return of_resqu(bench, "b")


def active() -> Scene:
    bench = resqu_bench()
    bench.mapped()
    bench.batch("import-1", "a", "b")
    return of_resqu(bench, "b")


def allocator() -> Scene:
    bench = resqu_bench()
    bench.enqueue("a")
    job = bench.do(resqu.TakeNext("resqu", resqu.UNASSIGNED))
    assert job is not None
    bench.do(resqu.FillBuffer("allocator:node-1:7", job.number, 0, b"{}"))
    return of_resqu(bench, "a")


CASES: Final[list[tuple[Callable[[], Scene], Reason, str]]] = [
    (paused, Reason.PAUSED, "queue mail is paused since 17:55 UTC"),
    (throttled, Reason.THROTTLED, "throttle api is full: 2 of 2 held by w1, w2"),
    (
        throttled_queue,
        Reason.THROTTLED,
        "throttle of queue mail is full: 4 of 4 held by w1, w2, w3 and 1 more",
    ),
    (limited, Reason.LIMITED, "queue mail is at its limit: 1 of 1 jobs are leased"),
    *(
        (build, Reason.RATE_LIMITED, "rate limit welcome allows 10 jobs per minute; the next one at 17:55:51 UTC")
        for build in (rated_queue, rated_kind, rated_and_not_asked)
    ),
    (rated_and_paused, Reason.PAUSED, "queue mail is paused since 17:55 UTC"),
    (unasked, Reason.NO_WORKER, "no worker has asked for queue mail since the server started 3 h ago"),
    (unasked_lately, Reason.NO_WORKER, "no worker has asked for queue mail for 3 h"),
    (behind, Reason.BEHIND, "2 jobs are ahead of it in queue mail"),
    (behind_one, Reason.BEHIND, "1 job is ahead of it in queue mail"),
    (active, Reason.BEHIND, "1 job is ahead of it in queue batch"),
    (first, Reason.NEXT, "it is the next job of queue mail"),
    (scheduled, Reason.SCHEDULED, "it is scheduled for 19:55 UTC, in 2 h"),
    (scheduled_far, Reason.SCHEDULED, "it is scheduled for 2026-11-18 17:55 UTC, in 3 d"),
    (retrying, Reason.RETRYING, "it failed once, and its next try is at 17:56 UTC, in 15 s"),
    (due, Reason.DUE, "it was due 5 s ago, and the next worker that asks for queue mail gets it"),
    (blocked, Reason.BLOCKED, "it waits for 4 jobs: a (leased), b (ready), c (ready) and 1 more"),
    (
        unblocking,
        Reason.UNBLOCKING,
        "the jobs it waited for are complete, and it becomes ready in a moment",
    ),
    (
        freeing,
        Reason.FREEING,
        "throttle api has room, and frees the jobs that wait for it when its next holder ends",
    ),
    (
        uncommitted,
        Reason.HELD_UNCOMMITTED,
        "batch import-1 is not committed; without a commit it is abandoned in 1 d",
    ),
    (
        unassigned,
        Reason.HELD_UNASSIGNED,
        "batch import-1 is committed, and no allocator has assigned it to a pool",
    ),
    (
        backlog,
        Reason.HELD_BACKLOG,
        "batch import-2 waits for batch import-1 of the same source in pool batch",
    ),
    (
        allocator,
        Reason.HELD_ALLOCATOR,
        "allocator node-1:7 has taken it and not put it into a pool",
    ),
]


@pytest.mark.parametrize(("build", "reason", "text"), CASES, ids=[build.__name__ for build, _, _ in CASES])
def test_each_reason_has_a_sentence(build: Callable[[], Scene], reason: Reason, text: str) -> None:
    found = why_waiting(*build())
    assert found == (reason, text)


def test_there_is_a_job_for_every_reason() -> None:
    assert {reason for _, reason, _ in CASES} == set(Reason) == set(SENTENCES)


def test_a_reply_names_the_reason_of_a_waiting_job_only() -> None:
    dispatcher = PlainDispatcher()
    five_jobs(worker(dispatcher, ClockedFaktory(dispatcher), "w1"))
    peer = ControlPeer(dispatcher)
    found = {jid: peer.ask("job", id=jid)["job"]["why"] for jid in STATES}
    assert {jid: why and why["reason"] for jid, why in found.items()} == {
        "job-00001": None,
        "job-00002": "next",
        "job-00003": "retrying",
        "job-00004": "scheduled",
        "job-00005": None,
    }
    assert found["job-00002"]["text"] == "it is the next job of queue mail"
    json.dumps(found)
