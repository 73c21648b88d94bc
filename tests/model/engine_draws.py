"""Reads the random choices of one command from its events."""

from collections.abc import Sequence

from crossdock.model import events as e
from tests.model.reference.draws import Draws


def of(events: Sequence[e.AnyEvent], jitter: int) -> Draws:
    queues: list[str] = []
    for event in events:
        if isinstance(event, e.Removed):
            queues += [row.queue for row in event.rows]
        elif isinstance(event, e.Leased):
            queues.append(event.queue)
    jids = [event.spec.jid for event in events if isinstance(event, e.Spawned)]
    return Draws(jitter, list(dict.fromkeys(queues)), jids)
