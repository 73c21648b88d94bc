"""Jobs that end their process, and what their failures say."""

import signal

import pytest

from crossdock.client.jobs import Failure, FetchedJob
from crossdock.worker.poison import (
    DIED,
    QUARANTINED,
    cause_of,
    deaths_of,
    died_message,
    quarantine_message,
    signal_name,
)


def failed(errtype: str, message: str) -> FetchedJob:
    return FetchedJob(jid="job-0001", kind="k", failure=Failure(errtype=errtype, message=message))


def test_the_count_travels_in_the_failure() -> None:
    assert deaths_of(FetchedJob(jid="job-0001", kind="k")) == 0
    for deaths in (1, 2, 11):
        assert deaths_of(failed(DIED, died_message("the process died", deaths, alone=True))) == deaths
        assert deaths_of(failed(DIED, died_message("the process died", deaths, alone=False))) == deaths
        assert deaths_of(failed(QUARANTINED, quarantine_message("it died", deaths))) == deaths


def test_another_failure_ends_the_row() -> None:
    assert deaths_of(failed("ValueError", "has lost its process 2 times in a row")) == 0
    assert deaths_of(failed(DIED, "a text that was cut")) == 1


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (-signal.SIGSEGV, "the process was killed by SIGSEGV"),
        (-signal.SIGKILL, "the process was killed by SIGKILL (out of memory, or killed by someone)"),
        (3, "the process ended with exit code 3"),
        (-200, "the process was killed by signal 200"),
    ],
)
def test_the_cause_is_named(code: int, text: str) -> None:
    assert cause_of(code) == text
    assert signal_name(15) == "SIGTERM"
