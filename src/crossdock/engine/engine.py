"""The engine: a pure state machine. `decide` looks and says what would happen; `apply` makes it so.

No clock, socket, thread, SQL or randomness inside: `now` and a seeded random source are handed in. So the whole of it
can be replayed from its events, simulated, and compared with a model.
"""

from collections.abc import Callable
from functools import partial
from math import inf
from random import Random
from typing import Any, TypeAlias, TypeVar

from crossdock.engine import follow_ups, hooks, timers
from crossdock.engine.decision import Decision, Topic
from crossdock.engine.jobs import admin as jobs_admin
from crossdock.engine.jobs import complete, enqueue, fail, lease, release
from crossdock.engine.keyspace import commands
from crossdock.engine.qless import advance, catch_up, edit, intervals, pop, put, settings
from crossdock.engine.qless import history as qless_history
from crossdock.engine.qless import hooks as qless_hooks
from crossdock.engine.qless import throttles as qless_throttles
from crossdock.engine.qless.quirks import surfacing
from crossdock.engine.records import (
    batches,
    bulk_load,
    dependencies,
    postponed,
    progress,
    queues,
    schedules,
    throttles,
    transaction,
)
from crossdock.engine.redaction import Redact
from crossdock.engine.resqu import batch_queues, buffers, plans, unique_ids
from crossdock.engine.resqu import hooks as resqu_hooks
from crossdock.engine.resqu import table as resqu
from crossdock.engine.state import EngineState
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
from crossdock.model.protocol_data import QlessData, ResquData

T = TypeVar("T")

Apply: TypeAlias = Callable[[EngineState, Any], None]


# What the protocols add: one table per hook, by the class of a job's protocol data.

hooks.INDEXED.update({QlessData: qless_hooks.indexed, ResquData: resqu_hooks.indexed})
hooks.UNINDEXED.update({QlessData: qless_hooks.unindexed, ResquData: resqu_hooks.unindexed})
hooks.REMOVED.update({QlessData: qless_hooks.removed, ResquData: resqu_hooks.removed})
hooks.LEASED[QlessData] = qless_history.leased
hooks.RETURNED[QlessData] = qless_history.returned
hooks.RENEWED[QlessData] = qless_history.renewed
hooks.EXPIRED[QlessData] = qless_hooks.expired
hooks.SUCCEEDED[QlessData] = qless_hooks.succeeded
hooks.FAILED[QlessData] = qless_hooks.failed
hooks.READIED[QlessData] = qless_hooks.readied
hooks.SCHEDULED[QlessData] = qless_hooks.scheduled
hooks.BURIED[QlessData] = qless_hooks.buried
hooks.REROUTED[QlessData] = qless_hooks.rerouted
hooks.BATCH[ResquData] = batch_queues.stage_of
hooks.NEXT_RUN[ResquData] = plans.next_after
hooks.RUN[ResquData] = resqu_hooks.run
hooks.RUN_REFUSED[ResquData] = resqu_hooks.run_refused
hooks.LOCK_FREED[:] = [resqu_hooks.lock_freed]
hooks.NOT_MOVABLE[:] = [resqu_hooks.not_movable]


def _each(*parts: Apply) -> Apply:
    """An event that several parts fold, in this order."""

    def apply(state: EngineState, event: e.AnyEvent) -> None:
        for part in parts:
            part(state, event)

    return apply


_APPLY: dict[type[e.Event], Apply] = {
    e.Pushed: enqueue.pushed,
    e.Leased: lease.leased,
    e.Succeeded: complete.succeeded,
    e.Failed: fail.failed,
    e.LeaseExpired: fail.lease_expired,
    e.Returned: release.returned,
    e.Readied: jobs_admin.readied,
    e.Scheduled: dependencies.scheduled,
    e.Buried: _each(buffers.buried, jobs_admin.buried),
    e.Removed: jobs_admin.removed,
    e.Rerouted: jobs_admin.rerouted,
    e.DependentsPostponed: postponed.dependents_postponed,
    e.DependentsResolved: postponed.dependents_resolved,
    e.QueueSeen: lease.queue_seen,
    e.QueuePaused: queues.queue_paused,
    e.QueueResumed: queues.queue_resumed,
    e.QueueForgotten: queues.queue_forgotten,
    e.Flushed: queues.flushed,
    e.Started: _each(timers.started, unique_ids.started),
    e.Expired: timers.expired,
    e.BatchOpened: batches.group_opened,
    e.BatchCommitted: batches.group_committed,
    e.BatchCallbackPushed: batches.group_called,
    e.BatchFinished: batches.group_finished,
    e.ProgressSet: progress.progress_set,
    e.Renewed: progress.renewed,
    e.ThrottlesSet: throttles.throttles_set,
    e.SchedulesSet: schedules.recurrences_set,
    e.Spawned: schedules.spawned,
    e.NumbersDrawn: transaction.numbers_drawn,
    e.ProgressDated: progress.tracks_dated,
    KeySet: commands.key_set,
    KeysDropped: commands.keys_dropped,
    KeyKept: commands.key_kept,
    ListChanged: commands.list_changed,
    MembersChanged: commands.members_changed,
    ScriptKnown: commands.script_known,
    ScriptsForgotten: commands.scripts_forgotten,
    e.Moved: put.moved,
    e.Advanced: advance.advanced,
    e.Stalled: advance.stalled,
    e.Warned: catch_up.warned,
    e.Revived: edit.revived,
    e.Reprioritised: edit.reprioritised,
    e.Tagged: edit.tagged,
    e.DependenciesEdited: edit.needs_edited,
    e.Noted: edit.noted,
    e.Configured: settings.configured,
    e.Watched: settings.watched,
    e.Unwatched: settings.unwatched,
    e.WorkerSeen: settings.worker_seen,
    e.WorkersForgotten: settings.workers_forgotten,
    e.IntervalSet: intervals.interval_set,
    e.IntervalCleared: intervals.interval_cleared,
    e.Recurred: intervals.recurred,
    e.Held: qless_throttles.is_held,
    e.Unheld: qless_throttles.unheld,
    e.Surfaced: surfacing.surfaced,
    e.ThrottleSet: qless_throttles.throttle_set,
    e.ThrottleFreed: qless_throttles.throttle_freed,
    **resqu.APPLY,
    e.JobsLoaded: bulk_load.jobs_loaded,
    e.LoadClosed: bulk_load.load_closed,
}

#: Commands that postpone dependents themselves.
_POSTPONE = frozenset({c.Transaction, c.ResolveDependents})


class Engine:
    def __init__(
        self,
        state: EngineState,
        random: Random,
        redact: Redact | None = None,
        room: Callable[[], float] = lambda: inf,
    ) -> None:
        """`redact` says how words about a job go into history, where its payload has secrets. `room` says how many more
        jobs may be held that no client pushes."""
        self.state = state
        #: What decides a command; None is said of one that has to be carried out in steps
        self._decide: dict[type[c.Command[Any]], Callable[[EngineState, Any, Now], Decision[Any] | None]] = {
            c.Enqueue: enqueue.enqueue,
            c.LeaseNext: partial(lease.lease_next, random),
            c.Succeed: complete.succeed,
            c.Fail: lambda state, command, now: fail.fail(state, command, now, random, redact),
            c.GiveBack: release.give_back,
            c.LoseLease: lambda state, command, now: fail.lose(state, command, now, random),
            admin.Requeue: jobs_admin.requeue,
            admin.Bury: jobs_admin.bury,
            admin.Remove: jobs_admin.remove,
            admin.Reroute: jobs_admin.reroute,
            admin.PauseQueues: queues.pause,
            admin.ResumeQueues: queues.resume,
            admin.ForgetQueue: queues.forget,
            admin.Flush: queues.flush,
            c.Tick: lambda state, command, now: None if state.lazy.queues else timers.tick(state, command, now, random),
            m.TickNow: lambda state, command, now: timers.tick(state, command, now, random),
            c.Start: timers.start,
            c.OpenBatch: batches.open_group,
            c.CommitBatch: batches.commit_group,
            c.Follow: follow_ups.follow,
            c.Resolve: dependencies.resolve,
            c.ResolveDependents: postponed.resolve_dependents,
            c.Transaction: transaction.transact,
            c.DrawNumbers: transaction.draw_numbers,
            c.SetProgress: progress.set_track,
            c.SetThrottles: throttles.set_throttles,
            c.SetSchedules: schedules.set_recurrences,
            k.SetKey: commands.set_key,
            k.DropKeys: commands.drop_keys,
            k.KeepKey: commands.keep_key,
            k.ChangeList: commands.change_list,
            k.ChangeMembers: commands.change_members,
            k.KnowScript: commands.know_script,
            k.ForgetScripts: commands.forget_scripts,
            m.Put: put.put,
            m.Advance: advance.advance,
            m.TakeBack: advance.take_back,
            m.Renew: advance.renew,
            m.CatchUp: partial(catch_up.catch_up, room),
            m.LeaseThese: pop.lease_these,
            m.Pop: pop.pop,
            m.LeaseNow: partial(lease.lease_next, random),
            m.Unfail: edit.unfail,
            m.Revive: edit.revive,
            m.Cancel: edit.cancel,
            m.SetPriority: edit.set_priority,
            m.EditTags: edit.edit_tags,
            m.EditDependencies: edit.edit_needs,
            m.Note: partial(edit.note, redact=redact),
            m.Configure: settings.configure,
            m.Watch: settings.watch,
            m.Unwatch: settings.unwatch,
            m.ForgetWorkers: settings.forget_workers,
            m.SetInterval: intervals.set_interval,
            m.ClearInterval: intervals.clear_interval,
            m.SetThrottle: qless_throttles.set_throttle,
            m.FreeThrottle: qless_throttles.free_throttle,
            m.FreeHeld: qless_throttles.free_held,
            **resqu.decisions(random),
            bulk.LoadJobs: bulk_load.load_jobs,
            bulk.CloseLoad: bulk_load.close_load,
        }
        #: Commands of several steps, each applied before the next is decided
        self._in_steps: dict[type[c.Command[Any]], Callable[[Any, Any, Now], Decision[Any]]] = {
            m.Pop: pop.pop_in_steps,
            c.LeaseNext: catch_up.lease_in_steps,
            c.Tick: catch_up.tick_in_steps,
        }

    def decide(self, command: c.Command[T], now: Now) -> Decision[T]:
        """What this command would change, and its outcome. Nothing is changed yet."""
        decision = self._decide[type(command)](self.state, command, now)
        if decision is None:
            raise UsageError(f"{type(command).__name__} is decided in steps, by execute")
        return decision

    def apply(self, event: e.AnyEvent) -> None:
        state = self.state
        state.counters.at = event.at
        _APPLY[type(event)](state, event)

    def execute(self, command: c.Command[T], now: Now) -> Decision[T]:
        """Decide and apply, and go on while what was touched calls for more: all of it is one change."""
        state = self.state
        decision = self._decide[type(command)](state, command, now)
        if decision is None:
            return self._step_by_step(command, now)
        events, outcome, ready_queues = decision
        try:
            if state.dependents and type(command) not in _POSTPONE:
                events = postponed.postpone(state, command, events)
                decision = events, outcome, ready_queues
            for event in events:
                state.counters.at = event.at
                _APPLY[type(event)](state, event)
            if state.follow_ups or state.resolved_dependents:
                events, ready_queues = list(events), list(ready_queues)
                while state.follow_ups or state.resolved_dependents:
                    more, _, woken = self.decide(self._what_follows(command), now)
                    for event in more:
                        self.apply(event)
                    events += more
                    ready_queues += woken
                decision = events, outcome, ready_queues
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
        state = self.state
        if state.resolved_dependents:
            loose, state.resolved_dependents = state.resolved_dependents, []
            return c.Resolve(loose, command.caller_time(), command.spares(), command.frees_first())
        touched, state.follow_ups = state.follow_ups, []
        return c.Follow(touched, command.caller_time())

    def has_work(self, topic: Topic, now: Now) -> bool:
        """Is it worth to ask who waits on that queue, or on that key?"""
        if isinstance(topic, bytes):
            return self.state.keys.live(topic, now) is not None
        return queues.has_work(self.state, topic, now)

    def due_in(self, now: Now) -> float | None:
        wait = timers.due_in(self.state, now)
        if not self.state.lazy.queues:
            return wait
        lazily = self.state.lazy.due_in(now)
        return lazily if wait is None else wait if lazily is None else min(wait, lazily)


def apply(state: EngineState, event: e.AnyEvent) -> None:
    """Fold one event into the state. Nothing else changes it, live or at recovery."""
    state.counters.at = event.at
    _APPLY[type(event)](state, event)
