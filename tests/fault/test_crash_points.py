"""A crash at each named point of a group commit: recovery has all acknowledged changes and no unrequested one."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import pytest

from crossdock.engine.engine import Engine
from crossdock.journal.data_dir import DataDir
from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.model.commands.core import Claim, Enqueue, LeaseNext, Succeed
from crossdock.model.job import LeaseRef
from crossdock.model.states import State
from crossdock.server.admission import Admission
from crossdock.server.clock import Clock
from crossdock.server.group_commit import GroupCommit
from tests.support.hand_loop import HandLoop
from tests.support.states import TERMS, spec

pytestmark = pytest.mark.fault

POINTS: Final = (
    "before the entry is written",
    "after the write, before it is reported",
    "between its replies",
    "after its replies",
)


class Crash(BaseException):
    """Simulates the end of the process."""


class CrashingJournalWriter:
    """Writes synchronously instead of in a thread, and crashes at the named point of the n-th entry."""

    def __init__(self, journal: SqliteJournal, at_entry: int, point: str) -> None:
        self._journal = journal
        self._left = at_entry
        self._point = point

    def append(self, entry: bytes, durable: Callable[[], None]) -> None:
        self._left -= 1
        self._here(POINTS[0])
        self._journal.append(entry)
        self._here(POINTS[1])
        durable()
        self._here(POINTS[3])

    def replying(self) -> None:
        self._here(POINTS[2])

    def _here(self, point: str) -> None:
        if self._left == 0 and self._point == point:
            raise Crash


class Peer:
    def __init__(self, journal_writer: CrashingJournalWriter) -> None:
        self.replies: list[str] = []
        self._journal_writer = journal_writer

    def deliver(self, reply: bytes, granted: list[LeaseRef] | None) -> None:
        self.replies.append(reply.decode())
        self._journal_writer.replying()


def run_until_crash(journal: SqliteJournal, at_entry: int, point: str) -> tuple[list[str], list[str], bool]:
    """Push, lease and settle until the crash. Returns the requests, the replies and whether it crashed."""
    journal_writer = CrashingJournalWriter(journal, at_entry, point)
    loop = HandLoop()
    state = recover(journal).state
    commit = GroupCommit(Engine(state, Random(3)), journal_writer, Clock(), loop.as_loop(), Admission(state, 1_000))
    peer = Peer(journal_writer)
    requests: list[str] = []

    def reply(what: str) -> None:
        requests.append(what)
        commit.reply(peer, what.encode(), None)

    try:
        for n in range(6):
            commit.clock.enter()
            for i in range(3):
                commit.do(Enqueue("faktory", [spec(f"job-{n}-{i}")]))
                reply(f"push job-{n}-{i}")
            loop.run()
            job = commit.do(LeaseNext("faktory", ("default",), "w", TERMS))
            assert job is not None
            reply(f"lease {job.jid}")
            loop.run()
            commit.do(Succeed(job.jid, Claim("faktory", "w")))
            reply(f"done {job.jid}")
            loop.run()
    except Crash:
        return requests, peer.replies, True
    return requests, peer.replies, False


@pytest.mark.parametrize("point", POINTS)
def test_replied_changes_are_recovered_and_no_others(tmp_path: Path, point: str) -> None:
    crashes = 0
    for at_entry in range(1, 25):
        journal = SqliteJournal(DataDir(tmp_path / f"data-{at_entry}"))
        requests, replies, crashed = run_until_crash(journal, at_entry, point)
        crashes += crashed
        state = recover(journal).state
        journal.close()
        pushed = {what.split()[1] for what in requests if what.startswith("push")}
        done = {what.split()[1] for what in replies if what.startswith("done")}
        may_be_done = {what.split()[1] for what in requests if what.startswith("done")}
        must_be_there = {what.split()[1] for what in replies if what.startswith("push")} - may_be_done
        there = set(state.jids)
        assert must_be_there <= there <= pushed - done
        leased = {job.jid for job in state.jobs.values() if job.state is State.LEASED}
        must_be_leased = {what.split()[1] for what in replies if what.startswith("lease")} - may_be_done
        assert must_be_leased <= leased
        assert replies == requests[: len(replies)], "replies are in order and complete"
    assert crashes == 18, "every journal entry was hit once"
