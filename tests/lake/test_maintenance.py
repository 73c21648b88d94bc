"""The maintenance process: fewer files and the same rows, whichever process dies or commits meanwhile."""

import datetime as dt
import grp
import os
import time
from pathlib import Path
from typing import Any, Final

import pytest
from deltalake import DeltaTable

from crossdock.lake import maintenance as module
from crossdock.lake.commits import Overtaken
from crossdock.lake.maintenance import Maintenance
from crossdock.lake.messages import Chores
from crossdock.lake.table import Lake
from crossdock.lake.verify import verify
from crossdock.lake.writer import LOCK, Writer
from tests.lake.crashes import Crash, Mortal
from tests.lake.source import ListSource, data_of, maintenance, open_writer, rows_in, rows_of, steady, story, write_all

LATER_S: Final = 3 * 86_400.0


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_all(tmp_path / "lake", ListSource(story()), 30)
    return tmp_path / "lake"


def closed(lake: Path) -> list[str]:
    """Dates with more than one file, without the newest."""
    dates = [file.date for file in Lake.open(lake).files()]
    return sorted({date for date in dates if dates.count(date) > 1} - {max(dates)})


def test_segments_of_closed_days_become_one_and_keep_their_rows(lake: Path) -> None:
    before, days = Lake.open(lake), closed(lake)
    assert days
    merged = maintenance(lake).compact()
    assert merged == sum(file.date < max(days, default="") or file.date in days for file in before.files())
    after = Lake.open(lake)
    assert closed(lake) == [] and len(after.files()) < len(before.files())
    assert rows_in(lake) == rows_of(story())
    assert (after.last, after.crc, after.at) == (before.last, before.crc, before.at)
    assert after.added(before.version) == [], "no row is new"
    assert maintenance(lake).compact() == 0
    write_all(lake, ListSource(story()))


def test_replaced_files_stay_for_readers_of_earlier_versions(lake: Path) -> None:
    before = Lake.open(lake)
    maintenance(lake).compact()
    assert maintenance(lake).clean_up() == []
    assert all((lake / file.path).exists() for file in before.files())
    assert [file._replace(version=0) for file in Lake.open(lake).added(0)] == before.files()
    gone = maintenance(lake).clean_up(time.time() + LATER_S)
    replaced = {file.path for file in before.files()} - {file.path for file in Lake.open(lake).files()}
    assert set(gone) == replaced
    assert rows_in(lake) == rows_of(story())
    assert Lake.open(lake).added(0) == Lake.open(lake).files(), "a reader that is behind gets the merged files"


def test_files_that_no_version_names_are_removed(lake: Path) -> None:
    stray = next(lake.glob("date=*")) / "000000000001-000000000002-00000000.parquet"
    stray.write_bytes(b"of a writer that was killed")
    kept = lake / "_notes"
    kept.touch()
    assert maintenance(lake).clean_up() == [], "it may be of a commit that is under way"
    os.utime(stray, (0, 0))
    assert maintenance(lake).clean_up() == [str(stray.relative_to(lake))]
    assert kept.exists() and rows_in(lake) == rows_of(story())


def test_many_segments_of_the_current_day_are_merged(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OPEN_FILES", 2)
    maintenance(lake).compact()
    dates = [file.date for file in Lake.open(lake).files()]
    assert len(dates) == len(set(dates))
    assert rows_in(lake) == rows_of(story())


def test_segments_stay_below_a_size(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MERGED_BYTES", 40_000)
    before = len(Lake.open(lake).files())
    maintenance(lake).compact()
    files = Lake.open(lake).files()
    assert len({file.date for file in files}) < len(files) < before
    assert rows_in(lake) == rows_of(story())


def test_the_log_is_short_and_the_state_survives_checkpoints(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECKPOINT_EVERY", 5)
    before = Lake.open(lake)
    works = maintenance(lake)
    assert works.checkpoint()
    assert not works.checkpoint(), "there is nothing new"
    gone = works.clean_up(time.time() + LATER_S)
    assert len([name for name in gone if name.endswith(".json")]) == before.version
    after = Lake.open(lake)
    assert (after.last, after.crc, after.first, after.server) == (before.last, before.crc, before.first, before.server)
    assert after.files() == before.files() and after.added(0) == after.files()
    assert verify(lake).faults == []
    write_all(lake, ListSource([*story(), *story()[:1]]))
    assert Lake.open(lake).last == len(story()) + 1


def test_expired_dates_and_merged_files_leave_the_checkpoint_whole(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECKPOINT_EVERY", 1)
    Maintenance(Chores(data=data_of(lake), location=str(lake), keep_days=10_000, steady=1.0)).run()
    assert rows_in(lake) == rows_of(story())
    assert verify(lake, data_of(lake)).faults == []


def test_a_damaged_segment_is_not_merged(lake: Path) -> None:
    day = closed(lake)[0]
    file = next(file for file in Lake.open(lake).files() if file.date == day)
    path = lake / file.path
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    maintenance(lake).compact()
    assert day in closed(lake)
    (fault,) = verify(lake).faults
    assert path.name in fault


def test_of_two_processes_that_merge_the_same_files_one_is_refused(lake: Path) -> None:
    first, second = maintenance(lake), maintenance(lake)
    assert first.compact() > 0
    with pytest.raises(Overtaken):
        second.compact()
    assert rows_in(lake) == rows_of(story())


def test_the_exporter_commits_while_files_are_merged(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_all(lake, ListSource(story()[:600]), 30)
    writer = open_writer(lake, ListSource(story()))
    list(writer.take(lambda: False))
    assert maintenance(lake).compact() > 0
    writer.publish()
    writer.close()
    assert rows_in(lake) == rows_of(story())


def test_the_exporter_commits_while_dates_expire(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_all(lake, ListSource(story()[:600]), 30)
    writer = open_writer(lake, ListSource(story()))
    list(writer.take(lambda: False))
    times = steady(lake)
    gone = maintenance(lake).expire(0, max(times.values()))
    later = [row for seq, row in rows_of(story()).items() if seq >> 22 > 600]
    assert gone
    writer.publish()
    writer.close()
    assert Lake.open(lake).last == len(story())
    assert not {file.date for file in Lake.open(lake).added(0)} & set(gone) - {_date(row) for row in later}
    kept = {seq: row for seq, row in rows_of(story()).items() if _date(row) not in gone or seq >> 22 > 600}
    assert rows_in(lake) == kept


def _date(row: dict[str, Any]) -> str:
    return dt.datetime.fromtimestamp(row["at"], dt.UTC).date().isoformat()


def test_a_writer_continues_from_new_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its handle would get slower with every commit."""
    monkeypatch.setattr(module, "CHECKPOINT_EVERY", 3)
    monkeypatch.setattr("crossdock.lake.commits._LONG", 3)
    monkeypatch.setattr("crossdock.lake.commits._LOOK", 1)
    lake = tmp_path / "lake"
    writer = open_writer(lake, ListSource(story()))
    opened = []
    while writer.read < len(story()):
        until = writer.read + 40
        list(writer.take(lambda until=until: writer.read >= until))  # type: ignore[misc]
        writer.publish()
        maintenance(lake).checkpoint()
        opened.append(writer._commits._checkpoint)
    assert len(set(opened)) > 3 and opened[-1] > 10
    writer.close()
    assert rows_in(lake) == rows_of(story())
    more = [*story(), *story()[:9]]
    first = open_writer(lake, ListSource(more))
    (lake / LOCK).unlink()
    second = Writer(lake, tmp_path / "other", ListSource(more))
    for each in (first, second):
        list(each.take(lambda each=each: each.read >= len(story()) + 1))  # type: ignore[misc]
    first.publish()
    with pytest.raises(Overtaken):
        second.publish()
    first.close()
    second.close()


def test_another_tool_may_merge_the_files(lake: Path) -> None:
    DeltaTable(lake).optimize.compact()
    found = Lake.open(lake)
    assert found.last == len(story()) and all(not file.first for file in found.files() if file.date in closed(lake))
    assert rows_in(lake) == rows_of(story())
    assert found.added(found.version - 1) == []
    write_all(lake, ListSource([*story(), *story()[:1]]))
    assert verify(lake).faults == []


def test_a_crash_at_any_call_loses_and_duplicates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECKPOINT_EVERY", 3)
    batches, truth = story(100), rows_of(story(100))
    mortal = Mortal(monkeypatch)
    write_all(tmp_path / "whole", ListSource(batches), 30)
    mortal.calls = 0
    maintenance(tmp_path / "whole").run()
    calls = mortal.calls
    assert calls > 10 and rows_in(tmp_path / "whole") == truth
    for dies_at in range(1, calls + 1):
        lake = tmp_path / str(dies_at)
        write_all(lake, ListSource(batches), 30)
        mortal.left = dies_at
        with pytest.raises(Crash):
            maintenance(lake).run()
        mortal.left = -1
        write_all(lake, ListSource(batches), 30)
        maintenance(lake).run()
        maintenance(lake).clean_up(time.time() + LATER_S)
        assert rows_in(lake) == truth, f"after a crash at call {dies_at}"
        assert verify(lake, data_of(lake)).faults == []


@pytest.mark.parametrize("group", ["", grp.getgrgid(os.getgid()).gr_name])
def test_a_group_may_read_the_lake_and_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str) -> None:
    lake = tmp_path / "lake"
    monkeypatch.setattr(module, "CHECKPOINT_EVERY", 3)
    write_all(lake, ListSource(story()), 30, group=group)
    Maintenance(Chores(data=data_of(lake), location=str(lake), group=group)).run()
    assert list(lake.glob("_delta_log/*checkpoint*")) and (lake / "_checkpoints.json").exists()
    modes = {path: path.stat().st_mode & 0o777 for path in (lake, *lake.rglob("*")) if path.name != LOCK}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o750 if group else 0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o640 if group else 0o600}
    assert rows_in(lake) == rows_of(story())
