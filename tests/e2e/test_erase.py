"""`crossdock lake erase`: a real server, its lake, and the real command line. Nothing is left in any byte."""

import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossdock.lake.table import Lake
from crossdock.lake.verify import verify
from tests.support.command_line import Operator
from tests.support.server import Server

pytestmark = pytest.mark.slow  # starts the lake's process and a command line that loads Arrow

ANNA = "anna.k@example.org"
JID = "order-of-anna-k"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", {"lake.segment_s": 3_600}, protocols=("faktory", "redis")) as running:
        yield running


@pytest.fixture
def operator(server: Server, tmp_path: Path) -> Operator:
    found = Operator.at(tmp_path, server.ports)
    found.patience_s = 300.0
    return found


def push_for_anna(server: Server) -> None:
    """Jobs of one person in every place where data can be, among jobs of others."""
    with server.client(wid="w") as client:
        for n in range(40):
            client.push(f"other-{n:02d}", "mail", [n])
        for n in range(4):
            client.push(
                f"{JID}-{n}", f"anna-{n}", [{"to": ANNA}], custom={"who": ANNA, "track": 1}, retry=5 if n else -1
            )
        assert client.fetch("anna-0") is not None
        client.fail(f"{JID}-0", f"no mailbox {ANNA} here, {JID}")  # dead
        assert client.fetch("anna-1") is not None
        client.fail(f"{JID}-1", f"no mailbox {ANNA}")  # waits for a retry
        assert client.fetch("anna-2") is not None  # leased
        assert client.fetch("anna-3") is not None
        client.call("TRACK SET", {"jid": f"{JID}-3", "percent": 5, "desc": f"mail to {ANNA}"})
        client.ack(f"{JID}-3")  # gone, but its progress is kept


def places_of(data: Path, *texts: str) -> list[str]:
    """Files whose bytes, or whose values if they are compressed, have one of the texts."""
    found = []
    for path in (path for path in data.rglob("*") if path.is_file()):
        content = path.read_bytes()
        if path.suffix == ".parquet" and "_delta_log" not in path.parts:
            content += b"\n".join(_values(path))
        found += [str(path.relative_to(data)) for text in texts if text.encode() in content]
    return sorted(set(found))


def _values(path: Path) -> Iterator[bytes]:
    for column in pq.read_table(path).columns:
        values = column.combine_chunks()
        values = values.flatten() if pa.types.is_list(values.type) else values
        if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
            yield from (value for value in values.cast(pa.binary()).to_pylist() if value is not None)


def rows_in(lake: Path) -> list[dict[str, Any]]:
    found = Lake.open(lake)
    return [row for file in found.files() for row in pq.read_table(lake / file.path, partitioning=None).to_pylist()]


def test_nothing_of_a_person_is_left_in_any_file(server: Server, operator: Operator) -> None:
    push_for_anna(server)
    assert places_of(server.data, ANNA, JID)
    asked = operator.run("lake", "erase", "--payload-contains", ANNA, stdin="n\n")
    assert asked.code == 1 and "nothing was changed" in asked.err
    assert "3 jobs, 1 of them leased" in asked.err
    dry = operator.json("lake", "erase", "--payload-contains", ANNA, "--dry-run")
    assert (dry["erased"], dry["jobs"], dry["state"]) == (False, 4, {"jobs": 3, "leased": 1})
    before = len(rows_in(server.data / "lake"))
    copy = operator.folder / "copy"
    shutil.copytree(server.data / "lake", copy / "lake")

    done = operator.json("lake", "erase", "--payload-contains", ANNA, "--yes")
    assert (done["erased"], done["jobs"], done["state"]["jobs"]) == (True, 4, 3)
    assert places_of(server.data, ANNA, JID) == []
    assert "an operator erased 3 jobs" in server.log()

    rows = rows_in(server.data / "lake")
    assert len(rows) == before + 5, "the removals of the three jobs, and two requests of the operator"
    assert [row["detail"] for row in rows if row["event"] == "audited"] == ["numbers:4", "forget:4"]
    assert len({row["number"] for row in rows if row["jid"] == "erased"}) == 4
    assert verify(server.data / "lake", server.data).faults == []
    assert "erased   4 jobs in" in operator.output("lake", "status")
    assert operator.json("job", "list", "--count")["count"] == 40
    assert operator.json("job", "list", "--limit", "50", "--queue", "mail")["jobs"][0]["jid"] == "other-00"

    assert places_of(copy, ANNA, JID)
    of_copy = operator.run("lake", "erase", "--data", str(copy), "--payload-contains", ANNA, "--yes")
    assert of_copy.code == 0 and "has no journal: only the lake and the tables" in of_copy.err
    assert places_of(copy, ANNA, JID) == []

    again = operator.run("lake", "erase", "--payload-contains", ANNA, "--yes")
    assert again.code == 1 and "no job matches; nothing was changed" in again.err
    server.restart()
    assert operator.json("job", "list", "--count")["count"] == 40
    assert places_of(server.data, ANNA, JID) == []
    assert server.stop() == 0
    assert operator.run("check").code == 0


def test_a_replay_of_the_job_is_erased_with_it(server: Server, operator: Operator) -> None:
    push_for_anna(server)
    operator.json("lake", "erase", "--jid", f"{JID}-0", "--dry-run")  # the lake has it now
    assert operator.json("job", "replay", "--jid", f"{JID}-0", "--yes")["new"] == 1
    done = operator.json("lake", "erase", *(part for n in range(4) for part in ("--jid", f"{JID}-{n}")), "--yes")
    assert (done["jobs"], done["state"]["jobs"]) == (5, 4)
    assert places_of(server.data, ANNA, JID) == []


def test_what_is_refused(server: Server, operator: Operator) -> None:
    with server.client() as client:
        client.push("other-there", "mail", [1])
    unknown = operator.run("lake", "erase", "--jid", "other-there", "--jid", "no-such-job", "--yes")
    assert unknown.code == 1
    assert "not found in the state, the lake or the tables: no-such-job; nothing was changed" in unknown.err
    assert operator.run("lake", "erase", "--yes").code == 2
    assert operator.run("lake", "erase", "--jid", "erased").code == 2
    assert operator.json("job", "list", "--count")["count"] == 1
    server.stop()
    without = operator.run("lake", "erase", "--jid", "other-there", "--yes")
    assert without.code == 1 and "no server runs on" in without.err


def test_a_server_without_a_lake(tmp_path: Path) -> None:
    with Server(tmp_path / "data", {"lake.on": "false"}) as server:
        operator = Operator.at(tmp_path, server.ports)
        operator.patience_s = 300.0
        push_for_anna(server)
        assert "Filters look into the lake" in operator.run("lake", "erase", "--queue", "mail", "--yes").err
        jids = [part for n in range(3) for part in ("--jid", f"{JID}-{n}")]
        done = operator.json("lake", "erase", *jids, "--yes")
        assert (done["jobs"], done["lake"], done["state"]) == (3, None, {"jobs": 3, "leased": 1})
        assert places_of(server.data, f"{JID}-0", f"{JID}-1", f"{JID}-2") == []


def test_a_killed_command_is_run_again(server: Server, operator: Operator) -> None:
    """The command line, and once the server, dies at some moment of the erase."""
    push_for_anna(server)
    command = [sys.executable, "-m", "crossdock", "lake", "erase", "--payload-contains", ANNA, "--yes"]
    for step in ("deleting jobs", "removing journal entries", "rewriting files"):
        running = subprocess.Popen(
            command, cwd=operator.folder, env=operator.environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert running.stderr is not None
        for line in running.stderr:
            if step.encode() in line:
                break
        running.send_signal(signal.SIGKILL)
        running.communicate()
        assert verify(server.data / "lake", server.data).faults == []
        if step == "removing journal entries":
            server.restart()
            operator.environment |= {f"CROSSDOCK_LISTEN_{name.upper()}": f"127.0.0.1:{port}"
                                     for name, port in server.ports.items()}  # fmt: skip
    time.sleep(0.1)
    last = operator.run("lake", "erase", "--payload-contains", ANNA, "--yes")
    assert last.code == 0 or "no job matches" in last.err, last
    assert verify(server.data / "lake", server.data).faults == []
    assert places_of(server.data, ANNA, JID) == []


def test_nothing_is_lost_under_load(tmp_path: Path) -> None:
    """Jobs are pushed and done while the exporter, with short segments, and three erases replace files."""
    over, done = threading.Event(), 0
    with Server(tmp_path / "data", {"lake.segment_s": 0.3}) as server:
        operator = Operator.at(tmp_path, server.ports)
        operator.patience_s = 300.0

        def work() -> None:
            nonlocal done
            with server.client(wid="w") as client:
                while not over.is_set():
                    client.push(f"busy-{done:07d}", "busy", ["anna" if done % 20 == 0 else done])
                    assert client.fetch("busy") is not None
                    client.ack(f"busy-{done:07d}")
                    done += 1

        with ThreadPoolExecutor(1) as pool:
            working = pool.submit(work)
            try:
                for _ in range(3):
                    assert operator.json("lake", "erase", "--payload-contains", "anna", "--yes")["jobs"] > 0
            finally:
                over.set()
            working.result()
        operator.run("lake", "erase", "--jid", "no-such-job")  # the lake has everything now
        events = Counter(row["event"] for row in rows_in(server.data / "lake"))
        assert events == {"started": 1, "pushed": done, "leased": done, "succeeded": done}
        assert verify(server.data / "lake", server.data).faults == []
