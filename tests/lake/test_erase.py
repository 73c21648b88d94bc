"""Erasing jobs: their rows stay without their data, all others are the same, whatever happens in between."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from crossdock.lake import erase as module
from crossdock.lake.commits import Commits
from crossdock.lake.erase import Counted, LakeEraser, count
from crossdock.lake.file_changes import DELETIONS, FilesInUse, changing_files
from crossdock.lake.query import Filter
from crossdock.lake.query import choose as choose_replay
from crossdock.lake.selection import ERASED, Chosen, Which, choose, spellings_of
from crossdock.lake.status import status
from crossdock.lake.store import store_of
from crossdock.lake.table import MAINTAINED, Lake
from crossdock.lake.verify import verify
from crossdock.model.errors import Damaged
from crossdock.model.job import error_group
from tests.lake.crashes import Crash, Mortal
from tests.lake.source import ListSource, Row, data_of, maintenance, rows_in, rows_of, story, write_all

NULLED = ("payload", "payload_hash", "custom", "error_message", "backtrace", "tags", "detail")


def silent(what: str, done: int, of: int) -> None:
    pass


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_all(tmp_path / "lake", ListSource(story()), 30)
    return tmp_path / "lake"


def some_jids(lake: Path) -> tuple[str, ...]:
    """Jobs with failures, tags and notes among them."""
    rows = rows_in(lake).values()
    rich = {row["jid"] for row in rows if row["error_message"] or row["tags"] or row["detail"]} - {None}
    return tuple(sorted(rich)[:4])


def chosen_of(lake: Path, *jids: str) -> Chosen:
    return choose(Lake.open(lake), Which(jids=jids), silent)


def erase(lake: Path, chosen: Chosen) -> Counted:
    return LakeEraser(store_of(lake), data_of(lake), chosen, silent).run()


def erased(row: Row) -> Row:
    """As the documentation has it."""
    made = row["error_message"] is not None and row["error_group"] == error_group("", row["error_message"])
    changed: Row = dict.fromkeys(NULLED)
    changed |= {name: ERASED for name in ("jid", "replayed_from") if row[name] is not None}
    changed |= {"error_group": ERASED} if made and row["error_group"] else {}
    return row | changed


def expected(jids: tuple[str, ...]) -> dict[int, Row]:
    rows = rows_of(story())
    numbers = {row["number"] for row in rows.values() if row["jid"] in jids} - {None}
    return {seq: erased(row) if row["number"] in numbers else row for seq, row in rows.items()}


def everything_in(*folders: Path) -> set[Any]:
    """All texts in all Parquet files, named by a version or not."""
    found: set[Any] = set()
    for path in (path for folder in folders for path in folder.rglob("*.parquet")):
        if "_delta_log" not in path.parts:
            for column in pq.read_table(path).columns:
                values = column.combine_chunks()
                values = values.flatten() if pa.types.is_list(values.type) else values
                found.update(values.to_pylist())
    return found


def test_rows_of_the_jobs_lose_their_data_and_no_others(lake: Path) -> None:
    jids, before = some_jids(lake), Lake.open(lake)
    chosen = chosen_of(lake, *jids)
    counted = count(before, chosen, silent)
    done = erase(lake, chosen)
    assert done == counted and done.jobs == len(chosen.numbers) >= len(jids)
    assert rows_in(lake) == expected(jids)
    assert done.rows == sum(row["jid"] == ERASED or row["number"] in chosen.numbers.to_pylist()
                            for row in rows_in(lake).values())  # fmt: skip
    assert verify(lake, data_of(lake)).faults == []
    after = Lake.open(lake)
    assert (after.last, after.crc, after.at) == (before.last, before.crc, before.at)
    assert after.added(before.version) == [], "no row is new"
    assert not set(jids) & everything_in(lake, data_of(lake))
    write_all(lake, ListSource(story()))


def test_only_files_with_these_jobs_are_rewritten_and_the_old_ones_are_gone(lake: Path) -> None:
    before = {file.path: file for file in Lake.open(lake).files()}
    rows = rows_in(lake)
    jid = min(some_jids(lake), key=lambda each: sum(row["jid"] == each for row in rows.values()))
    erase(lake, chosen_of(lake, jid))
    after = {file.path: file for file in Lake.open(lake).files()}
    gone, new = before.keys() - after.keys(), after.keys() - before.keys()
    assert 0 < len(gone) == len(new) < len(before)
    assert not any((lake / path).exists() for path in gone)
    ranges = [
        sorted((each.date, each.first, each.last, each.rows) for each in files.values()) for files in (before, after)
    ]
    assert ranges[0] == ranges[1]


def test_merged_files_that_wait_for_their_deletion_are_deleted(lake: Path) -> None:
    maintenance(lake).compact()
    jids = some_jids(lake)
    erase(lake, chosen_of(lake, *jids))
    assert not set(jids) & everything_in(lake, data_of(lake))
    assert rows_in(lake) == expected(jids)


def test_files_that_another_tool_wrote_are_rewritten(lake: Path) -> None:
    DeltaTable(str(lake)).optimize.compact()
    jids = some_jids(lake)
    erase(lake, chosen_of(lake, *jids))
    assert rows_in(lake) == expected(jids)
    assert verify(lake, data_of(lake)).faults == []
    assert not set(jids) & everything_in(lake, data_of(lake))


def test_unknown_jids_are_named(lake: Path) -> None:
    first, *_ = some_jids(lake)
    assert chosen_of(lake, first, "no such job").unknown == ["no such job"]


def numbers_by(lake: Path, true: Callable[[Row], object]) -> set[int]:
    return {row["number"] for row in rows_in(lake).values() if row["number"] is not None and true(row)}


def test_jobs_are_chosen_by_filters(lake: Path) -> None:
    rows = [row for row in rows_in(lake).values() if row["number"] is not None]
    queue = next(row["queue"] for row in rows if row["queue"])
    kind = next(row["kind"] for row in rows if row["kind"])
    tag = next(row["tags"][0] for row in rows if row["tags"])
    middle = sorted(row["at"] for row in rows)[len(rows) // 2]
    message = next(row["error_message"] for row in rows if row["error_message"])

    def numbers(**which: Any) -> set[int]:
        found: list[int] = choose(Lake.open(lake), Which(**which), silent).numbers.to_pylist()
        assert found == sorted(found)
        return set(found)

    tagged = numbers_by(lake, lambda row: tag in (row["tags"] or ()))
    assert numbers(tag=tag) == tagged
    assert numbers(queue=queue) == numbers_by(lake, lambda row: row["queue"] == queue)
    late = numbers_by(lake, lambda row: row["kind"] == kind and row["at"] >= middle)
    assert numbers(kind=kind, since=middle) == late
    assert numbers(tag=tag, kind=kind, since=middle) == tagged & late
    assert numbers(until=middle) == numbers_by(lake, lambda row: row["at"] < middle)
    assert numbers(contains=message) >= numbers_by(lake, lambda row: row["error_message"] == message)
    assert numbers(contains="no text of any job") == set()


def test_a_text_is_found_in_every_spelling_of_json() -> None:
    assert spellings_of("plain") == [b"plain"]
    found = spellings_of('J\u00fcrgen "J"')
    assert 'J\u00fcrgen "J"'.encode() in found and b'J\\u00fcrgen \\"J\\"' in found and b'J\\u00FCrgen \\"J\\"' in found


def test_erased_jobs_are_not_replayed(lake: Path) -> None:
    jids = some_jids(lake)
    before = choose_replay(lake, Filter())
    chosen = chosen_of(lake, *jids)
    erase(lake, chosen)
    after = choose_replay(lake, Filter())
    assert set(after.numbers.to_pylist()) == set(before.numbers.to_pylist()) - set(chosen.numbers.to_pylist())


def test_the_status_says_when_something_was_erased(lake: Path) -> None:
    assert status(lake, data_of(lake), on=True).erased is None
    for times, jid in enumerate(some_jids(lake)[:2], 1):
        done = erase(lake, chosen_of(lake, jid))
        found = status(lake, data_of(lake), on=True).erased
        assert found is not None and (found.times, found.jobs, found.rows) == (times, done.jobs, done.rows)
        assert found.at > 1_700_000_000


def test_a_damaged_file_is_not_sealed_again(lake: Path) -> None:
    jids = some_jids(lake)
    chosen, before = chosen_of(lake, *jids), Lake.open(lake)
    path = lake / module.affected(before, chosen, silent)[-1].path
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    with pytest.raises(Damaged, match="nothing was changed in the lake"):
        erase(lake, chosen)
    assert Lake.open(lake).version == before.version
    assert {str(each.relative_to(lake)) for each in lake.glob("date=*/*")} == {each.path for each in before.files()}


def test_commits_of_other_processes_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exporter adds a segment, and the maintenance process commits, while files are rewritten."""
    lake, entries = tmp_path / "lake", story()
    write_all(lake, ListSource(entries[: len(entries) // 2]), 30)
    jids = some_jids(lake)
    chosen = chosen_of(lake, *jids)
    left = ["exporter", "maintenance"]
    rewrite = LakeEraser._rewrite

    def meanwhile(self: LakeEraser, *args: Any) -> Any:
        if left:
            other = left.pop()
            if other == "exporter":
                write_all(lake, ListSource(entries), 30)
            else:
                commits = Commits.open(store_of(lake))
                commits.commit([], {MAINTAINED: commits.lake.transaction(MAINTAINED) + 1})
        return rewrite(self, *args)

    monkeypatch.setattr(LakeEraser, "_rewrite", meanwhile)
    erase(lake, chosen)
    assert left == []
    numbers = set(chosen.numbers.to_pylist())
    assert rows_in(lake) == {
        seq: erased(row) if row["number"] in numbers else row for seq, row in rows_of(entries).items()
    }
    assert verify(lake, data_of(lake)).faults == []


def test_one_process_at_a_time_replaces_files(lake: Path) -> None:
    with changing_files(data_of(lake)), pytest.raises(FilesInUse), changing_files(data_of(lake), 0.3):
        pass
    with changing_files(data_of(lake)):
        pass


@pytest.mark.slow
def test_a_killed_erase_leaves_a_whole_lake_and_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = story()[:400]
    mortal = Mortal(monkeypatch)
    outcomes = set()
    for n in range(1, 2_000, 5):
        lake = tmp_path / str(n) / "lake"
        write_all(lake, ListSource(entries), 60)
        before = rows_in(lake)
        jids = some_jids(lake)[:2]
        chosen = chosen_of(lake, *jids)
        numbers = set(chosen.numbers.to_pylist())
        after = {seq: erased(row) if row["number"] in numbers else row for seq, row in before.items()}
        mortal.left = n
        try:
            erase(lake, chosen)
            mortal.left = -1
            assert "erased" in outcomes and "nothing" in outcomes
            return
        except Crash:
            mortal.left = -1
        found = rows_in(lake)
        assert found in (before, after), n
        assert verify(lake, data_of(lake)).faults == []
        outcomes.add("nothing" if found == before else "erased")
        if found == before:
            assert erase(lake, chosen_of(lake, *jids)).rows > 0
        else:
            maintenance(lake).run()  # deletes what the killed process did not
        assert rows_in(lake) == after
        assert not set(jids) & everything_in(lake, data_of(lake)), n
        assert not (data_of(lake) / DELETIONS).exists()
    raise AssertionError("it was never finished")
