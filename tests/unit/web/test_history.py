"""The process that reads the history: its replies and its limits."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from crossdock.lake import diagnosis
from crossdock.model.commands import core as c
from crossdock.model.events.codec import decode_entry
from crossdock.web import data_checks, history_reader
from crossdock.web.admin import Refused, ServerUnavailable
from crossdock.web.data_checks import Checked, DataChecks
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
        history = History(str(folder), str(folder / "lake"), str(folder / "tables"), 60.0)
        try:
            return await use(history)
        finally:
            await history.close()

    return asyncio.run(all_of_it())


# The process.


def test_the_process_answers_oldest_event_first(folder: Path) -> None:
    found = run(folder, lambda history: history.whole_job(1))
    assert [event["event"] for event in found["events"]] == ["pushed", "leased"]


def test_a_job_is_found_by_its_jid(folder: Path) -> None:
    found = run(folder, lambda history: history.whole_job("old"))
    assert [(event["event"], event["number"]) for event in found["events"]] == [("pushed", 1), ("leased", 1)]
    assert run(folder, lambda history: history.whole_job("unknown"))["events"] == []


def test_the_checks_are_those_of_doctor(folder: Path) -> None:
    assert run(folder, lambda history: history.checks()) == []
    next((folder / "lake").rglob("*.parquet")).unlink()
    found = run(folder, lambda history: history.checks())
    assert found == diagnosis.warnings(folder, folder / "lake")
    assert "is missing" in found[0]


def test_requests_share_the_result_of_the_checks_until_it_is_old(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(history: History) -> tuple[Checked, Checked, Checked]:
        checks = DataChecks(history)
        first, second = await asyncio.gather(checks.run(), checks.run())
        assert checks.known is first
        monkeypatch.setattr(data_checks, "KEEP_S", 0.0)
        return first, second, await checks.run()

    first, second, third = run(folder, use)
    assert first is second
    assert third.steady > first.steady


def test_an_error_of_the_process_is_refused_with_its_text(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there are no tables"):
        run(folder, lambda history: history.table("daily"))
    with pytest.raises(Refused, match="the lake has no events yet"):
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
