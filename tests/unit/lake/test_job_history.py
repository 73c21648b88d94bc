"""The history of one job in the lake, and how far a search goes."""

from pathlib import Path
from typing import Any

import pytest

from crossdock.lake import job_history
from crossdock.lake.table import NoLake
from crossdock.model.commands import core as c
from crossdock.model.events.codec import decode_entry
from tests.model.bench import Bench
from tests.pipeline.lakes import Lake

DAY = 86_400.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A lake of three days: job 1 is pushed on the first and leased on the last, job 2 is pushed on the last."""
    bench = Bench()
    bench.do(c.Start())
    bench.push("old")
    bench.clock.pass_by(DAY)
    bench.do(c.Start())
    bench.clock.pass_by(DAY)
    bench.lease()
    bench.push("new")
    write(bench, tmp_path / "lake")
    return tmp_path


def write(bench: Bench, folder: Path) -> None:
    lake = Lake(folder)
    for batch in bench.batches:
        lake.add(decode_entry(batch).events)
    lake.close()


def search(folder: Path, ident: int | str, **options: Any) -> tuple[list[tuple[str, list[str]]], dict[str, Any]]:
    *days, last = job_history.by_day(folder / "lake", ident, **options)
    return [(each["day"], [event["event"] for event in each["events"]]) for each in days], last


def test_a_search_goes_from_the_newest_day_back_to_the_jobs_push(folder: Path) -> None:
    days, last = search(folder, 1)
    assert [events for _, events in days] == [["leased"], [], ["pushed"]]
    assert [day for day, _ in days] == sorted((day for day, _ in days), reverse=True)
    assert (last["stopped_at"], last["complete"], last["days"]) == ("its push", True, 3)
    assert last["looked_back_to"] == days[-1][0]


def test_a_search_reads_no_day_before_the_push(folder: Path) -> None:
    days, last = search(folder, 2)
    assert [events for _, events in days] == [["pushed"]]
    assert last["days"] == 1


def test_a_search_for_an_unknown_job_reads_the_whole_lake(folder: Path) -> None:
    _, last = search(folder, 99)
    assert (last["stopped_at"], last["complete"], last["days"]) == ("end of the lake", False, 3)


def test_a_search_ends_after_its_days(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_history, "DAYS", 2)
    days, last = search(folder, 1)
    assert len(days) == 2
    assert (last["stopped_at"], last["complete"], last["days"]) == ("2 days", False, 2)


def test_a_search_ends_after_its_seconds_and_says_how_far_it_came(folder: Path) -> None:
    times = iter([0.0, *[job_history.SECONDS + 1] * 100])
    days, last = search(folder, 1, clock=lambda: next(times))
    assert len(days) == 1
    assert (last["stopped_at"], last["complete"], last["looked_back_to"]) == ("5 s", False, None)


def test_a_search_has_a_limited_number_of_events(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_history, "EVENTS", 0)
    days, last = search(folder, 1)
    assert days[0][1] == []
    assert last["stopped_at"] == "0 events"


def test_a_jid_selects_the_newest_job_that_had_it(tmp_path: Path) -> None:
    bench = Bench()
    bench.do(c.Start())
    for _ in range(2):
        bench.push("same")
        bench.clock.pass_by(1.0)
        bench.lease()
        bench.succeed("same")
    write(bench, tmp_path / "lake")
    days, last = search(tmp_path, "same")
    assert days[0][1] == ["succeeded", "leased", "pushed"]
    assert last["complete"]
    assert search(tmp_path, 1)[0] == search(tmp_path, 2)[0] == days, "both jobs have these events"
    *_, newest, _ = job_history.by_day(tmp_path / "lake", "same")
    assert {event["number"] for event in newest["events"]} == {2}


def test_a_server_that_has_just_started_has_no_lake_yet(tmp_path: Path) -> None:
    with pytest.raises(NoLake, match="first segment when its oldest event is 60 s old"):
        search(tmp_path, 1, segment_s=60.0)


def test_a_server_without_a_lake_has_no_history(tmp_path: Path) -> None:
    with pytest.raises(NoLake, match="this server writes no history"):
        search(tmp_path, 1, segment_s=None)
