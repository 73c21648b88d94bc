"""The engine: a pure state machine. `decide` reads the state and returns events. `apply` changes the state by events.

It contains no clock, socket, thread, SQL or source of randomness. `now` and a seeded random source are arguments. So it
can be replayed from its events, simulated, and compared with a model.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from math import inf
from random import Random
from typing import Any, TypeAlias, TypeVar

from crossdock.engine import follow_ups, hooks, timers
from crossdock.engine.decision import Decision, FollowUps, ProgressOf, Topic
from crossdock.engine.jobs import admin as jobs_admin
from crossdock.engine.jobs import complete, enqueue, fail, keep_lease, lease, release
from crossdock.engine.keyspace import commands
from crossdock.engine.qless import advance, catch_up, edit, intervals, pop, put, settings
from crossdock.engine.qless import history as qless_history
from crossdock.engine.qless import hooks as qless_hooks
from crossdock.engine.qless import throttles as qless_throttles
from crossdock.engine.qless.quirks import surfacing
from crossdock.engine.records import (
    app_schedules,
    audit,
    batches,
    bulk_load,
    dependencies,
    once,
    outcomes,
    postponed,
    progress,
    queues,
    rates,
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
from crossdock.model.commands import extensions as x
from crossdock.model.commands import keyspace as k
from crossdock.model.commands import qless as m
from crossdock.model.errors import HalfDone, UsageError
from crossdock.model.events.extensions import AppSchedulesSet, OnceConfigured, OutcomesDated, Snoozed
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

Apply: TypeAlias = Callable[[EngineState, FollowUps, Any], None]
Decide: TypeAlias = Callable[[EngineState, Any, Now], Decision[Any] | None]


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


def _alone(apply: Callable[[EngineState, Any], None]) -> Apply:
    """A function that affects no other record."""
    return lambda state, follow_ups, event: apply(state, event)


def _each(*parts: Apply) -> Apply:
    """Apply an event by several functions, in this order."""

    def apply(state: EngineState, follow_ups: FollowUps, event: e.AnyEvent) -> None:
        for part in parts:
            part(state, follow_ups, event)

    return apply


#: The functions that apply events which may affect other records, so that more events follow in the same change.
_FOLLOWED: dict[type[e.Event], Apply] = {
    e.Pushed: enqueue.pushed,
    e.Leased: lease.leased,
    e.Succeeded: complete.succeeded,
    e.Failed: fail.failed,
    e.LeaseExpired: fail.lease_expired,
    e.Returned: release.returned,
    e.Buried: _each(_alone(buffers.buried), jobs_admin.buried),
    e.Removed: jobs_admin.removed,
    e.Rerouted: jobs_admin.rerouted,
    e.Started: _each(timers.started, unique_ids.started),
    e.Expired: timers.expired,
    e.BatchCommitted: batches.batch_committed,
    e.BatchCallbackPushed: batches.callback_pushed,
    e.BatchFinished: batches.batch_finished,
    e.ProgressSet: progress.progress_set,
    e.ThrottlesSet: throttles.throttles_set,
    e.Spawned: schedules.spawned,
    e.Moved: put.moved,
    e.Advanced: advance.advanced,
    e.Stalled: advance.stalled,
    e.Recurred: intervals.recurred,
    e.Surfaced: surfacing.surfaced,
    e.ThrottleFreed: qless_throttles.throttle_freed,
    Snoozed: keep_lease.snoozed,
    **resqu.APPLY_FOLLOWED,
}

#: The functions that apply all other events.
_PLAIN: dict[type[e.Event], Callable[[EngineState, Any], None]] = {
    e.Readied: jobs_admin.readied,
    e.Scheduled: dependencies.scheduled,
    e.DependentsPostponed: postponed.dependents_postponed,
    e.DependentsResolved: postponed.dependents_resolved,
    e.QueueSeen: lease.queue_seen,
    e.QueuePaused: queues.queue_paused,
    e.QueueResumed: queues.queue_resumed,
    e.QueueForgotten: queues.queue_forgotten,
    e.Flushed: queues.flushed,
    e.BatchOpened: batches.batch_opened,
    e.Renewed: progress.renewed,
    e.SchedulesSet: schedules.schedules_set,
    e.NumbersDrawn: transaction.numbers_drawn,
    e.ProgressDated: progress.progress_dated,
    KeySet: commands.key_set,
    KeysDropped: commands.keys_dropped,
    KeyKept: commands.key_kept,
    ListChanged: commands.list_changed,
    MembersChanged: commands.members_changed,
    ScriptKnown: commands.script_known,
    ScriptsForgotten: commands.scripts_forgotten,
    e.Warned: catch_up.warned,
    e.Revived: edit.revived,
    e.Reprioritised: edit.reprioritised,
    e.Tagged: edit.tagged,
    e.DependenciesEdited: edit.dependencies_edited,
    e.Noted: edit.noted,
    e.Configured: settings.configured,
    e.Watched: settings.watched,
    e.Unwatched: settings.unwatched,
    e.WorkerSeen: settings.worker_seen,
    e.WorkersForgotten: settings.workers_forgotten,
    e.IntervalSet: intervals.interval_set,
    e.IntervalCleared: intervals.interval_cleared,
    e.Held: qless_throttles.is_held,
    e.Unheld: qless_throttles.unheld,
    e.ThrottleSet: qless_throttles.throttle_set,
    e.JobsLoaded: bulk_load.jobs_loaded,
    e.LoadClosed: bulk_load.load_closed,
    e.Audited: audit.audited,
    AppSchedulesSet: app_schedules.app_schedules_set,
    OnceConfigured: once.once_configured,
    OutcomesDated: outcomes.outcomes_dated,
    e.RatesSet: rates.rates_set,
    e.RateHeld: rates.rate_held,
    e.RatesOpened: rates.rates_opened,
    **resqu.APPLY,
}


_APPLY: dict[type[e.Event], Apply] = _FOLLOWED | {kind: _alone(apply) for kind, apply in _PLAIN.items()}

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
        """`redact` removes the secrets of a payload from texts about the job. `room` returns how many more jobs the
        server may hold that no client pushes.
        """
        self.state = state
        self.follow_ups: FollowUps = []
        #: The function that decides each command. It returns None if the command has to be executed in steps.
        self._decide: dict[type[c.Command[Any]], Decide] = {
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
            admin.ForgetProgress: progress.forget_progress,
            admin.PauseQueues: queues.pause,
            admin.ResumeQueues: queues.resume,
            admin.ForgetQueue: queues.forget,
            admin.Flush: queues.flush,
            admin.Audit: audit.audit,
            c.Tick: lambda state, command, now: None if state.lazy.queues else timers.tick(state, command, now, random),
            m.TickNow: lambda state, command, now: timers.tick(state, command, now, random),
            c.Start: timers.start,
            c.OpenBatch: batches.open_batch,
            c.CommitBatch: batches.commit_batch,
            c.Follow: follow_ups.follow,
            c.Resolve: dependencies.resolve,
            c.ResolveDependents: postponed.resolve_dependents,
            c.Transaction: transaction.transact,
            c.DrawNumbers: transaction.draw_numbers,
            c.SetProgress: progress.set_progress,
            c.SetThrottles: throttles.set_throttles,
            c.SetRates: rates.set_rates,
            c.SetSchedules: schedules.set_schedules,
            x.EnqueueOnce: once.enqueue_once,
            x.ConfigureOnce: once.configure_once,
            x.ExtendLeases: keep_lease.extend_leases,
            x.Snooze: keep_lease.snooze,
            x.SetAppSchedules: app_schedules.set_app_schedules,
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
            m.EditDependencies: edit.edit_dependencies,
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
        #: Commands that are executed in steps, each applied before the next is decided.
        self._in_steps: dict[type[c.Command[Any]], Callable[[Any, Any, Now], Decision[Any]]] = {
            m.Pop: pop.pop_in_steps,
            c.LeaseNext: catch_up.lease_in_steps,
            c.Tick: catch_up.tick_in_steps,
        }

    def watch(self, kinds: Iterable[type[c.Command[Any]]], seen: Callable[[tuple[Any, Now]], object]) -> None:
        """Call `seen((command, now))` before each command of these kinds is decided. Others cost nothing more."""

        def watched(decide: Decide) -> Decide:
            def decide_seen(state: EngineState, command: Any, now: Now) -> Decision[Any] | None:
                seen((command, now))
                return decide(state, command, now)

            return decide_seen

        for kind in kinds:
            self._decide[kind] = watched(self._decide[kind])

    def decide(self, command: c.Command[T], now: Now) -> Decision[T]:
        """The events and the outcome of this command. Nothing is changed."""
        decision = self._decide[type(command)](self.state, command, now)
        if decision is None:
            raise UsageError(f"{type(command).__name__} is executed in steps: call execute")
        return decision

    def apply(self, event: e.AnyEvent) -> None:
        state = self.state
        state.counters.at = event.at
        _APPLY[type(event)](state, self.follow_ups, event)

    def execute(self, command: c.Command[T], now: Now) -> Decision[T]:
        """Decide and apply a command, then everything that follows from it. All of it is one change."""
        state = self.state
        decision = self._decide[type(command)](state, command, now)
        if decision is None:
            return self._step_by_step(command, now)
        events, outcome, ready_queues = decision
        follow_ups = self.follow_ups
        try:
            if state.dependents and type(command) not in _POSTPONE:
                events = postponed.postpone(state, command, events)
                decision = events, outcome, ready_queues
            for event in events:
                state.counters.at = event.at
                _APPLY[type(event)](state, follow_ups, event)
            if follow_ups:
                events, ready_queues = list(events), list(ready_queues)
                while follow_ups:
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
        """If a later step fails, the steps before it are done."""
        try:
            return self._in_steps[type(command)](self, command, now)
        except HalfDone:
            raise
        except Exception as error:
            raise HalfDone(f"{type(command).__name__} failed between its steps: {error!r}") from error

    def _what_follows(self, command: c.Command[Any]) -> c.Follow | c.Resolve:
        """Dependents first: they may affect more records."""
        follow_ups = self.follow_ups
        dependents = list(chain.from_iterable([each.dependents for each in follow_ups]))
        if dependents:
            follow_ups[:] = [each for each in follow_ups if not each.dependents]
            return c.Resolve(dependents, command.caller_time(), command.spares(), command.frees_first())
        affected = follow_ups.copy()
        follow_ups.clear()
        return c.Follow(affected, command.caller_time())

    def has_work(self, topic: Topic, now: Now) -> bool:
        """Whether clients that wait on this queue or key may get something."""
        if isinstance(topic, bytes):
            return self.state.keys.live(topic, now) is not None
        if isinstance(topic, ProgressOf):
            return topic.jid in self.state.progress
        return queues.has_work(self.state, topic, now)

    def due_in(self, now: Now) -> float | None:
        wait = timers.due_in(self.state, now)
        if not self.state.lazy.queues:
            return wait
        lazily = self.state.lazy.due_in(now)
        return lazily if wait is None else wait if lazily is None else min(wait, lazily)


def apply(state: EngineState, event: e.AnyEvent, follow_ups: FollowUps | None = None) -> None:
    """Change the state by one event. Nothing else changes it, in the server as in recovery."""
    state.counters.at = event.at
    _APPLY[type(event)](state, [] if follow_ups is None else follow_ups, event)
