"""Faults that are known and not mended yet, each with the shortest way to it.

Every test here must fail. Who mends a fault is told so by a test that passes; it then moves to the file of its subject,
and the limits named with it in tests/model are lifted.
"""

import pytest

from crossdock.model.commands import CommitGroup, OpenGroup, Remove, SetRecurrences, SetThrottles, SetTrack
from crossdock.model.job import Call, Freed, Links, LockTerms
from crossdock.model.records import Per, Recurrence
from crossdock.model.rules import Rules, Then
from crossdock.model.states import State
from tests.model.bench import Bench, spec
from tests.model.values import callback

KEPT = Rules(1, success=Then.COMPLETE)
COMPLETE = frozenset({State.COMPLETE})


@pytest.fixture
def bench() -> Bench:
    return Bench()


def fault(why: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(reason=why, strict=True)


# A job that is kept after its success. In tests/model such jobs have no links.


@fault("removing a kept job tells its group a second time, and that it failed")
def test_a_group_does_not_complete_when_a_kept_member_is_removed(bench: Bench) -> None:
    bench.do(OpenGroup("g", "faktory", "", "", callback("g", Call.COMPLETE), None))
    kept, _ = bench.push("kept", "not executed yet", rules=KEPT, links=Links(group="g"))
    bench.do(CommitGroup("g"))
    bench.lease()
    bench.succeed("kept")
    bench.do(Remove("faktory", "expired", [kept], COMPLETE))
    assert bench.memory.groups["g"].called == 0


@fault("removing a kept job tells its track a second time, and that it is dead")
def test_a_track_of_a_success_stays_one(bench: Bench) -> None:
    [kept] = bench.push("kept", rules=KEPT, links=Links(tracked=True))
    bench.lease()
    bench.succeed("kept")
    bench.do(Remove("faktory", "expired", [kept], COMPLETE))
    assert bench.memory.tracks["kept"].state == "success"


# Others


@fault("a track ends by the event's `at` and is forgotten by the wall clock: after a wrong clock it stays for years")
def test_a_track_is_forgotten_though_the_clock_was_set_back(bench: Bench) -> None:
    bench.push("dated by a wrong clock")
    bench.clock.jump(-86_400.0)
    bench.do(SetTrack("a", 50, None))
    bench.after(1_800.0)
    assert bench.memory.tracks == {}


@fault("each run is asked for its lock alone, so two of one tick take the same")
def test_of_two_runs_that_are_due_together_one_gets_the_lock(bench: Bench) -> None:
    links = Links(LockTerms("lock", bench.now.steady + 9e9, Freed.SUCCESS))
    wanted = [Recurrence(name, "faktory", "0 * * * *", "UTC", spec("", links=links), 0.0) for name in "ab"]
    bench.do(SetRecurrences(wanted))
    bench.after(3_600.0)
    assert len(bench.memory.jobs) == 1


@fault("the removal makes room under the throttle, and nobody who waits is asked again")
def test_who_waits_for_a_throttled_queue_is_asked_when_a_leased_job_is_removed(bench: Bench) -> None:
    bench.do(SetThrottles([("default", 1, Per.QUEUE, 0.0)]))
    [number] = bench.push("a")
    bench.lease()
    bench.do(Remove("faktory", "discarded", [number], frozenset({State.LEASED})))
    assert list(bench.notices) == ["default"]
