"""The writer: each event is in the lake once, under its date, wherever a writer died."""

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from msgspec.structs import replace

from crossdock.cli.main import main
from crossdock.lake.commits import Overtaken
from crossdock.lake.event_rows import tables
from crossdock.lake.location import POSITION, read_position
from crossdock.lake.redaction import Payloads
from crossdock.lake.table import Lake, NoLake
from crossdock.lake.verify import verify
from crossdock.lake.writer import LOCK, LakeInUse, OtherJournal, Writer
from crossdock.model.errors import CrossdockError, Damaged, Newer
from crossdock.model.events.codec import decode_entry, encode_entry
from tests.lake.crashes import Crash, Mortal
from tests.lake.source import (
    SERVER,
    ListSource,
    data_of,
    maintenance,
    open_writer,
    rows_in,
    rows_of,
    steady,
    story,
    write_all,
)
from tests.model.bench import Bench


def reported(lake: Path) -> int:
    """The position that the server would trim the journal up to."""
    found = read_position(data_of(lake), lake)
    return 0 if found is None else found.last


def test_every_row_is_in_the_lake_once_and_under_its_date(tmp_path: Path) -> None:
    source = ListSource(story())
    lake = tmp_path / "lake"
    write_all(lake, source)
    assert rows_in(lake) == rows_of(story())
    found = Lake.open(lake)
    assert (found.first, found.last, found.gaps, found.server) == (1, len(story()), 0, SERVER)
    assert len({file.date for file in found.files()}) >= 2, "the story has events before and after midnight"
    assert sum(file.rows for file in found.files()) == len(rows_of(story()))
    assert found.at == pytest.approx(max(row["at"] for row in rows_in(lake).values()))
    assert source.synced == len(story()), "the journal was synced before the commit"
    assert reported(lake) == len(story())


def test_any_reader_of_delta_tables_finds_the_rows(tmp_path: Path) -> None:
    write_all(tmp_path / "lake", ListSource(story()))
    rows = rows_of(story())
    assert DeltaTable(tmp_path / "lake").count() == len(rows)


def test_the_size_of_segments_does_not_change_the_rows(tmp_path: Path) -> None:
    for each in (37, 5_000):
        write_all(tmp_path / str(each), ListSource(story()), each)
        assert rows_in(tmp_path / str(each)) == rows_of(story())


def test_added_files_are_those_of_later_versions(tmp_path: Path) -> None:
    write_all(tmp_path / "lake", ListSource(story()), 100)
    lake = Lake.open(tmp_path / "lake")
    files = lake.files()
    added = [lake.added(version - 1, version) for version in range(1, lake.version + 1)]
    assert [file._replace(version=0) for each in added for file in each] == files
    assert all(file.version == version for version, each in enumerate(added, 1) for file in each)
    assert lake.added(lake.version) == []
    linked = [any(row["needs"] or row["group_name"] for row in _rows(lake, file)) for file in files]
    assert [file.linked for file in files] == linked and set(linked) == {True, False}


def _rows(lake: Lake, file: Any) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(lake.uri(file).removeprefix("file://")).to_pylist()
    return rows


def test_an_entry_with_too_many_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, batches = tmp_path / "lake", story(100)
    sizes = [len(rows_of([batch])) for batch in batches]
    most, large = max(sizes), sizes.index(max(sizes)) + 1
    monkeypatch.setattr(tables, "ROWS_AT_MOST", most - 1)
    with pytest.raises(Damaged, match=f"journal entry {large} has more than {most - 1} rows"):
        write_all(lake, ListSource(batches), 1)
    assert Lake.open(lake).last == large - 1, "the writer stops before that entry"
    monkeypatch.setattr(tables, "ROWS_AT_MOST", most)
    write_all(lake, ListSource(batches))
    assert rows_in(lake) == rows_of(batches)


def test_a_clock_that_was_set_back_is_reported_and_its_events_stay_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench()
    bench.push("before")
    bench.clock.jump(-3_600.0)
    bench.push("one")
    bench.push("two")
    bench.clock.pass_by(3_598.0)
    bench.push("nearly")
    bench.clock.pass_by(60.0)
    bench.push("after")
    lake = tmp_path / "data" / "lake"
    write_all(lake, ListSource(bench.batches), 3)
    assert Lake.open(lake).set_backs == 1
    noted = [row for row in rows_in(lake).values() if row["event"] == "clock-set-back"]
    assert [row["detail"] for row in noted] == ["entries 2 to 3, 2 of them up to 3600 s"]
    assert main(["lake", "status", "--data", str(tmp_path / "data")]) == 0
    said = "clock: the server's clock was set back: entries 2 to 3, 2 of them up to 3600 s\n"
    assert said in capsys.readouterr().out


def test_a_crash_at_any_call_loses_and_duplicates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three segments over two dates. The writer is killed at each system call and around each commit in turn."""
    batches = story(100)
    truth = rows_of(batches)
    mortal = Mortal(monkeypatch)
    write_all(tmp_path / "whole", ListSource(batches), 60)
    calls, mortal.calls = mortal.calls, 0
    assert calls > 30
    unreported = 0
    for dies_at in range(1, calls + 1):
        lake, source = tmp_path / str(dies_at), ListSource(batches)
        mortal.left = dies_at
        with pytest.raises(Crash):
            write_all(lake, source, 60)
        mortal.left = -1
        # The journal was trimmed up to the position that the lake had reported.
        position = reported(lake)
        try:
            unreported += Lake.open(lake).last > position
        except NoLake:
            assert position == 0
        source.trimmed = max(0, position - 1)
        write_all(lake, source, 37)
        assert rows_in(lake) == truth, f"after a crash at call {dies_at}"
    assert unreported > 5, "some crashes left a commit that was not reported"


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    first = open_writer(tmp_path / "lake", ListSource(story()))
    with pytest.raises(LakeInUse, match=r"lake\.dir"):
        open_writer(tmp_path / "lake", ListSource(story()))
    first.close()
    open_writer(tmp_path / "lake", ListSource(story())).close()


def test_of_two_writers_without_a_lock_only_one_commits(tmp_path: Path) -> None:
    """As in an object store, where there is no lock."""
    lake = tmp_path / "lake"
    first = open_writer(lake, ListSource(story()))
    (lake / LOCK).unlink()
    second = Writer(lake, tmp_path / "other data", ListSource(story()))
    for writer, until in ((first, 100), (second, 150)):
        for _ in writer.take(lambda writer=writer, until=until: writer.read >= until):  # type: ignore[misc]
            pass
    first.publish()
    with pytest.raises(Overtaken, match="only one server may write"):
        second.publish()
    first.close()
    second.close()
    assert rows_in(lake) == rows_of(story()[:100])
    write_all(lake, ListSource(story()))
    assert rows_in(lake) == rows_of(story())


def test_another_journal_is_refused(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_all(lake, ListSource(story()[:500]))
    before = rows_in(lake)
    for other in (story()[:400], story()[100:900]):
        with pytest.raises(OtherJournal, match="restored from a backup"):
            open_writer(lake, ListSource(other))
    assert rows_in(lake) == before
    write_all(lake, ListSource(story()))
    assert rows_in(lake) == rows_of(story())


def test_entries_trimmed_while_the_lake_was_off_are_reported_as_a_gap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "data" / "lake"
    write_all(lake, ListSource(story()[:500]))
    write_all(lake, ListSource(story(), trimmed=600))
    truth = rows_of(story())
    kept = {seq: row for seq, row in truth.items() if not 500 < seq >> 22 <= 600}
    found = rows_in(lake)
    (gap,) = [row for row in found.values() if row["event"] == "gap"]
    assert gap["detail"] == "entries 501 to 600 were trimmed while the lake was off"
    assert found.keys() - {gap["seq"]} == kept.keys()
    assert Lake.open(lake).gaps == 1
    assert main(["lake", "status", "--data", str(tmp_path / "data")]) == 0
    assert "gap: entries 501 to 600 were trimmed while the lake was off\n" in capsys.readouterr().out


def test_a_lake_may_start_in_the_middle_of_the_journal(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_all(lake, ListSource(story(), trimmed=300))
    assert rows_in(lake).keys() == rows_of(story(), after=300).keys()
    assert (Lake.open(lake).first, Lake.open(lake).gaps) == (301, 0)


def test_an_old_copy_of_the_lake_is_refused(tmp_path: Path) -> None:
    """Its newest log entry is missing, and the journal was trimmed by what was reported before."""
    lake = tmp_path / "lake"
    write_all(lake, ListSource(story()), 200)
    newest = max((lake / "_delta_log").glob("*.json"))
    newest.unlink()
    with pytest.raises(Damaged, match="an old copy was put back"):
        open_writer(lake, ListSource(story(), trimmed=len(story()) - 1))
    assert f"and had {len(story())} before" in verify(lake, data_of(lake)).faults[0]


def test_without_a_position_the_lake_itself_is_asked(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_all(lake, ListSource(story()[:500]))
    path = data_of(lake) / POSITION
    for content in (None, b"{}", b"", path.read_bytes().replace(b"500", b"900")):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        open_writer(lake, ListSource(story())).close()
        assert reported(lake) == 500


def test_expired_dates_are_deleted_completely(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_all(lake, ListSource(story()))
    times = steady(lake)
    dates, now = list(times), max(times.values())
    assert maintenance(lake).expire(365, now) == []
    assert maintenance(lake).expire(0, now) == dates[:-1]
    assert sorted(path.name for path in lake.iterdir()) == ["_delta_log", "_lock", f"date={dates[-1]}"]
    assert {row["at"] // 86_400 for row in rows_in(lake).values()} == {now // 86_400}
    assert Lake.open(lake).expired == dates[-2]


def test_a_clock_jump_expires_no_date(tmp_path: Path) -> None:
    """The age of a date is measured by the steady clock, not by the dates of the events."""
    batches = [replace(decode_entry(batch), steady=float(seq)) for seq, batch in enumerate(story(), 1)]
    lake = tmp_path / "lake"
    write_all(lake, ListSource([encode_entry(batch) for batch in batches]))
    times = steady(lake)
    last = max(times.values())
    assert len(times) > 1
    assert maintenance(lake).expire(1, last) == []
    assert maintenance(lake).expire(1, last + 86_400.0) == list(times)[:-1], "the newest date is exactly a day old"


def test_dates_without_a_steady_time_age_from_the_first_check(tmp_path: Path) -> None:
    """Another tool added a file of another date."""
    lake = tmp_path / "lake"
    write_all(lake, ListSource(story()[:400]))
    table = DeltaTable(lake)
    row = next(iter(rows_in(lake).values()))
    write_deltalake(table, _foreign(row), mode="append")
    assert rows_in(lake)[1]["at"] == 86_400.0
    assert maintenance(lake).expire(1, 5_000.0) == []
    assert maintenance(lake).expire(1, 5_000.0 + 86_400.0) == []
    assert maintenance(lake).expire(1, 5_001.0 + 86_400.0) == ["1970-01-02"]


def _foreign(row: dict[str, Any]) -> Any:
    import datetime as dt

    import pyarrow as pa

    from crossdock.lake.commits import lake_schema

    return pa.Table.from_pylist([{**row, "seq": 1, "at": 86_400.0, "date": dt.date(1970, 1, 2)}], schema=lake_schema())


def test_a_half_deleted_date_is_gone_for_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = tmp_path / "lake"
    write_all(lake, ListSource(story()))
    times = steady(lake)
    with monkeypatch.context() as patch:
        patch.setattr("crossdock.lake.store.Disk.delete", lambda *_: None)
        maintenance(lake).expire(0, max(times.values()))
    assert verify(lake).faults == []
    assert {file.date for file in Lake.open(lake).files()} == {list(times)[-1]}
    assert len(list(lake.glob("date=*"))) > 1
    later = 2 * 86_400.0 + max(path.stat().st_mtime for path in lake.glob("*/*.parquet"))
    maintenance(lake).clean_up(later)
    assert [path.name for path in lake.glob("date=*")] == [f"date={list(times)[-1]}"]


def test_a_lake_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_all(lake, ListSource(story()))
    DeltaTable(lake).alter.set_table_properties({"crossdock.format": "4"}, raise_if_not_exists=False)
    for act in (lambda: Lake.open(lake), lambda: open_writer(lake, ListSource(story()))):
        with pytest.raises(Newer, match=r"of format 4 was written by a newer Crossdock; .* reads up to 3"):
            act()


def test_another_delta_table_is_not_a_lake(tmp_path: Path) -> None:
    import pyarrow as pa

    write_deltalake(tmp_path / "lake", pa.table({"a": [1]}))
    with pytest.raises(Damaged, match="is not a lake of Crossdock"):
        Lake.open(tmp_path / "lake")
    with pytest.raises(CrossdockError, match="is not a lake of Crossdock"):
        open_writer(tmp_path / "lake", ListSource(story()))


def test_an_invalid_entry_stops_the_writer_and_changes_nothing(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_all(lake, ListSource(story()[:500]), 500)
    with pytest.raises(Damaged, match="journal entry 601"):
        write_all(lake, ListSource([*story()[:600], b"\x00"]), 500)
    assert rows_in(lake) == rows_of(story()[:500])


def test_payloads_follow_the_settings(tmp_path: Path) -> None:
    write_all(tmp_path / "hash", ListSource(story()), payloads=Payloads("hash"))
    write_all(tmp_path / "none", ListSource(story()), payloads=Payloads("none"))
    hashed, none = rows_in(tmp_path / "hash"), rows_in(tmp_path / "none")
    pushed = [seq for seq, row in rows_of(story()).items() if row["payload"] is not None]
    assert pushed
    assert all(hashed[seq]["payload"] is None and len(hashed[seq]["payload_hash"]) == 64 for seq in pushed)
    assert all(row["payload"] is None and row["payload_hash"] is None for row in none.values())
