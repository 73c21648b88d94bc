"""Unique ids, deferred jobs and repeated pushes of Resqu jobs, through Resqu and through other protocols."""

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


def test_a_unique_id_allows_one_job_queued_delayed_or_running(bench: ResquBench) -> None:
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


def test_a_reservation_is_soft_and_does_not_wait_for_the_disk(bench: ResquBench) -> None:
    bench.do(resqu.Reserve("u", 1))
    bench.do(resqu.Release(1))
    assert [type(event) for event in bench.events[-2:]] == [Reserved, Unreserved]
    assert {Reserved, Unreserved} <= e.SOFT


def test_a_push_without_a_reservation_takes_a_free_unique_id(bench: ResquBench) -> None:
    """The connection was lost between the two commands, and the client repeats the second one."""
    bench.do(resqu.Reserve("u", 1))
    bench.do(resqu.Release(1))
    assert bench.do(resqu.PushJob("resqu", 2, job_spec("j", "u"))) is Pushing.PUSHED
    assert bench.lock_state("u") == "queued"


def test_a_repeated_push_is_recognised_for_an_hour_after_the_job_ended(bench: ResquBench) -> None:
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


def test_a_repeated_delayed_push_is_recognised_by_its_text(bench: ResquBench) -> None:
    due = bench.now.wall + 60
    bench.enqueue("made-1", "u", due=due, stamped=False)
    repeat = resqu.PushJob("resqu", 1, job_spec("made-2", "u", due=due, stamped=False))
    assert bench.do(repeat) is Pushing.REPEATED
    other = resqu.PushJob("resqu", 1, job_spec("made-3", "u", due=due, stamped=False, args=2))
    assert bench.do(other) is Pushing.NOT_UNIQUE


def test_the_jid_of_another_protocols_job_is_a_duplicate_and_not_a_repeat(bench: ResquBench) -> None:
    bench.push("j")
    assert bench.enqueue("j") is Pushing.DUPLICATE


def test_only_a_running_job_can_be_deferred_to_and_the_first_deferred_job_stays(bench: ResquBench) -> None:
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


@pytest.mark.parametrize("how", ["succeeds", "fails", "is removed", "loses its lease", "is buried"])
def test_a_deferred_job_follows_however_its_blocker_ends(bench: ResquBench, how: str) -> None:
    """The blocker is leased through another protocol."""
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
    elif how == "is buried":
        (number,) = bench.state.jobs
        job = bench.state.jobs[number]
        bench.give_back((number, job.lease.token if job.lease else 0))
        bench.do(admin.Bury("control", [number]))
    else:
        bench.after(1_801)
        assert bench.jids("static") == ["j"], "a job that loses its lease is ready again and keeps its unique id"
        assert bench.lock_state("u") == "queued"
        bench.lease("static")
        bench.succeed("j")
    assert bench.jids("static") == ["d"]
    assert bench.lock_state("u") == "queued"


def test_a_deferred_job_is_handed_to_the_child_which_pushes_it(bench: ResquBench) -> None:
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
def test_the_engine_pushes_a_deferred_job_if_the_child_does_not(bench: ResquBench, how: str) -> None:
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


def test_a_job_that_is_not_running_in_a_buffer_cannot_be_finalised(bench: ResquBench) -> None:
    assert bench.finalise("u") == Finalised(False)
    bench.enqueue("j", "u")
    assert bench.finalise("u") == Finalised(False)
    bench.lease("static")
    assert bench.finalise("u") == Finalised(False), "the job is leased through another protocol"
    assert bench.lock_state("u") == "running"


def test_a_job_marked_as_running_accepts_a_deferred_job(bench: ResquBench) -> None:
    """A client may mark it without having popped the job, as in the recording of client 1.0.4."""
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


def test_deleting_the_lock_of_a_waiting_job_leaves_the_job_alone(bench: ResquBench) -> None:
    bench.enqueue("j", "u")
    bench.do(resqu.Mark("u", 1, True))
    bench.defer("d", "u")
    assert bench.delete("u") == 2
    assert bench.lock_state("u") is None
    assert bench.enqueue("k", "u") is Pushing.PUSHED
    bench.pop()
    bench.rpop()
    assert bench.lock_state("u") == "queued", "the first job does not hold it any more"
    assert bench.delete("unused") == 0


def test_a_job_of_faktory_may_hold_the_same_id(bench: ResquBench) -> None:
    bench.push("f", queue="mail", links=Links(resqu.unique("u")))
    assert bench.enqueue("j", "u") is None
    bench.lease("mail")
    assert bench.defer("d", "u") is True
    bench.succeed("f")
    assert bench.jids("static") == ["d"]


def test_the_progress_of_a_monitored_job_is_kept_for_a_day(bench: ResquBench) -> None:
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
