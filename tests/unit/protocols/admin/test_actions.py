"""Requests that change jobs by ID or by filter, queues and workers."""

from typing import Any

import pytest

from crossdock.model.commands.admin import ForgetQueue, PauseQueues
from crossdock.model.events import EndedLease, Removed
from crossdock.protocols.admin import actions
from crossdock.testing.connection import run_out
from tests.support.control_peer import ControlPeer
from tests.support.conversation import ClockedFaktory, Conversation, worker
from tests.support.dispatcher import PlainDispatcher
from tests.support.five_jobs import STATES, fail, fetch, five_jobs, flood, push


@pytest.fixture
def peer(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> ControlPeer:
    return ControlPeer(dispatcher, protocol.workers)


def later(dispatcher: PlainDispatcher, jobs: int, queue: str = "mail", kind: str = "send") -> None:
    """Scheduled jobs."""
    flood(dispatcher, jobs, queue, kind, dispatcher.now.wall + 3_600)


def states(dispatcher: PlainDispatcher) -> dict[str, str]:
    return {job.jid: job.state.name.lower() for job in dispatcher.state.jobs.values()}


@pytest.mark.parametrize(
    ("do", "before", "after"),
    [
        ("retry", "retrying", "ready"),
        ("retry", "dead", "ready"),
        ("retry", "scheduled", "ready"),
        ("kill", "retrying", "dead"),
        ("kill", "scheduled", "dead"),
        ("kill", "ready", "dead"),
        ("delete", "leased", None),
        ("delete", "ready", None),
        ("delete", "retrying", None),
        ("delete", "scheduled", None),
        ("delete", "dead", None),
    ],
)
@pytest.mark.parametrize("by", ["id", "filter"])
def test_each_action_changes_the_state_of_a_job(
    dispatcher: PlainDispatcher,
    client: Conversation,
    peer: ControlPeer,
    do: str,
    before: str,
    after: str | None,
    by: str,
) -> None:
    five_jobs(client)
    (jid,) = (jid for jid, state in STATES.items() if state == before)
    answer = peer.ask(do, ids=[jid]) if by == "id" else peer.ask(do, states=[before])
    assert answer["done"] == 1
    assert states(dispatcher) == {
        each: after if each == jid else state for each, state in STATES.items() if each != jid or after is not None
    }


@pytest.mark.parametrize(
    ("do", "left"),
    [
        ("retry", ["leased", "ready", "ready", "scheduled", "ready"]),
        ("kill", ["leased", "dead", "dead", "dead", "dead"]),
        ("delete", ["leased"]),
    ],
)
def test_all_selects_the_states_of_the_request(
    dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer, do: str, left: list[str]
) -> None:
    five_jobs(client)
    peer.ask(do, all=True)
    assert list(states(dispatcher).values()) == left


def test_by_id_the_reply_names_unknown_and_refused_jobs(client: Conversation, peer: ControlPeer) -> None:
    five_jobs(client)
    assert peer.ask("retry", ids=["job-00001", 3, "5", "absent", 77]) == {
        "done": 2,
        "unknown": ["absent", 77],
        "refused": [
            {
                "id": "job-00001",
                "number": 1,
                "state": "leased",
                "why": "to w1 until 2026-11-15T18:25:45Z; "
                "if the worker is lost, crossdock job release 1 ends the lease",
            }
        ],
        "states": ["retrying", "scheduled", "failed", "dead"],
    }


def test_an_id_given_twice_counts_once(client: Conversation, peer: ControlPeer) -> None:
    five_jobs(client)
    assert peer.ask("delete", ids=["job-00005", "job-00005", 5, "5"])["done"] == 1


def test_a_jid_selects_all_jobs_with_it(dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer) -> None:
    for _ in range(3):
        push(client, "job-twice")
    assert peer.ask("delete", ids=["job-twice"])["done"] == 3
    assert not dispatcher.state.jobs


def test_a_leased_job_may_be_deleted(dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer) -> None:
    """The job and its lease are gone, the event describes both, and the worker's late reply is accepted."""
    push(client, "job-00001")
    fetch(client, "job-00001")
    dispatcher.advance(5)
    assert peer.ask("delete", ids=["job-00001"])["done"] == 1
    gone, _ = dispatcher.events[-2:]  # the other one is for the audit trail
    assert isinstance(gone, Removed)
    began = dispatcher.now.wall - 5
    assert [row.ended for row in gone.rows] == [EndedLease(1, "faktory", "w1", began, 0.0, 5.0, 0)]
    assert not dispatcher.state.jobs
    push(client, "job-00001")
    assert client.ask('ACK {"jid":"job-00001"}') == b"+OK\r\n"
    assert client.ask('FAIL {"jid":"job-00001"}') == b"-ERR Job not found job-00001\r\n"
    assert states(dispatcher) == {"job-00001": "ready"}, "the late reply does not apply to another job of that name"


def test_filters_are_combined(dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer) -> None:
    later(dispatcher, 3, "a", "x")
    later(dispatcher, 4, "b", "x")
    later(dispatcher, 5, "a", "y")
    assert peer.ask("delete", queue="a", kind="x", states=["scheduled"])["done"] == 3
    dispatcher.advance(60)
    later(dispatcher, 6, "a", "y")
    assert peer.ask("kill", queue="a", older_than=30)["done"] == 5
    assert peer.ask("kill", kind="x", dry_run=True)["count"] == 4
    assert sorted(states(dispatcher).values()) == ["dead"] * 5 + ["scheduled"] * 10


def test_a_dry_run_counts_and_changes_nothing(
    dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer
) -> None:
    five_jobs(client)
    assert peer.ask("delete", all=True, dry_run=True)["count"] == 4
    assert peer.ask("retry", all=True, dry_run=True)["count"] == 2
    assert states(dispatcher) == STATES


def test_only_counted_jobs_are_changed(dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer) -> None:
    later(dispatcher, 10)
    counted = peer.ask("delete", queue="mail", dry_run=True)
    assert counted["count"] == 10
    dispatcher.advance(1)
    later(dispatcher, 5)
    done = peer.ask("delete", queue="mail", as_of=counted["as_of"])
    assert (done["done"], done["as_of"]) == (10, counted["as_of"])
    assert len(dispatcher.state.jobs) == 5


def test_a_job_that_fails_again_is_not_retried_again(
    dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer
) -> None:
    push(client, "job-00001")
    fetch(client, "job-00001")
    fail(client, "job-00001")
    first = peer.ask("retry", states=["retrying"])
    dispatcher.advance(1)
    fetch(client, "job-00001")
    fail(client, "job-00001")
    assert peer.ask("retry", states=["retrying"], as_of=first["as_of"])["done"] == 0
    assert peer.ask("retry", states=["retrying"])["done"] == 1


def test_many_jobs_are_changed_in_slices_and_steps(dispatcher: PlainDispatcher, peer: ControlPeer) -> None:
    jobs = 2 * actions.CHANGED_AT_MOST + 7
    later(dispatcher, jobs)
    done, fields, steps = 0, {"queue": "mail"}, 0
    while True:
        events = len(dispatcher.events)
        step = peer.ask("retry", states=["scheduled"], **fields)
        assert len(dispatcher.events) - events >= step["done"] / actions.SLICE  # one event per slice
        done, steps = done + step["done"], steps + 1
        if step["after"] is None:
            break
        fields |= {"after": step["after"], "as_of": step["as_of"]}
    assert (done, steps) == (jobs, 3)
    assert len(dispatcher.state.queues["mail"].ready) == jobs


def test_other_connections_are_served_between_slices(
    dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer
) -> None:
    later(dispatcher, 4 * actions.SLICE)
    work = peer.work("delete", queue="mail")
    next(work)
    dispatcher.advance(1)
    assert client.ask('MUTATE {"cmd":"kill","target":"scheduled"}') == b"+OK\r\n"
    # The walk reaches dead jobs last. These jobs died after it started and are not changed.
    answer = run_out(work)
    assert isinstance(answer, bytes) and b'"done":%d,' % actions.SLICE in answer
    assert peer.ask("delete", queue="mail")["done"] == 3 * actions.SLICE


@pytest.mark.parametrize("do", ["retry", "kill", "delete"])
def test_a_request_without_a_selection_is_refused(client: Conversation, peer: ControlPeer, do: str) -> None:
    five_jobs(client)
    assert peer.ask(do)["error"].startswith("select jobs: by ids, by filters")
    assert peer.ask(do, ids=[]) == {"done": 0, "unknown": [], "refused": [], "states": peer.ask(do, ids=[])["states"]}
    assert peer.ask(do, ids=[1], queue="mail")["error"].startswith("ids cannot be combined")
    assert peer.ask(do, states=["gone"])["error"].startswith('state "gone" cannot be selected here; choose from ')


def test_pause_and_resume(dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer) -> None:
    push(client, "job-00001", queue="a")
    push(client, "job-00002", queue="b")
    assert peer.ask("pause", names=["a", "nope", "a"]) == {"done": ["a"], "unknown": ["nope"]}
    assert peer.ask("pause", names=["a"]) == {"done": [], "unknown": []}
    waiting = worker(dispatcher, ClockedFaktory(dispatcher), "w2")
    assert waiting.ask("FETCH a") == b""
    assert peer.ask("resume", all=True) == {"done": ["a"], "unknown": []}
    assert b"job-00001" in waiting.take()
    assert peer.ask("pause", all=True)["done"] == ["a", "b"]
    assert peer.ask("pause")["error"].startswith("select queues")


def test_quiet_and_terminate_are_in_the_reply_to_the_next_beat(
    dispatcher: PlainDispatcher, protocol: ClockedFaktory, client: Conversation, peer: ControlPeer
) -> None:
    other = worker(dispatcher, protocol, "w2")
    push(client, "job-00001")
    assert peer.ask("quiet", names=["w1", "w9"]) == {"done": ["w1"], "unknown": ["w9"]}
    assert client.ask('BEAT {"wid":"w1"}') == b'$17\r\n{"state":"quiet"}\r\n'
    assert other.ask('BEAT {"wid":"w2"}') == b"+OK\r\n"
    assert peer.ask("terminate", all=True)["done"] == ["w1", "w2"]
    assert other.ask('BEAT {"wid":"w2"}') == b'$21\r\n{"state":"terminate"}\r\n'
    assert peer.ask("quiet", all=True)["done"] == ["w1", "w2"]
    assert [row["state"] for row in peer.ask("workers")["workers"]] == ["terminate", "terminate"]
    assert peer.ask("terminate")["error"].startswith("select workers")


def test_a_server_without_workers(dispatcher: PlainDispatcher) -> None:
    peer = ControlPeer(dispatcher)
    assert peer.ask("workers") == {"workers": [], "after": None}
    assert peer.ask("quiet", all=True) == {"done": [], "unknown": []}


def test_an_unknown_queue_or_failure_group_is_named_once(
    dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer
) -> None:
    """An empty queue is not an unknown one. A later page has no `missing`: its own request may have emptied the
    queue."""
    five_jobs(client)
    dispatcher.do(PauseQueues(["paused"], any_name=True))
    assert peer.ask("count", queue="nowhere")["missing"] == ["queue"]
    assert peer.ask("delete", queue="nowhere", failure="Absent", dry_run=True)["missing"] == ["queue", "failure"]
    assert peer.ask("delete", queue="nowhere")["missing"] == ["queue"]
    assert peer.ask("jobs", failure="Absent")["missing"] == ["failure"]
    known: list[dict[str, Any]] = [
        {"queue": "paused"},
        {"queue": "mail", "kind": "absent"},
        {"queue": "nowhere", "as_of": 1.0},
    ]
    assert [peer.ask("count", **filters).get("missing") for filters in known] == [None] * 3


def test_dead_jobs_of_a_forgotten_queue_are_found(
    dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer
) -> None:
    five_jobs(client)
    peer.ask("kill", queue="mail")
    dispatcher.do(ForgetQueue("mail"))
    answer = peer.ask("count", queue="mail", states=["dead"])
    assert answer["count"] > 0 and answer["missing"] == ["queue"]
