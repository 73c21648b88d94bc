"""The bytes of trimmed entries are removed from the database and its log."""

from pathlib import Path

import apsw

from crossdock.journal.data_dir import DATABASE, DataDir
from crossdock.journal.port import Snapshot
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.journal.sqlite.schema import SCHEMA

SECRET = b"anna.k@example.org"


def opened(path: Path) -> SqliteJournal:
    folder = DataDir(path)
    folder.lock()
    return SqliteJournal(folder)


def with_secret(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir() if SECRET in each.read_bytes())


def trimmed(journal: SqliteJournal, path: Path) -> int:
    """Entries small and long, of which the last ten stay."""
    for n in range(500):
        journal.append(SECRET * (1 + n % 7 * 300))
    last = journal.append(b"the last one that is trimmed")
    for _ in range(10):
        journal.append(b"stays")
    for seq in (last, last + 1):
        journal.install(Snapshot(seq, path / f"snapshot-{seq}"))
    while journal.trim(100):
        pass
    return last


def test_nothing_of_trimmed_entries_is_left(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    last = trimmed(journal, tmp_path)
    assert with_secret(tmp_path), "SQLite does not overwrite what it deletes"
    assert journal.scrub()
    assert with_secret(tmp_path) == []
    assert [seq for seq, _ in journal.read(last)] == list(range(last + 1, last + 11))
    added = journal.append(b"after it")
    journal.close()
    again = opened_again(tmp_path)
    assert (again.last, again.first) == (added, last + 1)
    again.close()
    with apsw.Connection(str(tmp_path / DATABASE)) as db:
        assert [sql for (sql,) in db.execute("select sql from sqlite_schema order by rowid")] == list(SCHEMA)


def opened_again(path: Path) -> SqliteJournal:
    return SqliteJournal(DataDir(path))


def test_a_reader_that_is_in_the_way_postpones_it(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    trimmed(journal, tmp_path)
    reader = apsw.Connection(str(tmp_path / DATABASE), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("begin")
    reader.execute("select count(*) from journal").fetchall()
    assert not journal.scrub()
    reader.close()
    assert journal.scrub()
    assert with_secret(tmp_path) == []
    journal.append(b"it still writes")
    journal.close()
