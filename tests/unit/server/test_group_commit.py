"""Group commit: no reply, even to a read, is sent before its entry and every entry before it are durable."""

from collections.abc import Sequence
from random import Random
from typing import cast

import pytest
from msgspec.structs import replace

from crossdock.engine import engine
from crossdock.engine.decision import FollowUps
from crossdock.engine.engine import Engine
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Claim, Enqueue, LeaseNext, LeaseTerms, Succeed
from crossdock.model.commands.qless import Put, SetInterval
from crossdock.model.commands.resqu import Buffer
from crossdock.model.errors import CrossdockError, HalfDone
from crossdock.model.events import DependentsPostponed, Leased, Pushed, QueueSeen, Readied, Succeeded
from crossdock.model.events.codec import decode_entry
from crossdock.model.job import Extra, Form, LeaseRef, Links
from crossdock.model.records import Interval
from crossdock.protocols.base import Answer, JobResult, Wait
from crossdock.server import admission
from crossdock.server.admission import Admission
from crossdock.server.clock import Clock
from crossdock.server.group_commit import GroupCommit
from crossdock.server.pending import WaitingRequest
from crossdock.server.timer import TICK_DEPENDENTS, TICK_JOBS
from tests.support.hand_loop import HandLoop
from tests.support.held_journal_writer import HeldJournalWriter
from tests.support.states import spec

REGISTERS = LeaseTerms(default_s=60.0, least_s=1.0, most_s=60.0, registers=True)


class Peer:
    """An outlet that collects the replies it was sent."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def deliver(self, reply: bytes, granted: list[LeaseRef] | None) -> None:
        self.heard.append(reply)


class CommitBench:
    def __init__(self, max_jobs: int = 100_000) -> None:
        self.loop = HandLoop()
        self.journal_writer = HeldJournalWriter()
        self.commit = GroupCommit(
            Engine(state := EngineState(), Random(1)),
            self.journal_writer,
            Clock(),
            self.loop.as_loop(),
            Admission(state, max_jobs),
        )

    def push(self, peer: Peer, jid: str, due: float = 0.0) -> None:
        self.commit.clock.enter()
        self.commit.do(Enqueue("faktory", [spec(jid, due=due)]))
        self.commit.reply(peer, jid.encode(), None)

    def read(self, peer: Peer, said: bytes) -> None:
        """A request that changes nothing."""
        self.commit.clock.enter()
        self.commit.reply(peer, said, None)


@pytest.fixture
def dispatcher() -> CommitBench:
    return CommitBench()


def test_a_change_is_answered_only_when_it_is_durable(dispatcher: CommitBench) -> None:
    peer = Peer()
    dispatcher.push(peer, "job-0001")
    dispatcher.loop.run()
    assert len(dispatcher.journal_writer.entries) == 1
    assert peer.heard == []
    dispatcher.journal_writer.synced()
    assert peer.heard == [b"job-0001"]


def test_a_read_gets_no_reply_while_an_entry_is_written(dispatcher: CommitBench) -> None:
    writer, reader = Peer(), Peer()
    dispatcher.push(writer, "job-0001")
    dispatcher.loop.run()
    for n in range(3):
        dispatcher.read(reader, b"info %d" % n)
        dispatcher.loop.run()
    assert reader.heard == []
    dispatcher.journal_writer.synced()
    dispatcher.loop.run()
    assert writer.heard == [b"job-0001"]
    assert reader.heard == [b"info 0", b"info 1", b"info 2"]
    assert len(dispatcher.journal_writer.entries) == 1, "reads write no entry"


def test_a_read_waits_for_every_entry_before_it(dispatcher: CommitBench) -> None:
    peer, reader = Peer(), Peer()
    dispatcher.push(peer, "job-0001")
    dispatcher.loop.run()
    dispatcher.push(peer, "job-0002")
    dispatcher.read(reader, b"info")
    dispatcher.loop.run()
    dispatcher.journal_writer.synced()
    dispatcher.loop.run()
    assert peer.heard == [b"job-0001"]
    assert reader.heard == [], "its own entry is not on disk yet"
    dispatcher.journal_writer.synced()
    assert reader.heard == [b"info"]


def test_replies_keep_the_order_of_their_requests(dispatcher: CommitBench) -> None:
    peer = Peer()
    expected = []
    for n in range(20):
        dispatcher.push(peer, f"job-{n:04d}")
        dispatcher.read(peer, b"read %d" % n)
        expected += [f"job-{n:04d}".encode(), b"read %d" % n]
        if n % 3 == 0:
            dispatcher.loop.run()
        if n % 5 == 4:
            dispatcher.journal_writer.synced()
            dispatcher.loop.run()
    while len(peer.heard) < len(expected):
        dispatcher.journal_writer.synced()
        dispatcher.loop.run()
    assert peer.heard == expected


def test_replies_without_changes_are_sent_at_once_if_no_entry_is_written(dispatcher: CommitBench) -> None:
    peer = Peer()
    dispatcher.read(peer, b"info")
    dispatcher.loop.run()
    assert peer.heard == [b"info"]
    assert dispatcher.journal_writer.entries == []


def test_all_connections_of_one_pass_share_one_journal_entry(dispatcher: CommitBench) -> None:
    peers = [Peer() for _ in range(50)]
    for n, peer in enumerate(peers):
        dispatcher.push(peer, f"job-{n:04d}")
    dispatcher.loop.run()
    assert len(dispatcher.journal_writer.entries) == 1
    for n, peer in enumerate(peers):
        dispatcher.push(peer, f"job-1{n:04d}")
        dispatcher.loop.run()
    assert len(dispatcher.journal_writer.entries) == 1, "while one entry is synced the next one is open"
    dispatcher.journal_writer.synced()
    dispatcher.loop.run()
    assert len(dispatcher.journal_writer.entries) == 2
    assert len(decode_entry(dispatcher.journal_writer.entries[1]).events) == 50


class Stopped:
    """A clock that is moved by hand."""

    def __init__(self, dispatcher: CommitBench) -> None:
        self.at = 0.0
        dispatcher.commit.clock.source = cast(Clock, self)

    def now(self) -> Now:
        return Now(1_794_765_345.0 + self.at, self.at)


def test_a_journal_entry_stays_open_while_each_pass_adds_more(dispatcher: CommitBench) -> None:
    Stopped(dispatcher)
    peer = Peer()
    for n in range(5):
        dispatcher.push(peer, f"job-{n:04d}")
        dispatcher.loop.step()
        assert dispatcher.journal_writer.entries == [], "still open"
    dispatcher.loop.step()
    assert len(decode_entry(dispatcher.journal_writer.entries[0]).events) == 5


def test_a_journal_entry_does_not_stay_open_for_a_client_that_pipelines(dispatcher: CommitBench) -> None:
    Stopped(dispatcher)
    peer, flooder = Peer(), Peer()
    dispatcher.push(peer, "job-0000")
    dispatcher.loop.step()
    before = dispatcher.commit.open_replies
    dispatcher.push(flooder, "job-0001")
    dispatcher.commit.discount(before)
    dispatcher.loop.step()
    assert len(decode_entry(dispatcher.journal_writer.entries[0]).events) == 2


def test_an_entry_is_closed_after_two_milliseconds_though_there_is_more(dispatcher: CommitBench) -> None:
    clock = Stopped(dispatcher)
    peer = Peer()
    pushed = 0
    while not dispatcher.journal_writer.entries:
        dispatcher.push(peer, f"job-{pushed:04d}")
        pushed += 1
        clock.at += 0.000_5
        dispatcher.loop.step()
        assert pushed < 100, "it is never closed"
    assert clock.at == pytest.approx(0.002_5, abs=0.000_6)
    assert len(decode_entry(dispatcher.journal_writer.entries[0]).events) == pushed


def test_a_soft_event_is_written_with_the_next_entry(dispatcher: CommitBench) -> None:
    peer = Peer()
    dispatcher.commit.clock.enter()
    assert dispatcher.commit.do(LeaseNext("workq", ("seen",), "w", REGISTERS)) is None
    dispatcher.commit.reply(peer, b"empty", None)
    dispatcher.loop.run()
    assert peer.heard == [b"empty"]
    assert dispatcher.journal_writer.entries == []
    assert "seen" in dispatcher.commit.state.queues, "applied at once"
    dispatcher.push(peer, "job-0001")
    dispatcher.loop.run()
    events = decode_entry(dispatcher.journal_writer.entries[0]).events
    assert [type(event) for event in events] == [QueueSeen, Pushed]


def test_settled_means_durable_and_released(dispatcher: CommitBench) -> None:
    peer = Peer()
    told: list[str] = []
    dispatcher.commit.when_settled(lambda: told.append("idle"))
    assert told == ["idle"]
    dispatcher.push(peer, "job-0001")
    dispatcher.loop.run()
    dispatcher.push(peer, "job-0002")
    dispatcher.commit.when_settled(lambda: told.append("both"))
    dispatcher.journal_writer.synced()
    dispatcher.loop.run()
    assert told == ["idle"]
    dispatcher.journal_writer.synced()
    dispatcher.loop.run()
    assert told == ["idle", "both"]
    assert peer.heard == [b"job-0001", b"job-0002"]


def test_replies_without_a_change_settle_too(dispatcher: CommitBench) -> None:
    peer = Peer()
    told: list[str] = []
    dispatcher.read(peer, b"closing")
    dispatcher.commit.when_settled(lambda: told.append("read"))
    dispatcher.loop.run()
    assert told == ["read"]
    dispatcher.push(peer, "job-0001")
    dispatcher.loop.run()
    dispatcher.read(peer, b"closing")
    dispatcher.commit.when_settled(lambda: told.append("read behind a push"))
    dispatcher.loop.run()
    assert told == ["read"]
    dispatcher.journal_writer.synced()
    dispatcher.loop.run()
    assert told == ["read", "read behind a push"]
    assert peer.heard == [b"closing", b"job-0001", b"closing"]


def test_many_due_jobs_move_in_slices_between_other_requests(dispatcher: CommitBench) -> None:
    peer = Peer()
    due = dispatcher.commit.now.wall + 0.000_001
    for first in range(0, 20_000, 1_000):
        dispatcher.commit.do(Enqueue("faktory", [spec(f"due-{n:05d}", due=due) for n in range(first, first + 1_000)]))
    dispatcher.loop.run()
    slices = 0
    while dispatcher.commit.state.queues["default"].ready.__len__() - slices < 20_000:
        fired = dispatcher.loop.advance(0.001)
        assert fired == 1, "one timer, always armed while something is due"
        slices += 1
        dispatcher.push(peer, f"job-{slices:04d}")
        dispatcher.loop.run()
    assert slices == 20_000 // TICK_JOBS
    while len(peer.heard) < slices:
        dispatcher.journal_writer.synced()
        dispatcher.loop.run()
    moved = [
        len(event.rows)
        for entry in dispatcher.journal_writer.entries
        for event in decode_entry(entry).events
        if isinstance(event, Readied)
    ]
    assert sum(moved) == 20_000
    assert max(moved) <= TICK_JOBS


def test_many_dependents_are_resolved_in_slices_between_other_requests(dispatcher: CommitBench) -> None:
    peer, asked = Peer(), 0
    dispatcher.push(peer, "job-0000")
    links = Extra(links=Links(depends_on=(1,)))
    dispatcher.commit.do(
        Enqueue("faktory", [replace(spec(f"dependent-{n:05d}", "after"), extra=links) for n in range(5_000)])
    )
    dispatcher.loop.run()
    dispatcher.journal_writer.synced()

    def ask(late: bool) -> Wait:
        nonlocal asked
        asked += 1
        return wait

    wait = Wait(("after",), 60.0, ask)
    dispatcher.commit.waiters.add(wait, lambda answer: None)
    dispatcher.commit.clock.enter()
    dispatcher.commit.do(Succeed("job-0000", Claim("faktory", "", free=True)))
    dispatcher.commit.reply(peer, b"done", None)
    dispatcher.loop.run()
    last = decode_entry(dispatcher.journal_writer.entries[-1]).events
    assert [type(event) for event in last] == [DependentsPostponed, Succeeded]
    dispatcher.journal_writer.synced()
    assert peer.heard[-1] == b"done"
    slices = 0
    while dispatcher.commit.state.unresolved:
        assert dispatcher.loop.advance(0.001) == 1
        slices += 1
        dispatcher.push(peer, f"job-{slices:04d}")
        dispatcher.loop.run()
        dispatcher.journal_writer.synced()
        assert peer.heard[-1] == b"job-%04d" % slices, "other requests are answered between two slices"
    assert asked == slices == 5_000 // TICK_DEPENDENTS
    assert len(dispatcher.commit.state.queues["after"].ready) == 5_000


def test_the_timer_is_reset_only_for_what_is_due_earlier(dispatcher: CommitBench) -> None:
    alarms = []
    for behind, due in enumerate((5.0, 7.0, 6.0, 1.0, 3.0)):
        dispatcher.push(Peer(), f"job-{behind:04d}", due=dispatcher.commit.now.wall + due)
        dispatcher.loop.run()
        dispatcher.journal_writer.synced()
        alarms.append(dispatcher.loop.alarms)
    assert alarms == [[pytest.approx(due, abs=0.5)] for due in (5.0, 5.0, 5.0, 1.0, 1.0)]
    assert [one for [one] in alarms[:3]] == [alarms[0][0]] * 3, "it was not changed"


def test_pushes_are_refused_beyond_the_limit_or_on_a_full_disk() -> None:
    dispatcher = CommitBench(max_jobs=2)
    dispatcher.push(Peer(), "job-0001")
    assert dispatcher.commit.no_room(1) is None
    assert "limits.jobs" in (dispatcher.commit.no_room(2) or "")
    dispatcher.commit.admission.disk_refusal = "the disk is nearly full"
    assert dispatcher.commit.no_room(1) == "the disk is nearly full"


def test_a_waiter_on_a_job_is_answered_by_the_command_that_ended_it(dispatcher: CommitBench) -> None:
    worker, waiter = Peer(), Peer()
    dispatcher.push(worker, "job-0001")
    dispatcher.loop.run()
    dispatcher.journal_writer.synced()
    told: list[JobResult] = []

    def tell(how: JobResult) -> bytes:
        told.append(how)
        return b"told"

    wait = Wait((), 0.0, lambda late: b"late", dispatcher.commit.state.counters.number, tell)
    dispatcher.commit.waiters.add(wait, lambda answer: dispatcher.commit.reply(waiter, b"told", None))
    dispatcher.commit.clock.enter()
    dispatcher.commit.do(Succeed("job-0001", Claim("faktory", "", free=True), b"result"))
    assert told == [JobResult(settled=True, ok=True, body=b"result")]
    dispatcher.loop.run()
    assert waiter.heard == [], "it is not durable yet"
    dispatcher.journal_writer.synced()
    assert waiter.heard == [b"told"]


def test_a_waiter_is_asked_when_a_lazy_deadline_passes(dispatcher: CommitBench) -> None:
    """A lazy deadline has no event: nothing has changed yet."""
    clock = Stopped(dispatcher)
    dispatcher.commit.clock.enter()
    dispatcher.commit.do(Put("qless", 1.0, "w", "jid", "q", "k", b"{}", Form.JSON, 30.0))
    dispatcher.loop.run()
    dispatcher.journal_writer.synced()
    asked: list[float] = []

    def ask(late: bool) -> bytes:
        asked.append(clock.at)
        return b""

    dispatcher.commit.waiters.add(Wait(("q",), 60.0, ask), lambda answer: None)
    while clock.at < 40.0:
        clock.at += 1.0
        dispatcher.loop.advance(1.0)
        dispatcher.loop.run()
    assert asked == [30.0]


def _with_ttl(dispatcher: CommitBench, jids: Sequence[str], ttl: float) -> None:
    dispatcher.commit.clock.enter()
    extra = Extra(links=Links(ttl_s=ttl))
    dispatcher.commit.do(Enqueue("workq", [replace(spec(jid), extra=extra) for jid in jids]))
    dispatcher.loop.run()
    dispatcher.journal_writer.synced()


def test_a_request_before_a_late_timer_finds_no_job_after_its_time_to_live(dispatcher: CommitBench) -> None:
    """Timers of the event loop are late by a millisecond or more. All requests use the clock, not only leases."""
    clock = Stopped(dispatcher)
    _with_ttl(dispatcher, ["job-0001"], 10.0)
    _with_ttl(dispatcher, ["job-0002"], 10.0004)  # too close to the other one for its own timer
    for at, left in ((9.9999, 2), (10.0, 1), (10.0003, 1), (10.0004, 0)):
        clock.at = at
        dispatcher.commit.clock.enter()
        assert (at, len(dispatcher.commit.state.jobs)) == (at, left)
        dispatcher.loop.run()
        if dispatcher.journal_writer.waits:
            dispatcher.journal_writer.synced()


def test_due_jobs_take_one_slice_of_each_pass(dispatcher: CommitBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crossdock.server.timer.TICK_JOBS", 10)
    clock = Stopped(dispatcher)
    _with_ttl(dispatcher, [f"job-{n:04}" for n in range(35)], 10.0)
    clock.at = 11.0
    left = []
    for _ in range(4):
        dispatcher.commit.clock.enter()
        dispatcher.commit.clock.enter()
        dispatcher.loop.advance(11.0)
        left.append(len(dispatcher.commit.state.jobs))
        dispatcher.loop.step()
    assert left == [25, 15, 5, 0]


def test_a_waiter_whose_deadline_and_job_come_together_is_answered_once(dispatcher: CommitBench) -> None:
    clock = Stopped(dispatcher)
    dispatcher.push(Peer(), "job-0001", due=1_794_765_345.0 + 10.0)
    dispatcher.loop.run()
    dispatcher.journal_writer.synced()
    answers: list[Answer] = []
    wait = Wait(("default",), 10.0, lambda late: b"late" if late else b"a job")
    waiting = WaitingRequest(wait, dispatcher.commit, answers.append)
    clock.at = 10.0
    dispatcher.commit.clock.call_soon(waiting.too_late)
    dispatcher.loop.run()
    assert answers == [b"a job"]


def test_after_a_change_that_failed_halfway_nothing_is_decided_written_or_answered(
    dispatcher: CommitBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[Exception] = []
    dispatcher.commit.on_failure = failures.append
    peer = Peer()
    dispatcher.push(peer, "job-0001")

    def broken(state: EngineState, follow_ups: FollowUps, event: Leased) -> None:
        raise KeyError("on purpose")

    monkeypatch.setattr(engine, "_APPLY", dict(engine._APPLY))
    engine._APPLY[Leased] = broken
    for error in (HalfDone, CrossdockError):
        with pytest.raises(error, match="LeaseNext failed in the middle"):
            dispatcher.commit.do(LeaseNext("faktory", ("default",), "", REGISTERS))
    dispatcher.loop.run()
    assert (len(failures), dispatcher.journal_writer.entries, peer.heard) == (1, [], [])
    dispatcher.loop.advance(1e6)
    dispatcher.commit.clock.enter()  # nothing is due any more either


def test_records_beyond_the_free_number_count_as_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "RECORDS_FREE", 10)
    dispatcher = CommitBench(max_jobs=100)
    state = dispatcher.commit.state
    for n in range(10):
        state.queue(f"q{n}", 0.0)
    assert dispatcher.commit.admission.free_places() == 100
    for n in range(20):
        state.resqu.buffers[f"worker:{n}"] = Buffer(n, 1, b"")
        state.tags.add(n, f"jid{n}", f"tag{n}", 0.0)
        state.qless.watched[f"jid{n}"] = 0.0
        state.qless.config[f"option{n}"] = ""
        state.qless.intervals[f"jid{n}"] = Interval(f"jid{n}", "q", "kind", b"{}", Form.JSON, 60, 0.0, 0.0)
    assert dispatcher.commit.admission.free_places() == 0
    for n in range(5):
        state.tags.add(n, f"jid{n}", f"one more{n}", 0.0)
    assert dispatcher.commit.no_room(1) == (
        "the server holds 0 jobs and 105 other records, mostly tags, and its limit is 100; "
        "complete or delete jobs, untag jobs, or raise limits.jobs"
    )
    for n in range(100):
        state.queue(f"more{n}", 0.0)
    assert "mostly queues, and its limit is 100; complete or delete jobs, forget some (QUEUE REMOVE, queue.forget)" in (
        dispatcher.commit.no_room(1) or ""
    )


def test_recurring_jobs_are_bounded_by_the_limit_and_stop_on_a_full_disk() -> None:
    dispatcher = CommitBench(max_jobs=5)
    dispatcher.commit.do(SetInterval(Interval("r", "q", "kind", b"{}", Form.JSON, 60, 0.0, 0.0), 0.0))
    dispatcher.loop.run()
    assert dispatcher.commit.admission.unasked() == 5
    dispatcher.journal_writer.synced()
    dispatcher.push(Peer(), "job-0001")
    dispatcher.loop.run()
    assert dispatcher.commit.admission.unasked() == 4
    dispatcher.journal_writer.synced()
    dispatcher.commit.admission.disk_refusal = "the disk is nearly full"
    dispatcher.push(Peer(), "job-0002")
    dispatcher.loop.run()
    assert dispatcher.commit.admission.unasked() == 0


def test_a_long_commit_becomes_several_entries_and_replies_wait_for_the_last(
    dispatcher: CommitBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crossdock.server.group_commit.ENTRY_BYTES", 400)
    peer = Peer()
    for number in range(8):
        dispatcher.push(peer, f"job-{number:04}")
    dispatcher.commit.clock.enter()
    dispatcher.commit.do(Enqueue("faktory", [spec(f"bulk-{number:04}") for number in range(20)]))
    dispatcher.loop.run()
    found = [decode_entry(entry).events for entry in dispatcher.journal_writer.entries]
    assert len(found) > 2
    pushes = [event for events in found for event in events]
    assert [len(event.specs) for event in pushes if isinstance(event, Pushed)] == [1] * 8 + [20], "commands are whole"
    assert (dispatcher.commit.entries, dispatcher.commit.tail_events) == (len(found), 9)
    written = sum(map(len, dispatcher.journal_writer.entries))
    assert dispatcher.commit.tail_bytes == dispatcher.commit.written_bytes == written
    for _ in found[:-1]:
        dispatcher.journal_writer.synced()
        assert peer.heard == []
    dispatcher.journal_writer.synced()
    assert len(peer.heard) == 8


def test_events_that_cannot_be_encoded_stop_the_server_without_a_reply(dispatcher: CommitBench) -> None:
    """The events were applied, so the state in memory differs from the one on disk."""
    failed: list[Exception] = []
    dispatcher.commit.on_failure = failed.append
    peer = Peer()
    dispatcher.commit.clock.enter()
    dispatcher.commit.do(Enqueue("faktory", [spec("\udcff")]))
    dispatcher.commit.reply(peer, b"pushed", None)
    dispatcher.loop.run()
    assert [type(error) for error in failed] == [HalfDone] and "surrogates" in str(failed[0])
    with pytest.raises(CrossdockError, match="stopping"):
        dispatcher.push(peer, "job-0002")
    dispatcher.loop.run()
    assert peer.heard == [] and dispatcher.journal_writer.entries == []


def test_soft_events_are_written_before_they_are_too_many(
    dispatcher: CommitBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crossdock.server.group_commit.SOFT_AT_MOST", 5)
    peer = Peer()
    for number in range(6):
        dispatcher.commit.clock.enter()
        dispatcher.commit.do(LeaseNext("workq", (f"q{number}",), "w", REGISTERS))
        dispatcher.commit.reply(peer, b"none", None)
        dispatcher.loop.run()
        assert len(dispatcher.journal_writer.entries) == (number == 5)
    dispatcher.journal_writer.synced()
    [events] = [decode_entry(entry).events for entry in dispatcher.journal_writer.entries]
    assert [type(event) for event in events] == [QueueSeen] * 6 and len(peer.heard) == 6
