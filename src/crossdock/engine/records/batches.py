"""Faktory batches: members are counted, and callbacks follow (model.md section 7, faktory.md section 9.1).

The last change of a batch and its callback are one change: `follow` is decided together with the event that
affected the batch. Each callback is pushed at most once. `complete` comes first, and `success` only after it has
succeeded. A parent waits for its children and their callbacks. Each batch counts its open children, so a settlement
costs the same however many there are.
"""

from collections.abc import Iterable

from crossdock.engine.decision import Decision, FollowUps, later
from crossdock.engine.jobs.enqueue import enter
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import CommitBatch, FollowUp, OpenBatch
from crossdock.model.events import BatchCallbackPushed, BatchCommitted, BatchFinished, BatchOpened
from crossdock.model.job import Callback
from crossdock.model.records import Batch

UNCOMMITTED_S = 1_800.0
COMMITTED_S = 30 * 86_400.0
DONE_S = 1_800.0  #: after its success, so that its status can still be read


def open_batch(state: EngineState, command: OpenBatch, now: Now) -> Decision[bool]:
    if command.name in state.batches or (command.parent and command.parent not in state.batches):
        return (), False, ()
    event = BatchOpened(
        at=later(state, now),
        name=command.name,
        via=command.via,
        parent=command.parent,
        description=command.description,
        complete=command.complete,
        success=command.success,
        end=now.steady + UNCOMMITTED_S,
    )
    return (event,), True, ()


def batch_opened(state: EngineState, event: BatchOpened) -> None:
    state.batches[event.name] = Batch(
        name=event.name,
        via=event.via,
        parent=event.parent,
        description=event.description,
        created=event.at,
        complete=event.complete,
        success=event.success,
        end=event.end,
    )
    state.batch_ends.add((event.end, event.name))
    parent = state.batches.get(event.parent)
    if parent is not None:
        parent.open_complete += 1
        parent.open_success += 1


def commit_batch(state: EngineState, command: CommitBatch, now: Now) -> Decision[bool]:
    batch = state.batches.get(command.name)
    if batch is None:
        return (), False, ()
    if batch.committed:
        return (), True, ()
    return (BatchCommitted(later(state, now), command.name, now.steady + COMMITTED_S),), True, ()


def batch_committed(state: EngineState, follow_ups: FollowUps, event: BatchCommitted) -> None:
    batch = state.batches[event.name]
    batch.committed = True
    _keep_until(state, batch, event.end)
    follow_ups.append(FollowUp(batch=event.name))


def _keep_until(state: EngineState, batch: Batch, end: float) -> None:
    state.batch_ends.remove((batch.end, batch.name))
    batch.end = end
    state.batch_ends.add((end, batch.name))


def follow(state: EngineState, names: Iterable[str], now: Now) -> list[BatchCallbackPushed | BatchFinished]:
    """Callbacks of these batches that are due, and the ends of batches that have none left."""
    at, number = later(state, now), state.counters.number
    events: list[BatchCallbackPushed | BatchFinished] = []
    for name in names:
        batch = state.batches.get(name)
        if batch is None or not batch.committed:
            continue
        for call, spec in ((Callback.COMPLETE, batch.complete), (Callback.SUCCESS, batch.success)):
            if spec is not None and not batch.called & call and _due(batch, call):
                number += 1
                events.append(BatchCallbackPushed(at, name, batch.via, call, number, spec))
        events.extend(
            BatchFinished(at, name, call, now.steady + DONE_S if call is Callback.SUCCESS else batch.end)
            for call in (Callback.COMPLETE, Callback.SUCCESS)
            if not batch.finished & call and _finished(batch, call)
        )
    return events


def _due(batch: Batch, call: Callback) -> bool:
    if call is Callback.COMPLETE:
        return batch.pending == len(batch.bad) and not batch.open_complete
    return batch.pending == 0 and not batch.open_success and _answered(batch, Callback.COMPLETE)


def _answered(batch: Batch, call: Callback) -> bool:
    """Whether its callback has succeeded, or it has none."""
    spec = batch.complete if call is Callback.COMPLETE else batch.success
    return spec is None or bool(batch.answered & call)


def _finished(batch: Batch, call: Callback) -> bool:
    if not _due(batch, Callback.COMPLETE) or not _answered(batch, Callback.COMPLETE):
        return False
    if call is Callback.COMPLETE and (batch.pending or batch.open_success):
        return True  # a job failed, here or in a child: the success callback cannot follow now
    return _due(batch, Callback.SUCCESS) and _answered(batch, Callback.SUCCESS)


def callback_pushed(state: EngineState, follow_ups: FollowUps, event: BatchCallbackPushed) -> None:
    state.batches[event.name].called |= event.call
    enter(state, follow_ups, event.spec, event.number, event.at, state.share(event.via), event.at)
    state.counters.number = event.number


def batch_finished(state: EngineState, follow_ups: FollowUps, event: BatchFinished) -> None:
    batch = state.batches[event.name]
    batch.finished |= event.call
    _keep_until(state, batch, event.end)
    _tell_parent(state, follow_ups, batch, event.call)


def _tell_parent(state: EngineState, follow_ups: FollowUps, batch: Batch, call: Callback) -> None:
    parent = state.batches.get(batch.parent)
    if parent is not None:
        if call is Callback.COMPLETE:
            parent.open_complete -= 1
        else:
            parent.open_success -= 1
        follow_ups.append(FollowUp(batch=parent.name))


def forget(state: EngineState, follow_ups: FollowUps, names: Iterable[str]) -> None:
    """Forget batches whose time is over. One that never finished does not block the `complete` of its parent any
    more, but still blocks its `success`.
    """
    for name in names:
        batch = state.batches.pop(name)
        state.batch_ends.remove((batch.end, name))
        if not batch.finished & Callback.COMPLETE:
            _tell_parent(state, follow_ups, batch, Callback.COMPLETE)
