"""What a queue holds, state by state, without a walk over its jobs."""

from typing import NamedTuple

from crossdock.engine.index.queue import Queue
from crossdock.engine.state import EngineState
from crossdock.model.job import BAND_OVERTAKES


class Tally(NamedTuple):
    ready: int  #: the overtaking ones among them, and those of batches that are worked on
    overtaking: int  #: ready since their due time, and before all that came without one (Masenko's delayed)
    leased: int
    retrying: int
    scheduled: int


def tally(state: EngineState, name: str) -> Tally:
    """All zero for a queue that is not known."""
    queue = state.queues.get(name)
    return Tally(
        queue.waiting if queue is not None else 0,
        _overtaking(queue) if queue is not None else 0,
        state.leased_in.get(name, 0),
        len(state.retrying_in.get(name, ())),
        len(state.scheduled_in.get(name, ())),
    )


def _overtaking(queue: Queue) -> int:
    """They stand first within their priority, so most parts of the row are alike; priorities may be as many as jobs."""
    count = 0
    for part in queue.ready.parts():
        if part[0][:2] == part[-1][:2]:
            count += len(part) if part[0][1] == BAND_OVERTAKES else 0
        else:
            count += sum([sort_key[1] == BAND_OVERTAKES for sort_key in part])
    return count
