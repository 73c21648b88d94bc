"""The journal writer: order, the reserve on a full disk, and no callback after any other failure."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from crossdock.engine.engine import Engine
from crossdock.engine.state import EngineState
from crossdock.journal.port import DiskFull, JournalFailed, Snapshot
from crossdock.model.commands.core import Enqueue
from crossdock.model.job import LeaseRef
from crossdock.server.admission import Admission
from crossdock.server.clock import Clock
from crossdock.server.group_commit import GroupCommit
from crossdock.server.journal_writer import JournalWriter
from tests.support.hand_loop import HandLoop
from tests.support.states import spec

FULL = DiskFull("no room")
BROKEN = JournalFailed("the disk went away")


class ListJournal:
    """A journal in memory. `trouble` holds the exceptions of the next appends, None for success."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.trouble: list[Exception | None] = []
        self.trims: list[int | Exception] = []
        self.holds: list[Exception | None] = []  #: what the next holds raise
        self.unsyncable: Exception | None = None

    @property
    def last(self) -> int:
        raise NotImplementedError

    @property
    def first(self) -> int:
        raise NotImplementedError

    def size_behind(self, seq: int) -> int:
        raise NotImplementedError

    def keep_short(self, short: bool) -> None:
        raise NotImplementedError

    def append(self, entry: bytes) -> int:
        trouble = self.trouble.pop(0) if self.trouble else None
        if trouble is not None:
            self.done.append(f"failed {entry.decode()}")
            raise trouble
        self.done.append(entry.decode())
        return len(self.done)

    def read(self, after: int) -> Iterator[tuple[int, bytes]]:
        raise NotImplementedError

    def snapshot(self) -> Snapshot | None:
        raise NotImplementedError

    def install(self, snapshot: Snapshot) -> None:
        if self.trouble and (trouble := self.trouble.pop(0)) is not None:
            raise trouble
        self.done.append(f"install {snapshot.seq}")

    def hold(self, name: str, seq: int) -> None:
        trouble = self.holds.pop(0) if self.holds else None
        self.done.append(f"{'failed ' if trouble else ''}hold {name} {seq}")
        if trouble is not None:
            raise trouble

    def release(self, name: str) -> None:
        raise NotImplementedError

    def trim(self, most: int) -> int:
        found = self.trims.pop(0) if self.trims else 0
        if isinstance(found, Exception):
            raise found
        self.done.append("trim")
        return found

    @property
    def previous(self) -> int:
        raise NotImplementedError

    @property
    def trimmable(self) -> int:
        raise NotImplementedError

    def scrub(self) -> bool:
        raise NotImplementedError

    def sync(self) -> None:
        if self.unsyncable is not None:
            raise self.unsyncable
        self.done.append("sync")

    def close(self) -> None:
        raise NotImplementedError


class WriterUnderTest:
    def __init__(self, folder: Path) -> None:
        self.loop = HandLoop()
        self.journal = ListJournal()
        self.ballast = folder / "ballast"
        self.failures: list[Exception] = []
        self.durable: list[str] = []
        self.looks = 0
        self.journal_writer = JournalWriter(
            self.journal, self.ballast, self.loop.as_loop(), self.failures.append, self._written
        )

    def _written(self) -> None:
        self.looks += 1

    def append(self, text: str) -> None:
        self.journal_writer.append(text.encode(), lambda: self.durable.append(text))


@pytest.fixture
def dispatcher(tmp_path: Path) -> WriterUnderTest:
    return WriterUnderTest(tmp_path)


def appended(dispatcher: WriterUnderTest) -> list[str]:
    return [each for each in dispatcher.journal.done if each != "trim"]


def test_durable_is_called_when_the_entry_is_written(dispatcher: WriterUnderTest) -> None:
    dispatcher.append("one")
    assert (appended(dispatcher), dispatcher.durable) == (["one"], ["one"])
    assert dispatcher.journal_writer.install(Snapshot(1, Path("snapshot")))
    dispatcher.append("two")
    assert appended(dispatcher) == ["one", "install 1", "two"]
    assert dispatcher.durable == ["one", "two"]


async def _synced(journal: ListJournal, folder: Path) -> list[Exception]:
    failures: list[Exception] = []
    journal_writer = JournalWriter(journal, folder / "ballast", asyncio.get_running_loop(), failures.append)
    journal_writer.sync()
    journal_writer.sync()  # the first sync is still running, so no second one starts
    await journal_writer.stop()
    await asyncio.sleep(0)  # the next pass reports its end
    return failures


def test_everysec_syncs_beside_the_event_loop(dispatcher: WriterUnderTest, tmp_path: Path) -> None:
    assert asyncio.run(_synced(dispatcher.journal, tmp_path)) == []
    assert dispatcher.journal.done == ["sync"]


def test_a_sync_that_fails_is_final(dispatcher: WriterUnderTest, tmp_path: Path) -> None:
    dispatcher.journal.unsyncable = OSError(5, "Input/output error")
    (failure,) = asyncio.run(_synced(dispatcher.journal, tmp_path))
    assert isinstance(failure, JournalFailed)


def test_a_hold_resumes_trimming_unless_it_cannot_be_recorded(dispatcher: WriterUnderTest) -> None:
    dispatcher.journal.trims, dispatcher.journal.holds = [0, 5], [None, FULL]
    dispatcher.append("one")
    dispatcher.append("two")
    dispatcher.journal_writer.hold("lake", 7)
    dispatcher.append("three")
    dispatcher.journal_writer.hold("lake", 8)
    dispatcher.append("four")
    assert dispatcher.journal.done == [
        "one",
        "trim",
        "two",
        "hold lake 7",
        "three",
        "trim",
        "failed hold lake 8",
        "four",
    ]
    assert dispatcher.failures == []


def test_an_entry_is_tried_again_with_the_reserve_on_a_full_disk(dispatcher: WriterUnderTest) -> None:
    dispatcher.ballast.write_bytes(b"room")
    dispatcher.journal.trouble = [None, FULL]
    for text in ("one", "two", "three"):
        dispatcher.append(text)
    assert appended(dispatcher) == ["one", "failed two", "two", "three"]
    assert dispatcher.durable == ["one", "two", "three"]
    assert not dispatcher.ballast.exists()
    assert dispatcher.journal_writer.reserve_used
    assert dispatcher.failures == []


@pytest.mark.parametrize(
    ("reserve", "trouble", "tried"),
    [
        (True, [None, FULL, FULL], ["one", "failed two", "failed two"]),  # full again
        (False, [None, FULL], ["one", "failed two"]),  # no reserve
        (True, [None, BROKEN], ["one", "failed two"]),  # not caused by a full disk
    ],
)
def test_a_failure_is_final_and_nothing_after_it_is_answered(
    dispatcher: WriterUnderTest, reserve: bool, trouble: list[Exception | None], tried: list[str]
) -> None:
    if reserve:
        dispatcher.ballast.write_bytes(b"room")
    dispatcher.journal.trouble = list(trouble)
    for text in ("one", "two", "three"):
        dispatcher.append(text)
    assert appended(dispatcher) == tried
    assert dispatcher.durable == ["one"]
    assert len(dispatcher.failures) == 1
    assert isinstance(dispatcher.failures[0], JournalFailed)
    if trouble[-1] is FULL:
        assert "free some space" in str(dispatcher.failures[0])


def test_no_reply_of_a_failed_entry_is_sent(dispatcher: WriterUnderTest) -> None:
    """In the group commit: neither the change nor a read after it is ever answered."""
    commit = GroupCommit(
        Engine(state := EngineState(), Random(1)),
        dispatcher.journal_writer,
        Clock(),
        dispatcher.loop.as_loop(),
        Admission(state, 10),
    )
    heard: list[bytes] = []

    class Peer:
        def deliver(self, reply: bytes, granted: list[LeaseRef] | None) -> None:
            heard.append(reply)

    dispatcher.journal.trouble = [FULL]
    commit.do(Enqueue("faktory", [spec("job-0001")]))
    commit.reply(Peer(), b"pushed", None)
    dispatcher.loop.run()
    commit.reply(Peer(), b"read", None)
    dispatcher.loop.run()
    assert len(dispatcher.failures) == 1
    assert heard == []


def test_trimming_continues_in_steps_until_little_is_left(dispatcher: WriterUnderTest) -> None:
    dispatcher.journal.trims = [100, 100, 7, 100]
    for n in range(5):
        dispatcher.append(str(n))
    assert dispatcher.journal.done == ["0", "trim", "1", "trim", "2", "trim", "3", "4"]


def test_a_full_disk_while_trimming_or_installing_does_not_stop_the_server(dispatcher: WriterUnderTest) -> None:
    dispatcher.journal.trims = [FULL, 0]
    dispatcher.append("one")
    dispatcher.append("two")
    assert dispatcher.journal.done == ["one", "two", "trim"]
    again = WriterUnderTest(dispatcher.ballast.parent)
    again.journal.trouble = [FULL]
    assert not again.journal_writer.install(Snapshot(1, Path("snapshot")))
    again.append("three")
    assert again.durable == ["three"]
    assert dispatcher.failures == again.failures == []


def test_the_reserve_is_made_when_there_is_room(dispatcher: WriterUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crossdock.server.journal_writer.BALLAST_BYTES", 4_096)
    dispatcher.journal_writer.reserve_used = True
    dispatcher.journal_writer.make_ballast()
    assert dispatcher.ballast.stat().st_size == 4_096
    assert not dispatcher.journal_writer.reserve_used
    monkeypatch.setattr("crossdock.server.journal_writer.free_bytes", lambda folder: 8_192)
    dispatcher.ballast.unlink()
    again = WriterUnderTest(dispatcher.ballast.parent)
    again.journal_writer.make_ballast()
    assert not dispatcher.ballast.exists()


@pytest.mark.parametrize("size", [0, 4_095])
def test_an_incomplete_reserve_is_completed(
    dispatcher: WriterUnderTest, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr("crossdock.server.journal_writer.BALLAST_BYTES", 4_096)
    dispatcher.ballast.write_bytes(bytes(size))
    dispatcher.journal_writer.make_ballast()
    assert dispatcher.ballast.stat().st_size == 4_096


def test_a_reserve_that_cannot_be_made_does_not_stop_the_server(
    dispatcher: WriterUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("crossdock.server.journal_writer.reserve", fail)
    dispatcher.journal_writer.make_ballast()
    dispatcher.append("one")
    assert dispatcher.durable == ["one"]


def test_the_disk_is_checked_every_mebibyte(dispatcher: WriterUnderTest) -> None:
    for _ in range(10):
        dispatcher.append("x" * 256 * 1024)
    assert dispatcher.looks == 2
