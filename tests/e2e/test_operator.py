"""Every operator's verb: the real command line against a real server, and what the server made of it."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import Ended, Operator
from tests.support.faktory_client import Client, job
from tests.support.server import Server

OPERATE = Path(__file__).parents[2] / "docs" / "how-to" / "operate.md"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as running:
        yield running


@pytest.fixture
def operator(server: Server, tmp_path: Path) -> Operator:
    return Operator.at(tmp_path, server.ports)


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with server.client(wid="worker-1") as connected:
        yield connected


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Operator, Client]]:
    """One server for all that is refused: none of it may leave a trace."""
    folder = tmp_path_factory.mktemp("untouched")
    with Server(folder / "data") as running, running.client() as connected:
        yield Operator.at(folder, running.ports), connected


def dead(client: Client, *jids: str) -> None:
    for jid in jids:
        client.push(jid, retry=-1)
        fetched = client.fetch()
        assert fetched is not None
        client.fail(fetched["jid"], "broken\x1b[31m")


def test_push_and_look(operator: Operator) -> None:
    jid = operator.tell("push", "mail", "welcome", '[42,"de"]').strip()
    named = operator.json(
        "push", "mail", "remind", "[1]", "--jid", "remind-1", "--at", "10m", "--priority", "9", "--retry", "3",
        "--reserve-for", "60", "--custom", '{"track":1}',
    )  # fmt: skip
    assert named == {"jid": "remind-1"}
    (queue,) = operator.json("queues")["queues"]
    assert (queue["queue"], queue["ready"], queue["scheduled"]) == ("mail", 1, 1)
    assert [row["jid"] for row in operator.json("jobs")["jobs"]] == [jid, "remind-1"]
    assert operator.tell("jobs", "--state", "scheduled", "--count") == "1 job\n"
    found = operator.json("job", "remind-1")["job"]
    assert (found["priority"], found["rules"]["max_failures"], found["rules"]["lease_s"]) == (4, 3, 60)
    assert (found["payload"], found["custom"], found["track"]["state"]) == ([1], {"track": 1}, "enqueued")
    assert operator.json("job", "2")["job"]["jid"] == "remind-1"
    assert '\n  payload   [42,"de"]\n' in operator.tell("job", jid)


def test_push_finds_the_port_the_server_chose(server: Server, tmp_path: Path) -> None:
    operator = Operator(tmp_path, server_data="data", listen_faktory="127.0.0.1:0")
    operator.tell("push", "mail", "welcome", "[]")
    assert operator.json("queues")["queues"][0]["ready"] == 1


def test_push_with_a_password(tmp_path: Path) -> None:
    with Server(tmp_path / "data", {"faktory.password": "hunter2"}) as server:
        where = {"server_data": "data", "listen_faktory": f"127.0.0.1:{server.port}"}
        knowing = Operator(tmp_path, **where, faktory_password="hunter2")
        knowing.tell("push", "mail", "welcome", "[]")
        wrong = Operator(tmp_path, **where, faktory_password="hunter3").run("push", "mail", "welcome", "[]")
        cure = "set faktory.password or CROSSDOCK_FAKTORY_PASSWORD to the server's"
        assert wrong == Ended("", f"crossdock: {where['listen_faktory']} has another password; {cure}\n", 1)
        without = Operator(tmp_path, **where).run("push", "mail", "welcome", "[]")
        assert without.code == 1
        assert "wants a password; set faktory.password or CROSSDOCK_FAKTORY_PASSWORD" in without.err
        assert knowing.json("queues")["queues"][0]["ready"] == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["push", "mail", "welcome", "42"], "ARGS_JSON must be a JSON array, such as '[1, \"two\"]'; in a shell it"),
        (["push", "mail", "welcome", "[1"], "ARGS_JSON must be a JSON array"),
        (
            ["push", "mail", "welcome", "[]", "--custom", "[]"],
            "--custom must be a JSON object, such as '{\"track\": 1}'",
        ),
        (["push", "ma il", "welcome", "[]"], 'cannot get "ma il" queue: queue names must match'),
        (
            ["push", "mail", "welcome", "[]", "--at", "yesterday"],
            "--at 'yesterday' is no time; write a date and time with its zone, 2026-12-01T03:00:00Z or",
        ),
        (
            ["push", "mail", "app.Welcome", "--via", "qless", "--at", "2026-12-01"],
            "--at '2026-12-01' names no time zone; write a date and time with its zone, 2026-12-01T03:00:00Z",
        ),
        (["push", "", "welcome", "[]"], "Invalid value for QUEUE: it is empty; name one\n"),
        (["push", "mail", "", "[]"], "Invalid value for KIND: it is empty; name one\n"),
        (["push", "mail", "welcome", "[]", "--jid", ""], "Invalid value for '--jid': it is empty; name one, or leave"),
        (["push", "", "text", "--via", "workq"], "Invalid value for NAME: it is empty"),
        (["push", "mail", "", "--via", "masenko"], "Invalid value for NAME: it is empty"),
        (["push", "", "app.Welcome", "--via", "qless"], "Invalid value for QUEUE: it is empty"),
        (["jobs", "--queue", "nope"], "there is no queue nope; crossdock queues lists them\n"),
        (["jobs", "--queue", "nope", "--count"], "there is no queue nope; crossdock queues lists them\n"),
        (["jobs", "--failure", "nope", "--json"], "there is no failure group nope; crossdock failures lists them\n"),
        (["unfail", "--failure", "nope", "--yes"], "there is no failure group nope; crossdock failures lists them\n"),
        (["delete", "--queue", "nope", "--yes"], "there is no queue nope; crossdock queues lists them\n"),
        (
            ["push", "mail", "welcome", "[]", "--at", "99999999999999d"],
            "--at '99999999999999d' is beyond the calendar; write for",
        ),
        (["top", "--every", "nan"], "Invalid value for '--every': 'nan' is no number of seconds"),
        (["push", "mail", "welcome", "[]", "--priority", "10"], "Invalid value for --priority: through Faktory"),
        (["jobs", "--state", "alive"], "Invalid value for '--state': 'alive' is not one of"),
        (["jobs", "--after", "nonsense"], "after is none of this server's cursors; leave it out to begin at the start"),
        (["job", "nobody"], "no job nobody is here; one that succeeded or was deleted is gone"),
        (["retry"], "say which jobs: ids, or --state, --queue, --kind, --tag, --failure, --older-than, or --all"),
        (["kill", "1", "--queue", "mail"], "give either ids or filters"),
        (["kill", "--state", "leased"], "Invalid value for '--state': 'leased' is not one of"),
        (["delete", "--queue", "", "--yes"], "Invalid value for '--queue': it is empty"),
        (["jobs", "--tag", ""], "Invalid value for '--tag': it is empty; name one, or leave the flag out"),
        (["pause"], "say which queues: their names, or --all"),
        (["pause", "nope"], "there is no queue nope; crossdock queues lists them"),
        (["terminate", "w9"], "there is no worker w9; crossdock workers lists them"),
    ],
)
def test_an_error_is_reported_in_one_sentence(
    untouched: tuple[Operator, Client], arguments: list[str], sentence: str
) -> None:
    operator, client = untouched
    ended = operator.run(*arguments)
    assert ended.code in (1, 2)
    assert ended.err.startswith(f"crossdock: {sentence}")
    assert ended.err.count("\n") == 1
    assert client.info()["faktory"]["queues"] == {}


def test_retry_kill_and_delete_by_name(operator: Operator, client: Client) -> None:
    dead(client, "job-00001", "job-00002")
    client.push("job-00003", at="2030-01-01T00:00:00Z")
    assert operator.tell("retry", "job-00001") == "retried 1 job\n"
    assert operator.json("kill", "3") == {"done": 1, "unknown": [], "refused": []}
    assert client.sizes() == {"enqueued": 1, "scheduled": 0, "retries": 0, "dead": 2, "working": 0}
    part = operator.run("delete", "job-00002", "nobody", "3")
    assert (part.out, part.err, part.code) == ("deleted 2 jobs\n", "crossdock: no job nobody is here\n", 1)
    assert operator.tell("kill", "1") == "killed 1 job\n"
    refused = operator.run("kill", "1")
    told = "crossdock: job 1 is dead, and was before: retry brings it back, delete takes it away\n"
    assert (refused.out, refused.err) == ("killed 0 jobs\n", told)


def test_a_leased_job_is_deleted_if_it_is_named(operator: Operator, client: Client) -> None:
    client.push("job-00001")
    client.fetch()
    assert operator.json("delete", "--all", "--yes") == {"matched": 0, "done": 0}
    assert operator.json("delete", "--state", "leased", "--yes") == {"matched": 1, "done": 1}
    client.ack("job-00001")
    assert client.sizes() == {"enqueued": 0, "scheduled": 0, "retries": 0, "dead": 0, "working": 0}


def test_an_action_on_many_asks_first(operator: Operator, client: Client) -> None:
    dead(client, "job-00001", "job-00002", "job-00003")
    choice = ["--state", "dead", "--kind", "test"]
    refused = operator.run("retry", *choice, says="n\n")
    assert (refused.out, refused.code) == ("", 1)
    assert refused.err == "3 jobs to retry\nretry them? [y/N]: crossdock: nothing was changed\n"
    silent = operator.run("retry", *choice)
    assert silent.code == 1
    assert silent.err.endswith("crossdock: nothing was changed: there is nobody to ask; say --yes\n")
    assert client.sizes()["dead"] == 3
    agreed = operator.run("retry", *choice, says="y\n")
    assert (agreed.out, agreed.code) == ("retried 3 jobs\n", 0)
    assert client.sizes()["enqueued"] == 3
    assert operator.json("retry", *choice, "--yes") == {"matched": 0, "done": 0}
    assert operator.json("delete", "--all", "--yes") == {"matched": 3, "done": 3}


def test_pause_and_resume(operator: Operator, client: Client, server: Server) -> None:
    client.push("job-00001", "mail")
    assert operator.tell("pause", "mail") == "paused 1 queue\n"
    server.restart()
    assert operator.json("queues")["queues"][0]["paused"] is True
    assert operator.json("resume", "--all") == {"done": ["mail"], "unknown": []}
    with server.client() as other:
        assert other.fetch("mail") is not None


def test_workers_hear_quiet_and_terminate(operator: Operator, client: Client) -> None:
    client.push("job-00001")
    client.fetch()
    (row,) = operator.json("workers")["workers"]
    assert (row["worker"], row["state"], row["leases"], row["connections"]) == ("worker-1", "running", 1, 1)
    assert operator.tell("quiet", "worker-1") == "quieted 1 worker\n"
    assert client.call("BEAT", {"wid": "worker-1", "rss_kb": 4_096}) == b'{"state":"quiet"}'
    assert operator.json("terminate", "--all") == {"done": ["worker-1"], "unknown": []}
    assert client.call("BEAT", {"wid": "worker-1"}) == b'{"state":"terminate"}'
    assert re.search(r"worker-1 +test +1 +terminate +1 +1 +\S+ +4 MiB", operator.tell("workers"))


def test_batches_and_cron(tmp_path: Path) -> None:
    config = tmp_path / "crossdock.toml"
    config.write_text(
        '[server]\ndata = "data"\n[[cron]]\nschedule = "0 3 * * *"\nname = "nightly"\n[cron.job]\ntype = "sweep"\n'
    )
    with Server(tmp_path / "data", {"config": config}) as server, server.client() as client:
        operator = Operator(tmp_path)
        (row,) = operator.json("cron")["cron"]
        assert (row["cron"], row["schedule"], row["zone"]) == ("nightly", "0 3 * * *", "UTC")
        bid = client.call("BATCH NEW", {"description": "import", "success": job("callback")}).decode()
        client.push("job-00001", custom={"bid": bid})
        assert re.search(rf"{bid}  faktory  open +1 +1 +0  - +waiting  - +import", operator.tell("batches"))
        client.call(f"BATCH COMMIT {bid}")
        (row,) = operator.json("batches")["batches"]
        assert (row["batch"], row["state"], row["total"], row["pending"]) == (bid, "running", 1, 1)


def test_pages_over_twelve_thousand_jobs_and_their_end(operator: Operator, client: Client, server: Server) -> None:
    jobs = 12_000
    for first in range(0, jobs, 1_000):
        client.push_many([job(f"job-{n:06d}", "mail") for n in range(first, first + 1_000)])
    page = operator.json("jobs", "--queue", "mail", "--limit", "500")
    rest = operator.json("jobs", "--queue", "mail", "--limit", "20000", "--after", page["after"])
    assert rest["after"] is None
    assert [row["jid"] for row in page["jobs"] + rest["jobs"]] == [f"job-{n:06d}" for n in range(jobs)]
    shown = operator.run("jobs", "--limit", "3")
    assert shown.out.count("\n") == 4
    assert re.fullmatch(r"there are more; the next page: --after \S+\n", shown.err)
    assert operator.tell("jobs", "--kind", "test", "--count") == "12,000 jobs\n"
    ended = operator.run("delete", "--queue", "mail", "--kind", "test", "--yes")
    assert (ended.out, ended.err) == ("deleted 12,000 jobs\n", "12,000 jobs to delete\n")
    server.restart()
    assert operator.json("jobs") == {"jobs": [], "after": None}


def test_what_clients_wrote_does_not_reach_the_terminal_raw(operator: Operator, client: Client) -> None:
    dead(client, "job-\x1b]0;x\x07")
    shown = operator.tell("jobs") + operator.tell("job", "1") + operator.tell("top", "--once")
    assert "\x1b" not in shown and "\x07" not in shown
    assert "job-\\x1b]0;x\\x07" in shown
    assert "broken\\x1b[31m" in shown


def test_top_prints_one_picture(operator: Operator, client: Client) -> None:
    client.push("job-00001", "mail")
    picture = operator.tell("top", "--once")
    assert re.search(r"^jobs +ready 1 ", picture, re.MULTILINE)
    assert re.search(r"sync p50 [\d.]+ ms p99 [\d.]+ ms", picture)
    assert re.search(r"^mail +1 ", picture, re.MULTILINE)
    assert re.search(r"^worker-1 +test +1 +running", picture, re.MULTILINE)
    assert operator.tell("top").startswith("Crossdock "), "nobody looks: one picture"
    seen = operator.json("top")
    assert list(seen) == ["status", "queues", "workers"]
    assert seen["status"]["doors"] == {"faktory": f"127.0.0.1:{client.socket.getpeername()[1]}"}


def test_the_how_to_is_true(tmp_path: Path) -> None:
    """Its examples, in order, on a server that nobody else uses."""
    (tmp_path / "crossdock.toml").write_text(
        '[server]\ndata = "data"\n[listen]\nfaktory = "127.0.0.1:0"\n'
        '[[cron]]\nschedule = "0 3 * * *"\ntimezone = "Europe/Berlin"\nname = "nightly"\n'
        '[cron.job]\ntype = "sweep"\nqueue = "chores"\n'
    )
    text = OPERATE.read_text("utf-8")
    examples = [
        example
        for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        for example in re.findall(r"^\$ crossdock (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    ]
    assert len(examples) == 36
    with Server(tmp_path / "data", {"config": tmp_path / "crossdock.toml"}):
        operator = Operator(tmp_path)
        for command, expected in examples:
            ended = operator.run(*shlex.split(command))
            first_counts = re.match(r"[\d,]+ jobs? to ", ended.err)
            said = ended.err + ended.out if first_counts else ended.out + ended.err
            pattern = ".*".join(map(re.escape, expected.split("…")))
            assert re.fullmatch(pattern, said, re.DOTALL), f"$ crossdock {command}\n{said}"


def test_plans(operator: Operator) -> None:
    assert operator.tell("plan", "add", "shop", "P1M", "Jobs\\Invoices", '{"dry": false}', "--id", "monthly") == (
        "shop_monthly\n"
    )
    made = operator.json("plan", "add", "shop", "10m", "Jobs\\Poll", "--uid", "poll", "--deferrable-by", "30")
    assert made["plan"].startswith("shop_")
    assert re.search(r"shop_monthly +P1M +\S+Z +\S+ +unassigned +Jobs\\Invoices", operator.tell("plans"))
    rows = operator.json("plans", "--source", "shop")["plans"]
    assert {row["interval"] for row in rows} == {"P1M", "PT600S"}
    removed = operator.tell("plan", "rm", "shop_monthly", made["plan"])
    assert removed == f"removed shop_monthly\nremoved {made['plan']}\n"
    gone = operator.run("plan", "rm", "shop_monthly")
    assert (gone.code, gone.err) == (1, "crossdock: there is no plan shop_monthly\n")
    wrong = operator.run("plan", "add", "shop", "1.5s", "C")
    assert (wrong.code, wrong.err) == (2, "crossdock: an interval is made of whole seconds\n")
    wrong = operator.run("plan", "add", "shop", "1d", "C", "--deferrable-by", "5")
    assert wrong.code == 2 and "--deferrable-by needs --uid" in wrong.err
    wrong = operator.run("plan", "add", "shop", "1d", "C", "--start", "soon")
    assert wrong.code == 2 and "'soon' is no time" in wrong.err
