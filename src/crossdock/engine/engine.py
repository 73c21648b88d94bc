"""The engine: a pure state machine. `decide` looks and says what would happen; `apply` makes it so.

No clock, socket, thread, SQL or randomness inside: `now` and a seeded random source are handed in. So the whole of it
can be replayed from its events, simulated, and compared with a model.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, TypeVar

from crossdock.engine import (
    advancing,
    burying,
    catching_up,
    editing,
    enqueue,
    failing,
    groups,
    holding,
    intervals,
    key_changes,
    lazy_lease,
    lease,
    loading,
    moves,
    notebook,
    popping,
    postponing,
    putting,
    queues,
    recur,
    releasing,
    rerouting,
    resolve,
    settle,
    surfacing,
    throttles,
    timers,
    tracks,
    transaction,
)
from crossdock.engine.concealing import Conceal
from crossdock.engine.decision import Decision, Topic
from crossdock.engine.memory import Memory
from crossdock.engine.resqu import table as resqu
from crossdock.model import events as e
from crossdock.model.clock import Now
from crossdock.model.commands import admin, bulk
from crossdock.model.commands import core as c
from crossdock.model.commands import keyspace as k
from crossdock.model.commands import qless as m
from crossdock.model.errors import HalfDone, UsageError
from crossdock.model.events.keyspace import (
    KeyKept,
    KeysDropped,
    KeySet,
    ListChanged,
    MembersChanged,
    ScriptKnown,
    ScriptsForgotten,
)

T = TypeVar("T")

_APPLY: dict[type[e.Event], Callable[[Memory, Any], None]] = {
    e.Pushed: enqueue.pushed,
    e.Leased: lease.leased,
    e.Succeeded: settle.succeeded,
    e.Failed: failing.failed,
    e.Lapsed: failing.lapsed,
    e.Returned: releasing.returned,
    e.Readied: moves.readied,
    e.Scheduled: resolve.scheduled,
    e.Buried: burying.buried,
    e.Removed: moves.removed,
    e.Rerouted: rerouting.rerouted,
    e.DependentsPostponed: postponing.dependents_postponed,
    e.DependentsResolved: postponing.dependents_resolved,
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
    KeySet: key_changes.key_set,
    KeysDropped: key_changes.keys_dropped,
    KeyKept: key_changes.key_kept,
    ListChanged: key_changes.list_changed,
    MembersChanged: key_changes.members_changed,
    ScriptKnown: key_changes.script_known,
    ScriptsForgotten: key_changes.scripts_forgotten,
    e.Moved: putting.moved,
    e.Advanced: advancing.advanced,
    e.Stalled: advancing.stalled,
    e.Warned: catching_up.warned,
    e.Revived: editing.revived,
    e.Reprioritised: editing.reprioritised,
    e.Tagged: editing.tagged,
    e.NeedsEdited: editing.needs_edited,
    e.Noted: editing.noted,
    e.Configured: notebook.configured,
    e.Watched: notebook.watched,
    e.Unwatched: notebook.unwatched,
    e.WorkerSeen: notebook.worker_seen,
    e.WorkersForgotten: notebook.workers_forgotten,
    e.IntervalSet: intervals.interval_set,
    e.IntervalCleared: intervals.interval_cleared,
    e.Recurred: intervals.recurred,
    e.Held: holding.is_held,
    e.Unheld: holding.unheld,
    e.Surfaced: surfacing.surfaced,
    e.ThrottleSet: holding.throttle_set,
    e.ThrottleFreed: holding.throttle_freed,
    **resqu.APPLY,
    e.JobsLoaded: loading.jobs_loaded,
    e.LoadClosed: loading.load_closed,
}

#: Commands that postpone dependents themselves.
_POSTPONE = frozenset({c.Transaction, c.ResolveDependents})


class Engine:
    def __init__(self, memory: Memory, random: Random, conceal: Conceal | None = None) -> None:
        """`conceal` says how words about a job go into history, where its payload has secrets."""
        self.memory = memory
        #: What decides a command; None is said of one that has to be carried out in steps
        self._decide: dict[type[c.Command[Any]], Callable[[Memory, Any, Now], Decision[Any] | None]] = {
            c.Enqueue: enqueue.enqueue,
            c.LeaseNext: partial(lease.lease_next, random),
            c.Succeed: settle.succeed,
            c.Fail: lambda memory, command, now: failing.fail(memory, command, now, random, conceal),
            c.GiveBack: releasing.give_back,
            c.LoseLease: lambda memory, command, now: failing.lose(memory, command, now, random),
            admin.Requeue: moves.requeue,
            admin.Bury: burying.bury,
            admin.Remove: moves.remove,
            admin.Reroute: rerouting.reroute,
            admin.PauseQueues: queues.pause,
            admin.ResumeQueues: queues.resume,
            admin.ForgetQueue: queues.forget,
            admin.Flush: queues.flush,
            c.Tick: lambda memory, command, now: self._tick(command, now, random),
            c.Start: timers.start,
            c.OpenGroup: groups.open_group,
            c.CommitGroup: groups.commit_group,
            c.Follow: groups.follow,
            c.Resolve: resolve.resolve,
            c.ResolveDependents: postponing.resolve_dependents,
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
            m.Put: putting.put,
            m.Advance: advancing.advance,
            m.TakeBack: advancing.take_back,
            m.Renew: advancing.renew,
            m.CatchUp: catching_up.catch_up,
            m.LeaseThese: popping.lease_these,
            m.Pop: popping.pop,
            m.LeaseNow: partial(lease.lease_next, random),
            m.Unfail: editing.unfail,
            m.Revive: editing.revive,
            m.Cancel: editing.cancel,
            m.SetPriority: editing.set_priority,
            m.EditTags: editing.edit_tags,
            m.EditNeeds: editing.edit_needs,
            m.Note: partial(editing.note, conceal=conceal),
            m.Configure: notebook.configure,
            m.Watch: notebook.watch,
            m.Unwatch: notebook.unwatch,
            m.ForgetWorkers: notebook.forget_workers,
            m.SetInterval: intervals.set_interval,
            m.ClearInterval: intervals.clear_interval,
            m.SetThrottle: holding.set_throttle,
            m.FreeThrottle: holding.free_throttle,
            m.FreeHeld: holding.free_held,
            **resqu.decisions(random),
            bulk.LoadJobs: loading.load_jobs,
            bulk.CloseLoad: loading.close_load,
        }
        #: Commands of several steps, each applied before the next is decided
        self._in_steps: dict[type[c.Command[Any]], Callable[[Any, Any, Now], Decision[Any]]] = {
            m.Pop: popping.pop_in_steps,
            c.LeaseNext: lazy_lease.lease_in_steps,
        }

    def decide(self, command: c.Command[T], now: Now) -> Decision[T]:
        """What this command would change, and its outcome. Nothing is changed yet, but that a tick hears lazy alarms:
        those that have come are set to their queue's next deadline."""
        decision = self._decide[type(command)](self.memory, command, now)
        if decision is None:
            raise UsageError(f"{type(command).__name__} is decided in steps, by carry_out")
        return decision

    def apply(self, event: e.AnyEvent) -> None:
        memory = self.memory
        memory.counters.at = event.at
        _APPLY[type(event)](memory, event)

    def carry_out(self, command: c.Command[T], now: Now) -> Decision[T]:
        """Decide and apply, and go on while what was touched calls for more: all of it is one change."""
        memory = self.memory
        decision = self._decide[type(command)](memory, command, now)
        if decision is None:
            return self._step_by_step(command, now)
        events, outcome, notices = decision
        try:
            if memory.needed_by and type(command) not in _POSTPONE:
                events = postponing.postpone(memory, command, events)
                decision = events, outcome, notices
            for event in events:
                memory.counters.at = event.at
                _APPLY[type(event)](memory, event)
            if memory.touched or memory.loose:
                events, notices = list(events), list(notices)
                while memory.touched or memory.loose:
                    more, _, stirred = self.decide(self._what_follows(command), now)
                    for event in more:
                        self.apply(event)
                    events += more
                    notices += stirred
                decision = events, outcome, notices
        except Exception as error:
            raise HalfDone(f"{type(command).__name__} failed in the middle: {error!r}") from error
        return decision

    def _step_by_step(self, command: c.Command[Any], now: Now) -> Decision[Any]:
        """A later step that fails leaves the first ones done."""
        try:
            return self._in_steps[type(command)](self, command, now)
        except HalfDone:
            raise
        except Exception as error:
            raise HalfDone(f"{type(command).__name__} failed between its steps: {error!r}") from error

    def _what_follows(self, command: c.Command[Any]) -> c.Follow | c.Resolve:
        memory = self.memory
        if memory.loose:
            loose, memory.loose = memory.loose, []
            first = isinstance(command, c.Succeed) and command.whole
            return c.Resolve(loose, getattr(command, "t", None), getattr(command, "along", frozenset()), first)
        touched, memory.touched = memory.touched, []
        return c.Follow(touched, getattr(command, "t", None))

    def has_work(self, topic: Topic, now: Now) -> bool:
        """Is it worth to ask who waits on that queue, or on that key?"""
        if isinstance(topic, bytes):
            return self.memory.keys.live(topic, now) is not None
        return queues.has_work(self.memory, topic, now)

    def due_in(self, now: Now) -> float | None:
        wait = timers.due_in(self.memory, now)
        if not self.memory.lazy.queues:
            return wait
        lazily = self.memory.lazy.due_in(now)
        return lazily if wait is None else wait if lazily is None else min(wait, lazily)

    def _tick(self, command: c.Tick, now: Now, random: Random) -> Decision[c.Ticked]:
        """What is due lazily is carried out by whoever leases: those who wait for a job are asked."""
        events, done, stirred = timers.tick(self.memory, command, now, random)
        lazy = self.memory.lazy
        if lazy.queues:
            come = lazy.come(now, command.limit)
            if come:
                stirred = tuple(dict.fromkeys((*stirred, *come)))
        return events, done, stirred


def apply(memory: Memory, event: e.AnyEvent) -> None:
    """Fold one event into the state. Nothing else changes it, live or at recovery."""
    memory.counters.at = event.at
    _APPLY[type(event)](memory, event)
