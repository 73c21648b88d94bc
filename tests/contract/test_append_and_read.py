"""The journal's contract: entries are read as they were appended, in order, also after reopening."""

import os
import tracemalloc
from itertools import islice

import pytest

from crossdock.journal.port import Journal
from crossdock.model.errors import Damaged
from tests.contract.conftest import Store


def test_sequence_numbers_count_from_one(journal: Journal) -> None:
    assert [journal.append(b"entry") for _ in range(3)] == [1, 2, 3]


def test_entries_are_read_in_order_and_unchanged(journal: Journal) -> None:
    entries = [b"", b"\x00", b"text", bytes(range(256)) * 40, b"x" * 3_000_000]
    for entry in entries:
        journal.append(entry)
    assert list(journal.read(0)) == list(enumerate(entries, 1))


def test_reading_starts_after_a_number(journal: Journal) -> None:
    for n in range(5):
        journal.append(b"%d" % n)
    assert list(journal.read(3)) == [(4, b"3"), (5, b"4")]
    assert list(journal.read(5)) == []


def test_an_empty_journal_reads_as_nothing(journal: Journal) -> None:
    assert list(journal.read(0)) == []
    assert journal.snapshot() is None


def test_reading_large_entries_takes_little_memory(journal: Journal) -> None:
    for _ in range(40):
        journal.append(os.urandom(1024 * 1024))
    tracemalloc.start()
    try:
        assert next(iter(journal.read(0)))[0] == 1
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 16 * 1024 * 1024
    assert [seq for seq, _ in journal.read(0)] == list(range(1, 41))


def test_more_entries_than_one_statement_reads(journal: Journal) -> None:
    entries = [b"%d" % n for n in range(1_000)]
    for entry in entries:
        journal.append(entry)
    assert [entry for _, entry in journal.read(0)] == entries


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "abandoned"])
def test_a_reopened_journal_continues_its_numbers(store: Store, closed: bool) -> None:
    first = store.open()
    first.append(b"one")
    first.append(b"two")
    if closed:
        first.close()
    second = store.open()
    assert [entry for _, entry in second.read(0)] == [b"one", b"two"]
    assert second.append(b"three") == 3


def test_a_reader_sees_new_entries_and_does_not_block_the_writer(store: Store, journal: Journal) -> None:
    for n in range(600):
        journal.append(b"%d" % n)
    reader = store.reader()
    reading = reader.read(0)
    assert [seq for seq, _ in islice(reading, 10)] == list(range(1, 11))
    for n in range(600, 2_000):
        journal.append(b"%d" % n)
    assert [seq for seq, _ in reading] == list(range(11, 2_001)), "with the entries appended meanwhile"
    assert [entry for _, entry in reader.read(1_998)] == [b"1998", b"1999"]


def test_reading_trimmed_entries_is_refused(store: Store, journal: Journal) -> None:
    for n in range(4):
        journal.append(b"%d" % n)
    for seq in (2, 4):
        journal.install(store.snapshot(seq))
    assert journal.trim(100) == 2
    with pytest.raises(Damaged, match="1 to 2 are missing"):
        list(journal.read(0))
