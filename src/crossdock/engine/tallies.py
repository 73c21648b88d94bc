"""What a queue holds, state by state, without a walk over its jobs."""

from math import inf
from typing import NamedTuple

from crossdock.engine.memory import Memory
from crossdock.engine.queue import Queue
from crossdock.model.job import BAND_NORMAL, BAND_OVERTAKES


class Tally(NamedTuple):
    ready: int  #: the overtaking ones among them
    overtaking: int  #: ready since their due time, and before all that came without one (Masenko's delayed)
    leased: int
    retrying: int
    scheduled: int


def tally(memory: Memory, name: str) -> Tally:
    """All zero for a queue that is not known."""
    queue = memory.queues.get(name)
    return Tally(
        len(queue.ready) if queue is not None else 0,
        _overtaking(queue) if queue is not None else 0,
        memory.leased_in.get(name, 0),
        memory.retrying_in.get(name, 0),
        len(memory.scheduled_in.get(name, ())),
    )


def _overtaking(queue: Queue) -> int:
    """They stand first within their priority: two steps a priority find them."""
    ready, count, at = queue.ready, 0, 0
    while at < len(ready):
        priority, band, _, _, _ = ready[at]
        if band == BAND_OVERTAKES:
            behind = ready.bisect_left((priority, BAND_NORMAL, -inf, b"", 0))
            count += behind - at
            at = behind
        else:
            at = ready.bisect_left((priority, band + 1, -inf, b"", 0))
    return count
