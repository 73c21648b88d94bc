"""Every operator command: the real command line against a real server, and its effect."""

import re
import shlex
from collections.abc import Iterator
from datetime import datetime, timedelta
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
    """One server for all refused commands, which must have no effect."""
    folder = tmp_path_factory.mktemp("untouched")
    with Server(folder / "data") as running, running.client() as connected:
        yield Operator.at(folder, running.ports), connected


def push_dead_jobs(client: Client, *jids: str) -> None:
    for jid in jids:
        client.push(jid, retry=-1)
        fetched = client.fetch()
        assert fetched is not None
        client.fail(fetched["jid"], "broken\x1b[31m")


def test_push_and_show(operator: Operator) -> None:
    jid = operator.output("push", "mail", "welcome", '[42,"de"]').strip()
    named = operator.json(
        "push", "mail", "remind", "[1]", "--jid", "remind-1", "--at", "10m", "--priority", "9", "--retry", "3",
        "--reserve-for", "60", "--custom", '{"track":1}',
    )  # fmt: skip
    assert named == {"jid": "remind-1"}
    (queue,) = operator.json("queue", "list")["queues"]
    assert (queue["queue"], queue["ready"], queue["scheduled"]) == ("mail", 1, 1)
    assert [row["jid"] for row in operator.json("job", "list")["jobs"]] == [jid, "remind-1"]
    assert operator.output("job", "list", "--state", "scheduled", "--count") == "1 job\n"
    found = operator.json("job", "show", "remind-1")["job"]
    assert (found["priority"], found["policy"]["max_failures"], found["policy"]["lease_s"]) == (4, 3, 60)
    assert (found["payload"], found["custom"], found["progress"]["state"]) == ([1], {"track": 1}, "enqueued")
    assert operator.json("job", "show", "2")["job"]["jid"] == "remind-1"
    assert '\n  payload    [42,"de"]\n' in operator.output("job", "show", jid)


def test_push_finds_the_port_the_server_chose(server: Server, tmp_path: Path) -> None:
    operator = Operator(tmp_path, server_data="data", listen_faktory="127.0.0.1:0")
    operator.output("push", "mail", "welcome", "[]")
    assert operator.json("queue", "list")["queues"][0]["ready"] == 1


def test_push_with_a_password(tmp_path: Path) -> None:
    with Server(tmp_path / "data", {"faktory.password": "hunter2"}) as server:
        where = {"server_data": "data", "listen_faktory": f"127.0.0.1:{server.port}"}
        knowing = Operator(tmp_path, **where, faktory_password="hunter2")
        knowing.output("push", "mail", "welcome", "[]")
        wrong = Operator(tmp_path, **where, faktory_password="hunter3").run("push", "mail", "welcome", "[]")
        cure = "set faktory.password or CROSSDOCK_FAKTORY_PASSWORD to the server's"
        assert wrong == Ended("", f"crossdock: wrong password for {where['listen_faktory']}; {cure}\n", 1)
        without = Operator(tmp_path, **where).run("push", "mail", "welcome", "[]")
        assert without.code == 1
        assert "requires a password; set faktory.password or CROSSDOCK_FAKTORY_PASSWORD" in without.err
        assert knowing.json("queue", "list")["queues"][0]["ready"] == 1


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
            "--at 'yesterday' is not a time; write a date and time with its zone, 2026-12-01T03:00:00Z or",
        ),
        (
            ["push", "mail", "app.Welcome", "--via", "qless", "--at", "2026-12-01"],
            "--at '2026-12-01' names no time zone; write a date and time with its zone, 2026-12-01T03:00:00Z",
        ),
        (["push", "", "welcome", "[]"], "Invalid value for QUEUE: it is empty; give a name\n"),
        (["push", "mail", "", "[]"], "Invalid value for KIND: it is empty; give a name\n"),
        (
            ["push", "mail", "welcome", "[]", "--jid", ""],
            "Invalid value for '--jid': it is empty; give a name, or leave",
        ),
        (["push", "", "text", "--via", "workq"], "Invalid value for NAME: it is empty"),
        (["push", "mail", "", "--via", "masenko"], "Invalid value for NAME: it is empty"),
        (["push", "", "app.Welcome", "--via", "qless"], "Invalid value for QUEUE: it is empty"),
        (["job", "list", "--queue", "nope"], "queue nope not found; crossdock queue list shows all\n"),
        (["job", "list", "--queue", "nope", "--count"], "queue nope not found; crossdock queue list shows all\n"),
        (
            ["job", "list", "--failure", "nope", "--json"],
            "failure group nope not found; crossdock failure list shows all\n",
        ),
        (
            ["job", "retry", "--failure", "nope", "--yes"],
            "failure group nope not found; crossdock failure list shows all\n",
        ),
        (["job", "delete", "--queue", "nope", "--yes"], "queue nope not found; crossdock queue list shows all\n"),
        (
            ["push", "mail", "welcome", "[]", "--at", "99999999999999d"],
            "--at '99999999999999d' is beyond the calendar; write for",
        ),
        (["top", "--every", "nan"], "Invalid value for '--every': 'nan' is not a number of seconds"),
        (["push", "mail", "welcome", "[]", "--priority", "10"], "Invalid value for --priority: through Faktory"),
        (["job", "list", "--state", "alive"], "Invalid value for '--state': 'alive' is not one of"),
        (
            ["job", "list", "--after", "nonsense"],
            "after is not a cursor of this server; leave it out to begin at the start",
        ),
        (["job", "show", "missing"], "job missing not found (completed and deleted jobs are not kept)"),
        (
            ["job", "retry"],
            "choose jobs: IDs, a filter such as queue:mail, --state, --queue, --kind, --tag, --failure, ",
        ),
        (["job", "kill", "1", "--queue", "mail"], "give either IDs or filters, not both"),
        (["job", "kill", "1", "queue:mail"], "give either IDs or filters, not both"),
        (["job", "list", "queue:nope"], "queue nope not found; crossdock queue list shows all\n"),
        (
            ["job", "delete", "group:No*", "--yes"],
            "failure group No not found; crossdock failure list shows all\n",
        ),
        (
            ["job", "list", "--failure", "No*"],
            "failure group No not found; crossdock failure list shows all\n",
        ),
        (
            ["job", "list", "stat:dead"],
            'filter: stat:dead at position 1: unknown field "stat"; did you mean "state"?\n',
        ),
        (["job", "kill", "--state", "leased"], "Invalid value for '--state': 'leased' is not one of"),
        (["job", "delete", "--queue", "", "--yes"], "Invalid value for '--queue': it is empty"),
        (["job", "list", "--tag", ""], "Invalid value for '--tag': it is empty; give a name, or leave the flag out"),
        (["queue", "pause"], "choose queues: their names, or --all"),
        (["queue", "pause", "nope"], "queue nope not found; crossdock queue list shows all"),
        (["worker", "terminate", "w9"], "worker w9 not found; crossdock worker list shows all"),
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


def test_retry_kill_and_delete_by_id(operator: Operator, client: Client) -> None:
    push_dead_jobs(client, "job-00001", "job-00002")
    client.push("job-00003", at="2030-01-01T00:00:00Z")
    assert operator.output("job", "retry", "job-00001") == "retried 1 job\n"
    assert operator.json("job", "kill", "3") == {"done": 1, "unknown": [], "refused": []}
    assert client.sizes() == {"enqueued": 1, "scheduled": 0, "retries": 0, "dead": 2, "working": 0}
    assert operator.run("job", "retry", "stat:dead").err == (
        "crossdock: job stat:dead not found; for a filter, did you mean state:?\n"
    )
    part = operator.run("job", "delete", "job-00002", "missing", "3")
    assert (part.out, part.err, part.code) == ("deleted 2 jobs\n", "crossdock: job missing not found\n", 1)
    assert operator.output("job", "kill", "1") == "killed 1 job\n"
    refused = operator.run("job", "kill", "1")
    message = "crossdock: job 1 is dead, and was before: retry brings it back, delete takes it away\n"
    assert (refused.out, refused.err) == ("killed 0 jobs\n", message)


def test_commands_take_the_filter_language(operator: Operator, client: Client) -> None:
    push_dead_jobs(client, "job-00001", "job-00002")
    client.push("job-00003", "mail", args=["two words"])
    client.push("job-00004", "mail", at="2030-01-01T00:00:00Z")
    assert operator.output("job", "list", "state:ready,dead", "--count") == "3 jobs\n"
    assert operator.output("job", "list", "-state:dead", "--count") == "2 jobs\n"
    assert [row["jid"] for row in operator.json("job", "list", "payload:two words")["jobs"]] == ["job-00003"]
    assert [row["jid"] for row in operator.json("job", "list", 'queue:mail error:"x" -state:ready')["jobs"]] == []
    assert operator.json("job", "retry", "error:broken", "-id:job-00002", "--yes") == {"matched": 1, "done": 1}
    shown = operator.output("job", "show", "job-00004")
    assert re.match(
        r"job 4, scheduled for \S+\nnot running: it is scheduled for 2030-01-01 00:00 UTC, in \d+ d\n", shown
    )
    assert client.fetch("mail") is not None
    assert operator.json("job", "cancel", "queue:mail", "--yes") == {"matched": 2, "done": 2}
    assert client.sizes() == {"enqueued": 1, "scheduled": 0, "retries": 0, "dead": 1, "working": 0}


def test_a_leased_job_is_deleted_if_its_id_is_given(operator: Operator, client: Client) -> None:
    client.push("job-00001")
    client.fetch()
    assert operator.json("job", "delete", "--all", "--yes") == {"matched": 0, "done": 0}
    assert operator.json("job", "delete", "--state", "leased", "--yes") == {"matched": 1, "done": 1}
    client.ack("job-00001")
    assert client.sizes() == {"enqueued": 0, "scheduled": 0, "retries": 0, "dead": 0, "working": 0}


def test_an_action_on_many_jobs_asks_for_confirmation(operator: Operator, client: Client) -> None:
    push_dead_jobs(client, "job-00001", "job-00002", "job-00003")
    choice = ["--state", "dead", "--kind", "test"]
    refused = operator.run("job", "retry", *choice, stdin="n\n")
    assert (refused.out, refused.code) == ("", 1)
    assert refused.err == "3 jobs to retry\nretry them? [y/N]: crossdock: nothing was changed\n"
    silent = operator.run("job", "retry", *choice)
    assert silent.code == 1
    assert silent.err.endswith("crossdock: nothing was changed: stdin is not a terminal; pass --yes\n")
    assert client.sizes()["dead"] == 3
    agreed = operator.run("job", "retry", *choice, stdin="y\n")
    assert (agreed.out, agreed.code) == ("retried 3 jobs\n", 0)
    assert client.sizes()["enqueued"] == 3
    assert operator.json("job", "retry", *choice, "--yes") == {"matched": 0, "done": 0}
    assert operator.json("job", "delete", "--all", "--yes") == {"matched": 3, "done": 3}


def test_pause_and_resume(operator: Operator, client: Client, server: Server) -> None:
    client.push("job-00001", "mail")
    assert operator.output("queue", "pause", "mail") == "paused 1 queue\n"
    server.restart()
    assert operator.json("queue", "list")["queues"][0]["paused"] is True
    assert operator.json("queue", "resume", "--all") == {"done": ["mail"], "unknown": []}
    with server.client() as other:
        assert other.fetch("mail") is not None


def test_workers_receive_quiet_and_terminate(operator: Operator, client: Client) -> None:
    client.push("job-00001")
    client.fetch()
    (row,) = operator.json("worker", "list")["workers"]
    assert (row["worker"], row["state"], row["leases"], row["connections"]) == ("worker-1", "running", 1, 1)
    assert operator.output("worker", "quiet", "worker-1") == "quieted 1 worker\n"
    assert client.call("BEAT", {"wid": "worker-1", "rss_kb": 4_096}) == b'{"state":"quiet"}'
    assert operator.json("worker", "terminate", "--all") == {"done": ["worker-1"], "unknown": []}
    assert client.call("BEAT", {"wid": "worker-1"}) == b'{"state":"terminate"}'
    assert re.search(r"worker-1 +test +1 +terminate +1 +1 +\S+ +4 MiB", operator.output("worker", "list"))


def test_batches_and_cron_are_listed(tmp_path: Path) -> None:
    config = tmp_path / "crossdock.toml"
    config.write_text(
        '[server]\ndata = "data"\n[[cron]]\nschedule = "0 3 * * *"\nname = "nightly"\n[cron.job]\ntype = "sweep"\n'
    )
    with Server(tmp_path / "data", {"config": config}) as server, server.client() as client:
        operator = Operator(tmp_path)
        (row,) = operator.json("schedule", "list")["schedules"]
        assert (row["name"], row["source"], row["schedule"], row["zone"]) == ("nightly", "settings", "0 3 * * *", "UTC")
        refused = operator.run("schedule", "remove", "nightly")
        assert refused.err.startswith(f"crossdock: schedule nightly is defined in {config}; change it there and")
        jid = operator.output("schedule", "run", "nightly").strip()
        assert operator.json("queue", "show", "default")["queue"]["states"]["ready"] == 1
        assert operator.output("queue", "show", "default").startswith("queue default\n\n  first seen  ")
        operator.output("job", "delete", jid)
        bid = client.call("BATCH NEW", {"description": "import", "success": job("callback")}).decode()
        client.push("job-00001", custom={"bid": bid})
        assert re.search(rf"{bid}  faktory +open +1 +1 +0  - +waiting  - +import", operator.output("batch", "list"))
        client.call(f"BATCH COMMIT {bid}")
        (row,) = operator.json("batch", "list")["batches"]
        assert (row["batch"], row["state"], row["total"], row["pending"]) == (bid, "running", 1, 1)
        assert operator.output("batch", "show", bid).startswith(f"batch {bid}, running\n\n  protocol     faktory\n")
        shown = operator.json("batch", "show", bid)["batch"]
        # The end is kept on the steady clock, so its wall time is computed for each reply.
        assert abs(datetime.fromisoformat(shown["ends"]) - datetime.fromisoformat(row["ends"])) < timedelta(seconds=1)
        callback = {"call": "success", "jid": "callback", "kind": "test", "queue": "default", "state": "waiting"}
        assert shown == row | {"children": [], "callbacks": [callback], "ends": shown["ends"]}


def test_a_list_of_twelve_thousand_jobs_is_paged(operator: Operator, client: Client, server: Server) -> None:
    jobs = 12_000
    for first in range(0, jobs, 1_000):
        client.push_many([job(f"job-{n:06d}", "mail") for n in range(first, first + 1_000)])
    page = operator.json("job", "list", "--queue", "mail", "--limit", "500")
    rest = operator.json("job", "list", "--queue", "mail", "--limit", "20000", "--after", page["after"])
    assert rest["after"] is None
    assert [row["jid"] for row in page["jobs"] + rest["jobs"]] == [f"job-{n:06d}" for n in range(jobs)]
    shown = operator.run("job", "list", "--limit", "3")
    assert shown.out.count("\n") == 4
    assert re.fullmatch(r"there are more jobs; for the next page add --after \S+\n", shown.err)
    assert operator.output("job", "list", "--kind", "test", "--count") == "12,000 jobs\n"
    ended = operator.run("job", "delete", "--queue", "mail", "--kind", "test", "--yes")
    assert (ended.out, ended.err) == ("deleted 12,000 jobs\n", "12,000 jobs to delete\n")
    server.restart()
    assert operator.json("job", "list") == {"jobs": [], "after": None}


def test_control_characters_of_clients_do_not_reach_the_terminal(operator: Operator, client: Client) -> None:
    push_dead_jobs(client, "job-\x1b]0;x\x07")
    shown = operator.output("job", "list") + operator.output("job", "show", "1") + operator.output("top", "--once")
    assert "\x1b" not in shown and "\x07" not in shown
    assert "job-\\x1b]0;x\\x07" in shown
    assert "broken\\x1b[31m" in shown


def test_top_prints_one_screen_without_a_terminal(operator: Operator, client: Client) -> None:
    client.push("job-00001", "mail")
    picture = operator.output("top", "--once")
    assert re.search(r"^jobs +ready 1 ", picture, re.MULTILINE)
    assert re.search(r"sync p50 [\d.]+ ms p99 [\d.]+ ms", picture)
    assert re.search(r"^mail +1 ", picture, re.MULTILINE)
    assert re.search(r"^worker-1 +test +1 +running", picture, re.MULTILINE)
    assert operator.output("top").startswith("Crossdock "), "without a terminal there is one screen"
    seen = operator.json("top")
    assert list(seen) == ["status", "queues", "workers"]
    assert seen["status"]["listeners"] == {"faktory": f"127.0.0.1:{client.socket.getpeername()[1]}"}


def test_the_examples_of_the_how_to_work(tmp_path: Path) -> None:
    """Runs the examples in order on a new server."""
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
    assert len(examples) == 44
    with Server(tmp_path / "data", {"config": tmp_path / "crossdock.toml"}):
        operator = Operator(tmp_path)
        for command, expected in examples:
            ended = operator.run(*shlex.split(command))
            first_counts = re.match(r"[\d,]+ jobs? to ", ended.err)
            said = ended.err + ended.out if first_counts else ended.out + ended.err
            pattern = ".*".join(map(re.escape, expected.split("…")))
            assert re.fullmatch(pattern, said, re.DOTALL), f"$ crossdock {command}\n{said}"


def test_schedules_are_added_listed_and_removed(operator: Operator) -> None:
    plan = ("schedule", "add", "shop_monthly", "--via", "resqu", "--every", "P1M", "--kind", "Jobs\\Invoices")
    assert operator.output(*plan, "--payload", '{"dry": false}').startswith("schedule shop_monthly, P1M\n")
    poll = ("schedule", "add", "shop_poll", "--via", "resqu", "--every", "10m", "--kind", "Jobs\\Poll")
    made = operator.json(*poll, "--uid", "poll", "--deferrable-by", "30")["schedule"]
    assert (made["name"], made["deferrable_by"]) == ("shop_poll", 30)
    listed = operator.output("schedule", "list")
    assert re.search(r"shop_monthly +resqu +P1M +UTC +\S+Z +\S+ +unassigned +Jobs\\Invoices", listed)
    rows = operator.json("schedule", "list", "--source-id", "shop")["schedules"]
    assert {row["schedule"] for row in rows} == {"P1M", "PT600S"}
    removed = operator.output("schedule", "remove", "shop_monthly", "shop_poll")
    assert removed == "removed shop_monthly\nremoved shop_poll\n"
    gone = operator.run("schedule", "remove", "shop_monthly")
    assert (gone.code, gone.err) == (
        1, "crossdock: schedule shop_monthly not found; crossdock schedule list shows all\n",
    )  # fmt: skip
    new = ("schedule", "add", "shop_x", "--via", "resqu", "--kind", "C", "--every")
    wrong = operator.run(*new, "1.5s")
    assert (wrong.code, wrong.err) == (1, "crossdock: a Resqu interval must be in whole seconds\n")
    wrong = operator.run(*new, "1d", "--deferrable-by", "5")
    assert wrong.code == 1 and "deferrable_by needs uid" in wrong.err
    wrong = operator.run(*new, "1d", "--start", "soon")
    assert wrong.code == 2 and "'soon' is not a time" in wrong.err
