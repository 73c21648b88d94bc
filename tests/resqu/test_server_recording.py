"""The real server's allocators, workers and children run against Crossdock: what they say is answered as recorded."""

from typing import Any

import pytest

from tests.model import invariants
from tests.resqu.recording import sections
from tests.resqu.server_replay import PLAN_INSERT, P, Replay
from tests.resqu.speaking import Refused

PLAN = (
    '{"class":"JobPass","sourceId":"acc1","name":"JobPass","args":{"plan":1},"includePath":"\\/bootstrap.php",'
    '"id":"acc1_p2s","nextRun":1794765467,"recurrenceInterval":"P0Y0M0DT0H0M2S"}'
)


def plan(replay: Replay) -> Any:
    keys = (f"{P}plan:acc1_p2s", f"{P}plan_schedule", f"{P}plan_schedule:1794765467", f"{P}plan_list:acc1")
    return replay.direct.say("client", "EVALSHA", PLAN_INSERT, "4", *keys, PLAN, "1794765467", "acc1_p2s")


def remove(replay: Replay) -> None:
    assert replay.direct.say("client", "DEL", f"{P}plan:acc1_p2s") == 1


def garbage(replay: Replay) -> None:
    """What the server could only throw away is not taken in."""
    for text in ("not json", '{"class":"JobPass","id":"x1","queue_time":1}'):
        with pytest.raises(Refused, match="invalid job"):
            replay.direct.say("client", "LPUSH", f"{P}unassigned", text)


def test_the_whole_recording() -> None:
    replay = Replay()
    for section in sections("server-4.1.4"):
        if section.title == "garbage":
            garbage(replay)
            continue
        if section.title == "plan":
            assert plan(replay) == 1
        if section.title == "planrm":
            remove(replay)
        replay.section(section)
    assert replay.checked > 450
    assert replay.direct.say("conn1", "LLEN", f"{P}unassigned") == 0
    invariants.check(replay.direct.desk.memory)
