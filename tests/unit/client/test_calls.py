"""Both clients against a server that loses requests and replies: what is repeated, what is not, and the errors."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from crossdock.client.aio import AsyncClient
from crossdock.client.client import Client
from crossdock.client.errors import (
    Broken,
    ClientError,
    Closed,
    InvalidJob,
    JobCancelled,
    JobFailed,
    NoServer,
    NotUnique,
    PayloadTooLarge,
    PushRefused,
    Refused,
    ResultTimeout,
    ServerFull,
    UnknownJob,
    Unsupported,
)
from crossdock.client.jobs import NewJob, RateLimit, Schedule
from crossdock.client.retries import Patience
from tests.support.fake_faktory import FULL, FakeServer, bulk


class Run(Protocol):
    """Calls a method of a client, blocking or not, by its name."""

    def __call__(self, server: FakeServer, method: str, *args: Any, **options: Any) -> Any: ...


def blocking(
    server: FakeServer, method: str, *args: Any, patience_s: float = 60.0, wid: str = "", **options: Any
) -> Any:
    with Client("crossdock://:s3cret@host", connect=server.connect, patience_s=patience_s, wid=wid) as client:
        found = getattr(client, method)(*args, **options)
        return list(found) if isinstance(found, Iterator) else found


def asynchronous(
    server: FakeServer, method: str, *args: Any, patience_s: float = 60.0, wid: str = "", **options: Any
) -> Any:
    async def run() -> Any:
        url = "crossdock://:s3cret@host"
        async with AsyncClient(url, connect=server.connect, patience_s=patience_s, wid=wid) as client:
            found = getattr(client, method)(*args, **options)
            return [each async for each in found] if hasattr(found, "__aiter__") else await found

    return asyncio.run(run())


@pytest.fixture(params=[blocking, asynchronous], ids=["blocking", "asyncio"])
def run(request: pytest.FixtureRequest) -> Run:
    found: Run = request.param
    return found


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    after = Patience.after

    def at_once(self: Patience, error: ClientError, *, sent: bool = False) -> float:
        return after(self, error, sent=sent) * 0

    monkeypatch.setattr(Patience, "after", at_once)


def jobs(count: int, **options: Any) -> list[NewJob]:
    return [NewJob(kind="k", args=[number], jid=f"jid-{number:05d}", **options) for number in range(count)]


# Pushing


def test_a_push_whose_reply_is_lost_is_repeated_and_pushed_once(run: Run) -> None:
    server = FakeServer(faults=["lost", "unsent", "lost"])
    (job,) = jobs(1)
    assert run(server, "push", job) == job.jid
    assert server.jids() == [job.jid]
    assert len(server.transports) == 4


def test_a_bulk_push_whose_replies_are_lost_pushes_each_job_once(run: Run) -> None:
    server = FakeServer(faults=["", "lost", "unsent", "", "", "lost"])
    many = jobs(9_500)
    assert run(server, "push_many", iter(many)) == [job.jid for job in many]
    assert sorted(server.jids()) == [job.jid for job in many]


def test_a_push_to_a_plain_server_is_not_repeated_because_it_would_be_a_second_job(run: Run) -> None:
    server = FakeServer(extensions=(), faults=["lost"])
    with pytest.raises(Broken, match="not known whether the request was executed"):
        run(server, "push", jobs(1)[0])
    assert len(server.pushed) == 1
    server = FakeServer(extensions=(), faults=["lost"])
    with pytest.raises(Broken, match="not known whether the request was executed"):
        run(server, "push_many", jobs(3))


def test_a_server_that_cannot_be_reached_is_tried_again(run: Run) -> None:
    server = FakeServer(unreachable=5)
    run(server, "push", jobs(1)[0])
    server = FakeServer(unreachable=5)
    run(server, "push_many", jobs(2))
    assert len(server.pushed) == 2


@pytest.mark.parametrize("method", ["push", "push_many", "info", "features"])
def test_without_a_server_the_error_names_the_cure_and_no_password(run: Run, method: str) -> None:
    server = FakeServer(unreachable=1_000_000)
    known: dict[str, list[Any]] = {"push": jobs(1), "push_many": [jobs(1)]}
    arguments = known.get(method, [])
    with pytest.raises(
        NoServer, match=r"no server answers at crossdock://host:7419: .*start it with crossdock up"
    ) as caught:
        run(server, method, *arguments, patience_s=0)
    assert "s3cret" not in str(caught.value)


def test_a_server_that_is_full_is_tried_again(run: Run) -> None:
    server = FakeServer(faults=["full", "full"])
    run(server, "push", jobs(1)[0])
    server = FakeServer(faults=["full", "", "full"])
    run(server, "push_many", jobs(2_500))
    assert sorted(server.jids()) == [job.jid for job in jobs(2_500)]


@pytest.mark.parametrize(("method", "argument"), [("push", jobs(1)[0]), ("push_many", jobs(3))])
def test_a_server_that_stays_full(run: Run, method: str, argument: Any) -> None:
    server = FakeServer(faults=["full"] * 1_000)
    with pytest.raises(ServerFull, match=r"raise limits\.jobs"):
        run(server, method, argument, patience_s=0)


def test_a_bulk_push_is_split_by_bytes_and_by_number(run: Run) -> None:
    server = FakeServer(line_bytes=5_000)
    many = [NewJob(kind="k", args=["x" * (200 + number % 300)]) for number in range(500)]
    run(server, "push_many", many)
    assert max(map(len, server.lines)) <= 5_000
    assert server.jids() == [job.jid for job in many]
    server = FakeServer()
    run(server, "push_many", jobs(2_500))
    assert [len(json.loads(line[6:])) for line in server.lines] == [1_000, 1_000, 500]


def test_a_bulk_push_of_nothing_needs_no_server(run: Run) -> None:
    assert run(FakeServer(unreachable=1_000_000), "push_many", [], patience_s=0) == []


def test_a_job_that_is_too_long_ends_a_bulk_push_and_the_error_says_how_many_were_pushed(run: Run) -> None:
    server = FakeServer(line_bytes=1_000)
    with pytest.raises(PayloadTooLarge, match="25 jobs before it were pushed"):
        run(server, "push_many", [*jobs(25), NewJob(kind="k", args=["x" * 1_000]), *jobs(3)])
    assert len(server.pushed) == 25


def test_a_job_that_cannot_be_encoded_leaves_the_connection_usable() -> None:
    server = FakeServer()
    with Client(connect=server.connect) as client:
        for _ in range(3):
            with pytest.raises(InvalidJob, match="argument 1"):
                client.push(NewJob(kind="k", args=[object()]))
        client.push(jobs(1)[0])
    assert len(server.transports) == 1


def test_an_iterable_that_fails_closes_the_connection_because_replies_are_missing() -> None:
    def failing() -> Iterator[NewJob]:
        yield from jobs(3_000)
        raise RuntimeError("no more")

    server = FakeServer()
    with Client(connect=server.connect) as client:
        with pytest.raises(RuntimeError, match="no more"):
            client.push_many(failing())
        client.push(NewJob(kind="k"))
    assert len(server.transports) == 2


def test_an_error_of_another_call_in_the_iterable_is_raised_after_the_jobs_before_it_were_pushed(run: Run) -> None:
    def failing() -> Iterator[NewJob]:
        yield from jobs(1_500)
        raise NoServer("no other server")

    server = FakeServer()
    with pytest.raises(NoServer, match="no other server"):
        run(server, "push_many", failing())
    assert len(server.pushed) == 1_500


def test_a_connection_that_was_lost_since_the_last_call_is_replaced_also_without_patience() -> None:
    for method, argument in (("push", NewJob(kind="k")), ("push_many", jobs(3))):
        server = FakeServer()
        with Client(connect=server.connect, patience_s=0) as client:
            client.push(NewJob(kind="k"))
            server.faults.append("unsent")
            getattr(client, method)(argument)
        assert len(server.transports) == 2


def test_refusals_of_a_bulk_push_are_listed(run: Run) -> None:
    server = FakeServer(answers={"PUSHB": bulk({"jid-00001": "jobs must have a jobtype parameter"})})
    with pytest.raises(PushRefused, match="2 jobs were pushed; the server refused jid-00001: jobs must") as caught:
        run(server, "push_many", jobs(3))
    assert list(caught.value.refused) == ["jid-00001"]


@pytest.mark.parametrize(
    ("reply", "kind", "text"),
    [
        (b"-ERR jobs must have a jobtype parameter\r\n", Refused, "jobtype"),
        (b"-NOTUNIQUE Job not unique\r\n", NotUnique, "already there"),
        (b"-ERR " + FULL.encode() + b"\r\n", ServerFull, "its limit"),
        (b"-ERR shutdown in progress\r\n", Broken, "shutdown"),
        (b"+WHAT\r\n", Broken, "unexpected reply"),
        (b"*1\r\n", Broken, "unexpected reply"),
    ],
)
def test_the_errors_of_a_push(run: Run, reply: bytes, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        run(FakeServer(answers={"PUSH": reply}), "push", jobs(1)[0], patience_s=0)


# A plain server


@pytest.mark.parametrize(
    ("method", "arguments", "extension"),
    [
        ("cancel", ["jid-00001"], "cancel"),
        ("result", ["jid-00001"], "results"),
        ("follow", ["jid-00001"], "waits"),
        ("snooze", ["jid-00001", 5], "leases"),
        ("extend", [["jid-00001"], 5], "leases"),
        ("fetch", [["q"], 1, 0, 60], "leases"),
        ("sync_schedules", ["app", [Schedule(name="s", job=NewJob(kind="k"), every_s=5)]], "schedules"),
        ("sync_rates", ["app", [RateLimit(count=1, per_s=1, kind="k")]], "rates"),
    ],
)
def test_what_needs_an_extension_names_it(run: Run, method: str, arguments: list[Any], extension: str) -> None:
    with pytest.raises(Unsupported, match=f"needs the extension '{extension}'"):
        run(FakeServer(extensions=()), method, *arguments, wid="w")


FETCHED = {"jid": "jid-00001", "jobtype": "k", "queue": "q", "args": [1], "failure": {"retry_count": 2}}


def test_a_plain_server_serves_jobs_one_by_one(run: Run) -> None:
    server = FakeServer(
        extensions=(), answers={"FETCH": bulk(FETCHED), "TRACK": bulk({"jid": "j", "state": "working"})}
    )
    (job,) = run(server, "fetch", ["q", "r"], 10)
    assert (job.jid, job.attempt, bytes(job.args), job.origin) == ("jid-00001", 4, b"[1]", "faktory")
    assert run(server, "ack", [("jid-00001", b"1"), ("jid-00002", None)]) == {}
    assert run(server, "fail", "jid-00001", "E", "text", ["line"])
    assert run(server, "progress", "jid-00001").state == "working"
    assert server.lines == [
        b"FETCH q r", b'ACK {"jid":"jid-00001"}', b'ACK {"jid":"jid-00002"}',
        b'FAIL {"jid":"jid-00001","errtype":"E","message":"text","backtrace":["line"]}', b"TRACK GET jid-00001",
    ]  # fmt: skip


def test_a_fetch_without_a_job(run: Run) -> None:
    assert run(FakeServer(extensions=(), answers={"FETCH": b"$-1\r\n"}), "fetch", ["q"]) == []
    assert run(FakeServer(answers={"FETCHB": b"$2\r\n[]\r\n"}), "fetch", ["q"]) == []


# Settling


def test_what_was_settled_by_a_try_whose_reply_was_lost_counts_as_settled(run: Run) -> None:
    refused = {"FAIL": b"-ERR Job not found jid-00001\r\n", "SNOOZE": b"-ERR Job not found jid-00001\r\n"}
    acked = {"ACKB": bulk({"refused": {"jid-00001": "job not found"}})}
    server = FakeServer(answers=refused | acked, faults=["lost", "", "lost", "", "lost", ""])
    assert run(server, "fail", "jid-00001", "E", "text") is True
    assert run(server, "snooze", "jid-00001", 5) is True
    assert run(server, "ack", [("jid-00001", None)]) == {}
    assert run(server, "fail", "jid-00001", "E", "text") is False
    assert run(server, "snooze", "jid-00001", 5) is False
    assert run(server, "ack", [("jid-00001", None)]) == {"jid-00001": "job not found"}


def test_acks_are_split_by_number_and_by_bytes(run: Run) -> None:
    server = FakeServer(answers={"ACKB": bulk({"refused": {}})})
    run(server, "ack", [(f"jid-{number:05d}", None) for number in range(2_500)])
    assert [line.count(b"jid-") for line in server.lines] == [1_000, 1_000, 500]
    server.lines.clear()
    run(server, "ack", [(f"jid-{number:05d}", b'"%b"' % (b"x" * 1_000_000)) for number in range(6)])
    assert [line.count(b"jid-") for line in server.lines] == [4, 2]


def test_only_a_worker_beats_and_extends(run: Run) -> None:
    for method, arguments in (("beat", []), ("extend", [["jid-00001"], 5])):
        with pytest.raises(ValueError, match="give the client a wid"):
            run(FakeServer(), method, *arguments)
    server = FakeServer(answers={"EXTEND": bulk({"lost": ["jid-00001"]}), "BEAT": bulk({"state": "quiet"})})
    assert run(server, "extend", ["jid-00001"], 5, wid="w") == ["jid-00001"]
    assert run(server, "beat", "", 100, wid="w") == "quiet"
    assert server.lines[-1] == b'BEAT {"wid":"w","rss_kb":100}'
    assert run(FakeServer(), "beat", wid="w") == ""


@pytest.mark.parametrize("name", ["a b", "a\r\nFLUSH", "", "x" * 256])
def test_a_name_cannot_contain_another_request(run: Run, name: str) -> None:
    server = FakeServer(extensions=())
    for method, argument in (("fetch", [name]), ("progress", name), ("batch_status", name), ("open_batch", name)):
        with pytest.raises(InvalidJob):
            run(server, method, argument)
    assert server.lines == []


# Results and progress


def outcome(**members: Any) -> FakeServer:
    return FakeServer(answers={"RESULT": bulk({"jid": "jid-00001"} | members)})


def test_results(run: Run) -> None:
    assert run(outcome(state="done", result={"a": 1}), "result", "jid-00001") == b'{"a": 1}'
    assert run(outcome(state="done"), "result", "jid-00001") == b"null"
    error = {"type": "ValueError", "message": "bad", "backtrace": ["line"]}
    with pytest.raises(JobFailed, match="job jid-00001 failed: ValueError: bad") as failed:
        run(outcome(state="dead", error=error, attempts=3), "result", "jid-00001")
    assert (failed.value.kind, failed.value.backtrace, failed.value.attempts) == ("ValueError", ("line",), 3)
    with pytest.raises(JobCancelled, match="was cancelled: changed my mind"):
        run(outcome(state="cancelled", error={"message": "changed my mind"}), "result", "jid-00001")
    with pytest.raises(UnknownJob, match="keep_result_s"):
        run(outcome(state="unknown"), "result", "jid-00001")
    with pytest.raises(ResultTimeout, match="may still run"):
        run(outcome(state="running"), "result", "jid-00001", 0)


def test_an_end_is_awaited_longer_than_one_request_may_wait() -> None:
    server = FakeServer(answers={"RESULT": bulk({"jid": "jid-00001", "state": "done"})})
    with Client(connect=server.connect, timeout_s=30) as client:
        client.result("jid-00001", 500)
    assert json.loads(server.lines[0][7:])["wait_s"] == 60
    assert server.transports[0].timeouts == [90, 30], "the reply may take the wait and the usual time"


def test_progress_is_followed_to_its_end(run: Run) -> None:
    server = FakeServer(answers={"TRACK": bulk({"jid": "j", "state": "success", "percent": 100, "updated_at": "1"})})
    assert [each.percent for each in run(server, "follow", "jid-00001")] == [100]
    unknown = FakeServer(answers={"TRACK": bulk({"jid": "j", "state": "unknown", "updated_at": ""})})
    with pytest.raises(UnknownJob, match="track=True"):
        run(unknown, "follow", "jid-00001")
    working = FakeServer(answers={"TRACK": bulk({"jid": "j", "state": "working", "updated_at": "1"})})
    with pytest.raises(ResultTimeout):
        run(working, "follow", "jid-00001", 0)


# Batches


def test_a_batch_is_not_committed_when_an_error_leaves_its_block() -> None:
    server = FakeServer(answers={"BATCH": b"$3\r\nb-1\r\n"})

    def push(client: Client) -> None:
        with client.batch("text", success=NewJob(kind="done", jid="callback")) as batch:
            batch.push(jobs(1)[0])
            raise RuntimeError

    with Client(connect=server.connect) as client, pytest.raises(RuntimeError):
        push(client)
    assert [job["custom"] for job in server.pushed] == [{"bid": "b-1"}]
    assert not any(line.startswith(b"BATCH COMMIT") for line in server.lines)


def test_a_batch_needs_a_callback() -> None:
    with pytest.raises(InvalidJob, match="needs a success or a complete callback"), Client().batch():
        pass


# The client itself


def test_a_closed_client_says_so(run: Run) -> None:
    with Client(connect=FakeServer().connect) as client:
        client.push(jobs(1)[0])
    with pytest.raises(Closed):
        client.push(jobs(1)[0])

    async def closed() -> None:
        client = AsyncClient(connect=FakeServer().connect)
        await client.close()
        await client.push(jobs(1)[0])

    with pytest.raises(Closed):
        asyncio.run(closed())


def test_connections_beyond_the_pool_are_closed() -> None:
    server = FakeServer()
    with Client(connect=server.connect, pool_size=0) as client:
        client.push(jobs(1)[0])
        client.push(NewJob(kind="k"))
        assert [transport.is_open for transport in server.transports] == [False, False]


def test_neither_client_shows_its_password() -> None:
    for made in (Client, AsyncClient):
        assert repr(made("crossdock://:s3cret@host")) == f"{made.__name__}('crossdock://host:7419')"


def test_a_schedule_has_a_job_without_an_id(run: Run) -> None:
    server = FakeServer(answers={"SCHEDULE": b"+OK\r\n", "RATE": b"+OK\r\n"})
    run(
        server, "sync_schedules", "shop", [Schedule(name="nightly", cron="0 3 * * *", zone="UTC", job=NewJob(kind="k"))]
    )
    verb, word, body = server.lines[0].split(b" ", 2)
    assert (verb, word) == (b"SCHEDULE", b"SYNC")
    assert json.loads(body)["schedules"] == [
        {
            "name": "nightly",
            "job": {"jobtype": "k", "queue": "default", "args": [], "retry": 25},
            "cron": "0 3 * * *",
            "zone": "UTC",
        }
    ]
    run(server, "sync_rates", "shop", [RateLimit(kind="k", count=10, per_s=60)])
    assert server.lines[1] == b'RATE SYNC {"app":"shop","rates":[{"count":10,"per_s":60,"kind":"k"}]}'
