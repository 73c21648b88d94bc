"""Rate limits: how many leases may begin in a time."""

from collections.abc import Sequence

from crossdock.engine.jobs.lease import EXPIRED_AT_MOST, more_candidates
from crossdock.engine.records import rates
from crossdock.model.commands.admin import Bury, Flush, ForgetQueue, PauseQueues, Remove, Requeue, Reroute, ResumeQueues
from crossdock.model.commands.core import Enqueue, LeaseNext, SetRates
from crossdock.model.commands.qless import Pop, SetPriority
from crossdock.model.events import RateHeld, RatesOpened
from crossdock.model.job import Extra, Form, RateTerms, Spec
from crossdock.model.records import FROM_SETTINGS, RateScope, RateSpec
from crossdock.model.states import State
from tests.model import invariants
from tests.model.bench import RULES, TERMS, Bench

KIND, QUEUE = RateScope.KIND, RateScope.QUEUE


def limit(bench: Bench, *given: tuple[RateScope, str, int, float], source: str = FROM_SETTINGS) -> None:
    specs = [RateSpec(f"limit-{at}", *each) for at, each in enumerate(given)]
    bench.do(SetRates(source, specs))


def push(
    bench: Bench,
    *jids: str,
    kind: str = "mail",
    queue: str = "default",
    rate: RateTerms | None = None,
    priority: int = 0,
) -> None:
    extra = None if rate is None else Extra(rate=rate)
    bench.do(
        Enqueue("faktory", [Spec(jid, queue, kind, b"[]", Form.JSON, priority, RULES, 0.0, extra) for jid in jids])
    )


def taken(bench: Bench, *queues: str) -> list[str]:
    """Leases until nothing is left, as a worker does that asks again while there are candidates."""
    jids = []
    command = LeaseNext("faktory", queues or ("default",), "w", TERMS)
    while True:
        job = bench.do(command)
        if job is not None:
            jids.append(job.jid)
        elif not more_candidates(bench.state, command, bench.now):
            invariants.check(bench.state)
            return jids


def due(bench: Bench) -> float | None:
    return bench.engine.due_in(bench.now)


def wait(bench: Bench, seconds: float) -> None:
    """Advances the clock and runs all that is due."""
    bench.clock.pass_by(seconds)
    for _ in range(100):
        if due(bench) != 0.0:
            break
        bench.tick()
    else:
        raise AssertionError("the timer does not come to rest")
    invariants.check(bench.state)
    assert same(bench)


def same(bench: Bench) -> bool:
    """Whether a replay of the journal gives the same limits, with what waits for them."""
    one, other = bench.state, bench.replayed
    return one.rates == other.rates and list(one.rate_index.wakes) == list(other.rate_index.wakes)


def test_a_queue_whose_rate_is_used_up_looks_empty(bench: Bench) -> None:
    limit(bench, (QUEUE, "default", 2, 60.0))
    push(bench, "a", "b", "c", "d")
    push(bench, "x", queue="other")
    assert taken(bench) == ["a", "b"]
    assert taken(bench, "default", "other") == ["x"]
    assert not bench.engine.has_work("default", bench.now)
    assert due(bench) == 30.0
    wait(bench, 29.9)
    assert taken(bench) == []
    bench.clock.pass_by(0.1)
    bench.tick()
    assert list(bench.ready_queues) == ["default"], "waiting requests are woken"
    assert taken(bench) == ["c"]


def test_the_timer_of_a_queue_rests_when_a_token_is_there(bench: Bench) -> None:
    limit(bench, (QUEUE, "default", 1, 10.0))
    push(bench, "a")
    assert taken(bench) == ["a"]
    bench.succeed("a")
    wait(bench, 10.0)
    assert due(bench) is None


def test_a_job_pushed_into_a_queue_whose_rate_is_used_up_waits_for_the_timer(bench: Bench) -> None:
    limit(bench, (QUEUE, "default", 1, 10.0))
    push(bench, "a")
    assert taken(bench) == ["a"]
    push(bench, "b")
    assert not bench.engine.has_work("default", bench.now)
    assert due(bench) == 10.0


def test_jobs_of_a_limited_kind_do_not_block_others(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 1, 10.0))
    push(bench, "a", "b", "c")
    push(bench, "x", "y", kind="report")
    assert taken(bench) == ["a", "x", "y"]
    assert [job.state for job in bench.state.jobs.values() if job.jid in "bc"] == [State.HELD] * 2
    wait(bench, 10.0)
    assert taken(bench) == ["b"]
    wait(bench, 10.0)
    assert taken(bench) == ["c"]
    wait(bench, 100.0)
    for jid in "abcxy":
        bench.succeed(jid)
    assert not bench.state.rate_index.waits
    assert due(bench) is None


def test_held_jobs_come_back_in_their_old_places(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 3, 3.0))
    push(bench, *"abcdef")
    assert taken(bench) == ["a", "b", "c"]
    push(bench, "g", "h")
    push(bench, "urgent", priority=5)
    wait(bench, 1.0)
    assert taken(bench) == ["urgent"]
    wait(bench, 2.0)
    assert taken(bench) == ["d", "e"]
    wait(bench, 3.0)
    assert taken(bench) == ["f", "g", "h"]


def test_tokens_gather_while_no_worker_asks(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 5, 5.0))
    push(bench, *(f"j{at:02}" for at in range(20)))
    assert len(taken(bench)) == 5
    for _ in range(30):
        wait(bench, 1.0)
    assert due(bench) is None or due(bench) > 100.0, "as many jobs are ready as there are tokens"  # type: ignore[operator]
    assert taken(bench) == [f"j{at:02}" for at in range(5, 10)]


def test_a_look_at_a_limited_queue_is_bounded(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 1, 1_000.0))
    push(bench, *(f"j{at}" for at in range(3 * EXPIRED_AT_MOST + 1)))
    push(bench, "x", kind="report")
    assert bench.lease().jid == "j0"
    command = LeaseNext("faktory", ("default",), "w", TERMS)
    calls = 1
    while (job := bench.do(command)) is None:
        assert more_candidates(bench.state, command, bench.now)
        calls += 1
    assert (job.jid, calls) == ("x", 4)
    before = len(bench.events)
    assert taken(bench) == []
    assert len(bench.events) == before, "held jobs are not looked at again"


def test_very_many_jobs_are_freed_in_slices(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 1_000, 10.0))
    push(bench, *(f"j{at:05}" for at in range(3_000)))
    assert len(taken(bench)) == 1_000
    bench.clock.pass_by(10.0)
    bench.tick(300)
    opened = bench.last
    assert isinstance(opened, RatesOpened)
    assert len(opened.rows) == 300
    assert due(bench) == 0.0
    wait(bench, 0.0)
    assert taken(bench) == [f"j{at:05}" for at in range(1_000, 2_000)]


def test_a_queue_without_workers_does_not_keep_the_tokens_of_others(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 1, 10.0))
    push(bench, "a", queue="left")
    push(bench, "b", queue="right")
    push(bench, "c", "d", queue="right")
    push(bench, "e", queue="left")
    assert taken(bench, "left", "right") == ["a"]
    for jid in "bcd":
        wait(bench, 10.0)
        assert taken(bench, "right") == [jid]
    wait(bench, 10.0)
    assert taken(bench, "left") == ["e"]


def test_two_limits_of_one_kind_hold_both(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 2, 1.0), (KIND, "mail", 3, 100.0))
    push(bench, *"abcdef")
    assert taken(bench) == ["a", "b"]
    wait(bench, 1.0)
    assert taken(bench) == ["c"]
    wait(bench, 1.0)
    assert taken(bench) == []
    wait(bench, 32.0)
    assert taken(bench) == ["d"]


def test_a_limit_of_the_queue_and_one_of_the_kind_hold_both(bench: Bench) -> None:
    limit(bench, (QUEUE, "default", 2, 100.0), (KIND, "mail", 1, 10.0))
    push(bench, "a", "b")
    push(bench, "x", "y", kind="report")
    assert taken(bench) == ["a", "x"]
    wait(bench, 50.0)
    assert taken(bench) == ["b"]
    wait(bench, 50.0)
    assert taken(bench) == ["y"]


def test_jobs_share_the_limit_of_the_name_they_carry(bench: Bench) -> None:
    of_ann, of_ben = RateTerms("user:ann", 1, 10.0), RateTerms("user:ben", 2, 10.0)
    push(bench, "a1", "a2", rate=of_ann)
    push(bench, "b1", "b2", "b3", rate=of_ben)
    push(bench, "c")
    assert taken(bench) == ["a1", "b1", "b2", "c"]
    wait(bench, 5.0)
    assert taken(bench) == ["b3"]
    wait(bench, 5.0)
    assert taken(bench) == ["a2"]


def test_names_that_are_not_used_any_more_are_forgotten(bench: Bench) -> None:
    for at in range(200):
        push(bench, f"j{at}", rate=RateTerms(f"user:{at}", 1, 10.0))
        assert taken(bench) == [f"j{at}"]
        bench.succeed(f"j{at}")
        bench.clock.pass_by(1.0)
        assert len(bench.state.rates) <= 25


def test_a_pop_of_many_jobs_takes_no_more_than_there_are_tokens(bench: Bench) -> None:
    push(bench, *(f"j{at}" for at in range(9)), rate=RateTerms("user", 4, 10.0))
    push(bench, "x", "y")

    def popped(count: int = 100) -> list[str]:
        jobs = bench.do(Pop("qless", bench.now.wall, "default", "w", count, 60.0))
        invariants.check(bench.state)
        return [job.jid for job in jobs]

    assert popped() == ["j0", "j1", "j2", "j3", "x", "y"]
    assert popped() == []
    wait(bench, 5.0)
    assert popped() == ["j4", "j5"]


def test_a_pop_looks_behind_many_limited_jobs(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 1, 1_000.0), (QUEUE, "other", 1, 10.0))
    push(bench, *(f"j{at}" for at in range(3 * EXPIRED_AT_MOST)))
    push(bench, "x", kind="report")
    push(bench, "o1", "o2", queue="other", kind="report")
    jobs = bench.do(Pop("qless", bench.now.wall, "default", "w", 5, 60.0))
    assert [job.jid for job in jobs] == ["j0", "x"]
    assert len(bench.do(Pop("qless", bench.now.wall, "other", "w", 5, 60.0))) == 1
    assert bench.do(Pop("qless", bench.now.wall, "other", "w", 5, 60.0)) == []
    invariants.check(bench.state)


def test_a_changed_limit_applies_at_once(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 1, 100.0))
    push(bench, *"abcdef")
    assert taken(bench) == ["a"]
    limit(bench, (KIND, "mail", 10, 10.0))
    wait(bench, 2.0)
    assert taken(bench) == ["b", "c"]
    limit(bench)
    assert due(bench) == 0.0
    wait(bench, 0.0)
    assert taken(bench) == ["d", "e", "f"]
    assert not bench.state.rates


def test_a_removed_limit_of_a_queue_wakes_those_who_wait(bench: Bench) -> None:
    limit(bench, (QUEUE, "default", 1, 100.0))
    push(bench, "a", "b")
    assert taken(bench) == ["a"]
    limit(bench)
    assert list(bench.ready_queues) == ["default"]
    assert taken(bench) == ["b"]


def test_unchanged_limits_are_not_written_again(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 1, 100.0), (QUEUE, "mail", 1, 100.0))
    before = len(bench.events)
    limit(bench, (KIND, "mail", 1, 100.0), (QUEUE, "mail", 1, 100.0))
    assert len(bench.events) == before


def test_each_source_has_its_own_limits(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 5, 100.0))
    limit(bench, (KIND, "mail", 2, 100.0), source="app:shop")
    push(bench, *"abcdef")
    assert taken(bench) == ["a", "b"]
    limit(bench, source="app:shop")
    wait(bench, 0.0)
    assert taken(bench) == ["c", "d", "e"]


def test_there_is_a_bound_on_limits(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 5, 100.0))
    assert rates.room_for(bench.state, "app:shop", rates.RATES_AT_MOST - 1)
    assert not rates.room_for(bench.state, "app:shop", rates.RATES_AT_MOST)
    assert rates.room_for(bench.state, FROM_SETTINGS, rates.RATES_AT_MOST)


def test_a_restart_keeps_what_was_used(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 2, 20.0), (QUEUE, "slow", 1, 10.0))
    push(bench, "a", "b", "c", "d")
    push(bench, "s", "t", queue="slow", kind="report")
    push(bench, "n1", "n2", kind="other", rate=RateTerms("name", 1, 10.0))
    assert taken(bench, "default", "slow") == ["a", "b", "n1", "s"]
    bench.restart()
    invariants.check(bench.state)
    assert taken(bench, "default", "slow") == []
    bench.clock.pass_by(10.0)
    while due(bench) == 0.0:
        bench.tick()
    assert sorted(taken(bench, "default", "slow")) == ["c", "n2", "t"]


def numbers(bench: Bench, *jids: str) -> Sequence[int]:
    return [job.number for jid in jids for job in bench.state.named(jid)]


def test_held_jobs_can_be_removed_buried_moved_and_flushed(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 1, 10.0))
    push(bench, *"abcdef")
    assert taken(bench) == ["a"]
    bench.do(Remove("admin", "discarded", numbers(bench, "b"), frozenset({State.HELD})))
    invariants.check(bench.state)
    bench.do(Bury("admin", numbers(bench, "c")))
    invariants.check(bench.state)
    bench.do(Reroute("admin", "elsewhere", numbers(bench, "d")))
    invariants.check(bench.state)
    assert taken(bench, "elsewhere") == []
    wait(bench, 10.0)
    bench.do(Requeue("admin", numbers(bench, "c")))
    invariants.check(bench.state)
    assert taken(bench, "elsewhere") == ["d"]
    wait(bench, 10.0)
    assert taken(bench) == ["e"]
    wait(bench, 10.0)
    bench.do(Remove("admin", "discarded", numbers(bench, "f"), frozenset({State.READY})))
    wait(bench, 0.0)
    assert taken(bench) == ["c"]
    push(bench, "g")
    assert taken(bench) == []
    bench.do(Flush("faktory"))
    invariants.check(bench.state)
    push(bench, "h")
    assert taken(bench) == [], "a flush gives no tokens"
    wait(bench, 10.0)
    assert taken(bench) == ["h"]


def test_a_freed_job_that_is_removed_makes_place_for_the_next(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 1, 10.0))
    push(bench, "a", "b", "c")
    assert taken(bench) == ["a"]
    wait(bench, 60.0)
    bench.do(Remove("admin", "discarded", numbers(bench, "b"), frozenset({State.READY})))
    wait(bench, 0.0)
    assert taken(bench) == ["c"]


def test_a_held_job_keeps_waiting_in_a_queue_that_is_paused_or_forgotten(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 1, 10.0))
    push(bench, "a", "b")
    assert taken(bench) == ["a"]
    bench.do(PauseQueues(["default"], any_name=True))
    wait(bench, 10.0)
    assert taken(bench) == []
    bench.do(ResumeQueues(["default"]))
    assert taken(bench) == ["b"]
    push(bench, "c")
    assert taken(bench) == []
    bench.do(ForgetQueue("default"))
    wait(bench, 10.0)
    assert taken(bench) == ["c"]


def test_a_new_priority_moves_a_held_job(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 1, 10.0))
    push(bench, "a", "b", "c")
    assert taken(bench) == ["a"]
    [number] = numbers(bench, "c")
    bench.do(SetPriority("qless", bench.now.wall, number, 5))
    invariants.check(bench.state)
    wait(bench, 10.0)
    assert taken(bench) == ["c"]


def test_a_lease_that_is_given_back_or_fails_has_used_its_token(bench: Bench) -> None:
    limit(bench, (KIND, "mail", 1, 10.0))
    push(bench, "a")
    lease = bench.lease()
    assert lease.lease is not None
    bench.give_back((lease.number, lease.lease.token))
    assert taken(bench) == []
    wait(bench, 10.0)
    assert taken(bench) == ["a"]


def test_without_limits_no_event_is_added(bench: Bench) -> None:
    push(bench, "a", "b")
    assert taken(bench) == ["a", "b"]
    assert not bench.state.rates
    assert not any(isinstance(event, RateHeld | RatesOpened) for event in bench.events)
