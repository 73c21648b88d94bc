"""The journal's contract: what a reader sees beside the writer, and how it reports a damaged or incomplete journal."""

import pytest

from crossdock.journal.port import Journal, StoredEntry
from crossdock.model.errors import Damaged
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, encode_entry
from tests.contract.conftest import Store


def fill(journal: Journal, entries: int) -> None:
    for n in range(entries):
        journal.append(b"%d" % n)


def test_first_last_and_size_are_reported(store: Store, journal: Journal) -> None:
    assert (journal.first, journal.last, journal.size_behind(0)) == (0, 0, 0)
    fill(journal, 4)
    reader = store.reader()
    assert (reader.first, reader.last, reader.size_behind(1)) == (1, 4, 3) == (1, journal.last, journal.size_behind(1))
    for seq in (2, 4):
        journal.install(store.snapshot(seq))
    journal.trim(100)
    assert (reader.first, journal.first) == (3, 3)


def test_newest_follows_the_writer_and_last_does_not(store: Store, journal: Journal) -> None:
    fill(journal, 2)
    reader = store.reader()
    fill(journal, 3)
    assert (reader.last, reader.newest) == (2, 5)


def test_holds_and_snapshots_are_seen(store: Store, journal: Journal) -> None:
    fill(journal, 6)
    reader = store.reader()
    assert (reader.previous, reader.trimmable, reader.holds()) == (0, 0, [])
    one, two = store.snapshot(3), store.snapshot(5)
    journal.install(one)
    journal.install(two)
    assert (reader.snapshot(), reader.previous, reader.trimmable) == (two, 3, 3)
    journal.hold("lake", 1)
    assert (reader.trimmable, reader.holds()) == (1, [("lake", 1)])


def test_damaged_entries_are_listed_and_refused(store: Store, journal: Journal) -> None:
    fill(journal, 3)
    journal.close()
    store.damage(2)
    reader = store.reader()
    assert list(reader.stored(0)) == [StoredEntry(1, 1, True), StoredEntry(2, 1, False), StoredEntry(3, 1, True)]
    assert list(reader.stored(2)) == [StoredEntry(3, 1, True)]
    with pytest.raises(Damaged, match="2 fails its checksum"):
        list(reader.read(0))


def test_a_sound_journal_passes_every_check(store: Store, journal: Journal) -> None:
    journal.append(encode_entry(JournalEntry(EVENT_VERSION, 1.0, 1.0, [])))
    journal.sync()
    reader = store.reader()
    reader.sync()
    reader.check_structure()
    reader.refuse_newer()
    mark = reader.refuse_incomplete()
    assert mark is not None and (mark.seq, mark.fault) == (1, "")


def test_a_newer_entry_is_refused(store: Store, journal: Journal) -> None:
    journal.append(encode_entry(JournalEntry(EVENT_VERSION + 1, 1.0, 1.0, [])))
    with pytest.raises(Damaged, match="was written by a newer Crossdock"):
        store.reader().refuse_newer()


def test_a_journal_that_ends_before_the_lake_is_refused(store: Store, journal: Journal) -> None:
    fill(journal, 3)
    reader = store.reader()
    reader.refuse_incomplete(3)
    with pytest.raises(Damaged, match="the lake holds them"):
        reader.refuse_incomplete(4)


def test_a_copy_has_the_given_entries_snapshot_and_holds(store: Store, journal: Journal) -> None:
    fill(journal, 6)
    copy = store.empty()
    store.reader().write_copy(copy, list(journal.read(2)), 2, [("lake", 3)])
    found = store.reader_of(copy)
    found.check_structure()
    assert list(found.read(2)) == list(journal.read(2))
    base = found.snapshot()
    assert base is not None and (base.seq, base.path.parent, found.holds()) == (2, copy, [("lake", 3)])


def test_a_nearly_full_disk_changes_no_entry(journal: Journal) -> None:
    for short in (True, False, True):
        journal.keep_short(short)
        fill(journal, 100)
    assert [seq for seq, _ in journal.read(0)] == list(range(1, 301))


def test_closing_twice_does_nothing(store: Store, journal: Journal) -> None:
    fill(journal, 1)
    reader = store.reader()
    for each in (reader, journal):
        each.close()
        each.close()
