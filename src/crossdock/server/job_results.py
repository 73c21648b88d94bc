"""Which jobs ended by some events, and how: for those who wait on a job. It may be gone by the time they are told."""

from collections.abc import Collection, Iterable, Iterator

from crossdock.model.events import AnyEvent, Buried, Failed, Flushed, Removed, Succeeded
from crossdock.model.job import Number
from crossdock.model.states import State
from crossdock.protocols.base import JobResult

_ENDS = frozenset({State.FAILED, State.DEAD, State.GONE})

GONE = JobResult(settled=False, ok=False, body=b"")
LAPSED = JobResult(settled=False, ok=False, body=b"", lapsed=True)


def endings(events: Iterable[AnyEvent], waited_for: Collection[Number]) -> Iterator[tuple[Number, JobResult]]:
    """Of the jobs that are waited for, in the order they ended."""
    for event in events:
        if isinstance(event, Succeeded):
            if event.number in waited_for:
                yield event.number, JobResult(settled=True, ok=True, body=event.result)
        elif isinstance(event, Failed):
            if event.number in waited_for and event.then in _ENDS:
                yield event.number, JobResult(settled=True, ok=False, body=event.body)
        elif isinstance(event, Removed):
            how = LAPSED if event.why == "lapsed" else GONE
            yield from ((row.number, how) for row in event.rows if row.number in waited_for)
        elif isinstance(event, Buried):  # by an operator: to whoever waits it has failed
            buried = JobResult(settled=True, ok=False, body=b"")
            yield from ((row.number, buried) for row in event.rows if row.number in waited_for)
        elif isinstance(event, Flushed):
            yield from ((number, GONE) for number in waited_for)
