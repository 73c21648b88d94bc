"""Replays the recording of the real server's allocators, workers and children, and compares the replies."""

import pytest

from crossdock.engine.engine import apply
from crossdock.engine.state import EngineState
from crossdock.model.events import AnyEvent
from tests.model import invariants
from tests.resqu.recording import sections
from tests.resqu.server_replay import PLAN_INSERT, P, Replay
from tests.resqu.speaking import Refused
from tests.support.dispatcher import stored
from tests.support.picture import picture

RECORDED = {section.title: section for section in sections("server-4.1.4")}
PLAN = (
    '{"class":"JobPass","sourceId":"acc1","name":"JobPass","args":{"plan":1},"includePath":"\\/bootstrap.php",'
    '"id":"acc1_p2s","nextRun":1794765467,"recurrenceInterval":"P0Y0M0DT0H0M2S"}'
)


def plan(replay: Replay) -> None:
    keys = (f"{P}plan:acc1_p2s", f"{P}plan_schedule", f"{P}plan_schedule:1794765467", f"{P}plan_list:acc1")
    words = ("EVALSHA", PLAN_INSERT, "4", *keys, PLAN, "1794765467", "acc1_p2s")
    assert replay.direct.say("client", *words) == 1


def remove(replay: Replay) -> None:
    assert replay.direct.say("client", "DEL", f"{P}plan:acc1_p2s") == 1


def delay(replay: Replay) -> None:
    text = next(line.reply for line in RECORDED["delayed"].lines if line.words[0] == "LPOP")
    assert replay.direct.say("client", "SETNX", f"{P}unique:udel:state", "queued") == 1
    assert replay.direct.say("client", "RPUSH", f"{P}delayed:1794765437", text) == 1


def garbage(replay: Replay) -> None:
    """A payload that the real server would discard is refused."""
    for text in ("not json", '{"class":"JobPass","id":"x1","queue_time":1}'):
        with pytest.raises(Refused, match="invalid job"):
            replay.direct.say("client", "LPUSH", f"{P}unassigned", text)


#: Commands of clients, which were not recorded.
BEFORE = {"delayed": delay, "plan": plan, "planrm": remove}


def test_the_recording_replays_with_the_same_replies() -> None:
    replay = Replay()
    for section in RECORDED.values():
        if section.title == "garbage":
            garbage(replay)
            continue
        if section.title in BEFORE:
            BEFORE[section.title](replay)
        replay.section(section)
    assert replay.checked > 450
    assert replay.direct.say("conn1", "LLEN", f"{P}unassigned") == 0
    invariants.check(replay.direct.dispatcher.state)
    assert picture(replayed(replay.direct.dispatcher.events)) == picture(replay.direct.dispatcher.state)


def replayed(events: list[AnyEvent]) -> EngineState:
    state = EngineState()
    for event in stored(events):
        apply(state, event)
    return state
