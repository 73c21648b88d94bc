"""The current job: its data, its progress, and its log records."""

import io
import logging
import threading

import pytest

from crossdock import logs
from crossdock.app.context import JobContext, JobFilter, current_job, entered, lease_lost, logger, progress
from crossdock.app.errors import NoCurrentJob
from tests.support.fetched import fetched


def test_progress_is_reported_in_percent_and_cut() -> None:
    reported: list[tuple[int, str]] = []
    with entered(JobContext(fetched("task"), report=lambda percent, text: reported.append((percent, text)))):
        progress(0.4, "text")
        progress(1.5)
        progress(-1)
        progress(1, "x" * 2_000)
        with pytest.raises(ValueError, match=r"^progress is a number from 0 to 1, not nan$"):
            progress(float("nan"))
    assert reported == [(40, "text"), (100, ""), (0, ""), (100, "x" * 1_000)]


def test_a_plain_call_of_a_task_has_no_job() -> None:
    progress(0.5, "nothing happens")
    assert not lease_lost().is_set()
    with pytest.raises(NoCurrentJob, match=r"works in tasks that a worker runs, not in plain calls$"):
        current_job()


def test_a_lost_lease_is_seen() -> None:
    lost = threading.Event()
    with entered(JobContext(fetched("task"), lease_lost=lost)):
        assert lease_lost() is lost
    assert lease_lost() is not lost


def test_the_data_of_the_job() -> None:
    job = fetched("task", queue="mail", attempt=2, origin="qless", tags=("a",), batch="b-1", custom={"x": 1})
    with entered(JobContext(job)):
        now = current_job()
    assert (now.id, now.kind, now.queue, now.attempt, now.origin) == ("job-0001", "task", "mail", 2, "qless")
    assert (now.tags, now.batch, now.custom) == (("a",), "b-1", {"x": 1})
    assert (now.environment, now.include_path) == ({}, "")


def test_the_environment_of_a_resqu_job_is_data() -> None:
    job = fetched("task", origin="resqu", resqu={"environment": {"PATH": "/evil"}, "includePath": "scripts/boot.php"})
    context = JobContext(job)
    assert (context.environment, context.include_path) == ({"PATH": "/evil"}, "scripts/boot.php")
    assert JobContext(fetched("task", origin="resqu", resqu={"environment": [], "includePath": 5})).environment == {}
    assert JobContext(fetched("task", origin="resqu", resqu={"environment": [], "includePath": 5})).include_path == ""


def test_log_records_carry_the_job(caplog: pytest.LogCaptureFixture) -> None:
    with entered(JobContext(fetched("task"))):
        logger.warning("inside")
    logger.warning("outside")
    inside, outside = caplog.records
    assert (vars(inside)["jid"], vars(inside)["kind"]) == ("job-0001", "task")
    assert (vars(outside)["jid"], vars(outside)["kind"]) == ("", "")


def test_our_own_log_formats_show_the_job() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.TextFormatter("worker"))
    handler.addFilter(JobFilter())
    log = logging.Logger("mine")  # noqa: LOG001 - not one of the process
    log.addHandler(handler)
    with entered(JobContext(fetched("task"))):
        log.warning("inside")
    assert "jid=job-0001 kind=task" in stream.getvalue()
