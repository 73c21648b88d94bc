"""Cron (faktory.md sections 9.6 and 15): each run once, over restarts and clock changes. Missed runs are made up
for by one.
"""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.engine.records.schedules import next_run
from crossdock.model.clock import Now
from crossdock.model.commands.admin import Flush
from crossdock.model.commands.core import SetSchedules
from crossdock.model.events import Spawned
from crossdock.model.job import Job
from crossdock.server.static_config import InvalidEntry, schedules
from crossdock.settings.schema import CronEntry, CronJob, Settings
from tests.support.conversation import ClockedFaktory, worker
from tests.support.dispatcher import BEGIN, PlainDispatcher
from tests.support.resp import body

SWEEP = CronEntry("*/5 * * * *", CronJob("sweep", "chores", [1, "two"], 3, 600, 9, {"why": "dust"}), "sweeper")


def orders(*entries: CronEntry) -> SetSchedules:
    return schedules(Settings(cron=list(entries)))


def begun(*entries: CronEntry, now: Now = BEGIN) -> PlainDispatcher:
    dispatcher = PlainDispatcher(now=now)
    dispatcher.do(orders(*entries))
    return dispatcher


def runs(dispatcher: PlainDispatcher) -> list[float]:
    return [event.at for event in dispatcher.events if isinstance(event, Spawned)]


def jobs(dispatcher: PlainDispatcher) -> list[Job]:
    return list(dispatcher.state.jobs.values())


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def moment(text: str) -> Now:
    return Now(at(text), 1_000.0)


def test_a_run_pushes_the_job_of_its_entry() -> None:
    dispatcher = begun(SWEEP)  # at 17:55:45
    dispatcher.advance(254)
    assert jobs(dispatcher) == []
    dispatcher.advance(1)
    (job,) = jobs(dispatcher)
    shown = body(worker(dispatcher, ClockedFaktory(dispatcher)).ask("FETCH chores")).decode()
    assert shown == (
        f'{{"retry":3,"custom":{{"why":"dust"}},"jid":"{job.jid}","queue":"chores","priority":9,"jobtype":"sweep",'
        '"created_at":"2026-11-15T18:00:00Z","enqueued_at":"2026-11-15T18:00:00Z","args":[1,"two"],"reserve_for":600}'
    )


def test_each_run_comes_once_and_wakes_waiters() -> None:
    dispatcher = begun(SWEEP)
    dispatcher.advance(253)
    waiting = worker(dispatcher, ClockedFaktory(dispatcher))
    assert waiting.ask("FETCH chores") == b""
    dispatcher.advance(2)
    assert b'"jobtype":"sweep"' in waiting.take()
    dispatcher.advance(3_600)
    assert runs(dispatcher) == [at("2026-11-15T18:00:00+00:00") + 300 * n for n in range(13)]
    assert len({job.jid for job in jobs(dispatcher)}) == len(jobs(dispatcher))


def test_a_restart_repeats_no_run() -> None:
    dispatcher = begun(SWEEP)
    for _ in range(5):
        dispatcher.advance(255 if not runs(dispatcher) else 300)
        dispatcher = dispatcher.restarted()
        dispatcher.do(orders(SWEEP))
    assert runs(dispatcher) == [at("2026-11-15T18:00:00+00:00") + 300 * n for n in range(5)]


def test_runs_missed_while_the_server_was_down_are_made_up_for_by_one() -> None:
    dispatcher = begun(SWEEP).restarted()
    dispatcher.now = Now(dispatcher.now.wall + 86_400, dispatcher.now.steady + 86_400)
    dispatcher.do(orders(SWEEP))
    dispatcher.advance(0)
    assert runs(dispatcher) == [dispatcher.now.wall]
    dispatcher.advance(255)
    assert runs(dispatcher)[1:] == [at("2026-11-16T18:00:00+00:00")]


def test_a_clock_that_is_set_back_repeats_no_run() -> None:
    dispatcher = begun(SWEEP)
    dispatcher.advance(256)
    assert len(runs(dispatcher)) == 1
    dispatcher.now = Now(dispatcher.now.wall - 10, dispatcher.now.steady)
    dispatcher.advance(10)
    assert len(runs(dispatcher)) == 1
    dispatcher.advance(300)
    assert len(runs(dispatcher)) == 2


def test_a_flush_keeps_cron_entries() -> None:
    dispatcher = begun(SWEEP)
    dispatcher.do(Flush("faktory"))
    dispatcher.advance(255)
    assert [job.kind for job in jobs(dispatcher)] == ["sweep"]


def test_a_removed_entry_does_not_run() -> None:
    dispatcher = begun(SWEEP)
    dispatcher.do(orders())
    dispatcher.advance(3_600)
    assert jobs(dispatcher) == []


def test_a_changed_schedule_counts_from_now() -> None:
    dispatcher = begun(SWEEP)
    dispatcher.do(orders(CronEntry("0 20 * * *", SWEEP.job, SWEEP.name)))
    dispatcher.advance(3_600)
    assert jobs(dispatcher) == []
    dispatcher.advance(3_900)
    assert runs(dispatcher) == [at("2026-11-15T20:00:00+00:00")]


def test_a_run_missed_while_its_job_was_changed_is_made_up_for() -> None:
    """At 17:55:45 nothing is due. The server is down over 18:00 and starts with other args."""
    dispatcher = begun(CronEntry("0 * * * *", CronJob("sweep", args=[1]), "sweeper"))
    dispatcher.now = Now(dispatcher.now.wall + 600, dispatcher.now.steady + 600)
    dispatcher.do(orders(CronEntry("0 * * * *", CronJob("sweep", args=[2]), "sweeper")))
    dispatcher.advance(0)
    assert [job.payload for job in jobs(dispatcher)] == [b"[2]"]


def test_setting_the_same_entries_again_changes_nothing() -> None:
    dispatcher = begun(SWEEP)
    before = len(dispatcher.events)
    dispatcher.do(orders(SWEEP))
    assert len(dispatcher.events) == before


@pytest.mark.parametrize(
    ("zone", "schedule", "after", "expected"),
    [
        ("UTC", "0 3 * * *", "2026-10-25T00:00:00+00:00", "2026-10-25T03:00:00+00:00"),
        ("Europe/Berlin", "0 3 * * *", "2026-07-01T00:00:00+00:00", "2026-07-01T01:00:00+00:00"),
        ("Asia/Kolkata", "0 3 * * *", "2026-07-01T00:00:00+00:00", "2026-07-01T21:30:00+00:00"),
        # The hour that is skipped in spring: at its end
        ("Europe/Berlin", "30 2 * * *", "2026-03-29T00:00:00+00:00", "2026-03-29T01:00:00+00:00"),
        # The hour that occurs twice in autumn: the first time
        ("Europe/Berlin", "30 2 * * *", "2026-10-25T00:00:00+00:00", "2026-10-25T00:30:00+00:00"),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25T00:30:00+00:00", "2026-10-26T01:30:00+00:00"),
        # … and not again when the second time is near
        ("Europe/Berlin", "30 2 * * *", "2026-10-25T01:10:00+00:00", "2026-10-26T01:30:00+00:00"),
        # An hourly entry runs in both
        ("Europe/Berlin", "15 * * * *", "2026-10-25T00:15:00+00:00", "2026-10-25T01:15:00+00:00"),
        ("UTC", "0 0 29 2 *", "2026-03-01T00:00:00+00:00", "2028-02-29T00:00:00+00:00"),
    ],
)
def test_next_run_follows_the_zone_and_its_clock_changes(zone: str, schedule: str, after: str, expected: str) -> None:
    assert next_run(schedule, zone, at(after)) == at(expected)


ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu")
fields = st.tuples(
    st.sampled_from(["0", "30", "*/7", "5-50/15", "0,59", "*"]),
    st.sampled_from(["*", "2", "1-3", "*/2", "0,23"]),
    st.sampled_from(["*", "1", "25", "L"]),
    st.sampled_from(["*", "3,10,11"]),
    st.sampled_from(["*", "SUN", "1-5"]),
)


@given(
    fields.map(" ".join),
    st.sampled_from(ZONES),
    st.datetimes(datetime(2017, 1, 1), datetime(2036, 1, 1), timezones=st.sampled_from(ZONES).map(ZoneInfo)),  # noqa: DTZ001
)
def test_the_next_run_is_always_later(schedule: str, zone: str, after: datetime) -> None:
    """Otherwise the timer would find it due again at once, and push without end."""
    start = after.timestamp()
    for _ in range(5):
        run = next_run(schedule, zone, start)
        assert run > start
        start = run


def test_a_repeated_autumn_hour_runs_a_missed_entry_once() -> None:
    """The server starts in the hour that occurs twice, and missed a run in that hour."""
    entry = CronEntry("30 2 * * *", CronJob("nightly"), timezone="Europe/Berlin")
    dispatcher = begun(entry, now=moment("2026-10-24T20:00:00+00:00")).restarted()
    dispatcher.now = moment("2026-10-25T01:10:00+00:00")
    dispatcher.do(orders(entry))
    dispatcher.advance(timedelta(hours=12).total_seconds())
    assert runs(dispatcher) == [at("2026-10-25T01:10:00+00:00")]


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (CronEntry("61 * * * *", CronJob("T")), 'cron "T 61 .*": schedule .* is invalid: Bad minute; use five fields'),
        (CronEntry("* * * *", CronJob("T")), "is invalid: it has 4 fields; use five fields"),
        (CronEntry("0 * * * * *", CronJob("T")), "is invalid: it has 6 fields; use five fields"),
        (CronEntry("", CronJob("T")), "is invalid: it has 0 fields; use five fields"),
        (CronEntry("0 0 31 2 *", CronJob("T")), "is invalid: Bad day-of-month"),
        (CronEntry("* * * * *", CronJob("T"), timezone="Mars/Olympus"), 'time zone "Mars/Olympus" is invalid'),
        (CronEntry("* * * * *", CronJob("T"), timezone="Europe"), 'time zone "Europe" is invalid'),
        (CronEntry("* * * * *", CronJob("T"), timezone="../etc/passwd"), 'time zone "../etc/passwd" is invalid'),
        (CronEntry("* * * * *", CronJob("")), "jobs must have a jobtype parameter"),
        (CronEntry("* * * * *", CronJob("T", "no blanks")), 'cannot get "no blanks" queue'),
        (CronEntry("* * * * *", CronJob("T", reserve_for=86_401)), "cannot be reserved for more than one day"),
        (CronEntry("* * * * *", CronJob("T", custom={"bid": "b-1"})), "custom must not have bid, expires_at, track"),
        (CronEntry("* * * * *", CronJob("T", custom={"track": 1})), "custom must not have bid, expires_at, track"),
        (CronEntry("* * * * *", CronJob("T", unique_for=0)), "custom.unique_for must be a number of seconds above 0"),
        (CronEntry("* * * * *", CronJob("T", expires_in=-1)), "custom.expires_in must be a number of seconds above 0"),
        (CronEntry("* * * * *", CronJob("T", unique_for=1, unique_until="end")), 'must be "success" or "start"'),
    ],
)
def test_an_invalid_entry_is_rejected(entry: CronEntry, sentence: str) -> None:
    with pytest.raises(InvalidEntry, match=sentence):
        orders(entry)


def test_two_entries_of_one_name_are_rejected() -> None:
    with pytest.raises(InvalidEntry, match='cron "sweeper" is defined twice; give each entry its own name'):
        orders(SWEEP, SWEEP)


@pytest.mark.parametrize(
    "job",
    [
        CronJob("sweep", unique_for=400, expires_in=900),
        CronJob("sweep", custom={"unique_for": 400, "expires_in": 900}),
    ],
)
def test_a_run_is_unique_and_expires_from_its_own_time_on(job: CronJob) -> None:
    dispatcher = begun(CronEntry("*/5 * * * *", job, "sweeper"))
    dispatcher.advance(255)
    (first,) = jobs(dispatcher)
    assert first.extra is not None and first.extra.custom == b'{"unique_for":400,"expires_in":900}'
    assert first.extra.links is not None and first.extra.links.expires == dispatcher.now.wall + 900
    dispatcher.advance(300)
    assert jobs(dispatcher) == [first], "the first run still holds the lock"
    dispatcher.advance(300)
    assert len(jobs(dispatcher)) == 2, "its lock has ended"
    dispatcher.advance(301)
    said = worker(dispatcher, ClockedFaktory(dispatcher)).ask("FETCH default")
    assert first.jid not in said.decode() and b'"jobtype":"sweep"' in said, "the first run has expired"


def test_a_pushed_job_and_a_run_are_unique_together() -> None:
    dispatcher = begun(CronEntry("*/5 * * * *", CronJob("sweep", args=[1], unique_for=3_600), "sweeper"))
    dispatcher.advance(255)
    peer = worker(dispatcher, ClockedFaktory(dispatcher))
    line = 'PUSH {"jid":"pushed-1","jobtype":"sweep","args":[1],"custom":{"unique_for":60}}'
    assert peer.ask(line) == b"-NOTUNIQUE Job not unique\r\n"


def test_setting_the_same_unique_entries_again_changes_nothing() -> None:
    entry = CronEntry("*/5 * * * *", CronJob("sweep", unique_for=60, expires_in=60), "sweeper")
    dispatcher = begun(entry)
    dispatcher.advance(60)
    before = len(dispatcher.events)
    dispatcher.do(orders(entry))
    assert len(dispatcher.events) == before
