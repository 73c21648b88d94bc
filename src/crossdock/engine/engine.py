"""The engine: a pure state machine. `decide` looks and says what would happen; `apply` makes it so.

No clock, socket, thread, SQL or randomness inside: `now` and a seeded random source are handed in. So the whole of it
can be replayed from its events, simulated, and compared with a model.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, TypeVar

from crossdock.engine import (
    enqueue,
    failing,
    groups,
    key_changes,
    lease,
    moves,
    queues,
    recur,
    resolve,
    settle,
    throttles,
    timers,
    tracks,
    transaction,
)
from crossdock.engine.decision import Decision, Topic
from crossdock.engine.memory import Memory
from crossdock.model import commands as c
from crossdock.model import events as e
from crossdock.model import keys as k
from crossdock.model.clock import Now
from crossdock.model.errors import HalfDone

T = TypeVar("T")

_APPLY: dict[type[e.Event], Callable[[Memory, Any], None]] = {
    e.Pushed: enqueue.pushed,
    e.Leased: lease.leased,
    e.Succeeded: settle.succeeded,
    e.Failed: failing.failed,
    e.Lapsed: failing.lapsed,
    e.Returned: lease.returned,
    e.Readied: moves.readied,
    e.Scheduled: resolve.scheduled,
    e.Buried: moves.buried,
    e.Removed: moves.removed,
    e.QueueSeen: lease.queue_seen,
    e.QueuePaused: queues.queue_paused,
    e.QueueResumed: queues.queue_resumed,
    e.QueueForgotten: queues.queue_forgotten,
    e.Flushed: queues.flushed,
    e.Started: timers.started,
    e.Expired: timers.expired,
    e.GroupOpened: groups.group_opened,
    e.GroupCommitted: groups.group_committed,
    e.GroupCalled: groups.group_called,
    e.GroupFinished: groups.group_finished,
    e.Tracked: tracks.tracked,
    e.Renewed: tracks.renewed,
    e.ThrottlesSet: throttles.throttles_set,
    e.RecurrencesSet: recur.recurrences_set,
    e.Spawned: recur.spawned,
    e.NumbersDrawn: transaction.numbers_drawn,
    e.TracksDated: tracks.tracks_dated,
    k.KeySet: key_changes.key_set,
    k.KeysDropped: key_changes.keys_dropped,
    k.KeyKept: key_changes.key_kept,
    k.ListChanged: key_changes.list_changed,
    k.MembersChanged: key_changes.members_changed,
    k.ScriptKnown: key_changes.script_known,
    k.ScriptsForgotten: key_changes.scripts_forgotten,
}


class Engine:
    def __init__(self, memory: Memory, random: Random) -> None:
        self.memory = memory
        self._decide: dict[type[c.Command[Any]], Callable[[Memory, Any, Now], Decision[Any]]] = {
            c.Enqueue: enqueue.enqueue,
            c.LeaseNext: partial(lease.lease_next, random),
            c.Succeed: settle.succeed,
            c.Fail: lambda memory, command, now: failing.fail(memory, command, now, random),
            c.GiveBack: lease.give_back,
            c.LoseLease: lambda memory, command, now: failing.lose(memory, command, now, random),
            c.Requeue: moves.requeue,
            c.Bury: moves.bury,
            c.Remove: moves.remove,
            c.PauseQueues: queues.pause,
            c.ResumeQueues: queues.resume,
            c.ForgetQueue: queues.forget,
            c.Flush: queues.flush,
            c.Tick: lambda memory, command, now: timers.tick(memory, command, now, random),
            c.Start: timers.start,
            c.OpenGroup: groups.open_group,
            c.CommitGroup: groups.commit_group,
            c.Follow: groups.follow,
            c.Resolve: resolve.resolve,
            c.Transaction: transaction.transact,
            c.DrawNumbers: transaction.draw_numbers,
            c.SetTrack: tracks.set_track,
            c.SetThrottles: throttles.set_throttles,
            c.SetRecurrences: recur.set_recurrences,
            k.SetKey: key_changes.set_key,
            k.DropKeys: key_changes.drop_keys,
            k.KeepKey: key_changes.keep_key,
            k.ChangeList: key_changes.change_list,
            k.ChangeMembers: key_changes.change_members,
            k.KnowScript: key_changes.know_script,
            k.ForgetScripts: key_changes.forget_scripts,
        }

    def decide(self, command: c.Command[T], now: Now) -> Decision[T]:
        """What this command would change, and its outcome. Nothing is changed yet."""
        return self._decide[type(command)](self.memory, command, now)

    def apply(self, event: e.AnyEvent) -> None:
        memory = self.memory
        memory.counters.at = event.at
        _APPLY[type(event)](memory, event)

    def carry_out(self, command: c.Command[T], now: Now) -> Decision[T]:
        """Decide and apply, and go on while what was touched calls for more: all of it is one change."""
        memory = self.memory
        events, outcome, notices = self._decide[type(command)](memory, command, now)
        try:
            for event in events:
                memory.counters.at = event.at
                _APPLY[type(event)](memory, event)
            if memory.touched or memory.loose:
                events, notices = list(events), list(notices)
                while memory.touched or memory.loose:
                    more, _, stirred = self.decide(self._what_follows(), now)
                    for event in more:
                        self.apply(event)
                    events += more
                    notices += stirred
        except Exception as error:
            raise HalfDone(f"{type(command).__name__} failed in the middle: {error!r}") from error
        return events, outcome, notices

    def _what_follows(self) -> c.Follow | c.Resolve:
        memory = self.memory
        if memory.loose:
            loose, memory.loose = memory.loose, []
            return c.Resolve(loose)
        touched, memory.touched = memory.touched, []
        return c.Follow(touched)

    def has_work(self, topic: Topic, now: Now) -> bool:
        """Is it worth to ask who waits on that queue, or on that key?"""
        if isinstance(topic, bytes):
            return self.memory.keys.live(topic, now) is not None
        return queues.has_work(self.memory, topic, now)

    def due_in(self, now: Now) -> float | None:
        return timers.due_in(self.memory, now)


def apply(memory: Memory, event: e.AnyEvent) -> None:
    """Fold one event into the state. Nothing else changes it, live or at recovery."""
    memory.counters.at = event.at
    _APPLY[type(event)](memory, event)
