"""The clock of a test: it stands still, and what becomes due on the way happens at its own time."""

from datetime import UTC, datetime, timedelta

import pytest

from crossdock.client.address import Address
from crossdock.testing.clock import Clock
from crossdock.testing.errors import TestingError
from crossdock.testing.server import LocalServer

START = datetime(2027, 1, 15, 8, tzinfo=UTC)


@pytest.fixture
def server() -> LocalServer:
    return LocalServer(START.timestamp(), lambda events: None)


def test_it_stands_still(server: LocalServer) -> None:
    clock = Clock(server, lambda: None, lambda: None)
    assert clock.now() == clock.now() == START
    assert repr(clock) == "<Clock 2027-01-15 08:00:00+00:00>"


@pytest.mark.parametrize("duration", ["2h", 7_200, timedelta(hours=2)])
def test_it_advances_by_a_duration(server: LocalServer, duration: str | float | timedelta) -> None:
    clock = Clock(server, lambda: None, lambda: None)
    clock.advance(duration)
    assert clock.now() == datetime(2027, 1, 15, 10, tzinfo=UTC)


def test_it_advances_to_a_time(server: LocalServer) -> None:
    clock = Clock(server, lambda: None, lambda: None)
    clock.advance_to(datetime(2027, 2, 1, tzinfo=UTC))
    assert clock.now() == datetime(2027, 2, 1, tzinfo=UTC)


def test_it_does_not_go_back(server: LocalServer) -> None:
    clock = Clock(server, lambda: None, lambda: None)
    with pytest.raises(TestingError, match="is in the past: the clock of the test shows 2027-01-15 08:00:00"):
        clock.advance_to(START - timedelta(seconds=1))
    with pytest.raises(TestingError, match="has no time zone"):
        clock.advance_to(datetime(2027, 2, 1))  # noqa: DTZ001 that is what is tested
    with pytest.raises(ValueError, match="is not a duration"):
        clock.advance(-1)


def test_what_is_due_on_the_way_happens_at_its_own_time(server: LocalServer) -> None:
    seen: list[datetime] = []
    clock = Clock(server, lambda: None, lambda: seen.append(clock.now()))
    transport = server.connect(Address(), 1.0)
    transport.send(b'HELLO {"v":2}\r\n')
    for number, minute in enumerate((30, 10)):
        at = START + timedelta(minutes=minute)
        job = f'{{"jid":"later-{number:04}","jobtype":"x","args":[],"at":"{at.isoformat()}"}}'
        transport.send(f"PUSH {job}\r\n".encode())
    assert transport.receive().endswith(b"+OK\r\n+OK\r\n+OK\r\n")
    clock.advance("1h")
    assert seen == [START + timedelta(minutes=10), START + timedelta(minutes=30)]
