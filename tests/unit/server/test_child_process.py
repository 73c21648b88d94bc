"""Child processes of the server: their priority, and that they end with the server."""

import asyncio
import os
from pathlib import Path

import pytest

from crossdock.journal.child_process import Child

#: Starts a thread, prints its process id, and runs until its stdin ends.
SLEEPER = """
import os, sys, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
print(os.getpid(), flush=True)
sys.stdin.read()
print('over', flush=True)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "sleeper.py").write_text(SLEEPER, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "sleeper"


async def started(child: Child) -> int:
    return int(await (await child.start()).readline())


def policies(pid: int) -> list[int]:
    """Of all threads of a process."""
    return [os.sched_getscheduler(int(thread)) for thread in os.listdir(f"/proc/{pid}/task")]


def test_a_child_changes_its_priority_when_it_is_hurried_and_back(module: str) -> None:
    async def main() -> None:
        child = Child(module)
        pid = await started(child)
        assert policies(pid) == [os.SCHED_IDLE] * 2
        child.hurry(True)
        assert policies(pid) == [os.SCHED_OTHER] * 2 and not child.replaced
        child.hurry(False)
        assert policies(pid) == [os.SCHED_IDLE] * 2
        child.kill()
        assert await child.ended() == -9 and not child.replaced
        child.hurry(True)
        assert not child.hurried, "no process runs"

    if os.geteuid():
        pytest.skip("only root may raise a priority again")
    asyncio.run(main())


def test_a_child_is_replaced_where_its_priority_cannot_be_raised(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for every user but root, unless RLIMIT_NICE allows more."""
    set_scheduler = os.sched_setscheduler

    def as_ordinary_user(pid: int, policy: int, param: os.sched_param) -> None:
        if policy == os.SCHED_OTHER and os.sched_getscheduler(pid) == os.SCHED_IDLE:
            raise PermissionError
        set_scheduler(pid, policy, param)

    monkeypatch.setattr(os, "sched_setscheduler", as_ordinary_user)

    async def main() -> None:
        child = Child(module)
        first = await started(child)
        assert os.sched_getscheduler(first) == os.SCHED_IDLE
        child.hurry(True)
        assert await child.ended() == -9
        assert child.replaced and child.hurried
        second = await started(child)
        assert os.sched_getscheduler(second) == os.SCHED_OTHER and not child.replaced
        child.hurry(False)
        assert os.sched_getscheduler(second) == os.SCHED_IDLE
        child.kill()
        await child.ended()

    asyncio.run(main())
