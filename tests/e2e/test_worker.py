"""The worker on a real server, in real processes: running, queues, signals, and what tasks may do to it."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crossdock.client.client import Client
from crossdock.client.jobs import NewJob
from tests.support import worker_tasks
from tests.support.command_line import Operator
from tests.support.patience import wait_until
from tests.support.server import Server
from tests.support.worker_process import WorkerProcess, is_running

pytestmark = [pytest.mark.clients, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("worker") / "data") as running:
        yield running


@pytest.fixture(autouse=True)
def connected(server: Server) -> Iterator[Client]:
    """Tasks push to this server."""
    with worker_tasks.app.using(url=server.url), Client(server.url) as client:
        yield client


@pytest.fixture(autouse=True)
def empty(server: Server) -> Iterator[None]:
    """Each test begins without jobs."""
    yield
    with server.client() as client:
        client.call("FLUSH")


def shown(server: Server, jid: str) -> dict[str, Any]:
    return Operator.at(server.data.parent, {}).json("job", "show", jid)


@pytest.mark.parametrize("way", [["--threads", "3"], ["--asyncio", "3"]])
def test_results_come_back(server: Server, tmp_path: Path, way: list[str]) -> None:
    with WorkerProcess.on(server, tmp_path, *way) as worker:
        handles = [worker_tasks.add.push(number, 1) for number in range(20)]
        more = [worker_tasks.add_async.push(number, 2) for number in range(20)]
        assert [handle.result(timeout=60) for handle in handles] == list(range(1, 21))
        assert [handle.result(timeout=60) for handle in more] == list(range(2, 22))
        assert worker.stop() == 0
    lines = worker.log().splitlines()
    assert f"runs {len(worker_tasks.app.tasks)} tasks of tests.support.worker_tasks" in lines[0]
    assert "queues default, other (ordered); 3 slots: 1 process with 3" in lines[1]
    assert f"server crossdock://127.0.0.1:{server.port}; leases of 60 s" in lines[2]
    assert "TERM or INT: finish within 25 s and stop, twice: stop now; TSTP" in lines[3]


def test_several_processes_share_the_jobs(server: Server, tmp_path: Path) -> None:
    with WorkerProcess.on(server, tmp_path, "--processes", "2", "--threads", "2") as worker:
        for number in range(4):
            worker_tasks.hold.push(f"all-{number}")
        started = worker.wait_for("start", times=4)
        assert len({pid for *_, pid in started}) == 2
        for number in range(4):
            worker.open_gate(f"all-{number}")
        worker.wait_for("end", times=4)


@pytest.mark.parametrize(
    ("order", "expected"), [("ordered", "C C C B B A A A A A"), ("round-robin", "C B A C B A C A A A")]
)
def test_queues_are_worked_in_order(
    server: Server, tmp_path: Path, connected: Client, order: str, expected: str
) -> None:
    """The example of qless' notes on implementing bindings."""
    for queue, jobs in (("A", 5), ("B", 2), ("C", 3)):
        connected.push_many([NewJob(kind="mark", args=[queue], queue=queue) for _ in range(jobs)])
    options = ("-q", "C,B,A", "--order", order, "--threads", "1", "--prefetch", "0")
    with WorkerProcess.on(server, tmp_path, *options) as worker:
        marks = worker.wait_for("mark", times=10)
    assert " ".join(queue for _, queue in marks) == expected


def test_weighted_queues_get_their_share(server: Server, tmp_path: Path, connected: Client) -> None:
    for queue in ("often", "rarely"):
        connected.push_many([NewJob(kind="mark", args=[queue], queue=queue) for _ in range(400)])
    with WorkerProcess.on(server, tmp_path, "-q", "often:9,rarely:1", "--threads", "2") as worker:
        marks = worker.wait_for("mark", times=400)
        assert worker.log().count("queues often:9, rarely:1 (weighted)") == 1
    assert 300 < [queue for _, queue in marks[:400]].count("often") < 400


def test_a_failure_is_reported_with_its_backtrace(server: Server, tmp_path: Path, connected: Client) -> None:
    with WorkerProcess.on(server, tmp_path) as worker:
        handle = worker_tasks.fail.push("it broke")
        worker.wait_for_log("a job failed: ValueError: it broke")
        wait_until(lambda: shown(server, handle.id)["job"]["state"] == "retrying", "the failure")
        assert f"jid={handle.id} kind=fail attempt=1" in worker.log()
    failure = shown(server, handle.id)["job"]["error"]
    assert (failure["group"], failure["message"]) == ("ValueError", "it broke")
    assert "worker_tasks.py" in "".join(failure["backtrace"])


def test_quiet_by_signal_and_terminate_by_signal(server: Server, tmp_path: Path) -> None:
    with WorkerProcess.on(server, tmp_path, "--threads", "2") as worker:
        worker_tasks.hold.push("quiet")
        worker.wait_for("start", "quiet")
        worker.signal(signal.SIGTSTP)
        worker.wait_for_log("no new jobs are fetched: it got SIGTSTP")
        worker_tasks.mark.push("not-now")
        worker.signal(signal.SIGTERM)
        worker.wait_for_log("the worker stops: it got SIGTERM")
        worker.open_gate("quiet")
        assert worker.wait() == 0
        assert worker.events("end", "quiet")
        assert not worker.events("mark")
    with WorkerProcess.on(server, tmp_path) as worker:
        worker.wait_for("mark", "not-now")


def test_quiet_and_terminate_by_an_operator(server: Server, tmp_path: Path) -> None:
    operator = Operator.at(server.data.parent, {})
    with WorkerProcess.on(server, tmp_path) as worker:
        wid = re.findall(r"worker (\w+) runs", worker.log())[0]
        operator.output("worker", "quiet", wid)
        worker.wait_for_log("no new jobs are fetched: the server asks for it")
        operator.output("worker", "terminate", wid)
        assert worker.wait() == 0
        worker.wait_for_log("the worker stops: the server asks for it")


@pytest.mark.parametrize("way", ["--threads", "--asyncio"])
def test_jobs_that_do_not_end_in_time_are_given_back(server: Server, tmp_path: Path, way: str) -> None:
    """They run elsewhere at once, and it is not a failure."""
    task = worker_tasks.hold if way == "--threads" else worker_tasks.hold_async
    with WorkerProcess.on(server, tmp_path, way, "2", "--grace", "0.2") as worker:
        handle = task.push("back")
        worker.wait_for("start", "back")
        assert worker.stop() == 0
        assert not worker.events("end")
        assert worker.events("cancelled", "back") == ([["cancelled", "back", "True"]] if way == "--asyncio" else [])
    found = shown(server, handle.id)["job"]
    assert (found["state"], found["failures"]) == ("ready", 0)
    worker.open_gate("back")
    with WorkerProcess.on(server, tmp_path) as worker:
        worker.wait_for("end", "back")


def test_unstarted_jobs_are_given_back_at_a_stop(server: Server, tmp_path: Path) -> None:
    with WorkerProcess.on(server, tmp_path, "--threads", "1") as worker:
        worker_tasks.mark.push_many([("warm-up",)] * 200)  # short tasks: jobs are fetched ahead
        worker.wait_for("mark", times=200)
        for number in range(3):
            worker_tasks.hold.push(f"job-{number}")
        worker.wait_for("start", "job-0")
        worker.signal(signal.SIGTERM)
        worker.wait_for_log("the worker stops")
        worker.open_gate("job-0")
        assert worker.wait() == 0
        assert [name for _, name, _ in worker.events("start")] == ["job-0"]
    for number in (1, 2):
        worker.open_gate(f"job-{number}")
    with WorkerProcess.on(server, tmp_path) as worker:
        worker.wait_for("end", times=3)


def test_a_second_signal_stops_at_once(server: Server, tmp_path: Path) -> None:
    with WorkerProcess.on(server, tmp_path, "--grace", "1h") as worker:
        worker_tasks.hold.push("slow")
        worker.wait_for("start", "slow")
        worker.signal(signal.SIGINT)
        worker.wait_for_log("the worker stops: it got SIGINT")
        worker.signal(signal.SIGINT)
        assert worker.wait() == 0


def test_stacks_are_printed_even_of_a_task_that_holds_the_interpreter(server: Server, tmp_path: Path) -> None:
    with WorkerProcess.on(server, tmp_path) as worker:
        worker_tasks.hold_interpreter.push("busy", 5)
        worker.wait_for("start", "busy")
        worker.signal(signal.SIGTTIN)
        worker.wait_for_log(" in hold_interpreter")
        assert not worker.events("end", "busy")


def test_tasks_may_print_read_exit_and_fork(server: Server, tmp_path: Path) -> None:
    with WorkerProcess.on(server, tmp_path, "--threads", "1") as worker:
        worker_tasks.say.push("hello there")
        worker.wait_for("read", "''")
        worker.wait_for_log("hello there\n", times=2)
        worker.wait_for_log("direct\n")
        exits = worker_tasks.call_exit.push(4)
        worker.wait_for_log("a job failed: SystemExit")
        worker_tasks.fork.push("twice")
        worker.wait_for("parent", "twice")
        worker.wait_for("child", "twice")
        assert worker_tasks.add.push(1, 1).result(timeout=60) == 2
        assert len(worker.children()) == 1
        assert worker.stop() == 0
        assert f"jid={exits.id}" in worker.log()
    assert re.search(r"INFO a line of hello there event=\S+ process=child-1 jid=\w+ kind=say", worker.log())


def test_the_log_can_be_json(server: Server, tmp_path: Path) -> None:
    with WorkerProcess.on(server, tmp_path, "--log-format", "json") as worker:
        handle = worker_tasks.say.push("hello")
        worker.wait_for_log('"msg": "a line of hello"')
    lines = [json.loads(line) for line in worker.log().splitlines() if line.startswith("{")]
    assert [line["kind"] for line in lines if line.get("jid") == handle.id] == ["say"]


def test_outcomes_of_tasks(server: Server, tmp_path: Path) -> None:
    with WorkerProcess.on(server, tmp_path) as worker:
        worker_tasks.later.push("snoozed")
        worker.wait_for("later", "snoozed", times=2)
        worker_tasks.split.push(3)
        worker.wait_for("split", "0")
        assert [number for _, number in worker.events("split")] == ["3", "2", "1", "0"]
        worker.wait_for_log("later", 0)
    assert [attempt for *_, attempt in worker.events("later")] == ["1", "2"]


def test_progress_reaches_the_server(server: Server, tmp_path: Path, connected: Client) -> None:
    with WorkerProcess.on(server, tmp_path) as worker:
        handle = worker_tasks.halfway.push("way")
        wait_until(lambda: connected.progress(handle.id).percent == 50, "half of the progress")
        assert connected.progress(handle.id).text == "half"
        worker.open_gate("way")


def test_a_killed_worker_takes_its_processes_with_it(server: Server, tmp_path: Path) -> None:
    """Even one whose task holds the interpreter: its lease is no longer renewed."""
    with WorkerProcess.on(server, tmp_path, "--processes", "2") as worker:
        wait_until(lambda: len(worker.children()) == 2, "two processes")
        worker_tasks.hold_interpreter.push("busy", 60)
        worker.wait_for("start", "busy")
        children = worker.children()
        worker.kill()
        wait_until(lambda: not any(map(is_running, children)), "the end of its processes")


def test_the_check_tells_whether_a_worker_works(server: Server, tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    worker = WorkerProcess.on(server, tmp_path)
    checked = operator.run("worker", "check", "--status", str(worker.status))
    assert (checked.code, checked.out) == (1, "")
    assert "no worker runs with the status file" in checked.err
    with worker:
        wait_until(worker.status.exists, "the status file")
        wait_until(lambda: operator.run("worker", "check", "--status", str(worker.status)).code == 0, "a good check")
        found = operator.json("worker", "check", "--status", str(worker.status))["workers"]
        assert [(each["state"], each["processes"], each["problem"]) for each in found] == [("running", 1, "")]
        assert operator.run("worker", "check").code in (0, 1)  # all workers of this user
        worker.kill()
    checked = operator.run("worker", "check", "--status", str(worker.status))
    assert checked.code == 1
    assert "has ended" in checked.err
