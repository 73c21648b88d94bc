"""The comparison of Python libraries: its table, its ratios, and libraries that cannot be measured here."""

from pathlib import Path

import pytest
from bench.worker import services
from bench.worker.measure import Result, Sizes
from bench.worker.peers import OURS, PEERS
from bench.worker.report import goals, median, row
from bench.worker.run import main
from bench.worker.venvs import NotInstalled, installed, python_for

OWN = Result(
    push_one=900.0,
    push_sixteen=9_000.0,
    push_bulk=50_000.0,
    drain={"asyncio": 8_000.0},
    start_p50=0.0008,
    start_p99=0.002,
)
OTHER = Result(push_one=600.0, push_sixteen=3_000.0, drain={"threads": 2_000.0}, start_p50=0.001, start_p99=0.003)
THIRD = Result(push_one=1_800.0, push_sixteen=4_000.0, drain={"threads": 1_000.0}, start_p50=0.01, start_p99=0.03)


def test_a_row_has_a_dash_for_what_a_library_lacks() -> None:
    assert row("Other", OTHER) == ("Other", "-", "2,000", "600", "3,000", "-", "1.00", "3.00")


def test_each_ratio_is_to_the_best_of_the_others() -> None:
    found = {goal.what: (goal.value, goal.verdict()) for goal in goals(OWN, {"Other": OTHER, "Third": THIRD})}
    assert found == {
        "drain asyncio, to Other with 2,000/s": (4.0, "met"),
        "push one by one, 16 threads, to Third with 4,000/s": (2.25, "met"),
        "push one by one, 1 thread, to Third with 1,800/s": (0.5, "missed"),
        "push to start p50, ms": (0.8, "met"),
    }


def test_the_median_of_runs_is_taken_of_each_figure() -> None:
    found = median([OTHER, THIRD, Result(push_one=700.0, drain={"threads": 1_500.0})])
    assert (found.push_one, found.drain, found.push_bulk) == (700.0, {"threads": 1_500.0}, None)


def test_a_slow_library_gets_fewer_jobs() -> None:
    assert Sizes(20_000, 100).shared(10) == Sizes(2_000, 100)
    assert Sizes(5_000, 100).shared(10).jobs == 1_000


def test_every_library_has_its_program() -> None:
    programs = Path(services.__file__).with_name("programs")
    assert {f"{peer.program}.py" for peer in (OURS, *PEERS)} | {"__init__.py", "common.py"} == {
        each.name for each in programs.glob("*.py")
    }


def test_a_missing_python_is_named() -> None:
    with pytest.raises(NotInstalled, match=r"no Python 3\.90 was found; name one with BENCH_PYTHON="):
        python_for((3, 90))


def test_a_package_that_cannot_be_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(NotInstalled, match=r"pip could not install it: .*no-such-package"):
        installed(tmp_path / "cache", "none", ("no-such-package==1",), (3, 11))


def test_a_missing_server_skips_the_library_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("bench.worker.run.installed", lambda *_: tmp_path)
    assert main(["--only", "taskiq", "--folder", str(tmp_path)]) == 0
    assert "SKIPPED taskiq: redis-server is not installed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "error"),
    [(["--only", "Sidekiq"], "no library is named Sidekiq"), (["--jobs", "1500"], "--jobs is a multiple of 1000")],
)
def test_wrong_arguments_are_named(words: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(words)
    assert error in capsys.readouterr().err
