"""The steady clock over restarts, and purging with a doubtful wall clock."""

from pathlib import Path
from typing import Final

import pytest

from crossdock.engine.state import EngineState
from crossdock.journal.data_dir import DataDir, snapshot_name
from crossdock.journal.port import Snapshot
from crossdock.journal.recovery import Recovered, recover
from crossdock.journal.snapshot import file
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.model.commands.admin import Bury, Requeue
from crossdock.model.commands.bulk import LoadJobs
from crossdock.model.commands.core import Claim, Fail, Start, Succeed, Tick
from crossdock.model.commands.qless import Pop, Put
from crossdock.model.job import Extra, Form, Links, Spec
from crossdock.model.policies import DEAD_FOR, Backoff, Disposition, LeaseExpiry, Policy
from crossdock.model.states import State
from crossdock.server.clock import Resumed, boot_id, resumed_from
from tests.model.bench import Bench
from tests.model.rig import BEGIN, fold
from tests.support.picture import picture

HOUR: Final = 3_600.0
DAY: Final = 86_400.0
#: The last entry of the journal, and CLOCK_BOOTTIME then.
WALL: Final = BEGIN.wall
STEADY: Final = 5_000.0
BOOTTIME: Final = 700.0


def found(*, boot: str = "boot-a", newest: float = WALL) -> Recovered:
    state = EngineState()
    state.counters.boot, state.counters.offset, state.counters.at = boot, STEADY - BOOTTIME, newest
    return Recovered(state, 9, WALL, STEADY)


def steady(resumed: Resumed, boottime: float) -> float:
    return boottime + resumed.offset


# Continuing


def test_steady_time_starts_at_zero_with_an_empty_journal() -> None:
    resumed = resumed_from(Recovered(EngineState(), 0, 0.0, 0.0), "boot-a", BOOTTIME, WALL)
    assert steady(resumed, BOOTTIME) == 0.0
    assert not resumed.warnings()


@pytest.mark.parametrize("set_by", [0.0, 2 * HOUR, -2 * HOUR, 200 * DAY, -200 * DAY])
def test_within_one_boot_the_wall_clock_does_not_count(set_by: float) -> None:
    resumed = resumed_from(found(), "boot-a", BOOTTIME + 60.0, WALL + 60.0 + set_by)
    assert steady(resumed, BOOTTIME + 60.0) == STEADY + 60.0
    assert (resumed.ahead, resumed.uncounted) == (set_by, 0.0)
    assert resumed.doubtful == (abs(set_by) > DAY)


def test_a_month_without_the_server_counts_within_one_boot() -> None:
    resumed = resumed_from(found(), "boot-a", BOOTTIME + 30 * DAY, WALL + 30 * DAY)
    assert steady(resumed, BOOTTIME + 30 * DAY) == STEADY + 30 * DAY
    assert not resumed.warnings()


#: Seconds that passed by the wall clock · that count · warnings
@pytest.mark.parametrize(
    ("passed", "counted", "warnings"),
    [
        (60.0, 60.0, []),
        (DAY, DAY, []),
        (2 * DAY, 2 * DAY, ["2 days ahead"]),
        (7 * DAY, 7 * DAY, ["7 days ahead"]),
        (200 * DAY, 7 * DAY, ["200 days past the newest entry", "200 days ahead"]),
        (-HOUR, 0.0, []),
        (-1.5 * DAY, 0.0, ["1.5 days behind"]),
    ],
)
def test_after_another_boot_the_wall_clock_counts_a_week_at_most(
    passed: float, counted: float, warnings: list[str]
) -> None:
    resumed = resumed_from(found(), "boot-b", 3.0, WALL + passed)
    assert steady(resumed, 3.0) == STEADY + counted
    assert [part in text for part, text in zip(warnings, resumed.warnings(), strict=True)] == [True] * len(warnings)


def test_wall_time_before_the_newest_in_the_journal_does_not_count() -> None:
    """The clock was an hour ahead for a while and was corrected before the last entry."""
    resumed = resumed_from(found(newest=WALL + HOUR), "boot-b", 3.0, WALL + HOUR + 60.0)
    assert steady(resumed, 3.0) == STEADY + 60.0


@pytest.mark.parametrize("boot", ["", "boot-b"], ids=["older journal", "another machine"])
def test_a_journal_of_another_boot_continues_by_the_wall_clock(boot: str) -> None:
    resumed = resumed_from(found(boot=boot), "boot-a", BOOTTIME + 9_999.0, WALL + 60.0)
    assert steady(resumed, BOOTTIME + 9_999.0) == STEADY + 60.0


def test_an_unreadable_boot_id_counts_as_another_boot() -> None:
    resumed = resumed_from(found(boot=""), "", BOOTTIME + 9_999.0, WALL + 60.0)
    assert steady(resumed, BOOTTIME + 9_999.0) == STEADY + 60.0


def test_a_boot_time_that_went_back_counts_as_another_boot() -> None:
    """A container may have another clock under the same boot id."""
    resumed = resumed_from(found(), "boot-a", 3.0, WALL + 60.0)
    assert steady(resumed, 3.0) == STEADY + 60.0


def test_this_kernel_has_a_boot_id() -> None:
    assert boot_id() == boot_id() != ""


@pytest.mark.parametrize("how", ["journal", "snapshot"])
def test_a_start_records_boot_and_offset_for_the_next_one(tmp_path: Path, how: str) -> None:
    bench = Bench()
    bench.do(Start("boot-a", 250.0))
    bench.push("a")
    journal = SqliteJournal(DataDir(tmp_path))
    for entry in bench.batches:
        journal.append(entry)
    if how == "snapshot":
        part = recover(journal)
        path = tmp_path / snapshot_name(part.seq)
        file.write(path, part.state, part.seq, part.wall, part.steady)
        journal.install(Snapshot(part.seq, path))
    counters = recover(journal).state.counters
    journal.close()
    assert (counters.boot, counters.offset, counters.at) == ("boot-a", 250.0, bench.now.wall)


# Purging


def die(bench: Bench, jid: str) -> int:
    [number] = bench.push(jid, policy=Policy(-1, exhausted=Disposition.DEAD))
    bench.lease()
    bench.fail(jid)
    assert bench.job(number).state is State.DEAD
    return number


@pytest.mark.parametrize("how", ["failed", "buried"])
def test_a_clock_change_neither_purges_dead_jobs_nor_keeps_them(bench: Bench, how: str) -> None:
    if how == "failed":
        die(bench, "a")
    else:
        bench.do(Bury("faktory", bench.push("a")))
    bench.clock.jump(200 * DAY)
    assert bench.tick().purged == 0
    bench.clock.jump(-400 * DAY)
    assert bench.engine.due_in(bench.now) == DEAD_FOR
    assert bench.after(DEAD_FOR - 1).purged == 0
    assert bench.after(1).purged == 1


@pytest.mark.parametrize("backoff", [Backoff.POLYNOMIAL, Backoff.QUARTIC])
def test_a_clock_change_neither_hastens_nor_delays_retries(bench: Bench, backoff: Backoff) -> None:
    [number] = bench.push("a", policy=Policy(5, backoff=backoff))
    bench.lease()
    bench.fail("a")
    wait = bench.engine.due_in(bench.now)
    assert wait
    bench.clock.jump(200 * DAY)
    assert bench.tick().retried == 0
    bench.clock.jump(-400 * DAY)
    assert bench.after(wait).retried == 1
    assert bench.job(number).state is State.READY


def test_a_doubtful_start_purges_nothing_for_an_hour(bench: Bench) -> None:
    """Jobs that were over before the restart are purged. The timer does not fire repeatedly meanwhile."""
    die(bench, "over")
    bench.clock.pass_by(60.0)
    die(bench, "nearly over")
    bench.clock.pass_by(DEAD_FOR - 60.0)
    before = bench.now.steady
    bench.clock.pass_by(7 * DAY)
    bench.do(Start(hold_at=before))
    assert bench.tick().purged == 1
    assert bench.engine.due_in(bench.now) == HOUR
    assert bench.after(HOUR - 1).purged == 0
    assert bench.after(1).purged == 1


def test_another_restart_does_not_end_the_hold(bench: Bench) -> None:
    die(bench, "a")
    before = bench.now.steady
    bench.clock.pass_by(DEAD_FOR)
    bench.do(Start(hold_at=before))
    bench.clock.pass_by(HOUR / 2)
    bench.restart()
    assert bench.tick().purged == 0
    assert bench.engine.due_in(bench.now) == HOUR / 2
    assert picture(fold(bench.batches)) == picture(bench.state)
    bench.clock.pass_by(HOUR / 4)
    bench.do(Start(hold_at=bench.now.steady))
    assert bench.engine.due_in(bench.now) == HOUR, "a new doubt starts a new hour, and the hold continues"
    assert bench.after(HOUR - 1).purged == 0
    assert bench.after(1).purged == 1


def test_leases_and_locks_end_during_the_hold(bench: Bench) -> None:
    bench.push("a")
    bench.lease()
    before = bench.now.steady
    bench.clock.pass_by(DAY)
    bench.do(Start(hold_at=before))
    assert bench.tick().expired == 1


def test_jobs_with_a_time_to_live_stay_during_the_hold(bench: Bench) -> None:
    [number] = bench.push("a", links=Links(ttl_s=60.0))
    before = bench.now.steady
    bench.clock.pass_by(DAY)
    bench.do(Start(hold_at=before))
    assert bench.tick().ended == 0
    assert number in bench.state.jobs
    assert bench.after(HOUR).ended == 1


def test_the_time_of_a_scheduled_job_is_not_over_when_the_clock_jumps_beyond_it(bench: Bench) -> None:
    [number] = bench.push("a", due=bench.now.wall + 10 * DAY, links=Links(ttl_s=60.0))
    looked = bench.now.steady
    bench.clock.pass_by(5.0)
    bench.clock.jump(200 * DAY)
    bench.do(Tick(500, looked=looked))
    assert bench.job(number).state is State.READY
    assert bench.job(number).end == bench.now.steady + 55.0, "it is at most five seconds late"


def test_a_scheduled_job_is_not_over_after_a_jump_when_it_is_requeued_or_settled(bench: Bench) -> None:
    kept = Policy(0, 0, 60.0, Backoff.NONE, Disposition.FAILED, Disposition.COMPLETE, LeaseExpiry.RETURN)
    numbers = [
        number
        for jid in ("requeued", "failed")
        for number in bench.push(jid, due=bench.now.wall + DAY, links=Links(ttl_s=60.0), policy=kept)
    ]
    bench.clock.jump(200 * DAY)
    bench.do(Requeue("faktory", numbers[:1]))
    bench.do(Fail("failed", Claim("faktory", "w", free=True), "g", "m"))
    assert [bench.job(number).end for number in numbers] == [bench.now.steady + 60.0] * 2


@pytest.mark.parametrize("set_by", [200 * DAY, -200 * DAY])
def test_a_job_expires_only_if_it_is_over_on_both_clocks(bench: Bench, set_by: float) -> None:
    links = Links(expires=bench.now.wall + 60.0, expires_steady=bench.now.steady + 60.0)
    for jid in "abc":
        bench.push(jid, links=links)
    bench.clock.jump(set_by)
    assert bench.lease().jid == "a"
    bench.clock.pass_by(60.0)
    assert bench.work_order() == ([] if set_by > 0 else ["b", "c"])


def test_a_load_by_jid_alone_is_remembered_when_the_clock_jumps(bench: Bench) -> None:
    spec = Spec("a", "q", "k", b"", Form.RAW, 0, Policy(), 0.0, Extra())
    assert bench.do(LoadJobs("redis", "run-1", [spec], once=True)).new == 1
    bench.lease("q")
    bench.succeed("a")
    bench.clock.jump(200 * DAY)
    assert bench.do(LoadJobs("redis", "run-2", [spec], once=True)).new == 0
    bench.clock.pass_by(7 * DAY)
    assert bench.do(LoadJobs("redis", "run-3", [spec], once=True)).new == 1


#: The caller's time in a call: none, or the server's, as with `qless.clock = server`
@pytest.mark.parametrize("by_call", [False, True], ids=["another protocol", "the server's clock"])
def test_complete_jobs_stay_when_the_servers_clock_jumps(bench: Bench, by_call: bool) -> None:
    def complete(jid: str) -> None:
        wall = bench.now.wall
        bench.do(Put("qless", wall, "w", jid, "default", "k", b"{}", Form.JSON, 0.0, 0, (), 5))
        bench.lease()
        bench.do(Succeed(jid, Claim("faktory", "w"), t=wall if by_call else None))

    complete("a")
    bench.clock.jump(200 * DAY)
    complete("b")
    assert [job.jid for job in bench.state.jobs.values()] == ["a", "b"]
    bench.clock.pass_by(7 * DAY)
    complete("c")
    assert [job.jid for job in bench.state.jobs.values()] == ["c"]
    assert picture(fold(bench.batches)) == picture(bench.state)


def test_complete_jobs_are_purged_by_the_clock_of_their_callers(bench: Bench) -> None:
    """As the scripts of qless do it."""
    for jid, t in (("a", 1_000.0), ("b", 1_000.0 + 8 * DAY)):
        bench.do(Put("qless", t, "w", jid, "default", "k", b"{}", Form.JSON, 0.0, 0, (), 5))
        bench.do(Pop("qless", t, "default", "w", 1, 60.0))
        bench.do(Succeed(jid, Claim("qless", "w"), t=t))
    assert [job.jid for job in bench.state.jobs.values()] == ["b"]
