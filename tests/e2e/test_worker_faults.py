"""What may go wrong under a worker: busy tasks, lost leases, dying processes, limits, and a server that is away."""

import os
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
from tests.support.worker_process import WorkerProcess

pytestmark = [pytest.mark.clients, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("worker") / "data", keeps_ports=True) as running:
        yield running


@pytest.fixture(autouse=True)
def connected(server: Server) -> Iterator[Client]:
    """Tasks push to this server. Each test begins without jobs."""
    with worker_tasks.app.using(url=server.url), Client(server.url) as client:
        yield client
    with server.client() as plain:
        plain.call("FLUSH")


def shown(server: Server, jid: str) -> dict[str, Any]:
    found: dict[str, Any] = Operator.at(server.data.parent, {}).json("job", "show", jid)["job"]
    return found


def _wait_for_state(server: Server, jid: str, state: str) -> None:
    wait_until(lambda: shown(server, jid)["state"] == state, f"job {jid} to be {state}")


def retry_now(server: Server) -> None:
    with server.client() as client:
        client.mutate("requeue", "retries")


# Leases.


def test_a_task_that_holds_the_interpreter_for_three_leases_is_started_once(server: Server, tmp_path: Path) -> None:
    with WorkerProcess.on(server, tmp_path, "--lease", "1s", "--threads", "2") as worker:
        other = WorkerProcess.on(server, tmp_path / "other", "--lease", "1s", WORKER_EVENTS=str(worker.events_file))
        with other:
            handle = worker_tasks.hold_interpreter.push("busy", 3.5)
            worker.wait_for("end", "busy")
            wait_until(lambda: handle.state() == "done" or not _exists(server, handle.id), "the outcome")
    assert worker.events("start", "busy") == [["start", "busy"]]
    assert "lease-lost" not in worker.log() + other.log()


def _exists(server: Server, jid: str) -> bool:
    return Operator.at(server.data.parent, {}).run("job", "show", jid).code == 0


@pytest.mark.parametrize("way", ["--threads", "--asyncio"])
def test_a_lost_lease_is_told_to_the_task(server: Server, tmp_path: Path, connected: Client, way: str) -> None:
    with WorkerProcess.on(server, tmp_path, "--lease", "1s", way, "2") as worker:
        task = worker_tasks.until_lost if way == "--threads" else worker_tasks.hold_async
        handle = task.push("mine")
        worker.wait_for("start", "mine")
        assert connected.cancel(handle.id)
        if way == "--threads":
            worker.wait_for("lost", "mine")
        else:
            assert worker.wait_for("cancelled", "mine") == [["cancelled", "mine", "True"]]
        worker.wait_for_log("the lease of a job is lost")
        assert worker_tasks.add.push(1, 2).result(timeout=60) == 3


# Processes that die.


@pytest.mark.parametrize("way", [["--threads", "1"], ["--threads", "4"], ["--asyncio", "4"]])
def test_a_killed_process_fails_its_job_with_the_reason(server: Server, tmp_path: Path, way: list[str]) -> None:
    with WorkerProcess.on(server, tmp_path, *way) as worker:
        handle = worker_tasks.hold.push("victim")
        [[*_, pid]] = worker.wait_for("start", "victim")
        os.kill(int(pid), signal.SIGKILL)
        _wait_for_state(server, handle.id, "retrying")
        failure = shown(server, handle.id)["error"]
        assert failure["group"] == "ProcessDied"
        assert failure["message"].startswith("the process was killed by SIGKILL (out of memory, or killed by someone)")
        assert worker_tasks.add.push(1, 2).result(timeout=60) == 3


def test_jobs_that_a_dead_process_had_not_started_run_in_another(server: Server, tmp_path: Path) -> None:
    with WorkerProcess.on(server, tmp_path, "--threads", "1") as worker:
        worker_tasks.mark.push_many([("warm-up",)] * 200)  # short tasks: jobs are fetched ahead
        worker.wait_for("mark", times=200)
        victim = worker_tasks.hold.push("victim")
        [[*_, pid]] = worker.wait_for("start", "victim")
        worker_tasks.mark.push_many([(f"next-{number}",) for number in range(20)])
        os.kill(int(pid), signal.SIGKILL)
        worker.wait_for("mark", times=220)
        _wait_for_state(server, victim.id, "retrying")
    assert len({word for _, word in worker.events("mark")}) == 21
    assert len(worker.events("mark")) == 220


def test_a_crash_fails_only_the_job_that_caused_it(server: Server, tmp_path: Path) -> None:
    with WorkerProcess.on(server, tmp_path, "--threads", "3") as worker:
        innocent = worker_tasks.hold.push("innocent")
        worker.wait_for("start", "innocent")
        guilty = worker_tasks.crash.push("guilty")
        worker.wait_for("start", "innocent", times=2)
        _wait_for_state(server, guilty.id, "retrying")
        failure = shown(server, guilty.id)["error"]
        assert "killed by SIGSEGV" in failure["message"]
        assert "in crash" in "\n".join(failure["backtrace"])
        worker.open_gate("innocent")
        worker.wait_for("end", "innocent")
        assert not re.search(rf"job failed.*{innocent.id}", worker.log())


def test_a_job_that_always_ends_its_process_is_quarantined(server: Server, tmp_path: Path) -> None:
    with WorkerProcess.on(server, tmp_path, "--threads", "4") as worker:
        poison = worker_tasks.leave.push("poison", 7)
        for time in (1, 2):
            worker.wait_for("start", "poison", times=time)
            _wait_for_state(server, poison.id, "retrying")
            message = shown(server, poison.id)["error"]["message"]
            assert message.startswith("the process ended with exit code 7 while this job was running; the job has lost")
            assert f"{time} time" in message
            retry_now(server)
        _wait_for_state(server, poison.id, "dead")
        failure = shown(server, poison.id)["error"]
        assert failure["group"] == "Quarantined"
        assert (
            "it is not tried again; correct the task, then retry the job with crossdock job retry" in failure["message"]
        )
        assert worker_tasks.add.push(1, 2).result(timeout=60) == 3


def test_a_suspect_runs_alone(server: Server, tmp_path: Path) -> None:
    """Nothing tells which job ended the process, so both are tried again, each in a process of its own."""
    with WorkerProcess.on(server, tmp_path, "--threads", "2") as worker:
        innocent = worker_tasks.hold.push("innocent")
        worker.wait_for("start", "innocent")
        guilty = worker_tasks.leave.push("guilty", 3)
        for jid in (innocent.id, guilty.id):
            _wait_for_state(server, jid, "retrying")
            assert shown(server, jid)["error"]["message"].endswith("so the next try runs alone")
        worker.open_gate("innocent")
        retry_now(server)
        worker.wait_for("end", "innocent")
        worker.wait_for("start", "guilty", times=2)
        first, second = worker.events("start", "guilty")
        assert first != second  # another process


# Limits.


@pytest.mark.parametrize(
    ("task", "way"), [("too_long", "--threads"), ("stuck", "--threads"), ("too_long_async", "--asyncio")]
)
def test_a_task_is_stopped_after_its_timeout(server: Server, tmp_path: Path, task: str, way: str) -> None:
    with WorkerProcess.on(server, tmp_path, way, "2", "--grace", "1s") as worker:
        handle = getattr(worker_tasks, task).push("slow")
        [[*_, pid]] = worker.wait_for("start", "slow")
        _wait_for_state(server, handle.id, "retrying")
        failure = shown(server, handle.id)["error"]
        assert (failure["group"], failure["message"]) == (
            "Timeout",
            "the task did not end within its timeout of 0.3 s",
        )
        worker_tasks.pid.push("next")
        [[*_, after]] = worker.wait_for("pid", "next")
        assert (after != pid) is (task == "stuck")  # only then the process had to be replaced


def test_a_process_is_replaced_after_a_number_of_jobs(server: Server, tmp_path: Path) -> None:
    with WorkerProcess.on(server, tmp_path, "--threads", "2", "--max-jobs", "10") as worker:
        worker_tasks.pid.push_many([("many",)] * 100)
        pids = [pid for *_, pid in worker.wait_for("pid", times=100)]
    assert len(pids) == 100
    assert {pids.count(pid) for pid in set(pids)} == {10}
    assert "is replaced after 10 jobs" in worker.log()


def test_a_process_that_uses_too_much_memory_is_replaced(server: Server, tmp_path: Path) -> None:
    with WorkerProcess.on(server, tmp_path, "--max-memory", "200M", "--threads", "2") as worker:
        worker_tasks.hold.push("running")
        worker.wait_for("start", "running")
        worker_tasks.grow.push(300)
        [[_, pid]] = worker.wait_for("grown")
        worker.wait_for_log("MiB of memory, more than 200 MiB")
        worker_tasks.pid.push("next")
        [[*_, after]] = worker.wait_for("pid", "next")
        assert after != pid
        worker.open_gate("running")
        worker.wait_for("end", "running")  # the process was not replaced before its job ended
        wait_until(lambda: int(pid) not in worker.children(), "the end of the old process")
        assert not re.search("job failed", worker.log())


def test_each_process_has_a_sandbox_that_is_emptied_between_jobs(server: Server, tmp_path: Path) -> None:
    sandbox = tmp_path / "sandbox"
    with WorkerProcess.on(server, tmp_path, "--threads", "1", "--sandbox", str(sandbox)) as worker:
        for name in ("one", "two"):
            worker_tasks.leave_files.push(name)
            [[_, _, found, folder, temporary]] = worker.wait_for("files", name)
            assert (found, folder) == ("[]", temporary)
            assert folder.startswith(f"{sandbox}/crossdock-sandbox-")
        assert worker.stop() == 0
    assert list(sandbox.iterdir()) == []


# A server that is away.


def test_a_worker_outlives_its_server(server: Server, tmp_path: Path) -> None:
    with WorkerProcess.on(server, tmp_path, "--threads", "4") as worker:
        handle = worker_tasks.hold.push("across")
        worker.wait_for("start", "across")
        server.kill()
        worker.wait_for_log("the worker keeps trying, and the jobs that it runs go on")
        worker.open_gate("across")
        worker.wait_for("end", "across")
        server.start()
        worker.wait_for_log("replies again")
        wait_until(lambda: not _exists(server, handle.id), "its outcome")
        assert worker_tasks.add.push(1, 2).result(timeout=60) == 3
        assert len(worker.events("start", "across")) == 1


def test_a_worker_starts_before_its_server(server: Server, tmp_path: Path) -> None:
    server.stop()
    with WorkerProcess.on(server, tmp_path) as worker:
        worker.wait_for_log("the worker keeps trying")
        server.start()
        assert worker_tasks.add.push(1, 2).result(timeout=60) == 3


# Modules that cannot be loaded.


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (None, "nowhere", "cannot import nowhere: there is no module nowhere in "),
        ("import not_there", "tasks", "cannot import tasks: it imports not_there, which is not installed"),
        ("raise ValueError('no settings')", "tasks", "cannot import tasks: ValueError: no settings ("),
        ("x = 1", "tasks", "module tasks has no crossdock.App"),
        ("from crossdock import App\napp = App()", "tasks", "tasks has an app without tasks"),
        ("from crossdock import App\na = App()\nb = App()", "tasks", "module tasks has several apps: a, b; name one"),
        ("from crossdock import App\na = App()", "tasks:b", "module tasks has no b; it has a"),
        ("", "tasks.py", "'tasks.py' is not a module; write its dotted name, as in tasks"),
        ("import os\nos._exit(9)", "tasks", "the processes end before they are ready"),
    ],
)
def test_a_module_that_cannot_be_loaded(
    server: Server, tmp_path: Path, source: str | None, target: str, message: str
) -> None:
    if source is not None:
        (tmp_path / "tasks.py").write_text(source)
    worker = WorkerProcess(tmp_path / "run", server.url, target=target, app_dir=tmp_path)
    worker.start(ready=False)
    assert worker.wait() in (1, 2)
    assert message in worker.log().splitlines()[-1]


def test_changed_code_is_reloaded(server: Server, tmp_path: Path) -> None:
    source = "from crossdock import App\napp = App()\n@app.task\ndef version() -> int: return {}\n"
    file = tmp_path / "reloaded.py"
    file.write_text(source.format(1))
    worker = WorkerProcess(tmp_path / "run", server.url, "--reload", target="reloaded", app_dir=tmp_path)
    with worker, Client(server.url) as client:

        def run() -> bytes:
            job = NewJob(kind="version", keep_result_s=60)
            return client.result(client.push(job), timeout_s=60)

        assert run() == b"1"
        file.write_text("this is no Python")
        worker.wait_for_log("reloaded.py has changed; starting new processes")
        worker.wait_for_log("cannot import reloaded: SyntaxError")
        file.write_text(source.format(22))
        wait_until(lambda: run() == b"22", "the new code")
