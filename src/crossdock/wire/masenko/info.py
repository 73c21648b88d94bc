"""INFO (page 3.5): how many tasks each queue has, in the order in which queues were first seen.

Delayed are those with a time, also when it has come: scheduled, retrying, and ready in band 0. Blocked ones are counted
nowhere, and a queue that is empty keeps its row.
"""

from collections import Counter
from itertools import islice
from typing import Final

from crossdock.engine.memory import Memory, Queue
from crossdock.model.job import BAND_NORMAL, BAND_OVERTAKES
from crossdock.model.states import State
from crossdock.wire.answer import Answer, Slices
from crossdock.wire.masenko.messages import quote

#: Jobs looked at in one go, and the rest after it: a loop that never rests keeps the journal's thread waiting.
SLICE: Final = 1_000
_PAUSE_S: Final = 0.001

_SHELVES: Final = (State.SCHEDULED, State.RETRYING, State.LEASED)


def info(memory: Memory) -> Answer:
    """At once if few jobs are delayed or leased; else in slices, while others are served."""
    if sum(len(memory.shelves[state]) for state in _SHELVES) > SLICE:
        return _walk(memory)
    counts = {state: Counter[str]() for state in _SHELVES}
    for state in _SHELVES:
        counts[state].update(memory.jobs[number].queue for _, number in memory.shelves[state])
    return _reply(memory, counts)


def _walk(memory: Memory) -> Slices:
    counts = {state: Counter[str]() for state in _SHELVES}
    for state in _SHELVES:
        last: tuple[float, int] | None = None
        while keys := list(islice(memory.shelves[state].irange(last, inclusive=(False, True)), SLICE)):
            counts[state].update(memory.jobs[number].queue for _, number in keys)
            last = keys[-1]
            yield _PAUSE_S
    return _reply(memory, counts)


def _reply(memory: Memory, counts: dict[State, Counter[str]]) -> bytes:
    rows = []
    for name, queue in memory.queues.items():
        come = _overtaking(queue)
        delayed = counts[State.SCHEDULED][name] + counts[State.RETRYING][name] + come
        ready, to_ack = len(queue.ready) - come, counts[State.LEASED][name]
        rows.append(b'{"name":%b,"ready":%d,"delayed":%d,"to_ack":%d}' % (quote(name), ready, delayed, to_ack))
    return b'OK {"queues":[%b]}\n' % b",".join(rows)


def _overtaking(queue: Queue) -> int:
    """Ready jobs in band 0. They are Masenko's, so their priority is 0."""
    ready, first = queue.ready, (0, BAND_OVERTAKES, float("-inf"), 0)
    return ready.bisect_left((0, BAND_NORMAL, float("-inf"), 0)) - ready.bisect_left(first) if ready else 0
