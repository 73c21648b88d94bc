"""`job show` with the history of a job from the lake, and times in the local zone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Operator
from tests.support.patience import wait_until
from tests.support.server import Server

EVENTS = ["pushed", "leased", "failed", "leased", "succeeded"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("history")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """Job 1 has failed once and then succeeded. Job 2 waits."""
    with Server(folder / "data", {"lake.segment_s": 0.2}, protocols=("faktory", "http")) as running:
        here = Operator(folder, server_data="data")
        with running.client(wid="worker-1") as client:
            client.push("job-ended", "mail")
            assert client.fetch("mail") is not None
            client.fail("job-ended", "no such \x1b[31muser")
            here.output("job", "retry", "job-ended")
            assert client.fetch("mail") is not None
            client.ack("job-ended")
            client.push("job-waits", "mail")
        wait_until(lambda: events_in(here.run("job", "show", "2", "--history").out) == ["pushed"], "job 2 in the lake")
        yield running


@pytest.fixture
def here(server: Server, folder: Path) -> Operator:
    return Operator(folder, server_data="data")


@pytest.fixture
def remote(server: Server, folder: Path) -> Operator:
    return Operator(folder, server=f"http://127.0.0.1:{server.ports['http']}")


def events_in(output: str) -> list[str]:
    return [line.split()[1] for line in output.partition("\nhistory\n")[2].splitlines() if line.startswith("  ")]


@pytest.mark.parametrize("ident", ["1", "job-ended"])
def test_a_job_that_is_gone_is_shown_with_its_history(here: Operator, ident: str) -> None:
    shown = here.output("job", "show", ident)
    assert shown.startswith(f"job {ident} is gone from the server\n")
    assert [each for each in events_in(shown) if each in EVENTS] == EVENTS[::-1], "newest first"
    assert "attempt 2, " in shown and "by worker-1" in shown
    assert "no such \\x1b[31muser" in shown
    assert "\nsearched 1 day back to " in shown and " ended at: its push; the lake has events up to " in shown


def test_the_history_over_http_is_that_of_the_lake(here: Operator, remote: Operator) -> None:
    def plain(found: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in found.items() if name not in ("seconds", "upto")}

    mine, far = (each.json("job", "show", "1") for each in (here, remote))
    assert (far["job"], far["progress"]) == (None, None)
    assert plain(far["history"]) == plain(mine["history"])
    assert [each["event"] for each in far["history"]["events"] if each["event"] in EVENTS] == EVENTS, "oldest first"
    assert mine["history"]["complete"] is True
    for ident in ("1", "job-ended"):
        assert events_in(remote.output("job", "show", ident)) == events_in(here.output("job", "show", ident))


def test_a_live_job_has_a_history_with_the_flag_only(here: Operator, remote: Operator) -> None:
    for operator in (here, remote):
        assert "\nhistory\n" not in operator.output("job", "show", "job-waits")
        assert "history" not in operator.json("job", "show", "job-waits")
        shown = operator.output("job", "show", "job-waits", "--history")
        assert shown.startswith("job 2, ready for ")
        assert events_in(shown) == ["pushed"]
        found = operator.json("job", "show", "2", "--history")
        assert (found["job"]["number"], [each["event"] for each in found["history"]["events"]]) == (2, ["pushed"])


def test_a_job_that_never_existed_is_an_error_that_says_how_far_it_was_looked_for(
    here: Operator, remote: Operator
) -> None:
    for operator in (here, remote):
        ended = operator.run("job", "show", "999")
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.startswith(
            "crossdock: job 999 not found (completed and deleted jobs are not kept); the lake does not have it, "
            "either: searched 1 day back to "
        )
        found = operator.run("job", "show", "999", "--json")
        assert found.code == 1
        assert json.loads(found.out)["error"].startswith("job 999 not found")


def test_local_times_have_the_offset_of_the_zone(here: Operator, folder: Path) -> None:
    operator = Operator(folder, server_data="data", local="1")
    operator.environment["TZ"] = here.environment["TZ"] = "Asia/Kathmandu"
    for command in (
        ("job", "show", "2", "--history"),
        ("queue", "show", "mail"),
        ("audit", "list"),
        ("lake", "status"),
    ):
        shown = operator.output(*command)
        assert "+05:45" in shown, command
        assert shown.count("+05:45") == here.output("--local", *command).count("+05:45")
        assert "+05:45" not in here.output(*command)
    assert operator.json("queue", "show", "mail")["queue"]["first_seen"].endswith("Z"), "programs read UTC"


def operators(folder: Path, server: Server) -> tuple[Operator, Operator]:
    """On the machine of the server, and elsewhere."""
    return Operator(folder, server_data="data"), Operator(folder, server=f"http://127.0.0.1:{server.ports['http']}")


def test_a_new_server_says_when_its_history_begins(tmp_path: Path) -> None:
    with Server(tmp_path / "data", {"lake.segment_s": 600}, protocols=("faktory", "http")) as server:
        with server.client() as client:
            client.push("job-00001", "mail")
        for operator in operators(tmp_path, server):
            ended = operator.run("job", "show", "1", "--history")
            assert ended.out.startswith("job 1, ready for "), "the live state is shown all the same"
            assert ended.code == 1
            assert ended.err == (
                "crossdock: the lake has no events yet: the server writes its first segment when its oldest event is "
                "600 s old (lake.segment_s); try again then\n"
            )


def test_a_server_without_a_lake_says_so(tmp_path: Path) -> None:
    with Server(tmp_path / "data", {"lake.on": "false"}, protocols=("faktory", "http")) as server:
        for operator in operators(tmp_path, server):
            ended = operator.run("job", "show", "999")
            assert ended.code == 1
            assert ended.err.endswith("this server writes no history, because lake.on is false\n")


def test_the_live_state_as_json_has_the_reason_if_there_is_no_history(tmp_path: Path) -> None:
    with Server(tmp_path / "data", {"lake.on": "false"}, protocols=("faktory", "http")) as server:
        with server.client() as client:
            client.push("job-00001", "mail")
        for operator in operators(tmp_path, server):
            ended = operator.run("job", "show", "1", "--history", "--json")
            assert ended.code == 1
            found = json.loads(ended.out)
            assert (found["job"]["jid"], found["history"]) == ("job-00001", None)
            assert found["error"].endswith("this server writes no history, because lake.on is false")
            assert ended.err == f"crossdock: {found['error']}\n"


def test_a_queue_is_shown_with_its_askers_rates_and_times(here: Operator, server: Server) -> None:
    shown = here.output("queue", "show", "mail")
    assert "asked       no request waits for a job; a worker last asked " in shown
    assert "wait        p50 " in shown and ", of 2 jobs\n" in shown
    assert "rates       " in shown
    with server.client(wid="worker-2") as client:
        client.push("job-asked", "other")
        assert client.fetch("other") is not None
        for _ in range(20):  # each waits for two seconds, one after the other
            client.ask("FETCH other")
        text = "asked       1 request waits for a job\n"
        wait_until(lambda: text in here.output("queue", "show", "other"), "the fetch waits")
        workers = here.output("worker", "list").splitlines()
        assert workers[0].split()[-3:] == ["PROTOCOL", "QUEUES", "LABELS"]
        assert workers[1].split()[:1] == ["worker-2"]
        assert "  faktory   other" in workers[1]
    head = here.output("queue", "list").splitlines()[0]
    assert head.split() == [
        "QUEUE", "READY", "OLDEST", "IN", "OUT", "LEASED", "RETRYING", "SCHEDULED", "DEAD", "PAUSED",
    ]  # fmt: skip
