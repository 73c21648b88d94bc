"""The examples of docs/reference/faktory-extensions.md, run in their order on one connection."""

import json
import re
from pathlib import Path
from typing import Final

import pytest

from crossdock.protocols.faktory import extensions
from tests.support.conversation import ClockedFaktory, Conversation
from tests.support.dispatcher import PlainDispatcher
from tests.support.extended_peer import read

PAGE: Final = (Path(__file__).parents[4] / "docs" / "reference" / "faktory-extensions.md").read_text("utf-8")
_EXCHANGE: Final = re.compile(r"^> (.+)\n< (.+)$", re.MULTILINE)


def test_each_example_gets_the_reply_on_the_page() -> None:
    dispatcher = PlainDispatcher()
    peer = Conversation(dispatcher, ClockedFaktory(dispatcher))
    exchanges = _EXCHANGE.findall(PAGE)
    assert len(exchanges) > 25
    for request, reply in exchanges:
        found = read(peer.ask(request))
        if request.startswith("HELLO"):
            found["version"] = "0.1.0"
        expected = reply if reply.startswith(("+", "-")) else json.loads(reply)
        assert found == expected, request


@pytest.mark.parametrize("verb", sorted(verb.decode() for verb in extensions.VERBS))
def test_every_command_has_an_example(verb: str) -> None:
    assert re.search(rf"^> {verb} ", PAGE, re.MULTILINE)


def test_every_extension_is_described() -> None:
    assert set(extensions.NAMES) <= set(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE))
