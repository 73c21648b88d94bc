"""Faults that are known and not mended yet, each with the shortest way to it.

Every test here must fail. Who mends a fault is told so by a test that passes; it then moves to the file of its subject,
and the limits named with it in tests/model are lifted.
"""

import pytest

from crossdock.model.commands import SetTrack
from tests.model.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()


def fault(why: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(reason=why, strict=True)


@fault(
    "a track ends by the time of events, which stands still while the clock is set back: by years, after a wrong clock"
)
def test_a_track_is_forgotten_though_the_clock_was_set_back(bench: Bench) -> None:
    """The reference counts as the engine does; on the steady clock, as locks and groups, both would be right."""
    bench.push("dated by a wrong clock")
    bench.clock.jump(-86_400.0)
    bench.do(SetTrack("a", 50, None))
    bench.after(1_800.0)
    assert bench.memory.tracks == {}
