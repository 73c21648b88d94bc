"""Faults around special jobs that are known and not mended yet, each with the shortest way to it.

Every test here must fail. Who mends a fault is told so by a test that passes; it then moves to the file of its subject.
"""


import pytest

from crossdock.model.commands import SetTrack
from tests.model.bench import Bench
from tests.support.conversation import Conversation, Door, worker
from tests.support.desk import PlainDesk


def fault(why: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(reason=why, strict=True)


@pytest.fixture
def desk() -> PlainDesk:
    return PlainDesk()


@pytest.fixture
def peer(desk: PlainDesk) -> Conversation:
    return worker(desk, Door(desk))


def push(peer: Conversation, jid: str, custom: str = "{}", queue: str = "default") -> bytes:
    return peer.ask(f'PUSH {{"jid":"{jid}","jobtype":"T","args":[],"queue":"{queue}","custom":{custom}}}')


@fault("engine/links.py: a track ends by the time of events, which stands still while the clock is set back")
def test_a_track_is_forgotten_though_the_clock_was_set_back() -> None:
    bench = Bench()
    bench.push("dated by a wrong clock")
    bench.clock.jump(-86_400.0)
    bench.do(SetTrack("a", 50, None))
    bench.after(1_800.0)
    assert bench.memory.tracks == {}
