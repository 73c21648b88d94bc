"""Time to live, foreground jobs, jids in use, random choice of queues, and the bands of due jobs."""

from collections import Counter

import pytest

from crossdock.engine.queries.queues import QueueCounts, queue_counts
from crossdock.model.commands.admin import PauseQueues
from crossdock.model.commands.core import Claim, Enqueue, LeaseNext, LeaseTerms, Refused, SetThrottles, Start, Succeed
from crossdock.model.commands.qless import Pop
from crossdock.model.events import Removed
from crossdock.model.job import Extra, Form, LeaseBinding, Links, Number, Spec
from crossdock.model.policies import Backoff, Disposition, LeaseExpiry, Policy
from crossdock.model.records import Per
from crossdock.model.states import State
from tests.model.bench import Bench, held

WORKQ = Policy(0, 0, 60.0, Backoff.NONE, Disposition.FAILED, Disposition.COMPLETE, LeaseExpiry.RETURN, due_band=2)
MASENKO = Policy(3, 0, 0, Backoff.QUARTIC, Disposition.DEAD_QUEUE, due_band=0)
FOREGROUND = Policy(0, 0, 60.0, lease_expiry=LeaseExpiry.DROP)
FOR_EVER = LeaseTerms(float("inf"), float("inf"), float("inf"), LeaseBinding.CONNECTION)
FREE = Claim("workq", "", free=True)


def spec(jid: str, queue: str = "q", *, policy: Policy = WORKQ, due: float = 0.0, links: Links | None = None) -> Spec:
    return Spec(jid, queue, queue, b"", Form.RAW, 0, policy, due, Extra(links=links))


def push(
    bench: Bench, jid: str, *, ttl: float = 0.0, due: float = 0.0, foreground: bool = False, policy: Policy = WORKQ
) -> Number:
    links = Links(ttl_s=ttl, foreground=foreground)
    bench.do(Enqueue("workq", [spec(jid, policy=policy, due=due, links=links)]))
    return bench.state.counters.number


# Time to live


@pytest.mark.parametrize("where", ["ready", "leased", "complete", "expired"])
def test_a_job_is_removed_at_its_end_in_every_state(bench: Bench, where: str) -> None:
    number = push(bench, "a", ttl=100.0)
    if where in ("leased", "expired"):
        bench.after(60.0 if where == "leased" else 0.0)
        bench.lease("q")
    if where == "complete":
        bench.do(Succeed("a", FREE))
    bench.after(99.999 - (bench.now.steady - 1_000.0))
    assert number in bench.state.jobs
    assert bench.after(0.001).ended == 1
    assert bench.state.jobs == {}
    assert bench.state.job_ends == []
    assert isinstance(bench.last, Removed)
    assert bench.last.why == "ttl"
    assert bench.state.counters.evicted == (where != "complete")
    bench.do(Start())
    assert bench.state.counters.evicted == 0


@pytest.mark.parametrize("late", [0.0, 0.004])
def test_a_job_is_not_leased_after_its_end_even_if_the_timer_is_late(bench: Bench, late: float) -> None:
    push(bench, "a", ttl=100.0)
    push(bench, "b", ttl=200.0)
    bench.clock.pass_by(100.0 + late)
    job = bench.do(LeaseNext("workq", ("q",), "", LeaseTerms(60.0, 0.001, 99.0)))
    assert job is not None and job.jid == "b"
    assert [job.jid for job in bench.state.jobs.values()] == ["b"]
    assert bench.state.counters.evicted == 1, "as if the timer had removed it"


def test_qless_pop_does_not_lease_a_job_after_its_end(bench: Bench) -> None:
    push(bench, "a", ttl=100.0)
    push(bench, "b", ttl=200.0)
    bench.clock.pass_by(100.0)
    jobs = bench.do(Pop("qless", bench.now.wall, "q", "w", 2, 60.0))
    assert [job.jid for job in jobs] == ["b"]
    assert [(event.why, len(event.rows)) for event in bench.events if isinstance(event, Removed)] == [("ttl", 1)]


def test_a_lease_removes_expired_jobs_and_jobs_past_their_end_separately(bench: Bench) -> None:
    push(bench, "a", ttl=100.0)
    bench.do(Enqueue("faktory", [spec("b", links=Links(expires=bench.now.wall + 50.0))]))
    bench.clock.pass_by(100.0)
    assert bench.nothing_to_lease("q")
    removed = [event for event in bench.events if isinstance(event, Removed)]
    assert [(event.why, [row.jid for row in event.rows]) for event in removed] == [("ttl", ["a"]), ("expired", ["b"])]


def test_time_to_live_continues_over_a_restart(bench: Bench) -> None:
    push(bench, "a", ttl=100.0)
    bench.clock.pass_by(70.0)
    bench.restart()
    assert bench.engine.due_in(bench.now) == 30.0
    assert bench.after(30.0).ended == 1


def test_the_time_of_a_scheduled_job_begins_when_it_is_due(bench: Bench) -> None:
    number = push(bench, "a", ttl=10.0, due=bench.now.wall + 60.0)
    assert bench.job(number).end == 0.0
    bench.after(65.0)  # the timer ran late
    assert bench.job(number).end == bench.now.steady + 5.0
    assert bench.after(5.0).ended == 1


def test_the_time_of_a_job_settled_early_begins_when_it_would_be_due(bench: Bench) -> None:
    number = push(bench, "a", ttl=10.0, due=bench.now.wall + 60.0)
    bench.clock.pass_by(20.0)
    bench.do(Succeed("a", FREE, b"early"))
    assert bench.job(number).end == bench.now.steady + 50.0
    assert bench.after(50.0).ended == 1


def test_the_time_of_a_job_pushed_late_began_when_it_was_due(bench: Bench) -> None:
    number = push(bench, "a", ttl=10.0, due=bench.now.wall - 4.0)
    assert bench.job(number).end == bench.now.steady + 6.0


def test_a_job_that_ends_in_two_ways_at_once_ends_once(bench: Bench) -> None:
    push(bench, "a", ttl=60.0)
    bench.lease("q")
    push(bench, "b", ttl=60.0, foreground=True, policy=FOREGROUND)
    bench.lease("q")
    done = bench.after(60.0)
    assert (done.ended, done.expired) == (2, 0)
    assert bench.state.counters.evicted == 1, "a foreground job is not counted"


# Foreground


def test_a_foreground_job_is_removed_when_its_lease_expires(bench: Bench) -> None:
    push(bench, "a", foreground=True, policy=FOREGROUND)
    bench.lease("q")
    bench.after(60.0)
    assert isinstance(bench.last, Removed)
    assert (bench.last.why, list(bench.state.jobs), bench.state.foreground) == ("lease-expired", [], {})


def test_a_foreground_job_is_removed_at_a_restart(bench: Bench) -> None:
    push(bench, "a", foreground=True, policy=FOREGROUND)
    push(bench, "b", foreground=True, policy=FOREGROUND)
    kept = push(bench, "c")
    bench.lease("q", terms=LeaseTerms(9.0, 9.0, 9.0, LeaseBinding.CONNECTION))
    bench.restart()
    assert list(bench.state.jobs) == [kept]
    assert bench.state.foreground == {}


# Jids in use


def test_a_jid_in_use_is_refused(bench: Bench) -> None:
    bench.push("a")
    refused = bench.do(Enqueue("workq", [spec("a"), spec("b"), spec("b"), spec("c")], unless_live=True))
    assert refused == [Refused.DUPLICATE, None, Refused.DUPLICATE, None]
    assert bench.do(Enqueue("workq", [spec("b")])) == ()


# Random choice of queues


def at_random(bench: Bench, *queues: str) -> str | None:
    job = bench.do(LeaseNext("workq", queues, "", LeaseTerms(60.0, 0.001, 99.0, registers=True), at_random=True))
    if job is None:
        return None
    bench.give_back(held(job))
    return job.queue


def test_queues_with_jobs_are_chosen_with_equal_probability(bench: Bench) -> None:
    for queue in ("a", "b", "c", "paused", "full"):
        bench.do(Enqueue("workq", [spec(f"{queue}{n}", queue) for n in range(3 if queue == "a" else 1)]))
    bench.do(PauseQueues(["paused"]))
    bench.do(SetThrottles([("full", 0, Per.QUEUE, 0.0)]))
    drawn = Counter(at_random(bench, "a", "b", "b", "b", "c", "paused", "full", "none") for _ in range(3_000))
    assert set(drawn) == {"a", "b", "c"}
    assert all(850 < times < 1_150 for times in drawn.values())


def test_a_lease_that_registers_queues_registers_every_name(bench: Bench) -> None:
    bench.do(Enqueue("workq", [spec("a", "a")]))
    assert at_random(bench, "a", "new", "newer", "new") == "a"
    assert sorted(bench.state.queues) == ["a", "new", "newer"]


# Bands


def test_due_jobs_are_leased_in_the_order_of_their_bands(bench: Bench) -> None:
    wall = bench.now.wall
    bench.do(
        Enqueue(
            "workq",
            [
                spec("w late", due=wall - 1.0),
                spec("w early", due=wall - 9.0),
                spec("w later", due=wall + 1.0),
                spec("plain"),
                spec("m later", policy=MASENKO, due=wall + 1.0),
                spec("m past", policy=MASENKO, due=wall - 1.0),
                spec("m plain", policy=MASENKO),
            ],
        )
    )
    bench.after(2.0)
    bench.push("high", queue="q", priority=9)
    assert queue_counts(bench.state, "q") == QueueCounts(8, 2, 0, 0, 0)
    assert bench.state.queues["q"].oldest(bench.state.jobs) == wall
    assert bench.lease("q").jid == "high"
    assert bench.work_order("q") == ["m past", "m later", "plain", "m plain", "w early", "w late", "w later"]


def test_a_retried_masenko_job_comes_before_undelayed_jobs(bench: Bench) -> None:
    number = push(bench, "a", policy=MASENKO)
    bench.lease("q")
    bench.fail("a")
    bench.push("b", queue="q")
    bench.after(1.5)
    assert bench.job(number).sort_key == (0, 0, bench.now.wall - 0.5, b"", number)
    assert bench.work_order("q") == ["a", "b"]


# Leases without an end


def test_a_lease_without_an_end_never_expires(bench: Bench) -> None:
    push(bench, "a", policy=MASENKO)
    job = bench.lease("q", terms=FOR_EVER)
    assert bench.engine.due_in(bench.now) is None
    assert bench.after(1e9).expired == 0
    assert bench.succeed("a", "w", held(job))


def test_waiting_and_leased_jobs_are_counted_by_queue(bench: Bench) -> None:
    for jid, priority, due in (("a", 0, 9.0), ("b", 5, 8.0), ("c", 5, 7.0)):
        bench.push(jid, queue="q", priority=priority, due=bench.now.wall + due)
    bench.push("leased", "failed", queue="q")
    bench.lease("q")
    bench.lease("q")
    bench.fail("failed")
    state = bench.state
    assert [state.jobs[number].jid for _, _, number in state.scheduled_in["q"]] == ["c", "b", "a"]
    assert state.leased_in == {"q": 1}
    assert [state.jobs[number].jid for _, number in state.retrying_in["q"]] == ["failed"]
    assert queue_counts(state, "q") == QueueCounts(0, 0, 1, 1, 3)
    assert queue_counts(state, "never") == QueueCounts(0, 0, 0, 0, 0)
    bench.succeed("leased")
    bench.after(60.0)
    assert queue_counts(state, "q") == QueueCounts(5 - 1, 0, 0, 0, 0)
    assert state.scheduled_in == {}
    assert {job.state for job in state.jobs.values()} == {State.READY}
