"""Recovery: folding the journal with and without a snapshot, and refusing entries that do not fit."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.journal.data_dir import DataDir, snapshot_name
from crossdock.journal.port import Snapshot
from crossdock.journal.recovery import recover
from crossdock.journal.snapshot import file
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.model.errors import Damaged
from crossdock.model.events import Leased
from crossdock.model.events.codec import EVENT_VERSION, decode_entry
from tests.support.states import Story, eventful, picture


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    journal = SqliteJournal(DataDir(tmp_path))
    yield journal
    journal.close()


def fill(journal: SqliteJournal, story: Story) -> None:
    for entry in story.batches:
        journal.append(entry)


def test_an_empty_journal_is_an_empty_state(journal: SqliteJournal) -> None:
    found = recover(journal)
    assert (found.seq, found.wall, found.steady, found.events) == (0, 0.0, 0.0, 0)
    assert picture(found.state) == picture(Story().state)


def test_folding_all_entries_gives_the_state(journal: SqliteJournal) -> None:
    story = eventful()
    fill(journal, story)
    found = recover(journal)
    assert picture(found.state) == picture(story.state)
    assert found.seq == len(story.batches)
    assert found.events == sum(len(decode_entry(entry).events) for entry in story.batches)
    assert found.bytes == sum(map(len, story.batches))
    last = decode_entry(story.batches[-1])
    assert (found.wall, found.steady) == (last.wall, last.steady)


def test_a_snapshot_at_any_entry_gives_the_same_state(journal: SqliteJournal, tmp_path: Path) -> None:
    story = eventful()
    fill(journal, story)
    whole = picture(story.state)
    for seq in range(1, len(story.batches) + 1):
        part = recover(journal, until=seq)
        assert part.seq == seq
        path = tmp_path / snapshot_name(seq)
        file.write(path, part.state, seq, part.wall, part.steady)
        journal.install(Snapshot(seq, path))
        found = recover(journal)
        assert picture(found.state) == whole
        assert found.events <= len(story.batches) * 2 - seq


def test_an_event_that_does_not_fit_is_refused(journal: SqliteJournal) -> None:
    """The same entry twice: a job that is leased cannot be leased again."""
    story = Story()
    story.push("job-0001")
    story.lease()
    fill(journal, story)
    journal.append(story.batches[-1])
    with pytest.raises(Damaged, match="entry 3 does not fit"):
        recover(journal)


@pytest.mark.parametrize("entry", [b"", b"\xc1", b"not msgpack at all", b"\x94\x01\x00\x00"])
def test_bytes_that_are_not_an_entry_are_refused(journal: SqliteJournal, entry: bytes) -> None:
    journal.append(entry)
    with pytest.raises(Damaged, match="entry 1"):
        recover(journal)


def test_a_newer_version_is_refused_by_name(journal: SqliteJournal) -> None:
    story = Story()
    story.push("job-0001")
    events = decode_entry(story.batches[0]).events
    journal.append(story.batch(events, EVENT_VERSION + 1))
    with pytest.raises(Damaged, match="newer Crossdock"):
        recover(journal)


def test_an_event_about_an_unknown_job_is_refused(journal: SqliteJournal) -> None:
    story = Story()
    story.push("job-0001")
    story.lease()
    [leased] = decode_entry(story.batches[1]).events
    assert isinstance(leased, Leased)
    journal.append(story.batches[1])
    with pytest.raises(Damaged, match="entry 1 does not fit"):
        recover(journal)


def test_a_snapshot_of_another_entry_is_refused(journal: SqliteJournal, tmp_path: Path) -> None:
    story = eventful()
    fill(journal, story)
    path = tmp_path / snapshot_name(3)
    file.write(path, story.state, len(story.batches), story.now.wall, story.now.steady)
    journal.install(Snapshot(3, path))
    with pytest.raises(Damaged, match="ends with journal entry"):
        recover(journal)
    assert path.exists()
