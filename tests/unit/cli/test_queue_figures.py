"""How the measured figures of a queue are printed."""

import pytest

from crossdock.cli.commands import queue


@pytest.mark.parametrize(
    ("askers", "asked_s", "text"),
    [
        (2, 0.0, "2 requests wait for a job"),
        (1, 0.0, "1 request waits for a job"),
        (0, 3.2, "no request waits for a job; a worker last asked 3s ago"),
        (0, None, "no worker has asked for a job since the server started"),
    ],
)
def test_it_is_said_whether_workers_ask_for_jobs(askers: int, asked_s: float | None, text: str) -> None:
    assert queue.asked(askers, asked_s) == text


def test_rates_have_their_unit() -> None:
    rates = {"pushed": 2.0, "leased": 1.5, "processed": 0.5, "failed": 0.0}
    assert queue.rates(rates) == "pushed 2/s, leased 1.5/s, processed 30/min, failed 0"
    assert queue.in_and_out(rates) == ("2/s", "30/min")


def test_a_queue_without_figures_has_dashes() -> None:
    assert queue.rates(None) == "-"
    assert queue.in_and_out(None) == ("-", "-")
    assert queue.quantiles({"p50_s": None, "p95_s": None, "p99_s": None, "count": 0}) == "-"


def test_quantiles_say_of_how_many_jobs_they_are() -> None:
    found = {"p50_s": 0.012, "p95_s": 1.5, "p99_s": 90.0, "count": 1_200}
    assert queue.quantiles(found) == "p50 12ms, p95 1.5s, p99 1m30s, of 1,200 jobs"
