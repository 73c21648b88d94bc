"""Transactions: all steps as one change, or none (Masenko ATOMIC).

Every step is checked on the current state and on the effects of the steps before it. Events are made only after
that. So an error changes nothing but the numbers that were used before it.
"""

from crossdock.engine.decision import Decision, later
from crossdock.engine.index import dependents
from crossdock.engine.job_view import dependencies_of, row
from crossdock.engine.jobs import enqueue, expire
from crossdock.engine.jobs.complete import claimed, success
from crossdock.engine.records.dependencies import Freed, release, waits_lazily
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import DrawNumbers, Succeed, Transacted, Transaction
from crossdock.model.events import AnyEvent, DependentsPostponed, JobRow, NumbersDrawn
from crossdock.model.job import Job, Lease, Number, Spec
from crossdock.model.policies import Ending


def transact(state: EngineState, command: Transaction, now: Now) -> Decision[Transacted]:
    change = _Change(state, command.via, now)
    refused = _refused(state, command, now)
    for index, step in enumerate(command.steps):
        if index in refused:
            return _nothing(state, index, change.number, now)
        if isinstance(step, Spec):
            change.push(step)
            continue
        found = claimed(state, step.jid, step.claim)
        if found is None:
            return _nothing(state, index, change.number, now)
        if found[0].number not in change.settled:
            change.settle(step, *found)
    change.flush()
    return change.events, Transacted(list(range(change.first, change.number))), tuple(change.woken)


class _Change:
    """The effects of the steps so far."""

    def __init__(self, state: EngineState, via: str, now: Now) -> None:
        self._state = state
        self._via = via
        self._now = now
        self._at = later(state, now)
        self.first = self.number = state.counters.number + 1
        self.events: list[AnyEvent] = []
        self.woken: dict[str, None] = {}
        self.settled: set[Number] = set()
        self._specs: list[Spec] = []  #: pushed since the last settlement
        self._waiting: dict[Number, list[tuple[Number, Spec]]] = {}  #: new jobs, by dependency
        self._at_once = dependents.AT_ONCE  #: dependents that the transaction itself may still free
        self._left: dict[Number, int] = {}  #: how many dependencies a job still has, so that each one met is one step

    def push(self, spec: Spec) -> None:
        spec = enqueue.resolved(self._state, spec, self.number, self.first, self.settled)
        self._specs.append(spec)
        for dependency in _dependencies(spec):
            self._waiting.setdefault(dependency, []).append((self.number, spec))
        self.number += 1

    def flush(self) -> None:
        specs, self._specs = self._specs, []
        if specs:
            first = self.number - len(specs)
            self.events.append(enqueue.push_event(self._via, specs, first, self._at, self._now))
            self.woken.update((queue, None) for queue in enqueue.ready_queues(specs, self._now))

    def settle(self, step: Succeed, job: Job, lease: Lease) -> None:
        self.flush()
        self.settled.add(job.number)
        postponed = self._postpones(job.number)
        if postponed:
            self.events.append(DependentsPostponed(self._at, job.number, Ending.SUCCESS, step.t))
        self.events.append(success(job, lease, step, self._at, self._now))
        if self._state.throttles:
            self.woken[job.queue] = None
        if postponed:
            return
        events, queues = release(self._freed(job.number), self._at, self._now)
        self.events += events
        self._at = self.events[-1].at
        self.woken |= queues

    def _postpones(self, dependency: Number) -> bool:
        """Whether that job has more dependents than can be freed here."""
        count = len(self._state.dependents.get(dependency, ())) + len(self._waiting.get(dependency, ()))
        if count > self._at_once:
            self._waiting.pop(dependency, None)
            return True
        self._at_once -= count
        return False

    def _freed(self, dependency: Number) -> list[Freed]:
        """Jobs that waited only for this one. They join their queues before the next step."""
        state = self._state
        old = [state.jobs[number] for number in state.dependents.get(dependency, ())]
        new = self._waiting.pop(dependency, ())
        return [
            *(
                (job.due, row(job), expire.begun(job, self._now), waits_lazily(job))
                for job in old
                if self._was_the_last(job.number, dependencies_of(job))
            ),
            *(
                (spec.due, self._row(number, spec), 0.0, False)
                for number, spec in new
                if self._was_the_last(number, _dependencies(spec))
            ),
        ]

    def _was_the_last(self, number: Number, depends_on: tuple[Number, ...]) -> bool:
        """One dependency of this job is met now."""
        left = self._left[number] = self._left.get(number, len(depends_on)) - 1
        return not left

    def _row(self, number: Number, spec: Spec) -> JobRow:
        return JobRow(number, spec.jid, spec.queue, spec.kind, self._via, 0, spec.priority, len(spec.payload))


def _dependencies(spec: Spec) -> tuple[Number, ...]:
    return spec.extra.links.depends_on if spec.extra is not None and spec.extra.links is not None else ()


def _refused(state: EngineState, command: Transaction, now: Now) -> frozenset[int]:
    """The steps whose jobs are refused."""
    indexes = [index for index, step in enumerate(command.steps) if isinstance(step, Spec)]
    specs = [step for step in command.steps if isinstance(step, Spec)]
    why = enqueue.refusals(state, specs, now)
    return frozenset(index for index, each in zip(indexes, why, strict=False) if each is not None)


def _nothing(state: EngineState, index: int, number: Number, now: Now) -> Decision[Transacted]:
    """The numbers before `number` are used up."""
    drawn = number - 1 - state.counters.number
    events = (NumbersDrawn(later(state, now), number - 1),) if drawn else ()
    return events, Transacted([], index), ()


def draw_numbers(state: EngineState, command: DrawNumbers, now: Now) -> Decision[None]:
    if command.count <= 0:
        return (), None, ()
    return (NumbersDrawn(later(state, now), state.counters.number + command.count),), None, ()


def numbers_drawn(state: EngineState, event: NumbersDrawn) -> None:
    state.counters.number = event.number
