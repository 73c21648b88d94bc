"""The results of jobs that ended, for the requests that wait for them."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from crossdock.model.events import AnyEvent, Buried, Failed, Flushed, Removed, Succeeded
from crossdock.model.job import Number
from crossdock.model.states import State
from crossdock.protocols.base import JobResult

_ENDS: Final = frozenset({State.FAILED, State.DEAD, State.GONE})

GONE: Final = JobResult(settled=False, ok=False, body=b"")
LEASE_EXPIRED: Final = JobResult(settled=False, ok=False, body=b"", lease_expired=True)


def endings(events: Iterable[AnyEvent], awaited: Collection[Number]) -> Iterator[tuple[Number, JobResult]]:
    """The results of awaited jobs, in the order they ended. The events carry them: the job itself may be deleted
    already."""
    for event in events:
        if isinstance(event, Succeeded):
            if event.number in awaited:
                yield event.number, JobResult(settled=True, ok=True, body=event.result)
        elif isinstance(event, Failed):
            if event.number in awaited and event.then in _ENDS:
                yield event.number, JobResult(settled=True, ok=False, body=event.body)
        elif isinstance(event, Removed):
            how = LEASE_EXPIRED if event.why == "lease-expired" else GONE
            yield from ((row.number, how) for row in event.rows if row.number in awaited)
        elif isinstance(event, Buried):  # by an operator; a waiting client receives a failure
            buried = JobResult(settled=True, ok=False, body=b"")
            yield from ((row.number, buried) for row in event.rows if row.number in awaited)
        elif isinstance(event, Flushed):
            yield from ((number, GONE) for number in awaited)
