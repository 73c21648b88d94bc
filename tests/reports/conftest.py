"""Tables of a small shop: two queues over a week, with failures, workers and a flow; some names are hostile."""

from pathlib import Path

import pytest

from tests.reports.tables import Tables, at, day

HOSTILE = '<script>alert("x")</script>\x1b]0;title\x07\u202e&amp;'


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path / "data" / "tables")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Nothing writes to it."""
    made = Tables(tmp_path_factory.mktemp("shop") / "data" / "tables")
    for before in range(3):
        made.book(day(before), "mail", "welcome", wait=[0.5] * 10, run=[1.0] * 8, failures=2, failed=1, retries=1)
    made.book(day(1), "billing", HOSTILE, wait=[60.0], run=[3_600.0])
    made.book(day(20), "old", "k", run=[1.0])
    mail = {"queue": "mail", "kind": "welcome", "arrived": 10, "departed": 8}
    hours = [{"date": day(before), "hour": at(before, 5), **mail} for before in range(3)]
    made.put("hourly", *hours, {"date": day(1), "hour": at(1, 9), "queue": "billing", "arrived": 3, "departed": 1})
    made.put(
        "forecast",
        {"date": day(1), "hour": at(1, 9), "queue": "billing", "depth": 2, "arrival_rate": 0.1, "service_rate": 0.3,
         "empty_in_s": 10.0},
        {"date": day(0), "hour": at(0, 5), "queue": "mail", "depth": 6, "arrival_rate": 0.01, "service_rate": 0.02,
         "empty_in_s": 600.0},
    )  # fmt: skip
    made.put(
        "retries",
        {"date": day(0), "queue": "mail", "kind": "welcome", "attempts": 10, "again": 2, "spent": 2, "run_s": 10.0,
         "spent_s": 2.0},
    )  # fmt: skip
    examples = [{"jid": f"job-{n}", "at": at(0, 5, n), "message": HOSTILE if n == 0 else "no\nroute"} for n in range(5)]
    made.put(
        "failures",
        {"date": day(0), "queue": "mail", "error_group": "Timeout", "n": 5, "jobs": 5, "first": at(0, 5),
         "last": at(0, 6), "examples": examples},
        {"date": day(2), "queue": "mail", "error_group": "Timeout", "n": 1, "jobs": 1, "first": at(2, 5),
         "last": at(2, 5), "examples": [{"jid": "job-old", "at": at(2, 5), "message": "older"}]},
        {"date": day(1), "queue": "billing", "error_group": HOSTILE, "n": 2, "jobs": 1, "first": at(1, 5),
         "last": at(1, 6), "examples": []},
    )  # fmt: skip
    made.put(
        "workers",
        {"date": day(0), "hour": at(1, 23), "worker": "w-1", "door": "faktory", "busy_s": 1_800.0},
        {"date": day(1), "hour": at(1, 23), "worker": "w-1", "door": "faktory", "busy_s": 900.0, "attempts": 3,
         "succeeded": 2, "spent": 1},
        {"date": day(0), "hour": at(0, 0), "worker": "w-1", "door": "faktory", "busy_s": 900.0, "attempts": 1,
         "succeeded": 1},
        {"date": day(0), "hour": at(0, 0), "worker": HOSTILE, "door": "workq", "busy_s": 7_200.0, "attempts": 1,
         "other": 1},
    )  # fmt: skip
    attempts = [
        {"date": day(before), "seq": before, "jid": f"job-{before}", "attempt": 1, "queue": "mail", "kind": "welcome",
         "worker": "w-1", "leased_at": at(before, 5), "closed_at": at(before, 5, 1), "outcome": "succeeded",
         "wait_s": float(before), "run_s": 60.0 - before}
        for before in range(6)
    ]  # fmt: skip
    made.put(
        "attempts",
        *attempts,
        {"date": day(1), "jid": HOSTILE, "queue": "billing", "closed_at": at(1), "outcome": "lost"},
    )
    made.put(
        "flows",
        {"date": day(1), "jid": "first", "groups": ["b-1"], "jobs": 3, "links": 2, "depth": 2, "succeeded": 3,
         "pushed_at": at(1, 5), "closed_at": at(1, 6), "run_s": 90.0, "critical_s": 60.0},
        {"date": day(1), "jid": "waits", "jobs": 2, "links": 1, "depth": 2, "open": 2, "pushed_at": at(1, 5),
         "run_s": 0.0, "critical_s": 0.0},
    )  # fmt: skip
    return made
