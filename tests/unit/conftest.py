"""A dispatcher without disk or sockets, and clients of it."""

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
    """All protocols on one engine."""
    return AllProtocols()


@pytest.fixture
def bench() -> Bench:
    """The engine without a protocol."""
    return Bench()


@pytest.fixture
def client(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> Conversation:
    return worker(dispatcher, protocol, "w1")
