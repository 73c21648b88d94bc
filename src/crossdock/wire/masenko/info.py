"""INFO (page 3.5): how many tasks each queue has, in the order in which queues were first seen.

Delayed are those with a time, also when it has come: scheduled, retrying, and ready in band 0. Blocked ones are counted
nowhere, and a queue that is empty keeps its row.
"""

from crossdock.engine.memory import Memory, Queue
from crossdock.model.job import BAND_NORMAL, BAND_OVERTAKES
from crossdock.wire.masenko.messages import quote


def info(memory: Memory) -> bytes:
    rows = []
    for name, queue in memory.queues.items():
        come = _overtaking(queue)
        delayed = len(memory.scheduled_in.get(name, ())) + memory.retrying_in.get(name, 0) + come
        ready, to_ack = len(queue.ready) - come, memory.leased_in.get(name, 0)
        rows.append(b'{"name":%b,"ready":%d,"delayed":%d,"to_ack":%d}' % (quote(name), ready, delayed, to_ack))
    return b'OK {"queues":[%b]}\n' % b",".join(rows)


def _overtaking(queue: Queue) -> int:
    """Ready jobs in band 0. They are Masenko's, so their priority is 0."""
    ready, first = queue.ready, (0, BAND_OVERTAKES, float("-inf"), 0)
    return ready.bisect_left((0, BAND_NORMAL, float("-inf"), 0)) - ready.bisect_left(first) if ready else 0
