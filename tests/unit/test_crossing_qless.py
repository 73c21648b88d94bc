"""qless and each other door (MODEL sections 2, 6 and 9): what test_crossing.py and its like do not ask of all doors."""

import json
from typing import Any

import pytest

from tests.support.floor import Floor

OTHERS = ["faktory", "masenko", "workq"]


@pytest.fixture
def floor() -> Floor:
    return Floor()


def alone(floor: Floor) -> Any:
    (job,) = floor.desk.memory.jobs.values()
    return job


@pytest.mark.parametrize("other", OTHERS)
def test_what_waits_here_is_freed_by_a_success_there(floor: Floor, other: str) -> None:
    there, here = floor.peer(other), floor.qless()
    there.push("first", ["a"])
    here.push("q", {}, depends=json.dumps([alone(floor).jid]))
    assert here.fetch("q") is None
    got = there.fetch("first")
    assert got is not None and there.succeed(got.ident)
    assert here.fetch("q") is not None


@pytest.mark.parametrize("other", OTHERS)
def test_no_caller_s_time_ends_a_lease_of_another_door(floor: Floor, other: str) -> None:
    there, here = floor.peer(other), floor.qless()
    there.push("q", ["a"])
    got = there.fetch("q")
    assert got is not None
    far = str(floor.desk.now.wall + 1e9)
    assert here._ask("FCALL", "qless", "0", "pop", far, "q", "w", "5") == "{}"
    assert here._ask("FCALL", "qless", "0", "peek", far, "q", "5") == "{}"
    assert alone(floor).lease.via == other
    assert there.succeed(got.ident)


@pytest.mark.parametrize("other", OTHERS)
def test_a_lost_worker_of_qless_is_noticed_by_the_server_s_clock(floor: Floor, other: str) -> None:
    """Warned first, and given to whoever asks after the grace period."""
    there, lost = floor.peer(other), floor.qless()
    lost.push("q", {"a": 1})
    assert lost.fetch("q") is not None
    floor.desk.advance(61)
    assert there.fetch("q") is None, "its worker is warned"
    floor.desk.advance(11)
    got = there.fetch("q")
    assert got is not None and there.succeed(got.ident)
