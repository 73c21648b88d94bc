"""Recovery: the fold of what the journal holds, with or without a snapshot, and no further than it fits."""

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
    for batch in story.batches:
        journal.append(batch)


def test_an_empty_journal_is_an_empty_state(journal: SqliteJournal) -> None:
    found = recover(journal)
    assert (found.seq, found.wall, found.steady, found.events) == (0, 0.0, 0.0, 0)
    assert picture(found.state) == picture(Story().state)


def test_the_fold_is_the_state(journal: SqliteJournal) -> None:
    story = eventful()
    fill(journal, story)
    found = recover(journal)
    assert picture(found.state) == picture(story.state)
    assert found.seq == len(story.batches)
    assert found.events == sum(len(decode_entry(batch).events) for batch in story.batches)
    assert found.bytes == sum(map(len, story.batches))
    last = decode_entry(story.batches[-1])
    assert (found.wall, found.steady) == (last.wall, last.steady)


def test_a_snapshot_at_any_batch_gives_the_same_state(journal: SqliteJournal, tmp_path: Path) -> None:
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


def test_an_event_that_does_not_fit_is_damage(journal: SqliteJournal) -> None:
    """The same batch twice: a job that is leased cannot be leased again."""
    story = Story()
    story.push("job-0001")
    story.lease()
    fill(journal, story)
    journal.append(story.batches[-1])
    with pytest.raises(Damaged, match="batch 3 does not fit"):
        recover(journal)


@pytest.mark.parametrize("batch", [b"", b"\xc1", b"not msgpack at all", b"\x94\x01\x00\x00"])
def test_bytes_that_are_no_batch_are_damage(journal: SqliteJournal, batch: bytes) -> None:
    journal.append(batch)
    with pytest.raises(Damaged, match="batch 1"):
        recover(journal)


def test_a_newer_version_is_refused_by_name(journal: SqliteJournal) -> None:
    story = Story()
    story.push("job-0001")
    events = decode_entry(story.batches[0]).events
    journal.append(story.batch(events, EVENT_VERSION + 1))
    with pytest.raises(Damaged, match="newer Crossdock"):
        recover(journal)


def test_an_event_about_an_unknown_job_is_damage(journal: SqliteJournal) -> None:
    story = Story()
    story.push("job-0001")
    story.lease()
    [leased] = decode_entry(story.batches[1]).events
    assert isinstance(leased, Leased)
    journal.append(story.batches[1])
    with pytest.raises(Damaged, match="batch 1 does not fit"):
        recover(journal)


def test_a_snapshot_of_another_batch_is_damage(journal: SqliteJournal, tmp_path: Path) -> None:
    story = eventful()
    fill(journal, story)
    path = tmp_path / snapshot_name(3)
    file.write(path, story.state, len(story.batches), story.now.wall, story.now.steady)
    journal.install(Snapshot(3, path))
    with pytest.raises(Damaged, match="is of batch"):
        recover(journal)
    assert path.exists()
