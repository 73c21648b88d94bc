"""Decide what follows from a change: callbacks, retention, room in throttles, deferred jobs and progress."""

from crossdock.engine.decision import Decision, ProgressOf, Topic, later
from crossdock.engine.jobs import enqueue
from crossdock.engine.qless import settings, throttles
from crossdock.engine.records import batches, outcomes, progress
from crossdock.engine.resqu import unique_ids
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Follow
from crossdock.model.events import AnyEvent, BatchCallbackPushed


def follow(state: EngineState, command: Follow, now: Now) -> Decision[None]:
    at, touched = later(state, now), command.follow_ups
    woken: dict[Topic, None] = {}
    called = batches.follow(state, dict.fromkeys(each.batch for each in touched), now)
    number = state.counters.number + 1
    for event in called:
        if isinstance(event, BatchCallbackPushed):
            number = event.number + 1
            if event.spec.due <= at:
                woken[event.spec.queue] = None
    events: list[AnyEvent] = [*called]
    retires = [(each.retire, each.own) for each in touched if each.retire is not None]
    if retires:
        latest, own = max(t for t, _ in retires), all(own for _, own in retires)
        retired = settings.retire(state, latest, now, own)
        events += () if retired is None else (retired,)
    freed = [each for each in touched if each.throttle]
    if freed:
        unheld, queues = throttles.room(state, freed, command.t, now)
        events += unheld
        woken.update(dict.fromkeys(queues))
    locks = dict.fromkeys(each.lock for each in touched if each.lock)
    released, specs = unique_ids.follow(state, locks, number, now)
    events += released
    woken.update(dict.fromkeys(enqueue.ready_queues(specs, now)))
    dated = progress.date(state, touched, at, now)
    events += dated
    woken.update((ProgressOf(jid), None) for each in dated for jid in each.jids)
    events += outcomes.date(state, touched, at, now)
    return events, None, tuple(woken)
