"""A desk without disk or sockets, and what stands at it. Tests of the turn and of the scribe have others."""

import pytest

from tests.model.bench import Bench
from tests.support.conversation import Conversation, Door, worker
from tests.support.dispatcher import PlainDispatcher
from tests.support.floor import Floor


@pytest.fixture
def dispatcher() -> PlainDispatcher:
    return PlainDispatcher()


@pytest.fixture
def door(dispatcher: PlainDispatcher) -> Door:
    return Door(dispatcher)


@pytest.fixture
def floor() -> Floor:
    """All doors."""
    return Floor()


@pytest.fixture
def bench() -> Bench:
    """The engine alone."""
    return Bench()


@pytest.fixture
def client(dispatcher: PlainDispatcher, door: Door) -> Conversation:
    return worker(dispatcher, door, "w1")
