"""Unique ids, deferral and repeats of Resqu jobs, through Resqu's words and through other doors."""

from collections.abc import Iterator

import pytest

from crossdock.model import events as e
from crossdock.model.commands import admin, resqu
from crossdock.model.commands import core as c
from crossdock.model.commands.resqu import Finalised, Pushing
from crossdock.model.events.resqu import Reserved, Unreserved
from crossdock.model.job import Links
from crossdock.model.states import State
from tests.model.resqu_bench import ResquBench, job_spec


@pytest.fixture
def bench() -> Iterator[ResquBench]:
    bench = ResquBench()
    bench.do(c.Start())
    bench.mapped()
    yield bench
    bench.sound()


def test_a_unique_id_is_one_job_over_queued_delayed_and_running(bench: ResquBench) -> None:
    later = bench.now.wall + 60
    assert bench.enqueue("j1", "u") is Pushing.PUSHED
    assert bench.enqueue("j2", "d", due=later, stamped=False) is Pushing.PUSHED
    assert bench.enqueue("j3", "u", by=2) is None
    assert bench.enqueue("j4", "d", by=2) is None
    assert bench.lock_state("u") == bench.lock_state("d") == "queued"
    bench.pop()
    assert bench.lock_state("u") == "running"
    assert bench.enqueue("j5", "u", by=2) is None
    bench.rpop()
    assert bench.lock_state("u") is None
    assert bench.enqueue("j6", "u", by=2) is Pushing.PUSHED
    bench.after(61)
    assert bench.jids("static") == ["j6", "j2"]


def test_a_reservation_ends_with_its_connection(bench: ResquBench) -> None:
    assert bench.do(resqu.Reserve("u", 1))
    assert bench.do(resqu.Reserve("u", 1))
    assert not bench.do(resqu.Reserve("u", 2))
    assert bench.do(resqu.PushJob("resqu", 2, job_spec("j", "u"))) is Pushing.NOT_UNIQUE
    bench.do(resqu.Release(1))
    assert bench.do(resqu.Reserve("u", 2))
    bench.restart()
    assert bench.lock_state("u") is None


def test_reserving_is_soft_so_that_it_waits_for_no_disk(bench: ResquBench) -> None:
    bench.do(resqu.Reserve("u", 1))
    bench.do(resqu.Release(1))
    assert [type(event) for event in bench.events[-2:]] == [Reserved, Unreserved]
    assert {Reserved, Unreserved} <= e.SOFT


def test_a_push_that_reserved_nothing_takes_a_free_id(bench: ResquBench) -> None:
    """Its connection was lost between the two commands, and it repeats the second."""
    bench.do(resqu.Reserve("u", 1))
    bench.do(resqu.Release(1))
    assert bench.do(resqu.PushJob("resqu", 2, job_spec("j", "u"))) is Pushing.PUSHED
    assert bench.lock_state("u") == "queued"


def test_a_repeat_is_known_by_its_id_for_an_hour_after_the_job_is_gone(bench: ResquBench) -> None:
    assert bench.enqueue("j") is Pushing.PUSHED
    assert bench.enqueue("j") is Pushing.REPEATED
    bench.pop()
    bench.rpop()
    assert bench.enqueue("j") is Pushing.REPEATED
    bench.restart()
    bench.clock.pass_by(3_599)
    bench.enqueue("other")
    bench.do(admin.Remove("control", "discarded", list(bench.state.jobs), frozenset({State.READY})))
    assert bench.enqueue("j") is Pushing.REPEATED
    bench.clock.pass_by(2)
    bench.enqueue("another")
    bench.do(admin.Remove("control", "discarded", list(bench.state.jobs), frozenset({State.READY})))
    assert bench.enqueue("j") is Pushing.PUSHED


def test_a_delayed_repeat_is_known_by_its_text(bench: ResquBench) -> None:
    due = bench.now.wall + 60
    bench.enqueue("made-1", "u", due=due, stamped=False)
    repeat = resqu.PushJob("resqu", 1, job_spec("made-2", "u", due=due, stamped=False))
    assert bench.do(repeat) is Pushing.REPEATED
    other = resqu.PushJob("resqu", 1, job_spec("made-3", "u", due=due, stamped=False, args=2))
    assert bench.do(other) is Pushing.NOT_UNIQUE


def test_an_id_of_another_protocols_job_is_not_a_repeat(bench: ResquBench) -> None:
    bench.push("j")
    assert bench.enqueue("j") is Pushing.DUPLICATE


def test_only_what_runs_can_be_deferred_to_and_the_first_one_stays(bench: ResquBench) -> None:
    assert bench.defer("d", "u") is None
    bench.enqueue("j", "u")
    assert bench.defer("d", "u") is None
    bench.pop()
    assert bench.defer("d1", "u", 30) is True
    assert bench.defer("d2", "u", 0) is False
    bench.delete("u")
    bench.rpop()
    assert bench.state.counters.number == 2
    assert bench.jids("static") == []
    bench.after(31)
    assert bench.jids("static") == ["d1"]


@pytest.mark.parametrize("how", ["succeeds", "fails", "is removed", "is lost for good", "is killed"])
def test_what_is_deferred_follows_whatever_becomes_of_its_blocker(bench: ResquBench, how: str) -> None:
    """Through another door."""
    bench.enqueue("j", "u")
    bench.lease("static")
    assert bench.defer("d", "u") is True
    if how == "succeeds":
        bench.succeed("j")
    elif how == "is removed":
        bench.do(admin.Remove("control", "discarded", list(bench.state.jobs), frozenset({State.LEASED})))
    elif how == "fails":
        for _ in range(3):
            assert bench.jids("static") == []
            bench.fail("j")
            if bench.jids("static") == ["j"]:
                bench.lease("static")
    elif how == "is killed":
        (number,) = bench.state.jobs
        job = bench.state.jobs[number]
        bench.give_back((number, job.lease.token if job.lease else 0))
        bench.do(admin.Bury("control", [number]))
    else:
        bench.after(1_801)
        assert bench.jids("static") == ["j"], "a lost lease gives the job back, and it keeps its unique id"
        assert bench.lock_state("u") == "queued"
        bench.lease("static")
        bench.succeed("j")
    assert bench.jids("static") == ["d"]
    assert bench.lock_state("u") == "queued"


def test_a_deferred_job_handed_to_a_child_is_pushed_by_it(bench: ResquBench) -> None:
    bench.enqueue("j", "u")
    bench.pop()
    bench.defer("d", "u", 0)
    done = bench.finalise("u", by=7)
    assert done.running
    assert done.deferred == job_spec("d", "u", defer=0, stamped=False).extra.protocol_data.text  # type: ignore[union-attr]
    assert bench.enqueue("intruder", "u", by=8) is None
    assert bench.enqueue("d-again", "u", by=7, defer=0.0) is Pushing.PUSHED
    bench.do(resqu.Release(7))
    assert bench.jids("static") == ["d-again"]
    assert bench.rpop() is not None
    assert bench.jids("static") == ["d-again"]


@pytest.mark.parametrize("how", ["its connection ends", "the server is restarted"])
def test_and_by_the_engine_if_it_does_not(bench: ResquBench, how: str) -> None:
    bench.enqueue("j", "u")
    bench.pop()
    bench.defer("d", "u", 5)
    bench.finalise("u", by=7)
    if how == "its connection ends":
        bench.do(resqu.Release(7))
    else:
        bench.restart()
        bench.replayed = bench.state
    assert bench.lock_state("u") == "queued"
    bench.after(6)
    assert bench.jids("static") == ["d"]


def test_what_is_not_running_cannot_be_finalised(bench: ResquBench) -> None:
    assert bench.finalise("u") == Finalised(False)
    bench.enqueue("j", "u")
    assert bench.finalise("u") == Finalised(False)
    bench.lease("static")
    assert bench.finalise("u") == Finalised(False), "nobody ends what another door holds"
    assert bench.lock_state("u") == "running"


def test_a_child_that_reports_running_is_believed(bench: ResquBench) -> None:
    """As a client may, without having popped the job (recording of client 1.0.4, step 6)."""
    assert not bench.do(resqu.Mark("u", 1, True))
    bench.enqueue("j", "u")
    assert bench.do(resqu.Mark("u", 1, True))
    assert bench.lock_state("u") == "running"
    assert bench.defer("d", "u") is True
    assert bench.do(resqu.Mark("u", 1, False))
    assert bench.lock_state("u") == "queued"
    assert bench.defer("d", "u") is None
    bench.do(resqu.Mark("u", 1, True))
    assert bench.finalise("u", by=3).deferred
    bench.do(resqu.Release(3))
    assert bench.jids("static") == ["j", "d"]


def test_a_lock_deleted_by_hand_leaves_its_job_alone(bench: ResquBench) -> None:
    bench.enqueue("j", "u")
    bench.do(resqu.Mark("u", 1, True))
    bench.defer("d", "u")
    assert bench.delete("u") == 2
    assert bench.lock_state("u") is None
    assert bench.enqueue("k", "u") is Pushing.PUSHED
    bench.pop()
    bench.rpop()
    assert bench.lock_state("u") == "queued", "the first job no longer held it"
    assert bench.delete("nobody has it") == 0


def test_a_job_of_faktory_may_hold_the_same_id(bench: ResquBench) -> None:
    bench.push("f", queue="mail", links=Links(resqu.unique("u")))
    assert bench.enqueue("j", "u") is None
    bench.lease("mail")
    assert bench.defer("d", "u") is True
    bench.succeed("f")
    assert bench.jids("static") == ["d"]


def test_monitored_jobs_are_known_for_a_day(bench: ResquBench) -> None:
    bench.enqueue("j", monitored=True)
    assert bench.state.progress["j"].state == "enqueued"
    bench.pop()
    assert bench.state.progress["j"].state == "working"
    bench.rpop()
    assert bench.state.progress["j"].state == "success"
    bench.after(86_399)
    assert "j" in bench.state.progress
    bench.after(2)
    assert "j" not in bench.state.progress
