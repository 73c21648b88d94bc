"""Groups: members are counted, callbacks follow (MODEL section 7; Faktory's batches, protocol page 9.1).

A group's last transition and its callback are one change: `follow` is decided in the turn of the event that touched
the group. Each callback is pushed at most once. `complete` comes first, `success` only after it was answered, and a
parent waits for its children with their callbacks. Each group counts its open children, so a settlement costs the
same however many there are.
"""

from collections.abc import Iterable

from crossdock.engine.decision import Decision, later
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


def open_group(state: EngineState, command: OpenBatch, now: Now) -> Decision[bool]:
    if command.name in state.batches or (command.parent and command.parent not in state.batches):
        return (), False, ()
    event = BatchOpened(
        later(state, now),
        command.name,
        command.via,
        command.parent,
        command.description,
        command.complete,
        command.success,
        now.steady + UNCOMMITTED_S,
    )
    return (event,), True, ()


def group_opened(state: EngineState, event: BatchOpened) -> None:
    state.batches[event.name] = Batch(
        event.name, event.via, event.parent, event.description, event.at, event.complete, event.success, event.end
    )
    state.batch_ends.add((event.end, event.name))
    parent = state.batches.get(event.parent)
    if parent is not None:
        parent.open_complete += 1
        parent.open_success += 1


def commit_group(state: EngineState, command: CommitBatch, now: Now) -> Decision[bool]:
    group = state.batches.get(command.name)
    if group is None:
        return (), False, ()
    if group.committed:
        return (), True, ()
    return (BatchCommitted(later(state, now), command.name, now.steady + COMMITTED_S),), True, ()


def group_committed(state: EngineState, event: BatchCommitted) -> None:
    group = state.batches[event.name]
    group.committed = True
    _keep_until(state, group, event.end)
    state.follow_ups.append(FollowUp(group=event.name))


def _keep_until(state: EngineState, group: Batch, end: float) -> None:
    state.batch_ends.remove((group.end, group.name))
    group.end = end
    state.batch_ends.add((end, group.name))


def follow(state: EngineState, names: Iterable[str], now: Now) -> list[BatchCallbackPushed | BatchFinished]:
    """Callbacks of these batches that are due, and the ends of those that have none left."""
    at, number = later(state, now), state.counters.number
    events: list[BatchCallbackPushed | BatchFinished] = []
    for name in names:
        group = state.batches.get(name)
        if group is None or not group.committed:
            continue
        for call, spec in ((Callback.COMPLETE, group.complete), (Callback.SUCCESS, group.success)):
            if spec is not None and not group.called & call and _due(group, call):
                number += 1
                events.append(BatchCallbackPushed(at, name, group.via, call, number, spec))
        events.extend(
            BatchFinished(at, name, call, now.steady + DONE_S if call is Callback.SUCCESS else group.end)
            for call in (Callback.COMPLETE, Callback.SUCCESS)
            if not group.finished & call and _finished(group, call)
        )
    return events


def _due(group: Batch, call: Callback) -> bool:
    if call is Callback.COMPLETE:
        return group.pending == len(group.bad) and not group.open_complete
    return group.pending == 0 and not group.open_success and _answered(group, Callback.COMPLETE)


def _answered(group: Batch, call: Callback) -> bool:
    """Its callback has succeeded, or it has none."""
    spec = group.complete if call is Callback.COMPLETE else group.success
    return spec is None or bool(group.answered & call)


def _finished(group: Batch, call: Callback) -> bool:
    if not _due(group, Callback.COMPLETE) or not _answered(group, Callback.COMPLETE):
        return False
    if call is Callback.COMPLETE and (group.pending or group.open_success):
        return True  # something failed, here or in a child: its success callback cannot come now
    return _due(group, Callback.SUCCESS) and _answered(group, Callback.SUCCESS)


def group_called(state: EngineState, event: BatchCallbackPushed) -> None:
    state.batches[event.name].called |= event.call
    enter(state, event.spec, event.number, event.at, state.share(event.via), event.at)
    state.counters.number = event.number


def group_finished(state: EngineState, event: BatchFinished) -> None:
    group = state.batches[event.name]
    group.finished |= event.call
    _keep_until(state, group, event.end)
    _tell_parent(state, group, event.call)


def _tell_parent(state: EngineState, group: Batch, call: Callback) -> None:
    parent = state.batches.get(group.parent)
    if parent is not None:
        if call is Callback.COMPLETE:
            parent.open_complete -= 1
        else:
            parent.open_success -= 1
        state.follow_ups.append(FollowUp(group=parent.name))


def forget(state: EngineState, names: Iterable[str]) -> None:
    """Their time is over. One that never finished no longer holds up its parent's `complete`, but its `success`."""
    for name in names:
        group = state.batches.pop(name)
        state.batch_ends.remove((group.end, name))
        if not group.finished & Callback.COMPLETE:
            _tell_parent(state, group, Callback.COMPLETE)
