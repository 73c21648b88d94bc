"""The registry of queues, and changes of many jobs by operators and clients."""

from collections import Counter
from random import Random

import pytest

from crossdock.engine.index.queue import HEADS_READ, Queue
from crossdock.engine.queries.queues import queue_counts
from crossdock.engine.state import EngineState
from crossdock.model.commands.admin import Bury, Flush, ForgetQueue, PauseQueues, Remove, Requeue, ResumeQueues
from crossdock.model.commands.core import Enqueue, LeaseNext, LeaseTerms
from crossdock.model.events import QueuePaused, QueueSeen
from crossdock.model.job import Form, Job, Number
from crossdock.model.policies import Policy
from crossdock.model.records import Pause
from crossdock.model.states import State
from tests.model.bench import TERMS, Bench, held

READY = frozenset({State.READY})
EVERYWHERE = frozenset({State.SCHEDULED, State.READY, State.RETRYING, State.DEAD})


def test_a_queue_is_known_from_its_first_job_on(bench: Bench) -> None:
    bench.push("later", queue="a", due=bench.now.wall + 9.0)
    bench.push("now", queue="b")
    bench.lease("b")
    bench.succeed("now")
    assert list(bench.state.queues) == ["a", "b"]


def test_naming_a_queue_registers_it_only_where_the_protocol_says_so(bench: Bench) -> None:
    assert bench.nothing_to_lease("a")
    assert bench.state.queues == {}
    assert bench.events == [], "an idle poll costs nothing"
    assert bench.nothing_to_lease("a", terms=LeaseTerms(1.0, 1.0, 1.0, registers=True))
    assert list(bench.state.queues) == ["a"]
    assert isinstance(bench.last, QueueSeen)


def test_a_pause_has_its_time_reason_and_operator_until_it_ends(bench: Bench) -> None:
    bench.push("a")
    bench.do(PauseQueues(["default"], reason="the disk is full", user="anna"))
    assert bench.state.queues["default"].pause == Pause(bench.now.wall, "the disk is full", "anna")
    bench.do(PauseQueues(["default"], reason="another", user="ben"))
    assert bench.state.queues["default"].pause == Pause(bench.now.wall, "the disk is full", "anna")
    bench.do(ResumeQueues(["default"]))
    assert bench.state.queues["default"].pause is None


def test_an_unknown_queue_cannot_be_paused(bench: Bench) -> None:
    bench.do(PauseQueues(["later"]))
    bench.push("a", queue="later")
    assert bench.lease("later").jid == "a"
    assert not any(isinstance(event, QueuePaused) for event in bench.events)


def test_pausing_a_paused_queue_changes_nothing(bench: Bench) -> None:
    bench.push("a")
    bench.do(PauseQueues(["default"]))
    so_far = len(bench.events)
    bench.do(PauseQueues(None))
    assert len(bench.events) == so_far


def test_all_queues_can_be_paused_and_resumed(bench: Bench) -> None:
    for name in "ab":
        bench.push(name, queue=name)
    bench.do(PauseQueues(None))
    assert bench.nothing_to_lease("a", "b")
    bench.do(ResumeQueues(None))
    assert bench.work_order("a", "b") == ["a", "b"]


def test_a_queue_with_ready_jobs_is_not_forgotten(bench: Bench) -> None:
    bench.push("a")
    bench.do(PauseQueues(["default"]))
    bench.do(ForgetQueue("default"))
    assert bench.state.queues["default"].paused
    bench.do(Remove("faktory", "queue removed", [Number(1)], READY))
    bench.do(ForgetQueue("default"))
    assert bench.state.queues == {}


def test_the_pause_of_a_forgotten_queue_is_forgotten(bench: Bench) -> None:
    bench.push("a", due=bench.now.wall + 9.0)
    bench.do(PauseQueues(["default"]))
    bench.do(ForgetQueue("default"))
    bench.after(9.0)
    assert bench.work_order() == ["a"]


def test_a_flush_keeps_nothing_but_numbers(bench: Bench) -> None:
    bench.push("a", "b", "c")
    late = held(bench.lease())
    bench.lease()
    bench.fail("b")
    bench.do(PauseQueues(None))
    bench.do(Flush("faktory"))
    state = bench.state
    assert (list(state.jobs), list(state.jids), state.queues, state.stats.days) == ([], [], {}, {})
    assert not any(state.by_state.values())
    assert (state.counters.processed, state.counters.failures) == (0, 0)
    assert not bench.succeed("a", "w", late)
    assert bench.push("a") == [4], "a number is never used again"
    assert held(bench.lease())[1] == 3, "nor is a token"
    assert bench.engine.due_in(bench.now) == 1_800.0


# Changes of many jobs


def everywhere(bench: Bench) -> dict[State, Number]:
    """One job in each state."""
    [scheduled] = bench.push("scheduled", due=bench.now.wall + 9_999.0)
    dead, retrying, leased, ready = bench.push("dead", "retrying", "leased", "ready")
    for _ in range(3):
        bench.lease()
    bench.fail("dead")
    bench.fail("retrying")
    bench.do(Bury("faktory", [dead]))
    return {
        State.SCHEDULED: scheduled,
        State.READY: ready,
        State.LEASED: leased,
        State.RETRYING: retrying,
        State.DEAD: dead,
    }


def test_requeue_readies_scheduled_retrying_and_dead_jobs(bench: Bench) -> None:
    jobs = everywhere(bench)
    assert bench.do(Requeue("faktory", [*jobs.values(), Number(99)])) == 3
    states = {state: bench.job(number).state for state, number in jobs.items()}
    assert states == {state: State.LEASED if state is State.LEASED else State.READY for state in jobs}


def test_bury_moves_all_waiting_jobs(bench: Bench) -> None:
    jobs = everywhere(bench)
    assert bench.do(Bury("faktory", [*jobs.values(), Number(99)])) == 4
    states = {state: bench.job(number).state for state, number in jobs.items()}
    assert states == {state: State.LEASED if state is State.LEASED else State.DEAD for state in jobs}


@pytest.mark.parametrize("state", EVERYWHERE, ids=lambda state: state.name)
def test_remove_removes_jobs_in_the_named_states(bench: Bench, state: State) -> None:
    jobs = everywhere(bench)
    assert bench.do(Remove("faktory", "discarded", list(jobs.values()), frozenset({state}))) == 1
    assert set(bench.state.jobs) == set(jobs.values()) - {jobs[state]}


def test_a_job_named_twice_counts_once(bench: Bench) -> None:
    [number] = bench.push("a", due=bench.now.wall + 9.0)
    assert bench.do(Bury("faktory", [number, number])) == 1
    assert bench.do(Requeue("faktory", [number, number])) == 1
    assert bench.do(Remove("faktory", "discarded", [number, number], READY)) == 1
    assert bench.state.jobs == {}


def test_a_command_without_effect_makes_no_event(bench: Bench) -> None:
    so_far = len(bench.events)
    assert bench.do(Enqueue("faktory", [])) == ()
    assert bench.do(Requeue("faktory", [Number(7)])) == 0
    assert bench.do(Bury("faktory", [])) == 0
    assert bench.do(Remove("faktory", "discarded", [Number(7)], EVERYWHERE)) == 0
    assert bench.do(LeaseNext("faktory", (), "w", TERMS)) is None
    assert bench.tick() == bench.tick()
    assert len(bench.events) == so_far


def test_the_counts_of_a_queue_agree_with_a_count_of_all_jobs() -> None:
    """For any number of priorities and bands, although parts of the index are skipped."""
    random = Random(3)
    for priorities, count in ((1, 3_000), (3, 3_000), (50, 3_000), (10_000, HEADS_READ), (1, 0)):
        queue, jobs = Queue("q", 0.0), dict[int, Job]()
        for number in range(count):
            sort_key = (-random.randrange(priorities), random.choice((0, 0, 1, 1, 2)), random.random(), b"", number)
            jobs[number] = Job(number, "j", "q", "k", "o", b"", Form.NONE, 0, Policy(), State.READY, 0.0, sort_key[2])
            queue.ready.add(sort_key)
        state = EngineState()
        state.queues["q"] = queue
        assert queue_counts(state, "q").overtaking == sum(sort_key[1] == 0 for sort_key in queue.ready)
        assert queue.oldest(jobs) == min((job.since for job in jobs.values()), default=None)


def test_few_jobs_are_read_for_the_oldest_of_many_priorities() -> None:
    """Of the priorities that are not read, those at both ends of each part of the index are."""
    queue, read = Queue("q", 0.0), Counter[int]()

    class Jobs(dict[int, Job]):
        def __getitem__(self, number: int) -> Job:
            read[number] += 1
            return Job(number, "j", "q", "k", "o", b"", Form.NONE, 0, Policy(), State.READY, 0.0, float(-number))

    queue.ready.update((float(number), 1, 0.0, b"", number) for number in range(100_000))
    assert queue.oldest(Jobs()) == -99_999.0
    assert read.total() <= 2 * HEADS_READ + 512 + 2 * 100_000 / 256
    assert max(read.values()) == 1
