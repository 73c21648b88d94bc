"""The server's own processes: they run when nobody else wants to, in a hurry as the server does, and end with it."""

import asyncio
import os
from pathlib import Path

import pytest

from crossdock.server.child_process import Child

#: Says who it is, and goes on until its stdin ends.
SLEEPER = "import os, sys\nprint(os.getpid(), flush=True)\nsys.stdin.read()\nprint('over', flush=True)\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "sleeper.py").write_text(SLEEPER, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "sleeper"


async def begun(child: Child) -> int:
    return int(await (await child.start()).readline())


def test_it_is_idle_until_there_is_a_hurry_and_then_again(module: str) -> None:
    async def main() -> None:
        child = Child(module)
        pid = await begun(child)
        assert os.sched_getscheduler(pid) == os.SCHED_IDLE
        child.hurry(True)
        assert os.sched_getscheduler(pid) == os.SCHED_OTHER and not child.replaced
        child.hurry(False)
        assert os.sched_getscheduler(pid) == os.SCHED_IDLE
        child.kill()
        assert await child.ended() == -9 and not child.replaced
        child.hurry(True)
        assert not child.hurried, "there is none"

    if os.geteuid():
        pytest.skip("only root may raise a priority again")
    asyncio.run(main())


def test_where_a_priority_cannot_be_raised_the_next_one_begins_with_it(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is for everybody but root, unless RLIMIT_NICE says otherwise."""
    set_scheduler = os.sched_setscheduler

    def as_ordinary_user(pid: int, policy: int, param: os.sched_param) -> None:
        if policy == os.SCHED_OTHER and os.sched_getscheduler(pid) == os.SCHED_IDLE:
            raise PermissionError
        set_scheduler(pid, policy, param)

    monkeypatch.setattr(os, "sched_setscheduler", as_ordinary_user)

    async def main() -> None:
        child = Child(module)
        first = await begun(child)
        assert os.sched_getscheduler(first) == os.SCHED_IDLE
        child.hurry(True)
        assert await child.ended() == -9
        assert child.replaced and child.hurried
        second = await begun(child)
        assert os.sched_getscheduler(second) == os.SCHED_OTHER and not child.replaced
        child.hurry(False)
        assert os.sched_getscheduler(second) == os.SCHED_IDLE
        child.kill()
        await child.ended()

    asyncio.run(main())
