"""pyfaktory's batch calls against a real server: nested batches, a retry and ordered callbacks across a restart."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.program import Program
from tests.support.faktory_client import Client
from tests.support.patience import wait_until
from tests.support.server import Server

pytestmark = pytest.mark.clients

PROGRAM = [sys.executable, str(Path(__file__).with_name("programs") / "pyfaktory_batches.py")]


def status(client: Client, bid: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(client.call(f"BATCH STATUS {bid}"))
    return found


def test_a_nested_batch_runs_its_callbacks_in_order_across_a_restart(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        with Program([*PROGRAM, "push", server.url]) as producer:
            names, *said = producer.end()
            assert said == [
                "pushed True",
                "refused {}",
                "opened True",
                "status 2 2 0",
                "committed True True",
                "Error received from Faktory server: -ERR no such batch b-none",
                "Error received from Faktory server: -ERR no such batch b-none",
                "Error received from Faktory server: -ERR no such batch b-none",
                "Error received from Faktory server: -ERR a batch needs a success or a complete callback, or both",
            ]
        _, parent, child = names.split()
        with server.client() as client, Program([*PROGRAM, "work", server.url]) as worker:
            for line in ("worked 3", "failing once", "called child complete"):
                worker.wait_for(line)
            wait_until(lambda: status(client, child)["complete_st"] == "2", "the callback is acknowledged")
            before = status(client, child)
            assert (before["total"], before["pending"], before["failed"]) == (2, 1, 1)
            assert (before["success_st"], before["parent_bid"]) == ("", parent)
        server.restart()
        with server.client() as client, Program([*PROGRAM, "work", server.url]) as worker:
            assert status(client, child) == before
            client.mutate("requeue", "retries", jids=["flaky-member"])
            worker.wait_for("failing once")  # a new process, which has not run the job before
            wait_until(lambda: client.sizes()["retries"] == 1, "the failure is reported")
            client.mutate("requeue", "retries", jids=["flaky-member"])
            for line in ("worked once", "called child success", "called parent success"):
                worker.wait_for(line)
            wait_until(lambda: status(client, parent)["success_st"] == "2", "the callback is acknowledged")
            assert [line for line in worker.lines if line.startswith("called")] == [
                "called child success",
                "called parent success",
            ]
            assert status(client, child)["pending"] == 0
            assert client.sizes() == {"enqueued": 0, "dead": 0, "retries": 0, "scheduled": 0, "working": 0}
