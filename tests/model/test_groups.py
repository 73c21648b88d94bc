"""Groups (batches with callbacks) and locks under random commands and crashes: counts are exact, no callback is pushed
twice or before the commit, and a callback is in the journal entry that made it due.

The checker is `group_history.py`. It reads the events of jobs and not the engine's counters.
"""

from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crossdock.model import events as e
from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from crossdock.model.events.codec import decode_entry
from crossdock.model.job import Callback, Extra, Form, Links, LockRelease, LockTerms, Spec
from crossdock.model.policies import Backoff, Disposition, Policy
from crossdock.model.states import State
from tests.model import values
from tests.model.group_history import History
from tests.model.rig import Rig, fold
from tests.support.picture import picture

RULES: Final = (
    Policy(25, 0, 0, Backoff.NONE, Disposition.DEAD),
    Policy(1, 0, 0, Backoff.POLYNOMIAL, Disposition.DEAD),
    Policy(0, 0, 0, Backoff.NONE, Disposition.GONE),
    Policy(-1, 0, 0, Backoff.NONE, Disposition.DEAD),
)
REMOVABLE: Final = frozenset({State.SCHEDULED, State.RETRYING, State.DEAD, State.READY})
QUEUES: Final = ("work", "mail")  # callbacks come in `mail`
LOCKS: Final = ("lock a", "lock b")

picks = st.integers(0, 7)
seconds = st.sampled_from([0.5, 16.0, 31.0, 61.0, 1_801.0, 31 * 86_400.0])


class Groups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig()
        self.history = History()
        self.names = 0
        self.pushed = 0

    def do(self, command: c.Command[Any]) -> Any:
        so_far = len(self.rig.batches)
        outcome = self.rig.do(command)
        for batch in self.rig.batches[so_far:]:
            self.history.add(decode_entry(batch).events)
        return outcome

    def group(self, pick: int) -> str:
        """One of the last few groups, the newest most often, or none."""
        names = list(self.rig.state.batches)[-4:]
        return names[-1 - pick % len(names)] if names and pick < 7 else ""

    @invariant()
    def counts_are_exact(self) -> None:
        counted = {name: (each.total, each.pending, len(each.bad)) for name, each in self.rig.state.batches.items()}
        assert counted == {name: record.counts for name, record in self.history.groups.items()}

    @invariant()
    def callback_flags_agree(self) -> None:
        for name, record in self.history.groups.items():
            group = self.rig.state.batches[name]
            assert {call for call in Callback if group.called & call} == record.called
            assert {call for call in Callback if group.answered & call} == record.answered
            assert group.committed is record.committed

    @invariant()
    def no_callback_is_pushed_twice(self) -> None:
        assert len(self.history.fired) == len(set(self.history.fired))

    @invariant()
    def lock_holders_agree(self) -> None:
        assert {name: lock.holder for name, lock in self.rig.state.locks.items()} == self.history.locks

    @initialize()
    def start(self) -> None:
        self.do(c.Start())
        self.open(7, (True, True))
        self.push(0, None, LockRelease.SUCCESS, RULES[0], 2)

    @precondition(lambda self: len(self.rig.state.batches) < 6)
    @rule(parent=picks, calls=st.sampled_from([(True, True), (True, False), (False, True)]))
    def open(self, parent: int, calls: tuple[bool, bool]) -> None:
        self.names += 1
        name = f"group {self.names}"
        specs = [values.callback(name, call) if wanted else None for call, wanted in zip(Callback, calls, strict=True)]
        assert self.do(c.OpenBatch(name, "faktory", self.group(parent), "text", *specs))

    @precondition(lambda self: len(self.rig.state.batches) < 4)
    @rule(calls=st.sampled_from([(True, True), (True, False)]), policy=st.sampled_from(RULES))
    def open_family(self, calls: tuple[bool, bool], policy: Policy) -> None:
        """Opens a group, its child and its grandchild, which gets a member."""
        for parent in (7, 0, 0):
            self.open(parent, calls)
        self.push(0, None, LockRelease.SUCCESS, policy, 1)

    @rule(pick=picks)
    def commit(self, pick: int) -> None:
        name = self.group(pick) or "no such group"
        assert self.do(c.CommitBatch(name)) is (name in self.rig.state.batches)

    @rule(
        pick=picks,
        lock=st.sampled_from([None, None, *LOCKS]),
        freed=st.sampled_from(LockRelease),
        policy=st.sampled_from(RULES),
        count=st.integers(1, 3),
        when=st.sampled_from(["now", "now", "later", "expires"]),
    )
    def push(
        self, pick: int, lock: str | None, freed: LockRelease, policy: Policy, count: int, when: str = "now"
    ) -> None:
        now = self.rig.clock.now
        links = Links(
            LockTerms(lock, now.steady + 30.0, freed) if lock else None,
            self.group(pick),
            expires=now.wall + 10.0 if when == "expires" else 0.0,
        )
        due = now.wall + 3_600.0 if when == "later" else 0.0
        specs = []
        for _ in range(count):
            self.pushed += 1
            jid = f"jid-{self.pushed}"
            specs.append(Spec(jid, "work", "a", b"", Form.NONE, 0, policy, due, Extra(links=links)))
        self.rig.clock.pass_by(0.001)
        refused = self.do(c.Enqueue("faktory", specs)) or [None] * count
        if lock is None:
            assert refused == [None] * count
        else:
            assert refused[1:] == [c.Refused.NOT_UNIQUE] * (count - 1)
            assert self.history.locks[lock] is not None

    @rule(queue=st.sampled_from(QUEUES))
    def lease(self, queue: str) -> None:
        self.do(c.LeaseNext("faktory", (queue,), "w", values.TERMS[0]))

    @rule(
        queue=st.sampled_from([*QUEUES, "mail"]), success=st.sampled_from([True, True, False]), count=st.integers(1, 4)
    )
    def work(self, queue: str, success: bool, count: int) -> None:
        for _ in range(count):
            job = self.do(c.LeaseNext("faktory", (queue,), "w", values.TERMS[0]))
            if job is not None:
                self._settle(job.jid, success)

    @rule(pick=picks, success=st.booleans())
    def settle(self, pick: int, success: bool) -> None:
        leased = [job.jid for job in self.rig.state.jobs.values() if job.lease]
        if leased:
            self._settle(leased[pick % len(leased)], success)

    def _settle(self, jid: str, success: bool) -> None:
        claim = c.Claim("faktory", "w")
        self.do(c.Succeed(jid, claim) if success else c.Fail(jid, claim, "Group", "message"))

    @rule(how=st.sampled_from(["requeue", "requeue", "bury", "remove"]), some=st.sets(picks, min_size=1))
    def act_on_many(self, how: str, some: set[int]) -> None:
        numbers = [number for i, number in enumerate(self.rig.state.jobs) if i % 8 in some]
        if how == "requeue":
            self.do(admin.Requeue("faktory", numbers))
        elif how == "bury":
            self.do(admin.Bury("faktory", numbers))
        else:
            self.do(admin.Remove("faktory", "discarded", numbers, REMOVABLE))

    @rule(seconds=seconds)
    def time_passes(self, seconds: float) -> None:
        self.rig.clock.pass_by(seconds)
        while self.do(c.Tick(5)).more:
            pass

    @rule(lost=st.integers(0, 4))
    def crash(self, lost: int) -> None:
        """Loses the last journal entries. The state that is left is complete: the restart pushes no callback."""
        batches = self.rig.batches[: max(1, len(self.rig.batches) - lost)]
        self.rig.batches = batches
        self.rig.replayed = fold(batches)
        self.rig.adopt(fold(batches))
        self.history = History()
        for batch in batches:
            self.history.add(decode_entry(batch).events)
        so_far = len(self.rig.events)
        self.do(c.Start())
        assert [type(event) for event in self.rig.events[so_far:]] == [e.Started]

    def teardown(self) -> None:
        """Commits all groups and works off all jobs: every callback that is due was pushed, and no lock is left."""
        for name in list(self.rig.state.batches):
            self.do(c.CommitBatch(name))
        while self.rig.state.jobs:
            self.do(admin.Requeue("faktory", list(self.rig.state.jobs)))
            for job in list(self.rig.state.jobs.values()):
                if job.lease is None:
                    self.do(c.LeaseNext("faktory", (job.queue,), "w", values.TERMS[0]))
            for job in list(self.rig.state.jobs.values()):
                self._settle(job.jid, success=True)
        assert self.rig.state.locks == {}
        for name, record in self.history.groups.items():
            assert record.called >= {
                call for call in Callback if record.spec(call) is not None and record.is_due(call)
            }, name
        assert picture(self.rig.replayed) == picture(self.rig.state), "a replay of all events differs from the state"


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=3 * (settings.default or settings()).max_examples, stateful_step_count=40)
