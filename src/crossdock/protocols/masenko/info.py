"""INFO (page 3.5): how many tasks each queue has, in the order in which queues were first seen.

Delayed are those with a time, also when it has come: scheduled, retrying, and ready because they were due. Blocked ones
are counted nowhere, and a queue that is empty keeps its row.
"""

from typing import Final

from crossdock.engine.queries.queues import listed_queues, queue_counts
from crossdock.engine.state import EngineState
from crossdock.protocols.base import Answer, Slices
from crossdock.protocols.masenko.messages import quote

#: Queues looked at in one go.
SLICE: Final = 1_000


def info(state: EngineState) -> Answer:
    names = [queue.name for queue in listed_queues(state)]
    return _reply([_row(state, name) for name in names]) if len(names) <= SLICE else _in_slices(state, names)


def _in_slices(state: EngineState, names: list[str]) -> Slices:
    rows: list[bytes] = []
    for first in range(0, len(names), SLICE):
        rows += [_row(state, name) for name in names[first : first + SLICE]]
        yield
    return _reply(rows)


def _row(state: EngineState, name: str) -> bytes:
    held = queue_counts(state, name)
    delayed = held.scheduled + held.retrying + held.overtaking
    ready = held.ready - held.overtaking
    return b'{"name":%b,"ready":%d,"delayed":%d,"to_ack":%d}' % (quote(name), ready, delayed, held.leased)


def _reply(rows: list[bytes]) -> bytes:
    return b'OK {"queues":[%b]}\n' % b",".join(rows)
