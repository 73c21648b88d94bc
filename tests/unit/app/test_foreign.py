"""Jobs of other protocols: kinds, arguments, bytes and bundles."""

from typing import Any

import msgspec
import pytest

from crossdock.app.app import App
from crossdock.app.context import JobContext, current_job
from crossdock.app.errors import BadTask
from crossdock.app.execute import Ack, Failed, execute
from crossdock.client.jobs import FetchedJob
from tests.support.fetched import fetched


def _result(app: App, job: FetchedJob) -> Any:
    settled = execute(app, msgspec.structs.replace(job, keep_result=True), JobContext(job))
    assert isinstance(settled, Ack), settled
    assert settled.result is not None
    return msgspec.json.decode(settled.result)


def _error(app: App, job: FetchedJob) -> str:
    settled = execute(app, job, JobContext(job))
    assert isinstance(settled, Failed)
    return f"{settled.type}: {settled.message}"


@pytest.fixture
def app() -> App:
    app = App()

    @app.task(name="mail", kinds=(r"Example\Mail", "MailJob"))
    def mail(to: str, copies: int = 1) -> list[Any]:
        return [to, copies]

    @app.task(unpack=False)
    def whole(data: dict[str, Any]) -> dict[str, Any]:
        return data

    @app.task
    def raw(data: bytes) -> str:
        return data.hex()

    return app


@pytest.mark.parametrize("origin", ["resqu", "qless", "masenko"])
def test_named_arguments_of_another_protocol(app: App, origin: str) -> None:
    assert _result(app, fetched("MailJob", {"to": "ada", "copies": 2}, origin=origin)) == ["ada", 2]
    assert _result(app, fetched("whole", {"to": "ada"}, origin=origin)) == {"to": "ada"}
    assert _error(app, fetched("mail", {"too": "ada"}, origin=origin)) == (
        'BadArgument: mail: argument "too" is not taken; did you mean "to"?'
    )


def test_an_object_that_came_through_faktory_is_one_argument(app: App) -> None:
    assert _error(app, fetched("mail", {"to": "ada"})).startswith('BadArgument: mail: argument "to" cannot be decoded')


def test_positional_arguments_stay_positional(app: App) -> None:
    assert _result(app, fetched("mail", "ada", 3, origin="resqu")) == ["ada", 3]
    assert _result(app, fetched("mail", "ada", custom={"kwargs": {"copies": 5}})) == ["ada", 5]


def test_kinds_are_found_with_and_without_a_leading_backslash(app: App) -> None:
    assert _result(app, fetched(r"\Example\Mail", {"to": "ada"}, origin="resqu")) == ["ada", 1]
    assert _result(app, fetched(r"Wrapper", {"to": "a"}, origin="resqu", resqu={"name": r"\Example\Mail"})) == ["a", 1]
    assert _error(app, fetched("zzz", "ada")) == (
        'UnknownTask: no task named "zzz"; known: "Example\\Mail", "MailJob", "mail", "raw", "whole". '
        "Has the worker imported the module that defines it?"
    )
    assert _error(app, fetched("Wrapper", origin="resqu", resqu={"name": 5})).startswith("UnknownTask: no task named")


def test_bytes_of_workq_arrive_as_they_were_pushed(app: App) -> None:
    assert _result(app, fetched("raw", "abcd", origin="workq")) == b"abcd".hex()
    assert _result(app, fetched("raw", {"base64": "/wA="}, origin="workq")) == "ff00"
    assert _error(app, fetched("raw", 5, origin="workq")) == (
        'BadArgument: raw: argument "data" cannot be decoded: expected a text, or an object with base64'
    )
    # From a Python client bytes are base64, as for any other JSON.
    assert _result(app, fetched("raw", "/wA=")) == "ff00"


@pytest.fixture
def bundled() -> App:
    app = App()
    calls: list[str] = []

    def boot() -> None:
        calls.append(current_job().include_path)

    bundle = app.bundle("scripts/job_bootstrap.php", setup=boot)

    @bundle.task(kinds=["MailJob"])
    def bundled_mail() -> list[str]:
        return calls

    @app.task(kinds=["MailJob", "Other"])
    def mail() -> str:
        return "everywhere"

    return app


def _from_resqu(kind: str, path: str = "") -> FetchedJob:
    return fetched(kind, origin="resqu", resqu={"includePath": path})


def test_an_include_path_selects_a_bundle(bundled: App) -> None:
    assert _result(bundled, _from_resqu("MailJob", "scripts/job_bootstrap.php")) == ["scripts/job_bootstrap.php"]
    assert _result(bundled, _from_resqu("Other", "scripts/job_bootstrap.php")) == "everywhere"
    assert _result(bundled, _from_resqu("MailJob")) == "everywhere"
    assert _result(bundled, fetched("bundled_mail")) == ["scripts/job_bootstrap.php"] * 2


def test_an_unknown_include_path_fails_the_job(bundled: App) -> None:
    assert _error(bundled, _from_resqu("MailJob", "scripts/job_bootstrap2.php")) == (
        'UnknownBundle: no bundle is registered for the include path "scripts/job_bootstrap2.php"; '
        'did you mean "scripts/job_bootstrap.php"? A worker opens no files that a job names: use app.bundle(…)'
    )
    assert "none is registered" in _error(App(), _from_resqu("MailJob", "/etc/passwd"))


def test_a_bundle_that_cannot_prepare_fails_the_job(bundled: App) -> None:
    def broken() -> None:
        raise OSError("no database")

    bundled.bundle("broken", setup=broken)
    assert _error(bundled, _from_resqu("MailJob", "broken")) == "OSError: no database"


def test_bundles_and_their_kinds_are_registered_once(bundled: App) -> None:
    with pytest.raises(BadTask, match=r'^the bundle "scripts/job_bootstrap.php" is registered already$'):
        bundled.bundle("scripts/job_bootstrap.php")
    with pytest.raises(BadTask, match=r'has a task for the kind "MailJob" already$'):
        bundled.bundles["scripts/job_bootstrap.php"].task(name="x", kinds=["MailJob"])(lambda: None)
