"""The process that reads the history: its limits, and how far a search goes."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from crossdock.lake.table import NoLake
from crossdock.model.commands import core as c
from crossdock.model.events.codec import decode_entry
from crossdock.web import history_queries, history_reader
from crossdock.web.admin import Refused, ServerUnavailable
from crossdock.web.history_reader import History
from tests.model.bench import Bench
from tests.pipeline.lakes import Lake
from tests.support.patience import PATIENCE_S

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
    lake = Lake(tmp_path / "lake")
    for batch in bench.batches:
        lake.add(decode_entry(batch).events)
    lake.close()
    return tmp_path


def run(folder: Path, use: Callable[[History], Awaitable[Any]]) -> Any:
    async def all_of_it() -> Any:
        history = History(str(folder / "lake"), str(folder / "tables"))
        try:
            return await use(history)
        finally:
            await history.close()

    return asyncio.run(all_of_it())


def search(folder: Path, number: int, **options: Any) -> tuple[list[tuple[str, list[str]]], dict[str, Any]]:
    *days, last = history_queries.job(str(folder / "lake"), number, **options)
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
    monkeypatch.setattr(history_queries, "DAYS", 2)
    days, last = search(folder, 1)
    assert len(days) == 2
    assert (last["stopped_at"], last["complete"], last["days"]) == ("2 days", False, 2)


def test_a_search_ends_after_its_seconds_and_says_how_far_it_came(folder: Path) -> None:
    times = iter([0.0, *[history_queries.SECONDS + 1] * 100])
    days, last = search(folder, 1, clock=lambda: next(times))
    assert len(days) == 1
    assert (last["stopped_at"], last["complete"], last["looked_back_to"]) == ("5 s", False, None)


def test_a_search_has_a_limited_number_of_events(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_queries, "EVENTS", 0)
    days, last = search(folder, 1)
    assert days[0][1] == []
    assert last["stopped_at"] == "0 events"


def test_there_may_be_no_lake(tmp_path: Path) -> None:
    with pytest.raises(NoLake):
        search(tmp_path, 1)


# The process.


def test_the_process_answers_oldest_event_first(folder: Path) -> None:
    found = run(folder, lambda history: history.whole_job(1))
    assert [event["event"] for event in found["events"]] == ["pushed", "leased"]


def test_an_error_of_the_process_is_refused_with_its_text(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there are no tables"):
        run(folder, lambda history: history.table("daily"))
    with pytest.raises(Refused, match="there is no lake"):
        run(tmp_path / "nothing", lambda history: history.whole_job(1))


def test_a_process_that_needs_too_much_memory_is_stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_reader, "MEMORY_MIB", 5)
    with pytest.raises(ServerUnavailable, match="needed more than 5 MiB"):
        run(folder, lambda history: history.whole_job(1))


def test_a_request_that_takes_too_long_is_stopped_and_the_next_one_works(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(history: History) -> Any:
        monkeypatch.setattr(history_reader, "REQUEST_S", 0.001)
        with pytest.raises(ServerUnavailable, match="took longer"):
            await history.whole_job(1)
        monkeypatch.setattr(history_reader, "REQUEST_S", PATIENCE_S)
        return await history.whole_job(2)

    assert len(run(folder, use)["events"]) == 1


def test_an_idle_process_ends_and_another_one_starts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_reader, "IDLE_S", 0.01)
    monkeypatch.setattr(history_reader, "REQUEST_S", PATIENCE_S)

    async def use(history: History) -> list[int | None]:
        pids = []
        for _ in range(2):
            await history.whole_job(1)
            pids.append(history.pid)
            async with asyncio.timeout(PATIENCE_S):
                while history.pid is not None:
                    await asyncio.sleep(0.01)
        return pids

    first, second = run(folder, use)
    assert first != second


def test_the_web_process_loads_no_arrow() -> None:
    check = "import sys, crossdock.web.process; sys.exit(bool({'pyarrow', 'deltalake'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", check], check=False, timeout=PATIENCE_S).returncode == 0
