"""Settling without a lease (Workq): in any live state, late, or in place of the holder; results, attempts, failures."""

import pytest

from crossdock.model.commands.admin import Bury
from crossdock.model.commands.core import Claim, Enqueue, Fail, LeaseNext, LeaseTerms, Succeed, Verdict
from crossdock.model.events import Failed, LeaseExpired, Succeeded
from crossdock.model.job import Extra, Form, Job, LeaseRef, Links, Number, Result, Spec
from crossdock.model.policies import Backoff, Disposition, LeaseExpiry, Policy
from crossdock.model.states import State
from tests.model.bench import Bench, held

TERMS = LeaseTerms(60.0, 0.001, 86_400.0, registers=True)


def policy(max_fails: int = 0, max_attempts: int = 0) -> Policy:
    return Policy(
        max(0, max_fails - 1),
        max_attempts,
        60.0,
        Backoff.NONE,
        Disposition.FAILED,
        Disposition.COMPLETE,
        LeaseExpiry.RETURN,
    )


def push(bench: Bench, jid: str, how: Policy | None = None, *, via: str = "workq", due: float = 0.0) -> Number:
    bench.do(Enqueue(via, [Spec(jid, "q", "q", b"raw", Form.RAW, 0, how or policy(), due, Extra(links=Links()))]))
    return bench.state.counters.number


def lease(bench: Bench, via: str = "workq", terms: LeaseTerms = TERMS) -> Job:
    job = bench.do(LeaseNext(via, ("q",), "", terms))
    assert job is not None
    return job


def complete(bench: Bench, jid: str, result: bytes = b"", given: LeaseRef | None = None, number: Number = 0) -> Verdict:
    return bench.do(Succeed(jid, Claim("workq", "", given, True, number), result))


def fail(bench: Bench, jid: str, result: bytes = b"", given: LeaseRef | None = None) -> Verdict:
    return bench.do(Fail(jid, Claim("workq", "", given, True), "", "", (), result))


def result(bench: Bench, number: Number) -> Result | None:
    extra = bench.job(number).extra
    return extra.result if extra is not None else None


@pytest.mark.parametrize("success", [True, False])
@pytest.mark.parametrize("where", ["ready", "scheduled", "leased", "leased by another", "expired"])
def test_workq_settles_a_job_in_any_live_state(bench: Bench, where: str, success: bool) -> None:
    number = push(bench, "a", due=bench.now.wall + 60.0 if where == "scheduled" else 0.0)
    given = None
    if where in ("leased", "leased by another", "expired"):
        given = held(lease(bench))
    if where in ("leased by another", "expired"):
        bench.after(60.0)
        assert isinstance(bench.last, LeaseExpired)
    if where == "leased by another":
        lease(bench)
    counters = bench.state.counters
    settle = complete if success else fail
    assert settle(bench, "a", b"result", given) is Verdict.DONE
    assert bench.job(number).state is (State.COMPLETE if success else State.FAILED)
    assert result(bench, number) == Result(success, b"result")
    assert isinstance(bench.last, Succeeded | Failed)
    leased = where in ("leased", "leased by another")
    assert bool(bench.last.token) is leased
    assert counters.processed == leased
    assert bench.nothing_to_lease("q")
    for again in (complete, fail):
        assert again(bench, "a", b"other") is Verdict.FINISHED
    assert result(bench, number) == Result(success, b"result")


def test_other_protocols_need_a_lease_to_settle(bench: Bench) -> None:
    push(bench, "a")
    assert bench.do(Succeed("a", Claim("faktory", "w"))) is Verdict.UNKNOWN
    assert bench.do(Succeed("a", Claim("workq", "w"))) is Verdict.UNKNOWN
    assert complete(bench, "never") is Verdict.UNKNOWN
    foreign = push(bench, "foreign", via="faktory")
    assert complete(bench, "foreign") is Verdict.UNKNOWN
    assert complete(bench, "", number=foreign) is Verdict.UNKNOWN


def test_a_lease_of_another_protocol_is_fenced(bench: Bench) -> None:
    number = push(bench, "a")
    mine = held(lease(bench))
    bench.after(60.0)
    lease(bench, "faktory", LeaseTerms(60.0, 60.0, 60.0))
    assert complete(bench, "a", b"", mine) is Verdict.UNKNOWN
    assert bench.job(number).state is State.LEASED


def test_a_job_is_settled_by_number_where_the_protocol_shows_no_jid(bench: Bench) -> None:
    number = push(bench, "a b c", via="faktory")
    lease(bench)
    assert complete(bench, "00000000-0000-4000-8000-000000000001", b"", None, number) is Verdict.DONE
    assert complete(bench, "", b"", None, number) is Verdict.FINISHED


def test_a_dead_job_counts_as_failed(bench: Bench) -> None:
    number = push(bench, "a", due=bench.now.wall + 60.0)
    bench.do(Bury("faktory", [number]))
    assert complete(bench, "a") is Verdict.FINISHED


def test_a_failure_with_fails_left_returns_the_job_to_its_old_place(bench: Bench) -> None:
    number = push(bench, "a", policy(max_fails=3))
    bench.clock.pass_by(1.0)
    push(bench, "b")
    for fails in (1, 2):
        assert lease(bench).number == number
        assert fail(bench, "a", b"dropped") is Verdict.DONE
        job = bench.job(number)
        assert (job.state, job.failures, result(bench, number)) == (State.READY, fails, None)
        assert bench.ready_queues == ("q",)
    lease(bench)
    fail(bench, "a", b"kept")
    assert (bench.job(number).state, result(bench, number)) == (State.FAILED, Result(False, b"kept"))


def test_attempts_that_are_used_up_end_it_though_fails_are_left(bench: Bench) -> None:
    number = push(bench, "a", policy(max_fails=9, max_attempts=2))
    for _ in range(2):
        lease(bench)
        fail(bench, "a", b"last")
    assert (bench.job(number).state, bench.job(number).failures) == (State.FAILED, 2)
    assert result(bench, number) == Result(False, b"last")


def test_the_last_lease_expiry_leaves_an_empty_result_and_counts_no_failure(bench: Bench) -> None:
    number = push(bench, "a", policy(max_attempts=1))
    lease(bench)
    bench.after(60.0)
    assert isinstance(bench.last, Failed)
    assert bench.last.lost
    job = bench.job(number)
    assert (job.state, job.failures, result(bench, number)) == (State.FAILED, 0, Result(False, b""))
    assert bench.state.counters.failures == 0


@pytest.mark.parametrize("where", ["ready", "scheduled"])
def test_failing_an_unleased_job_counts_and_keeps_its_state(bench: Bench, where: str) -> None:
    number = push(bench, "a", policy(max_fails=2), due=bench.now.wall + 60.0 if where == "scheduled" else 0.0)
    before = bench.job(number).state, bench.job(number).sort_key, bench.job(number).due
    assert fail(bench, "a") is Verdict.DONE
    assert (bench.job(number).state, bench.job(number).sort_key, bench.job(number).due) == before
    assert bench.job(number).failures == 1
    assert fail(bench, "a", b"end") is Verdict.DONE
    assert (bench.job(number).state, result(bench, number)) == (State.FAILED, Result(False, b"end"))


def test_the_message_of_another_protocol_is_the_result(bench: Bench) -> None:
    number = push(bench, "a")
    bench.do(LeaseNext("faktory", ("q",), "w", TERMS))
    bench.fail("a")
    assert result(bench, number) == Result(False, b"message")


def test_results_survive_a_restart(bench: Bench) -> None:
    number = push(bench, "a")
    complete(bench, "a", b"\x00result")
    bench.restart()
    assert result(bench, number) == Result(True, b"\x00result")
