"""The journal's contract: two snapshots are kept, and no entry that they or a reader need is trimmed."""

from crossdock.journal.port import Journal
from tests.contract.conftest import Store


def fill(journal: Journal, entries: int) -> None:
    for n in range(entries):
        journal.append(b"%d" % n)


def first_left(journal: Journal, after: int) -> int:
    return next(iter(journal.read(after)))[0]


def test_the_newest_installed_snapshot_is_returned(store: Store, journal: Journal) -> None:
    fill(journal, 10)
    one, two = store.snapshot(3), store.snapshot(7)
    journal.install(one)
    assert journal.snapshot() == one
    journal.install(two)
    assert journal.snapshot() == two
    journal.close()
    assert store.open().snapshot() == two


def test_a_file_that_was_not_installed_is_not_a_snapshot(store: Store, journal: Journal) -> None:
    fill(journal, 10)
    one = store.snapshot(3)
    journal.install(one)
    store.snapshot(9)
    journal.close()
    assert store.open().snapshot() == one


def test_the_two_newest_snapshot_files_are_kept(store: Store, journal: Journal) -> None:
    fill(journal, 10)
    snapshots = []
    for seq in (2, 4, 6):
        snapshots.append(store.snapshot(seq))
        journal.install(snapshots[-1])
    assert [snapshot.path.exists() for snapshot in snapshots] == [False, True, True]


def test_nothing_is_trimmed_without_two_snapshots(store: Store, journal: Journal) -> None:
    fill(journal, 10)
    assert journal.trim(100) == 0
    journal.install(store.snapshot(8))
    assert journal.trim(100) == 0
    assert first_left(journal, 0) == 1


def test_trimming_stops_at_the_snapshot_before_the_newest(store: Store, journal: Journal) -> None:
    fill(journal, 10)
    journal.install(store.snapshot(4))
    journal.install(store.snapshot(8))
    assert journal.trim(100) == 4
    assert journal.trim(100) == 0
    assert first_left(journal, 4) == 5


def test_trim_deletes_at_most_the_given_number(store: Store, journal: Journal) -> None:
    fill(journal, 10)
    journal.install(store.snapshot(7))
    journal.install(store.snapshot(9))
    assert [journal.trim(3) for _ in range(4)] == [3, 3, 1, 0]


def test_a_hold_keeps_the_entries_after_it(store: Store, journal: Journal) -> None:
    fill(journal, 10)
    journal.hold("lake", 2)
    journal.hold("backup", 5)
    journal.install(store.snapshot(7))
    journal.install(store.snapshot(9))
    assert journal.trim(100) == 2
    journal.hold("lake", 9)
    assert journal.trim(100) == 3
    journal.hold("backup", 9)
    assert journal.trim(100) == 2
    assert first_left(journal, 7) == 8


def test_numbers_continue_after_all_entries_were_trimmed(store: Store, journal: Journal) -> None:
    fill(journal, 10)
    journal.install(store.snapshot(10))
    journal.install(store.snapshot(10))
    journal.trim(100)
    journal.close()
    again = store.open()
    assert again.append(b"eleven") == 11
    assert list(again.read(10)) == [(11, b"eleven")]


def test_a_released_hold_allows_trimming(store: Store, journal: Journal) -> None:
    fill(journal, 10)
    journal.install(store.snapshot(6))
    journal.install(store.snapshot(8))
    journal.hold("lake", 2)
    journal.release("absent")
    assert journal.trim(100) == 2
    journal.release("lake")
    assert journal.trim(100) == 4
    assert first_left(journal, 6) == 7
