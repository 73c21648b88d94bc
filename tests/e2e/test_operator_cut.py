"""An interrupted bulk action reports its progress, and the same command completes it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Operator
from tests.support.faktory_client import job
from tests.support.patience import PATIENCE_S, wait_until
from tests.support.server import Server

pytestmark = pytest.mark.fault

JOBS = 30_000


def test_an_interrupted_bulk_action_reports_its_progress_and_can_be_repeated(tmp_path: Path) -> None:
    """The server is killed during the action and started again."""
    with Server(tmp_path / "data", {"lake.on": "false"}) as server:
        with server.client() as client:
            for first in range(0, JOBS, 1_000):
                client.push_many([job(f"job-{n:06d}", "mail") for n in range(first, first + 1_000)])
            operator = Operator.at(tmp_path, server.ports)
            deleting = subprocess.Popen(
                [sys.executable, "-m", "crossdock", "job", "delete", "--queue", "mail", "--yes", "--json"],
                cwd=tmp_path, env=operator.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            wait_until(lambda: client.sizes()["enqueued"] < JOBS - 7_000, "some are deleted")
        server.kill()
        out, said = deleting.communicate(timeout=PATIENCE_S)
        assert deleting.returncode == 1, said
        found = re.search(r"deleted at least ([\d,]+) of 30,000 jobs before that. Run the same command again", said)
        assert found is not None, said
        done = int(found[1].replace(",", ""))
        assert json.loads(out) == {"matched": JOBS, "done": done}
        server.start()
        with server.client() as client:
            left = client.sizes()["enqueued"]
        assert 5_000 <= done <= JOBS - left <= done + 5_000, "the reported progress is on disk, and little more"
        operator = Operator.at(tmp_path, server.ports)
        assert operator.json("job", "delete", "--queue", "mail", "--yes") == {"matched": left, "done": left}
