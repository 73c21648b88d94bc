"""The engine and the reference model execute the same random commands: outcomes and states agree after every step."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crossdock.engine.engine import Engine
from crossdock.engine.index import dependents
from crossdock.engine.state import EngineState
from crossdock.journal.snapshot import file
from crossdock.model import events as e
from crossdock.model.commands import admin, bulk, extensions, resqu
from crossdock.model.commands import core as c
from crossdock.model.commands import qless as m
from crossdock.model.events.codec import decode_entry
from crossdock.model.job import Callback, Extra, Form, LeaseRef, Links, LockRelease, LockTerms, Number, Spec
from crossdock.model.records import Schedule
from crossdock.model.states import State
from tests.model import engine_draws, invariants, key_reference, values, visible
from tests.model.reference.commands import RULES, Reference
from tests.model.rig import Die, Rig, fold
from tests.support.picture import picture

DAY: Final = 86_400.0

jids = st.sampled_from([f"jid-{n}" for n in range(6)])
queues = st.sampled_from([*values.QUEUES, "never pushed to"])
#: Most workers lease from every queue
asked_for = st.sampled_from([values.QUEUES, values.QUEUES[::-1]]) | st.lists(queues, max_size=3)
workers = st.sampled_from(values.WORKERS)
vias = st.sampled_from(values.VIAS)
priorities = st.sampled_from([0, 0, 0, 4, -4, 1, 0.5, -0.25])
#: Seconds from now until a pushed job is due; None: no due time
delays = st.sampled_from([None, None, None, -DAY, 0.0, 0.001, 1.0, 60.0, 3_600.0, 40 * DAY])
steps = st.sampled_from([0.001, 0.5, 1.0, 15.0, 30.0, 61.0, 1_800.0, 3_600.0, DAY, 8 * DAY, 31 * DAY, 181 * DAY])
jumps = st.sampled_from([-181 * DAY, -DAY, -3_600.0, -1.0, -0.001, 1.0, 3_600.0, DAY])
#: Counted back from the newest
picks = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 5, 8, 13])
numbers = st.lists(picks | st.just(-1), min_size=1, max_size=4)
#: Dependencies of a new job, counted back from the newest; below 0: positions in the same push
back = st.sampled_from([(), (), (), (), (0,), (1, 0), (2, -1), (-1,)])
depends_on = st.sampled_from([-1, -2, -7])
jitters = st.integers(0, 29)


class EngineBesideReference(RuleBasedStateMachine):
    slice_of = 500  #: postponed dependents that one command resolves

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig()
        self.model = Reference()
        self.leases: list[LeaseRef] = []
        self.folder = tempfile.TemporaryDirectory()
        self.last_number = self.opened = 0
        self.pushed = self.flushed = self.ended = 0
        self.at = 0.0
        self.postponed = 0  #: commands that resolved postponed dependents

    def teardown(self) -> None:
        assert picture(fold(self.rig.batches)) == picture(self.rig.state), (
            "a replay of all events differs from the state"
        )
        assert picture(self._through_snapshot()) == picture(self.rig.state)
        self.folder.cleanup()

    def do(self, command: c.Command[Any]) -> Any:
        """Executes a command on both sides. They must agree on the outcome and on the woken queues."""
        state, now = self.rig.state, self.rig.clock.now
        if len(self.rig.events) % 4 == 0:
            self._decides_purely(command)
        so_far, live = len(self.rig.events), len(state.jobs)
        outcome = self.rig.do(command)
        draws = engine_draws.of(self.rig.events[so_far:], self.rig.die.value)
        ready_queues = set(self.rig.ready_queues)
        while state.unresolved:
            self.rig.do(c.ResolveDependents(self.slice_of))
            self.postponed += 1
            ready_queues |= set(self.rig.ready_queues)
        expected = self.model.do(command, now, draws)
        if isinstance(command, c.LeaseNext):
            outcome = outcome and (outcome.number, outcome.lease and outcome.lease.token)
        assert outcome == expected
        assert {topic for topic in ready_queues if isinstance(topic, str)} == self.model.woken
        self._count(self.rig.events[so_far:], live)
        return outcome

    def _decides_purely(self, command: c.Command[Any]) -> None:
        before, dice = picture(self.rig.state), self.rig.die.getstate()
        self.rig.engine.decide(command, self.rig.clock.now)
        assert picture(self.rig.state) == before, "a decision changed the state"
        self.rig.die.setstate(dice)

    def _count(self, events: Sequence[e.AnyEvent], live: int) -> None:
        for event in events:
            assert event.at >= self.at, "at never decreases"
            self.at = event.at
            if isinstance(event, e.Pushed):
                self._number(event.number, len(event.specs))
            elif isinstance(event, e.BatchCallbackPushed | e.Spawned):
                self._number(event.number, 1 if event.number else 0)
            elif isinstance(event, e.NumbersDrawn):
                self.last_number = event.number
            elif isinstance(event, e.Succeeded | e.Failed):
                self.ended += event.then is State.GONE
            elif isinstance(event, e.Removed):
                self.ended += len(event.rows)
            elif isinstance(event, e.Flushed):
                self.flushed += live

    def _number(self, first: Number, count: int) -> None:
        assert not count or first == self.last_number + 1, "a job number was reused or skipped"
        self.last_number += count
        self.pushed += count

    @invariant()
    def states_agree(self) -> None:
        assert visible.of_engine(self.rig.state) == visible.of_reference(self.model)

    @invariant()
    def replay_agrees(self) -> None:
        assert picture(self.rig.replayed) == picture(self.rig.state)

    @invariant()
    def invariants_hold(self) -> None:
        invariants.check(self.rig.state)
        assert not self.rig.engine.follow_ups, "a command has follow-ups left"

    @invariant()
    def pushed_jobs_are_present_or_ended(self) -> None:
        assert self.pushed == len(self.rig.state.jobs) + self.ended + self.flushed

    @invariant()
    def no_callback_is_overdue(self) -> None:
        assert self.model.records.overlooked() == []

    @invariant()
    def next_due_is_the_earliest(self) -> None:
        assert self.rig.engine.due_in(self.rig.clock.now) == visible.nearly(self.model.due_in(self.rig.clock.now))

    # Jobs

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.do(c.Start())
        self.push(data, "faktory", 3)

    @rule(data=st.data(), via=vias, count=st.sampled_from([1, 2, 3, 4, 0]))
    def push(self, data: st.DataObject, via: str, count: int) -> None:
        self.do(c.Enqueue(via, [self._spec(data) for _ in range(count)]))

    @rule(data=st.data(), count=st.sampled_from([1, 2, 3]))
    def push_unless_live(self, data: st.DataObject, count: int) -> None:
        self.do(c.Enqueue("workq", [self._spec(data) for _ in range(count)], unless_live=True))

    @rule(data=st.data(), pushes=st.integers(0, 3), picked=st.lists(picks, max_size=2), in_front=st.booleans())
    def transact(self, data: st.DataObject, pushes: int, picked: list[int], in_front: bool) -> None:
        specs = [self._spec(data) for _ in range(pushes)]
        chosen = [self.leases[-1 - pick % len(self.leases)] for pick in picked if self.leases]
        acks = [c.Succeed("", c.Claim("masenko", "", held)) for held in chosen]
        self.do(c.Transaction("masenko", [*acks, *specs] if in_front else [*specs, *acks]))

    @rule(count=st.sampled_from([0, 1, 5]))
    def draw_numbers(self, count: int) -> None:
        self.do(c.DrawNumbers(count))

    def _spec(self, data: st.DataObject) -> Spec:
        delay = data.draw(delays)
        return Spec(
            data.draw(jids),
            data.draw(st.sampled_from(values.QUEUES)),
            data.draw(st.sampled_from(["a", "b"])),
            data.draw(st.sampled_from([b"", b"[1]", b"\x00\xff"])),
            data.draw(st.sampled_from(Form)),
            data.draw(priorities),
            data.draw(st.sampled_from(values.RULES)),
            0.0 if delay is None else self.rig.clock.wall + delay,
            self._extra(data),
            data.draw(st.sampled_from([0, 0, 0, 1, 25])),
        )

    def _extra(self, data: st.DataObject) -> Extra | None:
        """Half of the jobs have a lock, a group, progress or an expiry."""
        extra = data.draw(st.sampled_from(values.EXTRAS))
        if data.draw(st.booleans()):
            return extra
        seconds = data.draw(st.sampled_from([1.0, 600.0]))
        expires = data.draw(st.sampled_from([None, None, 0.5, 900.0]))
        name, freed = data.draw(st.sampled_from(["lock a", "lock b"])), data.draw(st.sampled_from(LockRelease))
        links = Links(
            data.draw(st.sampled_from([None, LockTerms(name, self.rig.clock.steady + seconds, freed)])),
            data.draw(st.sampled_from([*list(self.model.records.groups)[::-1], "", "no such group"])),
            expires=0.0 if expires is None else self.rig.clock.wall + expires,
            tracked=data.draw(st.booleans()),
            depends_on=tuple(
                data.draw(depends_on) if dependency < 0 else max(1, self.model.number - dependency)
                for dependency in data.draw(back)
            ),
            ttl_s=data.draw(st.sampled_from([0.0, 0.0, 0.0, 1.0, 1_900.0])),
            foreground=data.draw(st.sampled_from([False, False, False, True])),
        )
        deadqueue = data.draw(st.sampled_from(["", "dead letters"]))
        return Extra(
            extra.custom if extra else b"", extra.protocol_data if extra else None, None, links, None, deadqueue
        )

    @rule(via=vias, names=asked_for, worker=workers, terms=st.sampled_from(values.TERMS))
    def lease(self, via: str, names: Sequence[str], worker: str, terms: c.LeaseTerms) -> None:
        self._lease(via, names, worker, terms)

    @rule(names=st.lists(queues, max_size=4))
    def lease_at_random(self, names: list[str]) -> None:
        self.do(c.LeaseNext("workq", names, "", values.TERMS[1], at_random=True))

    def _lease(self, via: str, names: Sequence[str], worker: str, terms: c.LeaseTerms) -> LeaseRef | None:
        held: LeaseRef | None = self.do(c.LeaseNext(via, names, worker, terms))
        if held is not None:
            self.leases.append(held)
        return held

    @rule(worker=workers, terms=st.sampled_from(values.TERMS), success=st.booleans(), jitter=jitters)
    def work(self, worker: str, terms: c.LeaseTerms, success: bool, jitter: int) -> None:
        if self._lease("faktory", values.QUEUES, worker, terms) is not None:
            self.settle_own_lease(0, success, worker, jitter)

    @rule(worker=workers, count=st.integers(2, 6))
    def work_off(self, worker: str, count: int) -> None:
        for _ in range(count):
            self.work(worker, values.TERMS[0], success=True, jitter=0)

    @rule(worker=workers, success=st.booleans(), jitter=jitters)
    def settle_late(self, worker: str, success: bool, jitter: int) -> None:
        """Settles with a lease that was given back; the job is leased to another worker by then."""
        late = self._lease("faktory", values.QUEUES, worker, values.TERMS[0])
        if late is not None:
            self.do(c.GiveBack("faktory", [late]))
            self._lease("faktory", values.QUEUES, "another", values.TERMS[0])
            self.settle_own_lease(1, success, worker, jitter)

    @precondition(lambda self: self.leases)
    @rule(pick=picks, success=st.booleans(), worker=workers, jitter=jitters)
    def settle_own_lease(self, pick: int, success: bool, worker: str, jitter: int) -> None:
        """Settles one of the newest leases most often, sometimes one that ended long ago."""
        held = self.leases[-1 - pick % len(self.leases)]
        job = self.model.jobs.get(held[0])
        self._settle(job.spec.jid if job else "jid-0", c.Claim("faktory", worker, held), success, jitter)

    @rule(jid=jids, success=st.booleans(), worker=workers, jitter=jitters)
    def settle_by_jid(self, jid: str, success: bool, worker: str, jitter: int) -> None:
        self._settle(jid, c.Claim("faktory", worker), success, jitter)

    def _settle(self, jid: str, claim: c.Claim, success: bool, jitter: int) -> None:
        self.rig.die.value = jitter
        self.do(c.Succeed(jid, claim) if success else c.Fail(jid, claim, "Group", "message", ("line 1", "line 2")))

    @rule(pick=picks, success=st.booleans(), by_number=st.booleans(), own=st.sampled_from([True, True, False]))
    def settle_without_lease(self, pick: int, success: bool, by_number: bool, own: bool) -> None:
        number = max(1, self.model.number - pick)
        job = self.model.jobs.get(number)
        via = job.origin if job and own else "workq"
        held = self.leases[-1] if self.leases and pick % 3 == 1 else None
        claim = c.Claim(via, "", held, True, number if by_number else 0)
        jid = job.spec.jid if job else "jid-0"
        self.rig.die.value = pick
        self.do(c.Succeed(jid, claim, b"ok") if success else c.Fail(jid, claim, "", "", (), b"bad"))

    @precondition(lambda self: self.leases)
    @rule(some=st.lists(picks, min_size=1, max_size=3))
    def give_back(self, some: list[int]) -> None:
        self.do(c.GiveBack("faktory", [self.leases[-1 - pick % len(self.leases)] for pick in some]))

    @rule(some=numbers, how=st.sampled_from(["requeue", "bury", "reroute", "remove"]), data=st.data())
    def act_on_many(self, some: list[int], how: str, data: st.DataObject) -> None:
        """Acts on the newest job numbers, whatever their state, and on one that was never used."""
        chosen = [max(1, self.model.number - pick) for pick in some]
        if how == "requeue":
            self.do(admin.Requeue("faktory", chosen))
        elif how == "bury":
            self.do(admin.Bury("faktory", chosen))
        elif how == "reroute":
            self.do(admin.Reroute("control", data.draw(queues), chosen))
        else:
            states = data.draw(st.frozensets(st.sampled_from(values.KEPT), min_size=1))
            self.do(admin.Remove("faktory", "discarded", chosen, states))

    # Queues and records

    @rule(how=st.sampled_from(["pause", "resume", "resume", "forget"]), names=st.none() | st.lists(queues, max_size=2))
    def administer(self, how: str, names: list[str] | None) -> None:
        if how == "pause":
            self.do(admin.PauseQueues(names))
        elif how == "resume":
            self.do(admin.ResumeQueues(names))
        else:
            for name in names or ():
                self.do(admin.ForgetQueue(name))

    @precondition(lambda self: len(self.model.jobs) > 9)
    @rule()
    def flush(self) -> None:
        self.do(admin.Flush("faktory"))

    @precondition(lambda self: len(self.model.records.groups) < 4)
    @rule(data=st.data(), calls=st.sampled_from([(True, True), (True, False), (False, True)]), commit=st.booleans())
    def open_group(self, data: st.DataObject, calls: tuple[bool, bool], commit: bool) -> None:
        self.opened += 1
        name = f"group {self.opened}"
        parent = data.draw(st.sampled_from([*list(self.model.records.groups)[::-1], "", "no such group"]))
        specs = [values.callback(name, call) if wanted else None for call, wanted in zip(Callback, calls, strict=True)]
        self.do(c.OpenBatch(name, "faktory", parent, "text", *specs))
        if name in self.model.records.groups and not commit:
            member = Spec(
                "jid-0", "mail", "a", b"", Form.NONE, 9, values.RULES[0], extra=Extra(links=Links(batch=name))
            )
            self.do(c.Enqueue("faktory", [member]))

    @precondition(lambda self: self.model.records.groups)
    @rule(pick=picks)
    def commit_group(self, pick: int) -> None:
        names = [*self.model.records.groups, "no such group"]
        self.do(c.CommitBatch(names[pick % len(names)]))

    @rule(jid=jids, percent=st.none() | st.just(50), later=st.sampled_from([None, 5.0, 7_200.0, 9e9]))
    def track(self, jid: str, percent: int | None, later: float | None) -> None:
        until = 0.0 if later is None else self.rig.clock.wall + later
        self.do(c.SetProgress(jid, percent, None if percent is None else "half", until))

    @rule(throttles=st.sampled_from(values.THROTTLES))
    def set_throttles(self, throttles: Any) -> None:
        self.do(c.SetThrottles(throttles))

    @rule(
        names=st.sets(st.sampled_from(sorted(values.SCHEDULES)), max_size=2),
        queue=st.sampled_from(values.QUEUES),
        extra=st.sampled_from(values.SCHEDULED_EXTRAS),
    )
    def set_schedules(self, names: set[str], queue: str, extra: Extra | None) -> None:
        spec = Spec("", queue, "again", b"[]", Form.JSON, 0, values.RULES[0], extra=extra)
        wanted = [Schedule(name, "faktory", values.SCHEDULES[name], "UTC", spec, 0.0) for name in sorted(names)]
        self.do(c.SetSchedules(wanted))

    # Time

    @rule(seconds=steps, limit=st.sampled_from([None, 1, 2, 500, 500, 500]), jitter=jitters)
    def time_passes(self, seconds: float, limit: int | None, jitter: int) -> None:
        self.rig.clock.pass_by(seconds)
        if limit is not None:
            self.rig.die.value = jitter
            self.do(c.Tick(limit))

    @rule(seconds=jumps)
    def clock_is_set(self, seconds: float) -> None:
        self.rig.clock.jump(seconds)

    @rule(how=st.sampled_from(["replay", "snapshot"]), down=steps, in_doubt=st.booleans())
    def restart(self, how: str, down: float, in_doubt: bool) -> None:
        """Restarts from the journal or from a snapshot. The recovered state equals the committed one."""
        state = fold(self.rig.batches) if how == "replay" else self._through_snapshot()
        assert picture(state) == picture(self.rig.state)
        last = decode_entry(self.rig.batches[-1])
        self.rig.clock.pass_by(down)
        self.rig.clock.restart(last.wall, last.steady, last.events[-1].at)
        self.rig.adopt(state)
        so_far, alone = len(self.rig.events), not state.foreground
        self.do(c.Start(hold_at=last.steady if in_doubt else None))
        # The progress of a job whose lease fell back is dated.
        more = [event for event in self.rig.events[so_far + 1 :] if type(event) is not e.ProgressDated]
        assert not alone or not more, "a recovered state has follow-ups left"

    def _through_snapshot(self) -> EngineState:
        path = Path(self.folder.name) / "snapshot"
        file.write(path, self.rig.state, 7, self.rig.clock.now.wall, self.rig.clock.now.steady)
        return file.load(path).state


TestEngineBesideReference = EngineBesideReference.TestCase
TestEngineBesideReference.settings = settings(stateful_step_count=60)


class PostponingBesideReference(EngineBesideReference):
    """The same with all dependents postponed and resolved right after each command, which gives the same state.
    Transactions are left out: their few dependents join their queues between the steps, postponed ones after them."""

    transact = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.at_once = dependents.AT_ONCE
        dependents.AT_ONCE = 0

    def teardown(self) -> None:
        dependents.AT_ONCE = self.at_once
        super().teardown()


TestPostponingBesideReference = PostponingBesideReference.TestCase
TestPostponingBesideReference.settings = settings(stateful_step_count=40)


def test_every_command_of_the_engine_has_its_rule_in_the_reference() -> None:
    engine = Engine(Rig().state, Die(1))
    # tests/qless, test_resqu_walk.py, test_loads.py, tests/unit/engine and tests/unit/protocols cover these
    modules = (m.__name__, resqu.__name__, bulk.__name__, extensions.__name__)
    elsewhere = {command for command in engine._decide if command.__module__ in modules} | {admin.Audit, c.SetRates}
    assert set(RULES) | set(key_reference.RULES) == set(engine._decide) - elsewhere
