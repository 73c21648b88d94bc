"""SIGHUP from a closed terminal or a log rotation ends neither the server nor its children."""

import os
import signal
from pathlib import Path

import pytest

from tests.support.patience import IDLE_PATIENCE_S, wait_until
from tests.support.server import Server

pytestmark = pytest.mark.fault

_HANGUP = 1 << (signal.SIGHUP - 1)


def handles_hangup(pid: int, *fields: str) -> bool:
    """Whether this process ignores (SigIgn) or handles (SigCgt) SIGHUP."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    masks = [line.split()[1] for line in status.splitlines() if line.startswith(fields)]
    return any(int(mask, 16) & _HANGUP for mask in masks)


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


def test_sighup_does_not_end_the_server(tmp_path: Path) -> None:
    """The settings are reloaded, and requests in progress continue."""
    with Server(tmp_path / "data") as server, server.client() as client:
        client.push("job-0001")
        for _ in range(3):
            server.signal(signal.SIGHUP)
        wait_until(lambda: "the settings were reloaded: no setting was changed" in server.log(), "the line in the log")
        client.push("job-0002")
        assert client.fetch() is not None
        assert server.stop() == 0


def test_sighup_during_the_start_does_not_end_the_server(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server, server.client() as client:
        client.push("job-0001")
        server.kill()
        server.spawn()
        pid = server.process.pid
        wait_until(lambda: handles_hangup(pid, "SigIgn", "SigCgt"), "the start of the command line")
        os.kill(pid, signal.SIGHUP)
        control = server.data / "admin.sock"
        control.unlink(missing_ok=True)
        while not control.exists():
            assert server.running, server.log()
            os.kill(pid, signal.SIGHUP)
        assert server.stop() == 0


def test_sighup_does_not_end_the_lake_process(tmp_path: Path) -> None:
    """A terminal sends the signal to the children as well."""
    with Server(tmp_path / "data", {"lake.segment_s": 0.01}) as server, server.client() as client:
        client.push("job-0001")
        wait_until(lambda: children(server.process.pid), "the lake's process", IDLE_PATIENCE_S)
        (child,) = children(server.process.pid)
        # Before it executes its program, the child has the server's handlers.
        wait_until(lambda: handles_hangup(child, "SigIgn"), "the start of the lake's process", IDLE_PATIENCE_S)
        os.kill(child, signal.SIGHUP)
        lake = server.data / "lake"
        wait_until(lambda: list(lake.rglob("*.parquet")), "a segment", IDLE_PATIENCE_S)
        assert children(server.process.pid) == [child], server.log()
        assert "the lake's exporter ended" not in server.log()
