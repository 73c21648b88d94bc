"""Queries return existing objects in the order that protocols show, and change nothing."""

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from crossdock.engine.qless import queries as qless
from crossdock.engine.queries import jobs, keyspace, queues, records
from crossdock.engine.resqu import queries as resqu
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.admin import Bury
from crossdock.model.commands.keyspace import ChangeMembers, DropKeys, Kind
from crossdock.model.states import State
from tests.support.picture import picture
from tests.support.states import BEGIN, Story, eventful

_MODULES = (jobs, keyspace, queues, records, qless, resqu)


#: Queries about a record that must exist.
_NEED_A_RECORD = (records.oldest_open_load, qless.tagged_since)


@pytest.fixture
def story() -> Story:
    return eventful()


def queries_of(module: ModuleType) -> Iterator[Callable[..., Any]]:
    """Public functions that take the state."""
    for name, function in inspect.getmembers(module, inspect.isfunction):
        own = function.__module__ == module.__name__ and not name.startswith("_")
        if own and function not in _NEED_A_RECORD and next(iter(inspect.signature(function).parameters), "") == "state":
            yield function


#: An argument for each name of a parameter.
_ARGUMENTS: dict[str, Any] = {
    "t": BEGIN.wall,
    "steady": BEGIN.steady,
    "now": Now(BEGIN.wall, BEGIN.steady),
    "number": 3,
    "numbers": (3,),
    "job_state": State.LEASED,
    "start": 0,
    "stop": 10,
    "count": 10,
    "cursor": 0,
    "day": 0,
    "default": 1.0,
}


def call(query: Callable[..., Any], state: EngineState) -> None:
    job = state.jobs[3]
    group = next(iter(state.failures.groups.values()))
    own = {"job": job, "group": group, "key": b"key"}
    values: list[Any] = []
    for name, parameter in list(inspect.signature(query).parameters.items())[1:]:
        if "Queue" in str(parameter.annotation):
            values.append(state.queues["default"])
        elif parameter.annotation is str:
            values.append("default")
        else:
            values.append({**_ARGUMENTS, **own}[name])
    answer = query(state, *values)
    if isinstance(answer, Iterator):
        list(answer)


@pytest.mark.parametrize("module", _MODULES, ids=lambda module: module.__name__.removeprefix("crossdock.engine."))
def test_a_query_changes_nothing(story: Story, module: ModuleType) -> None:
    story.do(Bury("faktory", [3]))
    before = picture(story.state)
    found = list(queries_of(module))
    assert found
    for query in found:
        call(query, story.state)
        assert picture(story.state) == before, query.__name__


def test_a_job_is_the_object_itself(story: Story) -> None:
    state = story.state
    job = state.jobs[3]
    assert jobs.job_by_number(state, 3) is job
    assert jobs.newest_job(state, job.jid) is job
    assert next(jobs.jobs_of_jid(state, job.jid)) is job
    assert list(jobs.indexed_jobs(state, (3, 4))) == [job, state.jobs[4]]
    assert jobs.job_by_number(state, 10_000) is None
    assert jobs.newest_job(state, "unknown") is None
    assert jobs.jobs_by_number(state) is state.jobs


def test_newest_job_returns_the_newest_job_of_a_jid(story: Story) -> None:
    story.push("twice-0001")
    story.push("twice-0001")
    first, second = jobs.jobs_of_jid(story.state, "twice-0001")
    assert first.number < second.number
    assert jobs.newest_job(story.state, "twice-0001") is second
    assert jobs.last_job_number(story.state) == second.number


def test_jobs_in_a_state_come_in_order_of_their_time(story: Story) -> None:
    story.push("scheduled-0", due=BEGIN.wall + 10)
    found = list(jobs.jobs_in_state(story.state, State.SCHEDULED))
    assert [job.jid for job in found] == ["scheduled-0", "scheduled-1", "scheduled-2"]
    assert list(jobs.scheduled_jobs(story.state, BEGIN.wall, BEGIN.wall + 11)) == found[:1]
    assert list(jobs.scheduled_jobs(story.state, BEGIN.wall + 11, BEGIN.wall + 86_400)) == []


def test_a_page_of_ready_jobs_is_in_the_order_of_leases(story: Story) -> None:
    queue = queues.queue_named(story.state, "default")
    assert queue is not None
    page = queues.page_of_ready(story.state, queue, 1, 3)
    assert [job.jid for job in page] == ["ready-0007", "ready-0008"]
    assert list(queues.jobs_in_turn(story.state, queue))[1:3] == page
    assert [job.jid for job in queues.page_of_scheduled(story.state, queue, 0, 9)] == ["scheduled-1", "scheduled-2"]
    assert [job.jid for job in queues.delayed_jobs(story.state, "default")] == [
        "scheduled-1",
        "scheduled-2",
        "ready-0002",
    ]
    assert queues.delayed_count(story.state, "default") == 3


def test_queues_are_found_by_name_listing_and_pause(story: Story) -> None:
    state = story.state
    assert [queue.name for queue in queues.listed_queues(state)] == ["default", "other", "third"]
    assert [queue.name for queue in queues.paused_queues(state)] == ["other"]
    assert (queues.is_paused(state, "other"), queues.is_paused(state, "unknown")) == (True, False)
    assert queues.waiting_count(state, "unknown") == 0
    assert queues.oldest_since(state, "unknown") is None
    assert queues.oldest_since(state, "other") == state.jobs[43].since
    assert queues.queue_counts(state, "default") == (34, 0, 3, 1, 2)
    assert qless.queue_length(state, "default") == 34 + 3 + 1 + 2
    counts = qless.list_counts(state, "default", BEGIN.wall)
    assert (counts.waiting, counts.running, counts.scheduled, counts.paused) == (34, 3, 3, False)


def test_a_removed_key_is_gone_and_its_change_is_known(story: Story) -> None:
    story.do(ChangeMembers(b"set", Kind.SET, [(b"a", None)]))
    assert keyspace.all_keys(story.state) == [b"set"]
    entry = keyspace.live_entry(story.state, b"set", story.now)
    assert entry is not None and list(entry.data) == [b"a"]
    assert keyspace.page_of_entries(story.state, 0, 10, story.now) == (0, [(b"set", entry)])
    assert keyspace.keyspace_size(story.state)[:2] == (1, 0)
    story.do(DropKeys([b"set"]))
    assert keyspace.live_entry(story.state, b"set", story.now) is None
    assert keyspace.last_change_of_removed(story.state, b"set") >= entry.version
    assert keyspace.keyspace_bytes(story.state) == 0


def test_failures_are_listed_newest_first(story: Story) -> None:
    story.do(Bury("faktory", [3]))
    [(name, group)] = jobs.failure_groups(story.state).items()
    assert jobs.failure_group(story.state, name) is group
    assert jobs.newest_failure(story.state, group) is story.state.jobs[3]
    assert jobs.failure_group(story.state, "unknown") is None
