"""Records beside the job: locks, expiry, groups, tracks, throttles and recurrences, rule by rule."""

import pytest

from crossdock.model.commands import (
    Bury,
    CommitGroup,
    Enqueue,
    Flush,
    LeaseNext,
    OpenGroup,
    Refused,
    Remove,
    Requeue,
    SetRecurrences,
    SetThrottles,
    SetTrack,
    Terms,
)
from crossdock.model.events import EVENT_VERSION, AnyEvent, Batch, GroupCalled, Removed, TracksDated, encode_batch
from crossdock.model.job import Bound, Call, Freed, Links, LockTerms, Number
from crossdock.model.records import Per, Recurrence
from crossdock.model.rules import Lapse, Rules, Then
from crossdock.model.states import State
from tests.model.bench import TERMS, Bench, held, spec
from tests.model.values import callback

DAY = 86_400.0
KEPT = Rules(1, success=Then.COMPLETE)


# Locks


def lock(bench: Bench, seconds: float = 600.0, freed: Freed = Freed.SUCCESS) -> Links:
    return Links(LockTerms("lock", bench.now.steady + seconds, freed))


def is_locked(bench: Bench) -> bool:
    refused = bench.do(Enqueue("faktory", [spec("other", links=lock(bench))]))
    return list(refused) == [Refused.NOT_UNIQUE]


def test_a_lock_lets_one_in(bench: Bench) -> None:
    bench.push("a", links=lock(bench))
    assert is_locked(bench)
    assert len(bench.memory.jobs) == 1
    bench.push("without a lock")
    assert len(bench.memory.jobs) == 2


def test_of_two_in_one_push_the_first_gets_it(bench: Bench) -> None:
    specs = [spec("a", links=lock(bench)), spec("b"), spec("c", links=lock(bench))]
    assert list(bench.do(Enqueue("faktory", specs))) == [None, None, Refused.NOT_UNIQUE]
    assert [job.jid for job in bench.memory.jobs.values()] == ["a", "b"]


@pytest.mark.parametrize(
    ("freed", "when", "locked"),
    [
        (Freed.SUCCESS, "leased", True),
        (Freed.SUCCESS, "given back", True),
        (Freed.SUCCESS, "failed", True),
        (Freed.SUCCESS, "dead", True),
        (Freed.SUCCESS, "succeeded", False),
        (Freed.SUCCESS, "removed", False),
        (Freed.START, "leased", False),
        (Freed.START, "given back", True),
        (Freed.START, "failed", False),
    ],
)
def test_what_frees_a_lock(bench: Bench, freed: Freed, when: str, locked: bool) -> None:
    [number] = bench.push("a", links=lock(bench, freed=freed))
    lease = held(bench.lease())
    if when == "given back":
        bench.give_back(lease)
    elif when in ("failed", "dead", "removed"):
        bench.fail("a")
    elif when == "succeeded":
        bench.succeed("a")
    if when == "dead":
        bench.do(Bury("faktory", [number]))
    elif when == "removed":
        bench.do(Remove("faktory", "discarded", [number], frozenset({State.RETRYING})))
    assert is_locked(bench) is locked


def test_a_lock_until_start_is_not_held_again_by_one_that_did_start(bench: Bench) -> None:
    [number] = bench.push("a", links=lock(bench, freed=Freed.START))
    bench.lease()
    bench.fail("a")
    bench.do(Requeue("faktory", [number]))
    bench.give_back(held(bench.lease()))
    assert not is_locked(bench)


def test_a_lock_until_start_stays_with_who_took_it_meanwhile(bench: Bench) -> None:
    bench.push("a", links=lock(bench, freed=Freed.START))
    lease = held(bench.lease())
    [other] = bench.push("b", links=lock(bench))
    bench.give_back(lease)
    assert bench.memory.locks["lock"].holder == other


def test_a_lock_until_start_is_held_again_after_a_restart(bench: Bench) -> None:
    bench.push("a", links=lock(bench, freed=Freed.START))
    bench.lease(terms=Terms(1_800.0, 60.0, 86_400.0, Bound.CONNECTION))
    bench.restart()
    assert is_locked(bench)


@pytest.mark.parametrize("looked", [True, False])
def test_a_lock_ends_by_the_steady_clock(bench: Bench, looked: bool) -> None:
    bench.push("a", links=lock(bench))
    bench.clock.jump(DAY)
    assert is_locked(bench)
    bench.clock.pass_by(600.0)
    if looked:
        bench.tick()
        assert bench.memory.locks == {}
    assert not is_locked(bench)


def test_who_lost_its_lock_does_not_free_the_next_ones(bench: Bench) -> None:
    bench.push("a", links=lock(bench))
    bench.lease()
    bench.clock.pass_by(600.0)
    bench.push("b", links=lock(bench))
    bench.succeed("a")
    assert is_locked(bench)


# Expiry


def test_an_expired_job_is_dropped_when_it_would_be_leased(bench: Bench) -> None:
    bench.push("old", "old too", links=Links(expires=bench.now.wall + 10.0))
    bench.push("fresh")
    bench.clock.pass_by(10.0)
    assert bench.lease().jid == "fresh"
    [gone] = [event for event in bench.events if isinstance(event, Removed)]
    assert (gone.why, [row.jid for row in gone.rows]) == ("expired", ["old", "old too"])
    assert len(bench.memory.jobs) == 1


def test_a_queue_of_expired_jobs_is_empty(bench: Bench) -> None:
    bench.push("old", links=Links(expires=bench.now.wall + 10.0))
    bench.push("next queue", queue="other")
    bench.clock.pass_by(10.0)
    assert bench.lease("default", "other").jid == "next queue"
    assert bench.nothing_to_lease()


def test_a_queue_of_expired_jobs_that_is_named_twice(bench: Bench) -> None:
    bench.push("old", links=Links(expires=bench.now.wall + 10.0))
    bench.push("next queue", queue="other")
    bench.clock.pass_by(10.0)
    assert bench.lease("default", "default", "other").jid == "next queue"
    assert len(bench.memory.jobs) == 1


def test_it_is_leased_until_then(bench: Bench) -> None:
    bench.push("a", links=Links(expires=bench.now.wall + 10.0))
    bench.clock.pass_by(9.999)
    assert bench.lease().jid == "a"


# Groups

BOTH = (Call.COMPLETE, Call.SUCCESS)


def open_group(bench: Bench, name: str, *calls: Call, parent: str = "") -> None:
    complete, success = (callback(name, call) if call in calls else None for call in Call)
    assert bench.do(OpenGroup(name, "faktory", parent, "", complete, success))


def called(bench: Bench) -> list[tuple[str, str]]:
    return [(event.name, event.call.name) for event in bench.events if isinstance(event, GroupCalled)]


def work_off(bench: Bench, *, succeed: bool = True) -> list[str]:
    done = []
    while (job := bench.do(LeaseNext("faktory", ("default", "mail"), "w", TERMS))) is not None:
        done.append(job.jid)
        (bench.succeed if succeed else bench.fail)(job.jid, "w", held(job))
    return done


def test_complete_then_success_each_once(bench: Bench) -> None:
    open_group(bench, "g", *BOTH)
    bench.push("a", "b", links=Links(group="g"))
    bench.do(CommitGroup("g"))
    assert called(bench) == []
    assert work_off(bench) == ["a", "b", "COMPLETE of g", "SUCCESS of g"]
    assert called(bench) == [("g", "COMPLETE"), ("g", "SUCCESS")]


def test_callbacks_wait_for_the_commit(bench: Bench) -> None:
    open_group(bench, "g", Call.SUCCESS)
    bench.push("a", links=Links(group="g"))
    work_off(bench)
    assert called(bench) == []
    bench.do(CommitGroup("g"))
    assert called(bench) == [("g", "SUCCESS")]
    assert list(bench.notices) == ["mail"]


def test_an_empty_group_calls_at_once(bench: Bench) -> None:
    open_group(bench, "g", Call.COMPLETE)
    bench.do(CommitGroup("g"))
    assert called(bench) == [("g", "COMPLETE")]
    assert bench.do(CommitGroup("g"))
    assert called(bench) == [("g", "COMPLETE")]


@pytest.mark.parametrize("how", ["failed", "removed", "buried"])
def test_one_that_did_not_succeed_completes_and_keeps_success_away(bench: Bench, how: str) -> None:
    open_group(bench, "g", *BOTH)
    [number] = bench.push("a", links=Links(group="g"), due=bench.now.wall + 1.0)
    bench.do(CommitGroup("g"))
    if how == "failed":
        bench.after(1.0)
        bench.lease()
        bench.fail("a")
    elif how == "removed":
        bench.do(Remove("faktory", "discarded", [number], frozenset({State.SCHEDULED})))
    else:
        bench.do(Bury("faktory", [number]))
    assert work_off(bench) == ["COMPLETE of g"]
    assert called(bench) == [("g", "COMPLETE")]


def test_one_that_succeeds_after_all_brings_success(bench: Bench) -> None:
    open_group(bench, "g", *BOTH)
    [number] = bench.push("a", links=Links(group="g"))
    bench.do(CommitGroup("g"))
    work_off(bench, succeed=False)
    assert called(bench) == [("g", "COMPLETE")]
    bench.do(Requeue("faktory", list(bench.memory.jobs)))
    assert sorted(work_off(bench)) == ["COMPLETE of g", "SUCCESS of g", "a"]
    assert number not in bench.memory.jobs


def test_a_parent_waits_for_the_callbacks_of_its_child(bench: Bench) -> None:
    open_group(bench, "parent", Call.SUCCESS)
    open_group(bench, "child", Call.SUCCESS, parent="parent")
    bench.push("a", links=Links(group="child"))
    bench.do(CommitGroup("parent"))
    bench.do(CommitGroup("child"))
    assert work_off(bench) == ["a", "SUCCESS of child", "SUCCESS of parent"]


def test_a_group_that_does_not_exist_has_no_members_and_no_children(bench: Bench) -> None:
    assert list(bench.do(Enqueue("faktory", [spec("a", links=Links(group="no"))]))) == [Refused.NO_GROUP]
    assert not bench.do(OpenGroup("child", "faktory", "no", "", None, None))
    assert not bench.do(CommitGroup("no"))
    assert bench.events == []


def test_how_long_groups_are_remembered(bench: Bench) -> None:
    open_group(bench, "uncommitted", Call.SUCCESS)
    open_group(bench, "committed", Call.SUCCESS)
    open_group(bench, "done", Call.SUCCESS)
    for name in ("committed", "done"):
        bench.push(name, links=Links(group=name))
        bench.do(CommitGroup(name))
    bench.lease()
    bench.lease()
    bench.succeed("done")
    work_off(bench)
    bench.after(1_800.0)
    assert list(bench.memory.groups) == ["committed"]
    bench.after(30 * DAY - 1_801.0)
    assert list(bench.memory.groups) == ["committed"]
    bench.after(1.0)
    assert bench.memory.groups == {}


def test_a_member_that_was_kept_and_is_removed_counts_as_it_did(bench: Bench) -> None:
    open_group(bench, "g", *BOTH)
    kept, _ = bench.push("kept", "waits", rules=KEPT, links=Links(group="g", tracked=True))
    bench.do(CommitGroup("g"))
    bench.lease()
    bench.succeed("kept")
    bench.do(Remove("faktory", "expired", [kept], frozenset({State.COMPLETE})))
    assert called(bench) == []
    assert shown(bench, "kept") == "success"
    assert work_off(bench) == ["waits", "COMPLETE of g", "SUCCESS of g"]


def test_a_child_that_was_forgotten_no_longer_holds_up_complete(bench: Bench) -> None:
    open_group(bench, "parent", *BOTH)
    bench.do(CommitGroup("parent"))
    assert called(bench) == [("parent", "COMPLETE")]
    open_group(bench, "next parent", *BOTH)
    open_group(bench, "child", Call.SUCCESS, parent="next parent")
    bench.do(CommitGroup("next parent"))
    assert ("next parent", "COMPLETE") not in called(bench)
    bench.after(1_800.0)
    assert ("next parent", "COMPLETE") in called(bench)


def test_a_group_is_looked_at_when_a_member_that_failed_before_is_pushed(bench: Bench) -> None:
    open_group(bench, "parent", Call.COMPLETE)
    open_group(bench, "child", Call.SUCCESS, parent="parent")
    bench.do(CommitGroup("parent"))
    bench.do(CommitGroup("child"))
    bench.push("a", links=Links(group="child"), failures=1)
    assert bench.memory.groups["child"].finished == Call.COMPLETE
    assert ("parent", "COMPLETE") in called(bench)


def test_a_name_is_opened_once(bench: Bench) -> None:
    open_group(bench, "g", Call.COMPLETE)
    bench.clock.pass_by(1.0)
    assert not bench.do(OpenGroup("g", "faktory", "", "", None, callback("g", Call.SUCCESS)))
    assert bench.memory.groups["g"].complete is not None
    assert len(bench.memory.group_ends) == 1


# Tracks


def shown(bench: Bench, jid: str = "a") -> str | None:
    track = bench.memory.tracks.get(jid)
    return track.state if track else None


def test_a_track_follows_its_job(bench: Bench) -> None:
    rules = Rules(1, exhausted=Then.DEAD)
    seen = [shown(bench)]
    bench.push("a", links=Links(tracked=True), rules=rules)
    seen.append(shown(bench))
    for _ in range(2):
        bench.lease()
        seen.append(shown(bench))
        bench.fail("a")
        seen.append(shown(bench))
        bench.tick()
    bench.do(Requeue("faktory", [Number(1)]))
    bench.lease()
    bench.succeed("a")
    seen.append(shown(bench))
    assert seen == [None, "enqueued", "working", "failed", "working", "dead", "success"]


@pytest.mark.parametrize("how", ["given back", "lapsed", "restarted"])
def test_a_track_follows_a_job_that_is_back_in_its_place(bench: Bench, how: str) -> None:
    bench.push("a", links=Links(tracked=True), rules=Rules(1, lapse=Lapse.RETURN))
    job = bench.lease(terms=Terms(60.0, 60.0, 60.0, Bound.CONNECTION))
    if how == "given back":
        bench.give_back(held(job))
    elif how == "lapsed":
        bench.after(60.0)
    else:
        bench.restart()
    assert shown(bench) == "enqueued"


def test_a_track_is_kept_half_an_hour_after_its_last_change(bench: Bench) -> None:
    bench.push("a", links=Links(tracked=True))
    bench.clock.pass_by(1_000.0)
    bench.do(SetTrack("a", 50, None))
    bench.after(1_799.0)
    assert shown(bench) == "enqueued"
    assert bench.memory.tracks["a"].percent == 50
    bench.after(1.0)
    assert shown(bench) is None


def test_a_track_is_forgotten_though_the_clock_was_set_back(bench: Bench) -> None:
    bench.push("dated by a wrong clock")
    bench.clock.jump(-DAY)
    bench.do(SetTrack("a", 50, None))
    bench.after(1_800.0)
    assert bench.memory.tracks == {}


def test_a_clock_set_forward_takes_no_track_away(bench: Bench) -> None:
    bench.push("a", links=Links(tracked=True))
    bench.clock.jump(DAY)
    bench.after(1_799.0)
    assert shown(bench) == "enqueued"
    bench.after(1.0)
    assert shown(bench) is None


def test_a_track_of_an_old_journal_is_kept_half_an_hour_after_the_next_start(bench: Bench) -> None:
    """Its events did not say until when by the steady clock."""
    bench.push("a", links=Links(tracked=True))
    old: list[AnyEvent] = [event for event in bench.events if not isinstance(event, TracksDated)]
    bench.batches = [encode_batch(Batch(EVENT_VERSION, bench.now.wall, bench.now.steady, old))]
    bench.clock.jump(-DAY)
    bench.restart()
    bench.after(1_799.0)
    assert shown(bench) == "enqueued"
    bench.after(1.0)
    assert shown(bench) is None


def test_a_track_outlives_the_lease_it_tells_of(bench: Bench) -> None:
    """A lease lasts 1,800 s and so does a track: one tick finds both over, and notes the failure in the track."""
    bench.push("a", links=Links(tracked=True))
    bench.lease()
    bench.after(1_800.0)
    assert shown(bench) == "failed"
    bench.after(1_799.0)
    assert shown(bench) == "failed"
    bench.after(1.0)
    assert shown(bench) is None


def test_anybody_may_track_any_name(bench: Bench) -> None:
    bench.do(SetTrack("nobody", None, "text"))
    assert shown(bench, "nobody") == "unknown"


@pytest.mark.parametrize(("until", "end"), [(60.0, 1_800.0), (3_600.0, 3_600.0), (9 * DAY, DAY)])
def test_a_lease_is_extended_never_cut_and_by_a_day_at_most(bench: Bench, until: float, end: float) -> None:
    bench.push("a")
    job = bench.lease()
    bench.do(SetTrack("a", None, None, bench.now.wall + until))
    assert job.lease is not None
    assert job.lease.end - bench.now.steady == end
    assert bench.after(end - 0.001).lapsed == 0
    assert bench.after(0.001).lapsed == 1


# Throttles


def test_at_most_so_many_of_a_queue_at_a_time(bench: Bench) -> None:
    bench.do(SetThrottles([("default", 2, Per.QUEUE, 0.0)]))
    bench.push("a", "b", "c", "d")
    first = held(bench.lease(worker="w1"))
    bench.lease(worker="w2")
    assert bench.nothing_to_lease(worker="w3")
    assert bench.nothing_to_lease("default", "default")
    bench.give_back(first)
    bench.lease()
    assert bench.nothing_to_lease()
    bench.succeed("b")
    assert list(bench.notices) == ["default"]
    assert bench.lease().jid == "c"
    bench.fail("c")
    assert bench.lease().jid == "d"
    assert bench.nothing_to_lease()
    bench.after(1_800.0)
    assert not bench.nothing_to_lease()


def test_for_each_worker(bench: Bench) -> None:
    bench.do(SetThrottles([("default", 1, Per.WORKER, 0.0)]))
    bench.push("a", "b", "c")
    bench.lease(worker="w1")
    assert bench.nothing_to_lease(worker="w1")
    assert bench.lease(worker="w2").jid == "b"


def test_a_lease_counts_no_longer_than_the_timeout(bench: Bench) -> None:
    bench.do(SetThrottles([("default", 1, Per.QUEUE, 30.0)]))
    bench.push("a", "b")
    bench.lease()
    bench.clock.pass_by(29.999)
    assert bench.nothing_to_lease()
    bench.clock.pass_by(0.001)
    assert bench.lease().jid == "b"


def test_leases_from_before_the_throttle_count(bench: Bench) -> None:
    bench.push("a", "b")
    bench.lease()
    bench.do(SetThrottles([("default", 1, Per.QUEUE, 0.0)]))
    assert bench.nothing_to_lease()
    bench.do(SetThrottles([]))
    assert list(bench.notices) == ["default"], "who waits is asked again"
    assert not bench.nothing_to_lease()


@pytest.mark.parametrize("how", ["flushed", "removed", "restarted"])
def test_a_lease_that_is_no_more_counts_no_more(bench: Bench, how: str) -> None:
    bench.do(SetThrottles([("default", 1, Per.QUEUE, 0.0)]))
    [number] = bench.push("a")
    bench.lease(terms=Terms(1_800.0, 60.0, 86_400.0, Bound.CONNECTION))
    if how == "flushed":
        bench.do(Flush("faktory"))
    elif how == "removed":
        bench.do(Remove("faktory", "discarded", [number], frozenset({State.LEASED})))
    else:
        bench.restart()
    assert how != "removed" or list(bench.notices) == ["default"], "who waits is asked again"
    bench.push("b")
    assert not bench.nothing_to_lease()
    assert bench.nothing_to_lease()


def test_other_queues_are_not_throttled(bench: Bench) -> None:
    bench.do(SetThrottles([("default", 1, Per.QUEUE, 0.0)]))
    bench.push("a", "b")
    bench.push("c", queue="other")
    bench.lease()
    assert bench.lease("default", "other").jid == "c"


# Recurrences


def cron(schedule: str = "0 * * * *", zone: str = "UTC", queue: str = "default") -> Recurrence:
    return Recurrence("cron", "faktory", schedule, zone, spec("", queue), 0.0)


def test_a_job_at_each_time_of_the_schedule(bench: Bench) -> None:
    bench.do(SetRecurrences([cron()]))
    first = (bench.now.wall // 3_600 + 1) * 3_600
    assert bench.after(first - bench.now.wall - 0.001).spawned == 0
    assert bench.after(0.001).spawned == 1
    assert list(bench.notices) == ["default"]
    assert bench.after(3_599.0).spawned == 0
    assert bench.after(1.0).spawned == 1
    jids = [job.jid for job in bench.memory.jobs.values()]
    assert len(set(jids)) == 2
    assert all(len(jid) == 36 for jid in jids)


def test_runs_that_were_missed_are_made_up_for_once(bench: Bench) -> None:
    bench.do(SetRecurrences([cron()]))
    assert bench.after(3 * DAY).spawned == 1
    assert bench.tick().spawned == 0


def test_a_run_whose_lock_is_held_is_left_out(bench: Bench) -> None:
    [holder] = bench.push("a", links=lock(bench, 9e9))
    wanted = Recurrence("cron", "faktory", "0 * * * *", "UTC", spec("", links=lock(bench, 9e9)), 0.0)
    bench.do(SetRecurrences([wanted]))
    bench.after(3_600.0)
    assert list(bench.memory.jobs) == [holder]
    assert bench.memory.locks["lock"].holder == holder
    assert bench.push("next") == [2], "no number was used for it"
    bench.lease()
    bench.succeed("a")
    bench.after(3_600.0)
    assert bench.memory.locks["lock"].holder == 3


def test_of_two_runs_that_are_due_together_one_gets_the_lock(bench: Bench) -> None:
    links = lock(bench, 9e9)
    bench.do(
        SetRecurrences([Recurrence(name, "faktory", "0 * * * *", "UTC", spec("", links=links), 0.0) for name in "ab"])
    )
    bench.after(3_600.0)
    assert list(bench.memory.jobs) == [1]
    assert bench.push("next") == [2]


def test_a_clock_set_back_runs_nothing_twice(bench: Bench) -> None:
    bench.do(SetRecurrences([cron()]))
    assert bench.after(3_600.0).spawned == 1
    bench.clock.jump(-3_600.0)
    assert bench.tick().spawned == 0
    assert bench.after(3_599.0).spawned == 0


def test_what_did_not_change_keeps_its_next_run(bench: Bench) -> None:
    bench.do(SetRecurrences([cron()]))
    so_far = len(bench.events)
    bench.clock.pass_by(3 * DAY)
    bench.do(SetRecurrences([cron()]))
    assert len(bench.events) == so_far
    assert bench.tick().spawned == 1


def test_another_job_at_the_same_times_keeps_its_next_run(bench: Bench) -> None:
    bench.do(SetRecurrences([cron()]))
    bench.clock.pass_by(3 * DAY)
    bench.do(SetRecurrences([cron(queue="other")]))
    assert bench.tick().spawned == 1
    assert [job.queue for job in bench.memory.jobs.values()] == ["other"]


@pytest.mark.parametrize("other", [cron("30 * * * *"), cron(zone="Asia/Kathmandu")])
def test_other_times_begin_anew_and_what_is_left_out_ends(bench: Bench, other: Recurrence) -> None:
    bench.do(SetRecurrences([cron()]))
    bench.clock.pass_by(3 * DAY)
    bench.do(SetRecurrences([other]))
    assert bench.tick().spawned == 0
    bench.do(SetRecurrences([]))
    assert bench.after(3 * DAY).spawned == 0
    assert bench.engine.due_in(bench.now) is None
