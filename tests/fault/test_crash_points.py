"""A crash at each named point of a turn: what was answered is there, what was never asked for is not."""

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

POINTS: Final = ("before the batch is written", "after it, before it is told", "among its replies", "after its replies")


class Crash(BaseException):
    """The process is gone: nothing after it happens."""


class CrashingScribe:
    """Writes at once, in place of the thread, and crashes with the n-th batch at the named point."""

    def __init__(self, journal: SqliteJournal, at_batch: int, point: str) -> None:
        self._journal = journal
        self._left = at_batch
        self._point = point

    def append(self, batch: bytes, durable: Callable[[], None]) -> None:
        self._left -= 1
        self._here(POINTS[0])
        self._journal.append(batch)
        self._here(POINTS[1])
        durable()
        self._here(POINTS[3])

    def replying(self) -> None:
        self._here(POINTS[2])

    def _here(self, point: str) -> None:
        if self._left == 0 and self._point == point:
            raise Crash


class Peer:
    def __init__(self, journal_writer: CrashingScribe) -> None:
        self.heard: list[str] = []
        self._journal_writer = journal_writer

    def deliver(self, reply: bytes, granted: list[LeaseRef] | None) -> None:
        self.heard.append(reply.decode())
        self._journal_writer.replying()


def live(journal: SqliteJournal, at_batch: int, point: str) -> tuple[list[str], list[str], bool]:
    """Push, lease and settle until the crash: what was asked, what was answered, whether it crashed."""
    journal_writer = CrashingScribe(journal, at_batch, point)
    loop = HandLoop()
    state = recover(journal).state
    turn = GroupCommit(Engine(state, Random(3)), journal_writer, Clock(), loop.as_loop(), Admission(state, 1_000))
    peer = Peer(journal_writer)
    asked: list[str] = []

    def say(what: str) -> None:
        asked.append(what)
        turn.reply(peer, what.encode(), None)

    try:
        for n in range(6):
            turn.clock.enter()
            for i in range(3):
                turn.do(Enqueue("faktory", [spec(f"job-{n}-{i}")]))
                say(f"push job-{n}-{i}")
            loop.run()
            job = turn.do(LeaseNext("faktory", ("default",), "w", TERMS))
            assert job is not None
            say(f"lease {job.jid}")
            loop.run()
            turn.do(Succeed(job.jid, Claim("faktory", "w")))
            say(f"done {job.jid}")
            loop.run()
    except Crash:
        return asked, peer.heard, True
    return asked, peer.heard, False


@pytest.mark.parametrize("point", POINTS)
def test_what_was_answered_is_there_and_nothing_else(tmp_path: Path, point: str) -> None:
    crashes = 0
    for at_batch in range(1, 25):
        journal = SqliteJournal(DataDir(tmp_path / f"data-{at_batch}"))
        asked, heard, crashed = live(journal, at_batch, point)
        crashes += crashed
        state = recover(journal).state
        journal.close()
        pushed = {what.split()[1] for what in asked if what.startswith("push")}
        done = {what.split()[1] for what in heard if what.startswith("done")}
        may_be_done = {what.split()[1] for what in asked if what.startswith("done")}
        must_be_there = {what.split()[1] for what in heard if what.startswith("push")} - may_be_done
        there = set(state.jids)
        assert must_be_there <= there <= pushed - done
        leased = {job.jid for job in state.jobs.values() if job.state is State.LEASED}
        must_be_leased = {what.split()[1] for what in heard if what.startswith("lease")} - may_be_done
        assert must_be_leased <= leased
        assert heard == asked[: len(heard)], "in order, and none skipped"
    assert crashes == 18, "every batch of the story was hit once"
