"""An app as an application has it, and the fixture `jobs` without the plugin, which a test run may not have loaded."""

from collections.abc import Iterator

import pytest

from crossdock.app.app import App
from crossdock.testing.jobs import Jobs


@pytest.fixture
def app() -> App:
    """Its server does not exist."""
    return App("crossdock://:secret@nowhere.invalid:7419", name="shop")


@pytest.fixture
def jobs(app: App) -> Iterator[Jobs]:
    with Jobs() as found:
        found.use(app)
        yield found
