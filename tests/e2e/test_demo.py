"""`crossdock demo`: jobs of every state through all five protocols, and nothing left behind."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crossdock.client.admin import AdminClient
from crossdock.model.states import State
from tests.support.patience import PATIENCE_S, wait_until

STATES = {state.name.lower() for state in State} - {"gone"}


@pytest.fixture
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo uses its own settings, and its folder is below this one."""
    monkeypatch.setenv("CROSSDOCK_SERVER_DATA", str(tmp_path / "other"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.mark.usefixtures("no_settings")
def test_the_demo_shows_every_state_and_removes_its_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "crossdock", "demo"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as demo:
        try:
            assert demo.stdout is not None
            said = "".join(iter(demo.stdout.readline, "Stop with Ctrl-C. The data is removed then.\n"))
            assert re.search(r"^  dashboard   http://127\.0\.0\.1:\d+/$", said, re.MULTILINE)
            data = re.search(r"^  data +(\S+)$", said, re.MULTILINE)
            assert data is not None and Path(data[1]).is_relative_to(tmp_path)
            with AdminClient(Path(data[1])) as admin:
                seen: set[str] = set()

                def all_states() -> bool:
                    seen.update(state for state in STATES if admin.ask("count", states=[state])["count"])
                    return seen == STATES

                wait_until(all_states, lambda: f"states {STATES - seen}")
                assert {each["worker"] for each in admin.rows("workers")} >= {"shop-1", "shop-2", "video-1"}
                assert [each["queue"] for each in admin.rows("queues") if each["paused"]] == ["reports"]
                assert {each["source"] for each in admin.rows("schedules")} == {"settings", "qless"}
                assert {each["protocol"] for each in admin.rows("batches")} == {"faktory", "resqu"}
            demo.send_signal(signal.SIGINT)
            assert demo.wait(PATIENCE_S) == 0
        finally:
            if demo.poll() is None:
                demo.terminate()
    assert not list(tmp_path.iterdir())
