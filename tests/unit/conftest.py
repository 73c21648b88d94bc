"""A desk without disk or sockets, and a Faktory door at it. Tests of the turn and of the scribe have others."""

import pytest

from tests.support.conversation import Door
from tests.support.desk import PlainDesk


@pytest.fixture
def desk() -> PlainDesk:
    return PlainDesk()


@pytest.fixture
def door(desk: PlainDesk) -> Door:
    return Door(desk)
