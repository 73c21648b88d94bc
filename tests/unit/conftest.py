"""A desk without disk or sockets, and what stands at it. Tests of the turn and of the scribe have others."""

import pytest

from tests.model.bench import Bench
from tests.support.conversation import Conversation, Door, worker
from tests.support.desk import PlainDesk
from tests.support.floor import Floor


@pytest.fixture
def desk() -> PlainDesk:
    return PlainDesk()


@pytest.fixture
def door(desk: PlainDesk) -> Door:
    return Door(desk)


@pytest.fixture
def floor() -> Floor:
    """All doors."""
    return Floor()


@pytest.fixture
def bench() -> Bench:
    """The engine alone."""
    return Bench()


@pytest.fixture
def client(desk: PlainDesk, door: Door) -> Conversation:
    return worker(desk, door, "w1")
