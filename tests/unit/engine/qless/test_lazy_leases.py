"""Lazy deadlines, sort keys and retention of qless jobs in the engine."""

from math import inf

from crossdock.model.commands import core as c
from crossdock.model.commands import qless as m
from crossdock.model.job import Form, LeaseBinding, Links
from crossdock.model.policies import Backoff, Disposition, LeaseExpiry, Policy
from crossdock.model.states import State
from tests.model import invariants
from tests.model.bench import Bench

WORKQ = Policy(1, 0, 0, Backoff.NONE, Disposition.FAILED, Disposition.COMPLETE, LeaseExpiry.RETURN)


def put(bench: Bench, jid: str, t: float = 1.0, *, delay: float = 0.0, priority: float = 0, retries: int = 5) -> int:
    bench.do(m.Put("qless", t, "w", jid, "default", "k", b"{}", Form.JSON, delay, priority, (), retries))
    return [job.number for job in bench.state.named(jid)][-1]


def pop(bench: Bench, t: float = 2.0, count: int = 1, term: float = 60.0) -> list[str]:
    return [job.jid for job in bench.do(m.Pop("qless", t, "default", "w", count, term))]


def test_jobs_put_at_the_same_time_pop_in_reverse_byte_order_of_jid(bench: Bench) -> None:
    for jid in ("b", "a", "c", "10", "9", "1"):
        put(bench, jid)
    assert pop(bench, count=9) == ["c", "b", "a", "9", "10", "1"]


def test_sort_keys_of_all_protocols_compare(bench: Bench) -> None:
    put(bench, "late", bench.now.wall + 5)
    bench.push("mine")
    put(bench, "early", bench.now.wall - 5)
    assert bench.work_order() == ["early", "mine", "late"]
    assert bench.job(2).sort_key == (0, 1, bench.now.wall, b"", 2)


def test_a_delayed_job_becomes_ready_by_a_lease_and_not_by_a_timer(bench: Bench) -> None:
    number = put(bench, "j", delay=30.0)
    assert list(bench.state.by_state[State.SCHEDULED]) == [(inf, number)]
    assert bench.engine.due_in(bench.now) == 30.0, "waiting clients are woken then"
    assert bench.after(31.0).scheduled == 0
    assert bench.ready_queues == ("default",)
    assert bench.engine.due_in(bench.now) is None
    assert bench.job(number).state is State.SCHEDULED
    assert bench.engine.has_work("default", bench.now)
    assert bench.lease().jid == "j"


def test_deadlines_survive_a_restart(bench: Bench) -> None:
    put(bench, "j", delay=30.0)
    bench.clock.pass_by(31.0)
    bench.restart()
    invariants.check(bench.state)
    assert bench.engine.due_in(bench.now) == 0.0
    assert bench.lease().jid == "j"


def test_a_lease_of_a_qless_job_expires_lazily_in_every_protocol(bench: Bench) -> None:
    number = put(bench, "j", retries=0)
    job = bench.lease()
    assert job.lease is not None
    assert (job.lease.end, job.lease.late, job.lease.until) == (inf, bench.now.steady + 1_800.0, None)
    bench.after(1_801.0)
    assert bench.job(number).state is State.LEASED, "no timer ends the lease"
    assert pop(bench, t=1e12) == [], "the lease expires by the server's clock, not by the caller's"
    assert bench.job(number).extra is not None
    bench.clock.pass_by(10.5)
    assert pop(bench) == []
    assert bench.job(number).state is State.FAILED


def test_a_lease_given_back_at_a_restart_is_not_in_the_history(bench: Bench) -> None:
    number = put(bench, "j")
    terms = c.LeaseTerms(inf, inf, inf, LeaseBinding.CONNECTION)
    assert bench.do(c.LeaseNext("masenko", ("default",), "", terms)) is not None
    bench.restart()
    extra = bench.job(number).extra
    assert bench.job(number).state is State.READY
    assert extra is not None
    assert len(extra.history) == 1


def test_a_put_removes_the_time_to_live_of_another_protocol(bench: Bench) -> None:
    [number] = bench.push("j", policy=WORKQ, links=Links(ttl_s=5.0))
    put(bench, "j")
    bench.after(6.0)
    assert bench.job(number).state is State.READY
    invariants.check(bench.state)


def test_completed_jobs_are_limited_by_count_and_age(bench: Bench) -> None:
    bench.do(m.Configure("jobs-history-count", "2"))
    for each in range(5):
        put(bench, f"j{each}", t=each)
        [jid] = pop(bench, t=each)
        bench.do(c.Succeed(jid, c.Claim("qless", "w"), t=float(each)))
    assert [jid for _, jid, _ in bench.state.qless.completed] == ["j3", "j4"]
    bench.do(m.Configure("jobs-history", "-1"))
    put(bench, "j5", t=9.0)
    pop(bench, t=9.0)
    bench.do(c.Succeed("j5", c.Claim("qless", "w"), t=9.0))
    assert not bench.state.qless.completed


def test_the_oldest_completed_jobs_are_removed_together(bench: Bench) -> None:
    """Removing one at a time costs more, so the limit may be exceeded by one job per 500."""
    bench.do(m.Configure("jobs-history-count", "1000"))
    counts = []
    for each in range(1_006):
        put(bench, f"j{each}", t=each)
        [jid] = pop(bench, t=each)
        bench.do(c.Succeed(jid, c.Claim("qless", "w"), t=float(each)))
        counts.append(len(bench.state.qless.completed))
    assert counts[-7:] == [1_000, 1_001, 1_002, 1_000, 1_001, 1_002, 1_000]
    assert bench.state.qless.completed.first()[1] == "j6"


def test_a_setting_limits_the_days_of_statistics(bench: Bench) -> None:
    bench.do(m.Configure("stats-history", "2"))
    for day in range(4):
        put(bench, f"j{day}", t=day * 86_400.0)
        pop(bench, t=day * 86_400.0 + 1)
    assert sorted(bench.state.stats.days["default"]) == [2 * 86_400, 3 * 86_400]


def test_locks_are_sorted_also_when_there_are_many(bench: Bench) -> None:
    numbers = {f"j{each}": put(bench, f"j{each}") for each in range(2_500)}
    leased = [jid for each in range(0, 2_500, 500) for jid in pop(bench, 2.0 + each % 3, 500, 60.0 + each % 7)]
    assert sorted(leased) == sorted(numbers)
    for jid in leased[::3]:  # some are sorted already, and some are not
        job = bench.job(numbers[jid])
        assert job.lease is not None
        claim = c.Claim("qless", "w", (job.number, job.lease.token))
        assert bench.do(c.Succeed(jid, claim, t=3.0)) is c.Verdict.DONE
    held = [job for job in bench.state.jobs.values() if job.lease is not None]
    locks = bench.state.lazy.queues["default"].locks
    assert list(locks) == sorted((job.lease.until, job.jid, job.number) for job in held if job.lease is not None)
    assert len(locks) == 2_500 - len(leased[::3])
    invariants.check(bench.state)


def test_an_alarm_of_an_ended_lease_is_replaced_by_the_next_one(bench: Bench) -> None:
    """The alarm of a queue may be too early. It is computed again then, and no later deadline is
    skipped."""
    for jid in ("first", "second"):
        put(bench, jid)
    pop(bench)
    bench.clock.pass_by(30.0)
    pop(bench, 32.0)
    assert bench.engine.due_in(bench.now) == 30.0
    token, number = min((job.lease.token, job.number) for job in bench.state.jobs.values() if job.lease is not None)
    assert bench.do(c.Succeed("", c.Claim("qless", "w", (number, token)), t=33.0)) is c.Verdict.DONE
    bench.after(31.0)
    assert not bench.ready_queues, "no lease has expired"
    assert bench.engine.due_in(bench.now) == 29.0
    bench.after(29.0)
    assert bench.ready_queues == ("default",)
    assert bench.engine.due_in(bench.now) is None
