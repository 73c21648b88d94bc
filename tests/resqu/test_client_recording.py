"""Replays the recording of the real client: without a socket, and to a real server with three clients."""

import re
import time
from pathlib import Path
from typing import Any

import pytest

from crossdock.model.clock import Now
from tests.resqu.recording import Line, sections
from tests.resqu.speaking import SPEAKERS, Direct, Speaker, like, need_php
from tests.support.dispatcher import PlainDispatcher
from tests.support.patience import wait_until
from tests.support.server import Server

BEGAN = 1_794_766_107
RECORDED = sections("client-1.0.4")

_SECOND = re.compile(r"\b179[46]\d{6}\b")


def moved(value: Any, by: int) -> Any:
    """The recording with all times shifted to another start."""
    if isinstance(value, list):
        return [moved(each, by) for each in value]
    return _SECOND.sub(lambda found: str(int(found[0]) + by), value) if isinstance(value, str) else value


def check(speaker: Speaker, line: Line, by: int) -> None:
    said = speaker.say("c1", *moved(line.words, by))
    assert like(said, moved(line.reply, by)), f"{line.text}\n  ours   {said!r}\n  theirs {line.reply!r}"


def test_the_recording_replays_without_a_socket() -> None:
    direct = Direct(PlainDispatcher(now=Now(float(BEGAN), 1_000.0)))
    for section in RECORDED:
        if section.title == "step 36: batch2: push after expiry":
            direct.dispatcher.advance(2.0)
        for line in section.lines:
            check(direct, line, 0)
    direct.close()


@pytest.mark.clients
@pytest.mark.parametrize("by", SPEAKERS)
def test_the_recording_replays_on_a_real_server(by: str, tmp_path: Path) -> None:
    if by == "php":
        need_php()
    with Server(tmp_path, protocols=("redis",)) as server:
        speaker = SPEAKERS[by](server.ports["redis"])
        later = int(time.time()) - BEGAN
        for section in RECORDED:
            for line in section.lines:
                if section.title == "step 36: batch2: push after expiry":
                    wait_until_gone(speaker, line.words[1])
                check(speaker, line, later)
        speaker.close()


def wait_until_gone(speaker: Speaker, key: str) -> None:
    wait_until(lambda: not speaker.say("c2", "EXISTS", key), f"the end of {key}")


def test_the_recording_has_all_its_lines() -> None:
    assert sum(len(section.lines) for section in RECORDED) == 52
