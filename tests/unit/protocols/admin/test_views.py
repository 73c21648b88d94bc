"""Replies that show a job with all its fields, queues, workers, batches, schedules and the server."""

import pytest

from crossdock.model.commands.admin import Bury
from crossdock.model.commands.core import Claim, Enqueue, Fail, LeaseNext, LeaseTerms, SetSchedules
from crossdock.model.job import Extra, Form, Spec
from crossdock.model.records import Schedule
from crossdock.protocols.admin.reads import TALLIED_AT_MOST
from tests.support.control_peer import VITALS, ControlPeer
from tests.support.conversation import ClockedFaktory, Conversation
from tests.support.dispatcher import PlainDispatcher
from tests.support.five_jobs import STATES, fail, fetch, five_jobs, flood, push
from tests.support.states import RULES, spec


@pytest.fixture
def peer(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> ControlPeer:
    return ControlPeer(dispatcher, protocol.workers)


@pytest.mark.parametrize("name", [3, "3", "job-00003"])
def test_a_job_by_number_or_jid(client: Conversation, peer: ControlPeer, name: int | str) -> None:
    five_jobs(client)
    found = peer.ask("job", id=name)["job"]
    assert (found["jid"], found["state"]) == ("job-00003", "retrying")


def test_the_states_of_jobs_by_number(client: Conversation, peer: ControlPeer) -> None:
    five_jobs(client)
    push(client, "job-00006")
    found = peer.ask("states", numbers=[3, 99, 6, 3, -1])["states"]
    assert found == ["retrying", None, "ready", "retrying", None]
    assert "1000" in peer.ask("states", numbers=list(range(1_001)))["error"]


def test_a_jid_of_digits_comes_before_a_number(client: Conversation, peer: ControlPeer) -> None:
    push(client, "00000002")
    push(client, "job-00002")
    assert peer.ask("job", id="00000002")["job"]["number"] == 1
    assert peer.ask("job", id=2)["job"]["jid"] == "job-00002"


def test_of_several_jobs_with_one_jid_the_newest_is_shown(client: Conversation, peer: ControlPeer) -> None:
    for _ in range(3):
        push(client, "job-twice")
    answer = peer.ask("job", id="job-twice")
    assert answer["job"]["number"] == 3
    assert answer["same_jid"] == [1, 2]


def test_a_job_is_shown_with_all_fields(dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer) -> None:
    bid = client.ask('BATCH NEW {"success":{"jobtype":"done","args":[]}}').split(b"\r\n")[1].decode()
    custom = {"unique_for": 600, "track": 1, "expires_in": 3_600, "bid": bid, "mine": [1]}
    push(client, "job-00001", retry=3, reserve_for=120, custom=custom)
    dispatcher.advance(5)
    fetch(client, "job-00001")
    dispatcher.advance(5)
    fail(client, "job-00001")
    job = peer.ask("job", id="job-00001")["job"]
    assert job["custom"] == custom
    assert job["batch"] == bid
    assert job["policy"]["max_failures"] == 3
    assert job["policy"]["lease_s"] == 120
    assert (job["lock"]["held"], job["lock"]["freed"]) == (True, "success")
    assert (job["progress"]["state"], job["progress"]["percent"]) == ("failed", None)
    assert (job["error"]["group"], job["error"]["backtrace"], job["error"]["lost"]) == ("Boom", ["a", "b"], False)
    assert job["lease"] is None
    assert [step["what"] for step in job["timeline"]] == ["created", "enqueued", "failed", "next try", "expires"]
    assert [step["ahead"] for step in job["timeline"]] == [False, False, False, True, True]
    assert job["timeline"][2]["note"] == "Boom: it broke"


@pytest.mark.parametrize(
    ("jid", "steps"),
    [
        ("job-00001", ["created", "enqueued", "leased", "lease ends"]),
        ("job-00002", ["created", "enqueued"]),
        ("job-00003", ["created", "enqueued", "failed", "next try"]),
        ("job-00004", ["created", "due"]),
        ("job-00005", ["created", "enqueued", "failed", "died", "purged"]),
    ],
)
def test_the_timeline_of_a_job_is_shown(client: Conversation, peer: ControlPeer, jid: str, steps: list[str]) -> None:
    five_jobs(client)
    assert [step["what"] for step in peer.ask("job", id=jid)["job"]["timeline"]] == steps


def test_an_expired_lease_is_shown(dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer) -> None:
    push(client, "job-00001", reserve_for=60)
    fetch(client, "job-00001")
    dispatcher.advance(61)
    job = peer.ask("job", id=1)["job"]
    assert job["error"]["lost"] is True
    assert [step["note"] for step in job["timeline"] if step["what"] == "failed"] == ["the lease expired"]


def test_a_missing_job_is_reported(client: Conversation, peer: ControlPeer) -> None:
    push(client, "job-00001", custom={"track": 1})
    fetch(client, "job-00001")
    client.ask('ACK {"jid":"job-00001"}')
    answer = peer.ask("job", id="job-00001")
    assert (answer["job"], answer["progress"]["state"]) == (None, "success")
    assert peer.ask("job", id=1) == {"error": "job 1 not found (completed and deleted jobs are not kept)"}


def test_a_payload_with_line_breaks_stays_on_its_line(dispatcher: PlainDispatcher, peer: ControlPeer) -> None:
    dispatcher.do(Enqueue("other", [Spec("job-00001", "q", "k", b'[1,\n "a\\n"]', Form.JSON, 0, RULES)]))
    assert peer.ask("job", id=1)["job"]["payload"] == [1, "a\n"]


@pytest.mark.parametrize(
    ("payload", "form", "shown"),
    [
        (b"", Form.NONE, None),
        (b"text\n", Form.RAW, "text\n"),
        (b"\xff", Form.RAW, {"base64": "/w=="}),
        (b'["\\ud800"]', Form.JSON, '["\\ud800"]'),  # not every decoder reads these two
        (b"[1e999]", Form.JSON, "[1e999]"),
    ],
)
def test_payloads_of_other_protocols_are_shown(
    dispatcher: PlainDispatcher, peer: ControlPeer, payload: bytes, form: Form, shown: object
) -> None:
    dispatcher.do(Enqueue("other", [Spec("job-00001", "q", "k", payload, form, 0, RULES)]))
    assert peer.ask("job", id=1)["job"]["payload"] == shown
    assert peer.ask("jobs")["jobs"][0]["payload_bytes"] == len(payload)


def test_queues(dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer) -> None:
    five_jobs(client)
    dispatcher.advance(7)
    client.ask("QUEUE PAUSE mail")
    (queue,) = peer.ask("queues")["queues"]
    assert (queue["queue"], queue["ready"], queue["paused"]) == ("mail", 1, True)
    assert queue["oldest_s"] == pytest.approx(7)
    assert "leased" not in queue
    (queue,) = peer.ask("queues", by_state=True)["queues"]
    assert [queue[state] for state in ("leased", "retrying", "scheduled", "dead")] == [1, 1, 1, 1]


def test_a_state_with_too_many_jobs_is_not_counted(dispatcher: PlainDispatcher, peer: ControlPeer) -> None:
    flood(dispatcher, TALLIED_AT_MOST, due=dispatcher.now.wall + 60)
    (queue,) = peer.ask("queues", by_state=True)["queues"]
    assert (queue["scheduled"], queue["dead"]) == (TALLIED_AT_MOST, 0), "the engine counts these states"
    dispatcher.do(Bury("faktory", list(dispatcher.state.jobs)))
    (queue,) = peer.ask("queues", by_state=True)["queues"]
    assert (queue["scheduled"], queue["dead"], queue["oldest_s"]) == (0, None, None)


def test_the_longest_queues_are_listed_first(dispatcher: PlainDispatcher, peer: ControlPeer) -> None:
    for n in range(5):
        flood(dispatcher, n, f"queue-{n}")
    answer = peer.ask("queues", by="ready", limit=2)
    assert [queue["queue"] for queue in answer["queues"]] == ["queue-4", "queue-3"]
    assert answer["after"] is None


def test_workers(
    dispatcher: PlainDispatcher, protocol: ClockedFaktory, client: Conversation, peer: ControlPeer
) -> None:
    five_jobs(client)
    other = Conversation(dispatcher, protocol)
    other.ask('HELLO {"v":2,"wid":"w0","hostname":"host-7","pid":77,"labels":["blue","x"]}')
    dispatcher.advance(3)
    client.ask('BEAT {"wid":"w1","rss_kb":2048}')
    dispatcher.advance(4)
    second = Conversation(dispatcher, protocol)
    second.ask('HELLO {"v":2,"wid":"w1"}')
    first, last = peer.ask("workers")["workers"]
    assert (first["worker"], first["hostname"], first["pid"], first["labels"]) == ("w0", "host-7", 77, ["blue", "x"])
    assert (first["leases"], first["beat_s"], first["connections"]) == (0, pytest.approx(7), 1)
    assert (last["leases"], last["beat_s"], last["connections"], last["rss_kib"]) == (1, pytest.approx(4), 2, 2048)
    assert last["state"] == "running"
    assert [row["worker"] for row in peer.all("workers", limit=1)] == ["w0", "w1"]


def test_batches(client: Conversation, peer: ControlPeer) -> None:
    bid = client.ask('BATCH NEW {"description":"import","success":{"jobtype":"done","args":[]}}').split()[1].decode()
    push(client, "job-00001", custom={"bid": bid})
    (batch,) = peer.ask("batches")["batches"]
    assert (batch["batch"], batch["state"], batch["total"], batch["pending"]) == (bid, "open", 1, 1)
    assert (batch["description"], batch["complete"], batch["success"]) == ("import", None, "waiting")
    client.ask(f"BATCH COMMIT {bid}")
    assert peer.ask("batches")["batches"][0]["state"] == "running"
    fetch(client, "job-00001")
    client.ask('ACK {"jid":"job-00001"}')
    (batch,) = peer.ask("batches")["batches"]
    assert (batch["pending"], batch["success"]) == (0, "pushed")


def test_cron(dispatcher: PlainDispatcher, peer: ControlPeer) -> None:
    spec = Spec("", "chores", "sweep", b"[]", Form.JSON, 0, RULES)
    dispatcher.do(SetSchedules([Schedule("nightly", "faktory", "0 3 * * *", "UTC", spec, 0.0)]))
    (row,) = peer.ask("schedules")["schedules"]
    assert (row["name"], row["schedule"], row["zone"], row["next"]) == (
        "nightly", "0 3 * * *", "UTC", "2026-11-16T03:00:00Z",
    )  # fmt: skip
    assert (row["queue"], row["kind"]) == ("chores", "sweep")
    assert row["next_s"] > 0


def test_status(client: Conversation, peer: ControlPeer) -> None:
    five_jobs(client)
    status = peer.ask("status")["status"]
    assert {state: count for state, count in status["states"].items() if count} == dict.fromkeys(STATES.values(), 1)
    assert (status["jobs"], status["queues"], status["workers"], status["pushed"]) == (5, 1, 1, 5)
    assert (status["processed"], status["failures"]) == (2, 2)
    assert status["version"] == VITALS.version
    assert status["sync"] == {"entries": 3, "p50_ms": 0.5, "p99_ms": 0.9, "worst_ms": 1.0}
    assert status["rates"]["processed"] == 3.0


def test_a_failure_without_a_text_is_shown_as_a_failure(dispatcher: PlainDispatcher, peer: ControlPeer) -> None:
    dispatcher.do(Enqueue("masenko", [spec("job-0001")]))
    dispatcher.do(LeaseNext("masenko", ("default",), "", LeaseTerms(60.0, 1.0, 60.0)))
    dispatcher.do(Fail("job-0001", Claim("masenko", ""), "", ""))
    assert peer.ask("jobs")["jobs"][0]["error"] == "failed (no reason given)"


def test_a_replayed_job_names_the_original(dispatcher: PlainDispatcher, peer: ControlPeer) -> None:
    repeated = Spec("job-00002", "default", "kind", b"[]", Form.JSON, 0, RULES, extra=Extra(replayed_from="job-00001"))
    dispatcher.do(Enqueue("crossdock", [repeated]))
    assert peer.ask("job", id="job-00002")["job"]["replayed_from"] == "job-00001"
