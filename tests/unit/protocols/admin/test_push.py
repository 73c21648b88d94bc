"""`push` and `cancel`: a job that an operator pushes, and jobs that an operator takes back."""

import pytest

from crossdock.model.events import Removed
from crossdock.model.states import State
from tests.support.control_peer import ControlPeer
from tests.support.conversation import ClockedFaktory, Conversation
from tests.support.dispatcher import PlainDispatcher
from tests.support.five_jobs import five_jobs


@pytest.fixture
def peer(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> ControlPeer:
    return ControlPeer(dispatcher, protocol.workers)


def test_a_job_is_pushed_with_all_its_fields(peer: ControlPeer, dispatcher: PlainDispatcher) -> None:
    answer = peer.ask(
        "push",
        queue="mail",
        kind="welcome",
        args=[1, {"a": "ü"}],
        jid="job-00001",
        priority=9,
        retries=3,
        at=dispatcher.now.wall + 60,
        lease_s=120,
        tags=["vip", "new"],
        custom={"track": 1},
    )
    assert answer == {"jid": "job-00001", "number": 1}
    job = peer.ask("job", id=1)["job"]
    assert (job["queue"], job["kind"], job["payload"], job["priority"]) == ("mail", "welcome", [1, {"a": "ü"}], 4)
    assert (job["state"], job["tags"], job["custom"], job["origin"]) == (
        "scheduled",
        ["vip", "new"],
        {"track": 1},
        "admin",
    )
    assert (job["policy"]["max_failures"], job["policy"]["lease_s"]) == (3, 120)
    assert [row["jid"] for row in peer.ask("jobs", tag="vip")["jobs"]] == ["job-00001"]
    assert dispatcher.restarted().state.jobs[1].state is State.SCHEDULED


def test_a_pushed_job_is_ready_and_has_a_new_jid(peer: ControlPeer, client: Conversation) -> None:
    jid = peer.ask("push", queue="mail", kind="welcome")["jid"]
    assert f'"jid":"{jid}"'.encode() in client.ask("FETCH mail")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"queue": "two words"}, 'cannot get "two words" queue: queue names must match'),
        ({"args": {"a": 1}}, "invalid JSON: args must be an array"),
        ({"kind": ""}, "jobs must have a jobtype parameter"),
        ({"jid": "short"}, "jobs must have a reasonable jid parameter"),
        ({"custom": [1]}, "invalid JSON: custom must be an object"),
        ({"custom": {"bid": "absent"}}, "the job was not pushed: the batch that custom names does not exist"),
        ({"jid": "job-known"}, "the job was not pushed: a job with this jid exists"),
        ({"lease_s": 100_000}, "jobs cannot be reserved for more than one day"),
        ({"tags": [""]}, "a name must have 1 to 255 bytes"),
        ({"priority": 10}, "push: Expected `int` <= 9"),
    ],
)
def test_an_invalid_job_is_refused(
    peer: ControlPeer, dispatcher: PlainDispatcher, fields: dict[str, object], error: str
) -> None:
    peer.ask("push", queue="mail", kind="welcome", jid="job-known")
    assert peer.ask("push", **{"queue": "mail", "kind": "welcome", **fields})["error"].startswith(error)
    assert len(dispatcher.state.jobs) == 1


def test_a_full_server_refuses_a_job(peer: ControlPeer, dispatcher: PlainDispatcher) -> None:
    dispatcher.full = "the server is full"
    assert peer.ask("push", queue="mail", kind="welcome") == {"error": "the server is full"}


def test_text_that_is_not_utf_8_is_refused(peer: ControlPeer, dispatcher: PlainDispatcher) -> None:
    peer.send(b'{"do":"push","queue":"mail","kind":"k","args":["\xff"]}\n')
    assert "error" in peer.take()[0]
    assert not len(dispatcher.state.jobs)


def test_cancel_removes_waiting_and_leased_jobs(
    peer: ControlPeer, dispatcher: PlainDispatcher, client: Conversation
) -> None:
    five_jobs(client)
    assert peer.ask("cancel", queue="mail", dry_run=True)["count"] == 4
    assert peer.ask("cancel", queue="mail")["done"] == 4
    assert [job.state for job in dispatcher.state.jobs.values()] == [State.DEAD]
    assert {event.why for event in dispatcher.events if isinstance(event, Removed)} == {"canceled"}
    assert client.ask('FAIL {"jid":"job-00001","errtype":"E","message":"m"}').startswith(b"-ERR Job not found")
    refused = peer.ask("cancel", ids=["job-00005", "absent"])
    assert (refused["done"], refused["unknown"]) == (0, ["absent"])
    assert [each["state"] for each in refused["refused"]] == ["dead"]
