"""The table that a child shares with the supervisor."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.worker.table import FAILED, QUEUED, RUNNING, SUCCEEDED, JobTable


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[tuple[JobTable, JobTable]]:
    """The supervisor's and the child's view."""
    ours = JobTable.create(tmp_path / "table", 5)
    theirs = JobTable.open(tmp_path / "table")
    yield ours, theirs
    ours.close()
    theirs.close()


def test_the_supervisor_sees_what_the_child_does(tables: tuple[JobTable, JobTable]) -> None:
    ours, theirs = tables
    ours.enqueue(3)
    assert (ours.state(3), ours.running_s(3, time.monotonic())) == (QUEUED, None)
    assert theirs.start(3)
    assert (ours.state(3), ours.thread(3)) == (RUNNING, threading.get_ident())
    assert ours.running_s(3, time.monotonic() + 5) == pytest.approx(5, abs=1)
    theirs.finish(3, succeeded=True)
    assert ours.state(3) == SUCCEEDED
    ours.enqueue(3)
    assert theirs.start(3)
    theirs.finish(3, succeeded=False)
    assert ours.state(3) == FAILED
    assert [ours.state(row) for row in (0, 1, 2, 4)] == [QUEUED] * 4


def test_a_revoked_job_is_not_started(tables: tuple[JobTable, JobTable]) -> None:
    ours, theirs = tables
    ours.enqueue(0)
    assert ours.revoke(0)
    assert not theirs.start(0)
    ours.enqueue(0)
    assert theirs.start(0)


def test_a_started_job_is_not_revoked(tables: tuple[JobTable, JobTable]) -> None:
    ours, theirs = tables
    ours.enqueue(0)
    assert theirs.start(0)
    assert not ours.revoke(0)
