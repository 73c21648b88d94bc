"""A desk without disk or sockets, and what stands at it. Tests of the turn and of the scribe have others."""

import pytest

from tests.model.bench import Bench
from tests.support.all_protocols import AllProtocols
from tests.support.conversation import ClockedFaktory, Conversation, worker
from tests.support.dispatcher import PlainDispatcher


@pytest.fixture
def dispatcher() -> PlainDispatcher:
    return PlainDispatcher()


@pytest.fixture
def protocol(dispatcher: PlainDispatcher) -> ClockedFaktory:
    return ClockedFaktory(dispatcher)


@pytest.fixture
def all_protocols() -> AllProtocols:
    """All doors."""
    return AllProtocols()


@pytest.fixture
def bench() -> Bench:
    """The engine alone."""
    return Bench()


@pytest.fixture
def client(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> Conversation:
    return worker(dispatcher, protocol, "w1")
