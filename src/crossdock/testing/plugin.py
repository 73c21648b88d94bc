"""The pytest plugin: the fixture `jobs`.

Modules of the engine are imported when a test uses the fixture, so the plugin costs other test runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from crossdock.app.app import App
    from crossdock.testing.jobs import Jobs


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "crossdock_app",
        "the apps whose jobs the fixture `jobs` takes, one per line, such as myapp.tasks:app",
        type="linelist",
        default=[],
    )


@pytest.fixture(scope="session")
def crossdock_app(pytestconfig: pytest.Config) -> App | Sequence[App]:
    """The app under test, or several. Override this fixture to choose it in code instead of by `crossdock_app` in the
    settings of pytest."""
    return [_load(name) for name in pytestconfig.getini("crossdock_app")]


@pytest.fixture
def jobs(crossdock_app: App | Sequence[App]) -> Iterator[Jobs]:
    """The jobs of a test, on an engine of its own in this process. See `crossdock.testing.jobs.Jobs`."""
    from crossdock.app.app import App
    from crossdock.testing.jobs import Jobs

    with Jobs() as found:
        for app in [crossdock_app] if isinstance(crossdock_app, App) else crossdock_app:
            found.use(app)
        yield found


def _load(name: str) -> App:
    """The app that MODULE:NAME names. The name is `app` if it is left out."""
    from crossdock.app.app import App

    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute or "app")
    except (ImportError, AttributeError) as error:
        raise pytest.UsageError(
            f"crossdock_app = {name}: {error}; write MODULE:APP, and set pythonpath if pytest does not find the module"
        ) from error
    if not isinstance(found, App):
        raise pytest.UsageError(f"crossdock_app = {name}: it is a {type(found).__name__}, not a crossdock.App")
    return found
