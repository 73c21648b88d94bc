"""`crossdock lake status` while server and exporter are killed.

The position never goes back, and a lake with a segment is never reported as empty. A server that is killed repeatedly
still fills its lake.

The environment variable `LAKE_KILLS` sets the number of kills; the default is small.
"""

import io
import json
import os
import signal
import threading
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from random import Random
from typing import Final

import pytest

from crossdock.cli.main import main
from crossdock.lake.table import Lake
from tests.lake.source import rows_in
from tests.support.command_line import Operator
from tests.support.lake_load import LakeLoad, position, wait_for
from tests.support.server import Server

pytestmark = [pytest.mark.fault, pytest.mark.slow]

KILLS: Final = int(os.environ.get("LAKE_KILLS", "6"))

#: Calls in this process for each call in a process of its own.
IN_PROCESS_CALLS: Final = 40


class Status:
    """Calls the command repeatedly, as text or as JSON, and compares the output with the previous one."""

    def __init__(self, data: Path, random: Random) -> None:
        self._data = data
        self._random = random
        self._operator = Operator(data.parent, server_data=data)
        self.last = 0
        self.asked: Counter[str] = Counter()

    def ask(self) -> None:
        written = position(self._data / "lake")  # the position must be at least this
        form = self._random.choice([[], ["--json"]])
        here = self._random.randrange(IN_PROCESS_CALLS) > 0
        out, err, code = self._here(form) if here else self._operator.run("lake", "status", *form)
        self.asked["--json" if form else "text"] += 1
        self.asked["process"] += not here
        assert code == 0, (code, out, err)
        if form:
            status = json.loads(out)
            assert status["sound"] and status["last"] >= max(self.last, written), (self.last, written, out)
            assert not status["last"] or status["segments"], out
            self.last = status["last"]
        elif self.last or written:
            assert "nothing yet" not in out and " 0 segments" not in out, (self.last, written, out)

    def _here(self, form: list[str]) -> tuple[str, str, int]:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(["lake", "status", "--data", str(self._data), *form])
        return out.getvalue(), err.getvalue(), code

    def ask_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.ask()
            # leaves CPU time to the exporter, which runs at the lowest priority
            time.sleep(self._random.random() * 0.1)

    def ask_during(self, act: threading.Thread) -> None:
        act.start()
        while act.is_alive():
            self.ask()
        act.join()


def exporters(server: Server) -> list[int]:
    return [pid for pid, _ in server.children() if b"lake.exporter" in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # the process has ended
        return b""


def kill_exporter(server: Server) -> int:
    killed = 0
    for pid in exporters(server):
        with suppress(ProcessLookupError):  # it had already ended
            os.kill(pid, signal.SIGKILL)
            killed += 1
    return killed


def test_status_never_goes_back_whichever_process_is_killed(tmp_path: Path) -> None:
    data, random = tmp_path / "data", Random(int.from_bytes(os.urandom(4)))
    status, killed = Status(data, random), Counter[str]()
    settings = {"lake.segment_s": 0.15, "lake.segment_mib": 1}
    with Server(data, settings, fault="frequent-compaction") as server, LakeLoad(server) as load:
        for _ in range(KILLS):
            status.ask_for(random.random() * 0.6)
            whom = random.choice(["server", "exporter", "both"])
            if whom != "server":
                killed["exporter"] += kill_exporter(server)
            if whom != "exporter":
                killed["server"] += 1
                status.ask_during(threading.Thread(target=server.restart))
            if random.random() < 0.1:  # otherwise no segment is ever completed
                before = position(data / "lake")
                wait_for(lambda before=before: position(data / "lake") > before, "the lake grows")  # type: ignore[misc]
                status.ask()
        until = status.last
        wait_for(lambda: position(data / "lake") > until, "the lake grows after the last kill")
        status.ask()
    rows_in(data / "lake")
    done = Lake.open(data / "lake")
    assert (done.first, done.gaps) == (1, 0)
    assert len(load.settled) > 0 and status.asked["--json"] > 0 and status.asked["text"] > 0
    print(f"{dict(killed)} killed, status asked {dict(status.asked)}, {done.last} entries in the lake")


def test_a_server_that_is_killed_before_each_segment_is_due_still_fills_its_lake(tmp_path: Path) -> None:
    """Segments are due by time, and a restart must not reset that time."""
    data, segment_s = tmp_path / "data", 3.0
    lives = 0
    with Server(data, {"lake.segment_s": segment_s}) as server, LakeLoad(server):
        while not position(data / "lake"):
            lives += 1
            assert lives < 20, Operator(tmp_path, server_data="data").run("lake", "status")
            time.sleep(segment_s / 4)
            if exporters(server):  # the exporter may finish, even if its start is slow
                wait_for(lambda: position(data / "lake") > 0 or not exporters(server), "a segment")
            server.restart()
