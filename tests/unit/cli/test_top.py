"""The screen of `crossdock top`: its width, its height, and what it says about rows that do not fit."""

from typing import Any

import pytest
from rich.console import Console

from crossdock.cli.render.top import Seen, view

_STATES = ("ready", "scheduled", "leased", "retrying", "dead", "blocked", "held", "complete", "failed")
_PORTS = {"faktory": 7419, "workq": 9922, "masenko": 12345, "redis": 7379, "http": 7420}


def _seen(queues: int, workers: int) -> Seen:
    status: dict[str, Any] = {
        "version": "0.1.0",
        "uptime_s": 90_000.0,
        "listeners": {name: f"127.0.0.1:{port}" for name, port in _PORTS.items()},
        "connections": 12_345,
        "memory_mib": 1_234,
        "states": dict.fromkeys(_STATES, 1_234_567),
        "rates": dict.fromkeys(("pushed", "leased", "processed", "failed"), 23_456.7),
        "processed": 123_456_789,
        "failures": 1_234_567,
        "sync": {"p50_ms": 0.12, "p99_ms": 123.45},
        "entries_written": 123_456_789,
        "tail_bytes": 123_456_789,
        "disk_free_bytes": 75_000_000_000,
        "refusing": None,
        "queues": queues,
        "workers": workers,
    }
    rates = {"pushed": 3.0, "leased": 3.0, "processed": 2.5, "failed": 0.5}
    rows = [
        {"queue": f"queue-{n}", "ready": 9, "oldest_s": 3.0, "paused": n == 1, "rates": None if n else rates}
        for n in range(min(queues, 200))
    ]
    worker = {"hostname": "host", "pid": 1, "state": "running", "leases": 1, "beat_s": 1.0, "rss_kib": 1_024}
    return Seen(status, rows, [{"worker": f"worker-{n}", **worker} for n in range(min(workers, 200))])


def _lines(seen: Seen, height: int | None = 24, width: int = 80) -> list[str]:
    console = Console(width=width, height=height or 1_000, record=True, quiet=False, force_terminal=False)
    with console.capture() as captured:
        console.print(view(seen, height, width))
    return [line.rstrip() for line in captured.get().splitlines()]


@pytest.mark.parametrize("width", [80, 100, 160])
def test_the_head_keeps_all_its_figures_at_any_width(width: int) -> None:
    lines = _lines(_seen(3, 1), width=width)
    text = "\n".join(lines)
    assert "…" not in text
    assert all(len(line) <= width for line in lines)
    for state in _STATES:
        assert f"{state} 1,234,567" in text
    for listener in (
        "faktory 127.0.0.1:7419",
        "http 127.0.0.1:7420",
        "1,234 MiB",
        "free 69.8 GiB",
        "failed 23,456.7/s",
    ):
        assert listener in text


def test_rows_that_do_not_fit_are_counted() -> None:
    lines = _lines(_seen(1_000, 50))
    assert len(lines) <= 24
    shown = sum(line.startswith("queue-") for line in lines)
    assert f"and {1_000 - shown} more queues" in lines
    workers = sum(line.startswith("worker-") for line in lines)
    assert f"and {50 - workers} more workers" in lines


def test_nothing_is_said_about_more_rows_if_all_are_shown() -> None:
    assert not any(line.startswith("and ") for line in _lines(_seen(2, 1), None))


def test_a_queue_shows_its_rates_or_that_they_are_not_known() -> None:
    lines = _lines(_seen(2, 1))
    (busy,) = (line for line in lines if line.startswith("queue-0"))
    (idle,) = (line for line in lines if line.startswith("queue-1"))
    assert busy.split() == ["queue-0", "9", "3s", "3/s", "2.5/s", "30/min"]
    assert idle.split() == ["queue-1", "9", "3s", "-", "-", "-", "paused"]
