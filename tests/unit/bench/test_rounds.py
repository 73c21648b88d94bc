"""The benchmark repeats and reports a run in which other processes used much of the CPU."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import rounds
from bench.figures import Figures, Run
from bench.machine import Theft
from bench.rounds import Measure
from bench.servers import Contestant
from bench.sizes import Sizes

ABSENT = Contestant("absent", lambda folder: pytest.fail("not started"))


def figures(rate: float) -> Figures:
    return Figures(1, 1 / rate, rate, 0.0, 0.0, 0.0, 0.0)


def counted(taken: list[float], monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The rates that count, for runs with these lost shares of CPU time and rates of 1, 2, 3 … per second."""
    tries: Iterator[tuple[float, int]] = ((each, rate) for rate, each in enumerate(taken, 1))

    def run(contestant: Contestant, measure: Measure, connections: int, folder: Path) -> tuple[float, Run]:
        lost, rate = next(tries)
        return lost, {"PUSH": figures(rate)}

    monkeypatch.setattr(rounds, "_run", run)
    found = rounds.rounds([(ABSENT, lambda load: {})], 64, Sizes(runs=2), Path())
    assert next(tries, None) is None, "all runs must be used"
    return [each["PUSH"].rate for each in found["absent"]]


def test_undisturbed_runs_count(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    assert counted([0.0, 0.03], monkeypatch) == [1, 2]
    assert "others took" not in capfd.readouterr().err


def test_a_disturbed_run_is_repeated_and_reported(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert counted([0.2, 0.01, 0.0], monkeypatch) == [2, 3]
    assert capfd.readouterr().err.count("others took 20%") == 1


def test_after_six_attempts_the_least_disturbed_run_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert counted([0.2, 0.3, 0.1, 0.4, 0.5, 0.6, 0.0], monkeypatch) == [3, 7]


def test_the_share_is_between_zero_and_one() -> None:
    assert 0.0 <= Theft().share() <= 1.0
